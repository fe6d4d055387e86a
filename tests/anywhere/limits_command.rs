//! What ends where threads, files or memory end: each command says which limit that is, and nothing panics or aborts.

use crate::program::{self, Ended, Program};
use crate::testing::Has as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

const NODE: &str = "node --rate 1k --duration 50ms --warmup 0s --drain 50ms --out out";
/// It has no processes: a limit on processes is that of a user, and root has none.
const USER: &str = "65433";

/// The exit code is one of a program that has ended by itself.
fn ended_well(ended: &Ended, allowed: &[i32]) {
    let code = ended.status.code();
    assert!(
        code.is_some_and(|code| allowed.contains(&code)),
        "{:?}: {}",
        ended.status,
        ended.stderr
    );
    ended.stderr.lacks(&["panicked"]);
}

fn under(limit: &[&str], words: &str, folder: &Path) -> Ended {
    Program::under(limit, program::path(), words)
        .in_folder(folder)
        .run()
}

#[test]
fn files_that_end_fail_their_point_with_the_limit_and_others_go_on() {
    let types = match cfg!(feature = "zeromq") {
        true => "udp,zeromq",
        false => "udp",
    };
    for files in (8..=40).step_by(4) {
        let folder = tempfile::tempdir().unwrap();
        let limit = format!("--nofile={files}");
        let words = format!("{NODE} --type {types}");
        let ended = under(&["prlimit", &limit], &words, folder.path());
        ended_well(&ended, &[0, 1]);
        if !ended.status.success() {
            ended.stderr.has(&["ulimit -n"]);
            ended.stderr.lacks(&["ulimit -u"]);
        }
        if cfg!(feature = "zeromq") && files == 24 {
            let rows = fs::read_to_string(folder.path().join("out/runs.csv")).unwrap();
            let complete = rows
                .lines()
                .filter(|line| line.contains(",complete,"))
                .count();
            assert_eq!(complete, 1, "{rows}\n{}", ended.stderr);
            ended.stderr.has(&["zeromq", "more files are needed"]);
        }
    }
}

/// A program that a user without processes may run, and words that start it as that user with so many threads.
fn with_threads(threads: u32, folder: &Path) -> (PathBuf, Vec<String>) {
    let limit = format!("--nproc={threads}");
    if !nix::unistd::geteuid().is_root() {
        // There are more than that anyway.
        return (program::path(), vec!["prlimit".to_owned(), limit]);
    }
    let copy = folder.join("hcabench");
    fs::copy(program::path(), &copy).unwrap();
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder, all).unwrap();
    let words = [
        "prlimit",
        &limit,
        "--memlock=unlimited",
        "setpriv",
        "--reuid",
        USER,
        "--regid",
        USER,
        "--clear-groups",
    ];
    (copy, words.map(str::to_owned).to_vec())
}

#[test]
fn threads_that_end_are_an_error_that_names_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    for threads in [1, 3] {
        let (copy, limit) = with_threads(threads, folder.path());
        let limit: Vec<&str> = limit.iter().map(String::as_str).collect();
        for words in [
            "host",
            "clock --duration 50ms --out out --force",
            "queue --queue baton --capacity 64 --load none --payload 8 --duration 10ms --rounds 1 --out out --force",
            "memory --windows 2 --size 4M --pause 0 --read-share 100 --rounds 1 --out out --force",
            &format!("{NODE} --force --type shmem --ends processes"),
            &format!("{NODE} --force --type loopback"),
            &format!("{NODE} --force --type zeromq"),
        ] {
            if words.contains("zeromq") && !cfg!(feature = "zeromq") {
                continue;
            }
            let program = Program::under(&limit, &copy, words).in_folder(folder.path());
            let ended = program.run();
            ended_well(&ended, &[0, 1, 2]);
            if threads == 1 {
                let text = format!("{}{}", ended.stdout, ended.stderr);
                text.has(&["ulimit -u"]);
                text.lacks(&["ulimit -n"]);
            }
        }
    }
}

#[test]
fn memory_that_ends_is_an_exit_code_with_the_limits_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample/hca");
    let report = format!("report {} --out report.html", sample.display());
    // With the least the program cannot even be loaded, with the most all is well.
    let ended = (24..=120).step_by(8).map(|mebibytes: u64| {
        let limit = format!("--as={}", mebibytes << 20);
        under(&["prlimit", &limit], &report, folder.path())
    });
    let mut named = 0;
    for ended in ended {
        assert_ne!(
            ended.status.signal(),
            Some(libc::SIGABRT),
            "{}",
            ended.stderr
        );
        ended.stderr.lacks(&["panicked"]);
        if ended.status.code() == Some(1) {
            ended.stderr.has(&["ulimit -v"]);
            named += 1;
        }
    }
    assert!(named > 0);
}
