//! What ends where threads, files or memory end: each command says which limit that is, and nothing panics or aborts.

use crate::LIMIT;
use crate::common::until;
use crate::program::{self, Ended, Program, hcabench};
use crate::testing::{Has as _, temporary};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

/// In small pages, which a user may lock.
const NODE: &str =
    "node --rate 1k --duration 50ms --warmup 0s --drain 50ms --hugepages off --out out";
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

/// The points of a run that are complete.
fn complete(folder: &Path) -> usize {
    let rows = fs::read_to_string(folder.join("out/runs.csv")).unwrap_or_default();
    let complete = rows.lines().filter(|line| line.contains(",complete,"));
    complete.count()
}

/// How many files are open already, and how many a node-type takes, is not the same everywhere: of all these limits one
/// is enough for the one node-type and too low for the other.
#[test]
fn files_that_end_fail_their_point_with_the_limit_and_others_go_on() {
    let types = match cfg!(feature = "zeromq") {
        true => "udp,zeromq",
        false => "udp",
    };
    let mut goes_on = !cfg!(feature = "zeromq");
    for files in (8..=96).step_by(4) {
        let folder = &*temporary("");
        let limit = format!("--nofile={files}");
        let words = format!("{NODE} --type {types}");
        let ended = under(&["prlimit", &limit], &words, folder);
        ended_well(&ended, &[0, 1]);
        if ended.status.success() {
            break;
        }
        ended.stderr.has(&["ulimit -n"]);
        ended.stderr.lacks(&["ulimit -u"]);
        if complete(folder) == 1 {
            ended.stderr.has(&["zeromq", "more files are needed"]);
            goes_on = true;
        }
    }
    assert!(goes_on);
}

/// A library in place of libzmq that aborts, behind what it does before.
#[cfg(feature = "zeromq")]
fn with_aborting_library(folder: &Path, before: &str) -> Ended {
    let functions = [
        "bind",
        "close",
        "connect",
        "ctx_term",
        "errno",
        "getsockopt",
        "poll",
        "recv",
        "send",
        "setsockopt",
        "socket",
        "strerror",
        "version",
    ];
    let others: String = (functions.iter())
        .map(|name| format!("void zmq_{name}(void) {{}}\n"))
        .collect();
    let text = format!(
        "#include <errno.h>\n#include <fcntl.h>\n#include <stdlib.h>\n{others}void *zmq_ctx_new(void) {{ {before} abort(); }}\n"
    );
    fs::write(folder.join("zmq.c"), text).unwrap();
    let build = ["gcc", "-shared", "-fPIC", "-o", "libzmq.so.5"];
    Program::under(&build, "zmq.c", "")
        .in_folder(folder)
        .ends(0);
    let words = format!("{NODE} --type zeromq,udp,shmem");
    Program::under(&["prlimit", "--nofile=64"], program::path(), &words)
        .in_folder(folder)
        .env("LD_LIBRARY_PATH", folder)
        .run()
}

#[cfg(feature = "zeromq")]
#[test]
fn a_library_that_aborts_loses_its_point_alone() {
    // An error of long ago is not why it does.
    for before in ["", "errno = ENOMEM;"] {
        let folder = &*temporary("");
        let ended = with_aborting_library(folder, before);
        ended_well(&ended, &[1]);
        assert_eq!(complete(folder), 2, "{}", ended.stderr);
        ended.stderr.has(&["zeromq", "ended early", "aborted"]);
        // No limit was reached.
        ended.stderr.lacks(&["ulimit", "suffice", "no more"]);
        let name = "zeromq-rate1000-8values-straight-run-1to1";
        let mark = fs::read_to_string(folder.join("out").join(name).join("INCOMPLETE")).unwrap();
        mark.has(&["ended early"]);
    }
}

#[cfg(feature = "zeromq")]
#[test]
fn a_library_that_aborts_at_a_limit_is_reported_with_the_limit() {
    let folder = &*temporary("");
    let ended = with_aborting_library(folder, "while (open(\"/dev/null\", 0) >= 0) {}");
    ended_well(&ended, &[1]);
    assert_eq!(complete(folder), 2, "{}", ended.stderr);
    ended
        .stderr
        .has(&["zeromq", "no more files could be opened", "ulimit -n"]);
    ended.stderr.lacks(&["ulimit -u", "ulimit -v"]);
}

#[test]
fn a_sigabrt_of_another_process_ends_it() {
    let folder = &*temporary("");
    let running =
        hcabench("clock --clock monotonic-raw --report histogram --duration 1h --out out")
            .in_folder(folder)
            .start();
    until("a run that has begun", || {
        folder.join("out/settings.json").exists().then_some(())
    });
    running.signal(Signal::SIGABRT);
    let ended = running.wait(LIMIT);
    assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{ended:?}");
    ended.stderr.has(&["ended by SIGABRT"]);
}

/// What stands before a program to run it as that user.
const AS_USER: [&str; 6] = [
    "setpriv",
    "--reuid",
    USER,
    "--regid",
    USER,
    "--clear-groups",
];

/// Whether a process can become that user: not as another one, nor where a namespace has no such user.
fn can_be_user() -> bool {
    let ended = Program::under(&AS_USER, "true", "").run();
    ended.status.success()
}

/// A program that a user without processes may run, and words that start it as that user with so many threads.
fn with_threads(threads: u32, folder: &Path) -> (PathBuf, Vec<String>) {
    let limit = format!("--nproc={threads}");
    if !can_be_user() {
        // Such a user has more than that anyway. The root of a namespace is limited like any other.
        return (program::path(), vec!["prlimit".to_owned(), limit]);
    }
    let copy = folder.join("hcabench");
    fs::copy(program::path(), &copy).unwrap();
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder, all).unwrap();
    let words = ["prlimit", &limit].into_iter().chain(AS_USER);
    (copy, words.map(str::to_owned).collect())
}

#[test]
fn threads_that_end_are_an_error_that_names_their_limit() {
    let folder = &*temporary("");
    for threads in [1, 3] {
        let (copy, limit) = with_threads(threads, folder);
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
            let program = Program::under(&limit, &copy, words).in_folder(folder);
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
fn memory_that_ends_is_an_exit_code_with_the_limit() {
    let folder = &*temporary("");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample/hca");
    let report = format!("report {} --out report.html", sample.display());
    // With the least the program cannot even be loaded, with the most all is well.
    let ended = (24..=120).step_by(8).map(|mebibytes: u64| {
        let limit = format!("--as={}", mebibytes << 20);
        under(&["prlimit", &limit], &report, folder)
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

/// Each thread of a round maps memory: one that is started meanwhile must find room for its stacks.
#[test]
fn threads_that_map_memory_leave_room_for_those_that_begin() {
    let folder = &*temporary("");
    let words = "queue --scenario fan-in --producers 6 --queue kanal --capacity 64 --duration 10ms --rounds 1 \
        --out out --force";
    // With the least its elements alone do not fit, with the most all is well.
    let (mut named, mut complete) = (0, 0);
    for mebibytes in (128..=288_u64).step_by(16).chain([16 << 10]) {
        let limit = format!("--as={}", mebibytes << 20);
        let ended = under(&["prlimit", &limit], words, folder);
        ended_well(&ended, &[0, 1, 2]);
        match ended.status.success() {
            true => complete += 1,
            false => named += u32::from(ended.stderr.contains("ulimit -v")),
        }
    }
    assert!(named > 0 && complete > 0, "{named}, {complete}");
}

/// A point that needs more memory than others fails alone.
#[test]
fn memory_that_a_point_cannot_map_fails_that_point() {
    let words = "node --type loopback --rate 1k,10M --duration 1s --warmup 0s --drain 50ms --hugepages off --out out";
    let space = format!("--as={}", 256 << 20);
    let data = format!("--data={}", 256 << 20);
    // More than is ever taken.
    let far = format!("--as={}", 1_u64 << 40);
    for (limits, named, other) in [
        (&["prlimit", &space][..], "ulimit -v", "ulimit -d"),
        (&["prlimit", &far, &data], "ulimit -d", "ulimit -v"),
    ] {
        let folder = &*temporary("");
        let ended = under(limits, words, folder);
        ended_well(&ended, &[1]);
        assert_eq!(complete(folder), 1, "{}", ended.stderr);
        ended.stderr.has(&[named]);
        ended.stderr.lacks(&[other]);
    }
}
