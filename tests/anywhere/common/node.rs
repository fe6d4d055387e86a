//! `hcabench node` as the tests of it start it.

use std::path::Path;

use super::hcabench;
use crate::program::{Ended, Program, Running};

/// With its results in `run`. The TSC may not be trusted where the tests run.
pub(crate) fn node(folder: &Path, words: &str) -> Program {
    let program = hcabench(folder, &format!("node --out run {words}"));
    if words.contains("--timer") {
        return program;
    }
    program.word("--timer").word("timerfd")
}

#[track_caller]
pub(crate) fn ends(folder: &Path, words: &str, code: i32) -> Ended {
    node(folder, words).ends(code)
}

pub(crate) fn start(folder: &Path, words: &str) -> Running {
    node(folder, words).start()
}
