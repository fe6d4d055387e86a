//! `hcabench node` as the tests of it start it, wait for it and read it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Row, told};

/// Only what hangs takes longer.
pub const HANGS: Duration = Duration::from_secs(120);

/// With its results in `run`. The TSC may not be trusted where the tests run.
pub fn node(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(crate::common::program());
    command
        .args(["node", "--out", "run"])
        .args(words.split_ascii_whitespace())
        .current_dir(folder);
    if !words.contains("--timer") {
        command.args(["--timer", "timerfd"]);
    }
    command
}

/// Its standard error, after it has ended with that code.
pub fn ended(output: &Output, code: i32) -> String {
    let told = told(output);
    assert_eq!(output.status.code(), Some(code), "{told}");
    told
}

pub fn start(folder: &Path, words: &str) -> Child {
    let mut command = node(folder, words);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

pub fn end(mut child: Child) -> Output {
    until("the end of the run", || child.try_wait().unwrap());
    child.wait_with_output().unwrap()
}

pub fn number(row: &Row, column: &str) -> u64 {
    let cell = &row[column];
    cell.parse()
        .unwrap_or_else(|_| panic!("{column}: {cell:?}"))
}

/// Waits until there is something.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(HANGS, what, look)
}

pub fn until_within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        sleep(Duration::from_millis(5));
    }
}

pub fn send(signal: Signal, process: u32) {
    kill(Pid::from_raw(process.cast_signed()), signal).unwrap();
}

/// How many threads of a process have a name that begins so.
pub fn threads(process: u32, name: &str) -> usize {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let names = (tasks.into_iter().flatten().flatten())
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|found| found.starts_with(name)).count()
}
