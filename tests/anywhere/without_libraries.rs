//! The program where libibverbs cannot be loaded.
use crate::program::{Ended, hcabench};
use crate::testing::{Has as _, temporary};
use std::fs;

/// Runs the program with a file in place of libibverbs that is no library.
fn ends(words: &str, code: i32) -> Ended {
    let folder = &*temporary("");
    fs::write(folder.join("libibverbs.so.1"), "").unwrap();
    let program = hcabench(words).in_folder(folder);
    program.env("LD_LIBRARY_PATH", folder).ends(code)
}

#[test]
fn what_needs_no_device_works_and_the_rest_says_what_to_install() {
    for works in [
        "queue --list",
        "clock --iterations 10k --baseline-iterations 1k --quiet",
    ] {
        ends(works, 0);
    }
    for needs_a_device in [
        "devices",
        "--service rc --burst 10",
        "--service uc --uc-route patched",
    ] {
        let told = ends(needs_a_device, 1).stderr;
        told.has(&["libibverbs.so.1", "install", "librdmacm1", "run without"]);
    }
}
