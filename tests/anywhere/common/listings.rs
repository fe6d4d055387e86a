//! Running the listings in C.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::program::{Ended, Program, Running};
use std::os::unix::process::CommandExt as _;

pub(crate) const LISTINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/listings");
pub(crate) const COMPILERS: [&str; 2] = ["gcc", "clang"];

/// A listing as one compiler built it, in a process group of its own: all that it starts ends with it.
pub(crate) fn start(compiler: &'static str, program: &str, words: &str) -> Running {
    let program = Program::under(&[], built_by(compiler).join(program), words);
    program.change(|command| command.process_group(0)).start()
}

pub(crate) fn run(compiler: &'static str, program: &str, words: &str) -> Ended {
    start(compiler, program, words).wait(crate::LIMIT)
}

pub(crate) fn built_by(compiler: &'static str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let folder =
        |compiler| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("listings-{compiler}"));
    BUILT.get_or_init(|| {
        for compiler in COMPILERS {
            // What needs no RDMA is all there is on a machine without its headers.
            let what = if cfg!(feature = "rdma") {
                "all"
            } else {
                "machine"
            };
            let make = ["make", "--silent", "--always-make", "-C", LISTINGS, what];
            let out = format!("OUT={}", folder(compiler).display());
            let cc = format!("CC={compiler}");
            Program::under(&make, cc, "").word(&out).ends(0);
        }
    });
    folder(compiler)
}
