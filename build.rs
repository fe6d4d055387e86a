//! Tells the program the commit that it is built from, where git is there to ask, and has the linker keep one of equal
//! functions, where it can.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Of functions that the compiler made equal for several types, the linker keeps one. Data stays apart.
const FOLD: &str = "-Wl,--icf=all";

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned())
}

/// Whether an empty program links with [`FOLD`] by the linker and the flags of this build: Rust's own linker, the
/// default on x86-64 since 1.90, knows it, that of GNU does not.
fn folds() -> Option<bool> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let source = folder.join("empty.rs");
    fs::write(&source, "fn main() {}").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.arg("--target").arg(env::var_os("TARGET")?);
    rustc.arg(source).arg("-o").arg(folder.join("empty"));
    rustc.arg(format!("-Clink-arg={FOLD}"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.to_str()?));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    Some(rustc.output().ok()?.status.success())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Written whenever another commit is checked out or made.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=HCABENCH_COMMIT={commit}");
    }
    if env::var("PROFILE").as_deref() == Ok("release") && folds() == Some(true) {
        println!("cargo::rustc-link-arg-bins={FOLD}");
    }
}
