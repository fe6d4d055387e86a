//! The program where libibverbs cannot be loaded.
use std::fs;
use std::process::{Command, Output};

/// Runs the program with a file in place of libibverbs that is no library.
fn hcabench(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libibverbs.so.1"), "").unwrap();
    Command::new(crate::common::program())
        .args(arguments)
        .current_dir(folder.path())
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .unwrap()
}

#[test]
fn what_needs_no_device_works_and_the_rest_says_what_to_install() {
    for works in [
        &["queue", "--list"][..],
        &[
            "clock",
            "--iterations",
            "10k",
            "--baseline-iterations",
            "1k",
            "--quiet",
        ],
    ] {
        let ended = hcabench(works);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{works:?}: {told}");
    }
    for needs_a_device in [
        &["devices"][..],
        &["--service", "rc", "--burst", "10"],
        &["--service", "uc", "--uc-route", "patched"],
    ] {
        let ended = hcabench(needs_a_device);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{told}");
        for said in ["libibverbs.so.1", "install", "librdmacm1", "run without"] {
            assert!(told.contains(said), "{said:?} is not in: {told}");
        }
    }
}
