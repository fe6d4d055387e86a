//! The secret of two hosts: `serve` and `node --peer` with one, with two, and without.

use crate::LIMIT;
use crate::common;
use crate::program::{Program, Running};
use crate::testing::{Has as _, temporary};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::node::node;
use common::{hcabench, json, number, rows};

const SECRET: &str = "tJ8kVnq0w1Yd5m2RzXcL";
const OTHER: &str = "aN0ther.secret.than.this";
const EASY: &str = "--poll event --timer timerfd --probes 20 --hugepages off --rate 200 --count 20 --warmup 0 \
                    --after-miss catch-up";

fn file_with(folder: &Path, secret: &str) -> PathBuf {
    let file = folder.join("secret");
    fs::write(&file, format!("{secret}\n")).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file
}

fn serve(folder: &Path, more: &str) -> (Running, String) {
    let serving = hcabench(folder, &format!("serve --bind 127.0.0.1:0 {more}")).start();
    let address = serving.line_with("serving at ");
    (serving, address)
}

/// All files below a folder.
fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, all),
            false => all.push(path),
        }
    }
}

#[test]
fn all_rounds_are_measured_with_a_secret_that_no_file_of_the_results_has() {
    let folder = &*temporary("");
    let file = file_with(folder, SECRET);
    let words = format!("--secret-file {} --once", file.display());
    let (serving, address) = serve(folder, &words);
    // One end has it in a file, the other one in its environment, where its rounds find it.
    let words = format!("--peer {address} {EASY} --rounds 2 --type udp,tcp --samples");
    let ended = node(folder, &words).env("HCABENCH_SECRET", SECRET).ends(0);
    serving.wait(LIMIT).expect(0).stderr.lacks(&[SECRET]);
    ended.stderr.lacks(&[SECRET]);
    ended.stdout.lacks(&[SECRET]);
    let runs = rows(&folder.join("run/runs.csv"));
    assert_eq!(runs.len(), 4);
    for row in &runs {
        assert_eq!(
            (&*row["status"], number(row, "messages_received")),
            ("complete", 20),
            "{row:?}"
        );
    }
    let (mut all, run) = (Vec::new(), folder.join("run"));
    files(&run, &mut all);
    assert!(all.len() > 4, "{all:?}");
    for path in all {
        String::from_utf8_lossy(&fs::read(path).unwrap()).lacks(&[SECRET]);
    }
    assert!(
        !fs::read_to_string(run.join("findings.json"))
            .unwrap()
            .contains("without-secret")
    );
    // Again by the folder alone: with the file, of which only the name is recorded.
    let (serving, address) = serve(folder, &format!("--secret-file {} --once", file.display()));
    let words = format!(
        "rerun run --out again --peer {address} --secret-file {}",
        file.display()
    );
    hcabench(folder, &words).ends(0);
    serving.wait(LIMIT).expect(0);
    let again = json(&folder.join("again/settings.json"));
    let line = again["command_line"].to_string();
    line.has(&["--secret-file", "/secret"]);
    line.lacks(&[SECRET]);
}

#[test]
fn another_secret_or_none_is_named_at_both_ends_which_go_on() {
    let folder = &*temporary("");
    let file = file_with(folder, SECRET);
    let (serving, address) = serve(folder, &format!("--secret-file {}", file.display()));
    let run = format!("--peer {address} {EASY} --type udp");
    let differ = [
        "closed the connection before it answered",
        "the secrets differ",
        "--secret-file",
    ];
    let wrong = node(folder, &run).env("HCABENCH_SECRET", OTHER).ends(1);
    wrong.told().has(&differ);
    let asked =
        ["closed the connection before it answered: if it has a secret, give this end the same"];
    node(folder, &run).ends(1).told().has(&asked);
    // The environment does not count where none is wanted.
    let none = node(folder, &format!("{run} --without-secret"));
    none.env("HCABENCH_SECRET", SECRET)
        .ends(1)
        .told()
        .has(&asked);
    assert!(!folder.join("run/summary.csv").exists());
    let right = format!("{run} --secret-file {} --force", file.display());
    // A file that is named goes before the environment.
    node(folder, &right).env("HCABENCH_SECRET", OTHER).ends(0);
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    let served = serving.wait(LIMIT).expect(0).told();
    served.has(&[
        "refused 127.0.0.1",
        "has another secret: give both the same secret by --secret-file or HCABENCH_SECRET",
        "shows no secret, and there is one here",
    ]);
    let (serving, address) = serve(folder, "");
    let run = format!(
        "--peer {address} {EASY} --type udp --force --secret-file {}",
        file.display()
    );
    node(folder, &run).ends(1).told().has(&differ);
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    let served = serving.wait(LIMIT).expect(0).told();
    served.has(&["shows a secret, and there is none here"]);
}

#[test]
fn without_a_secret_only_this_host_is_served_and_bad_secrets_are_refused_before_anything_else() {
    let folder = &*temporary("");
    let file = file_with(folder, "short");
    for (words, said) in [
        (
            "serve --bind 0.0.0.0:0",
            &[
                "--bind 0.0.0.0:0: there is no secret",
                "--secret-file FILE",
                "--without-secret",
            ][..],
        ),
        (
            "serve --bind [::]:0",
            &["--bind [::]:0: there is no secret"],
        ),
        (
            "serve --secret-file secret",
            &[
                "--secret-file secret: the secret has 5 bytes: allowed are 16 to 4096",
                "/dev/urandom",
            ],
        ),
        (
            "serve --secret-file missing",
            &["--secret-file missing: No such file"],
        ),
        (
            "node --peer 127.0.0.1:1 --secret-file secret --out run",
            &["has 5 bytes"],
        ),
        (
            "node --secret-file secret --out run",
            &["--secret-file: there is one host"],
        ),
        (
            "node --without-secret --out run",
            &["--without-secret: there is one host"],
        ),
        (
            "serve --without-secret --secret-file secret",
            &["--without-secret", "cannot be used with", "--secret-file"],
        ),
    ] {
        hcabench(folder, words).ends(2).told().has(said);
        assert!(!folder.join("run").exists(), "{words}");
    }
    let serve = hcabench(folder, "serve --bind 127.0.0.1:0").env("HCABENCH_SECRET", "word");
    serve
        .ends(2)
        .told()
        .has(&["HCABENCH_SECRET: the secret has 4 bytes"]);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let serve = hcabench(folder, "serve --bind 127.0.0.1:0 --secret-file secret");
    serve.ends(2).told().has(&["its mode is 644", "chmod 600"]);
}

#[test]
fn a_run_with_a_host_that_others_could_connect_to_has_that_finding() {
    let folder = &*temporary("");
    for (options, secret, expected) in [
        ("--bind 0.0.0.0:0 --without-secret --once", None, true),
        ("--bind 127.0.0.1:0 --once", None, false),
        ("--bind 0.0.0.0:0 --once", Some(SECRET), false),
    ] {
        let with_secret = |program: Program| match secret {
            Some(secret) => program.env("HCABENCH_SECRET", secret),
            None => program,
        };
        let serving = with_secret(hcabench(folder, &format!("serve {options}"))).start();
        let address = serving
            .line_with("serving at ")
            .replace("0.0.0.0", "127.0.0.1");
        let run = format!("--peer {address} {EASY} --type udp --force");
        let ended = with_secret(node(folder, &run)).ends(0);
        serving.wait(LIMIT).expect(0);
        let findings = fs::read_to_string(folder.join("run/findings.json")).unwrap();
        assert_eq!(
            findings.contains("without-secret"),
            expected,
            "{options}: {findings}"
        );
        assert_eq!(
            ended.stdout.contains("without a secret"),
            expected,
            "{ended:?}"
        );
    }
}
