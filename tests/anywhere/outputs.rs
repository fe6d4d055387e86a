//! Standard output and standard error that are full or closed, or whose reader has gone.

use crate::common::hcabench;
use crate::program::{Ended, Program};
use crate::testing::{Has as _, temporary};
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Stdio;

/// Something of each command that prints and needs no device, and its exit code.
fn commands(folder: &Path) -> Vec<(String, i32)> {
    let queue = "--queue lamport --count 300 --warmup 1ms --clock monotonic --rounds 1";
    hcabench(folder, &format!("queue {queue} --out run")).ends(0);
    hcabench(folder, &format!("queue {queue} --out damaged")).ends(0);
    fs::write(folder.join("damaged/findings.json"), "").unwrap();
    let printed = [
        "--help",
        "-h",
        "--version",
        "help",
        "help plot median",
        "queue --help",
        "plot histogram --help",
        "queue --list",
        "queue --dry-run",
        "queue --dry-run --json",
        "memory --dry-run",
        "node --dry-run --type loopback",
        "clock --dry-run",
        "show run",
        "show run --json",
        "show damaged",
        "list .",
        "compare run run",
        "compare run run --json",
        "plot median run --json --out figure.svg",
        "clock --duration 50ms --force --out clock",
        "host --for clock",
    ];
    let code = |words: &str| hcabench(folder, words).run().status.code().unwrap();
    printed
        .map(|words| (words.to_owned(), code(words)))
        .to_vec()
}

fn full() -> Stdio {
    OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

/// As the shell starts it, with such a redirection.
fn redirected(folder: &Path, words: &str, how: &str) -> Program {
    let program = hcabench(folder, words);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("exec \"$@\" {how}"), "sh"]);
    command
        .arg(program.0.get_program())
        .args(program.0.get_args());
    Program(command).in_folder(folder).change(|command| {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
    })
}

/// As without the redirection; whether the machine is ready may change meanwhile, by its load.
#[track_caller]
fn as_usual(ended: Ended, words: &str, code: i32) -> Ended {
    let found = ended.status.code();
    match words.starts_with("host") && [Some(0), Some(1)].contains(&found) {
        true => ended,
        false => ended.expect(code),
    }
}

#[test]
fn what_cannot_be_printed_is_an_error_and_a_reader_that_has_gone_is_none() {
    let folder = &*temporary("");
    for (words, code) in commands(folder) {
        let fails = |ended: Ended, reason: &str| {
            ended
                .expect(1)
                .says(&["cannot write to standard output: ", reason]);
        };
        fails(
            hcabench(folder, &words)
                .change(|it| it.stdout(full()))
                .run(),
            "No space left on device",
        );
        fails(redirected(folder, &words, ">&-").run(), "it is closed");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = hcabench(folder, &words).change(|it| it.stdout(writer));
        let ended = as_usual(ended.run(), &words, code);
        ended.stderr.lacks(&["hcabench: ", "panicked"]);
    }
}

#[test]
fn what_cannot_be_said_on_standard_error_changes_nothing() {
    let folder = &*temporary("");
    let mut commands = commands(folder);
    let refused = ["--bogus", "queue --count none", "report run --out ."];
    commands.extend(refused.map(|words| (words.to_owned(), 2)));
    commands.push(("show nowhere".to_owned(), 1));
    commands.push(("report run --out page.html".to_owned(), 0));
    commands.push(("report damaged --out page.html".to_owned(), 1));
    for (words, code) in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        for program in [
            hcabench(folder, &words).change(|it| it.stderr(full())),
            redirected(folder, &words, "2>&-"),
            hcabench(folder, &words).change(|it| it.stderr(writer)),
        ] {
            as_usual(program.run(), &words, code);
        }
    }
}

/// What was measured is kept, and where it is is printed.
#[test]
fn a_run_that_cannot_be_printed_is_complete_on_disk() {
    let folder = &*temporary("");
    let words = "queue --queue lamport --count 300 --warmup 1ms --clock monotonic --out run";
    let ended = hcabench(folder, words)
        .change(|it| it.stdout(full()))
        .ends(1);
    ended.stderr.has(&["results:  run\n"]);
    assert!(!folder.join("run/INCOMPLETE").exists());
}
