//! `hcabench compare` as its user has it: exit codes, tables, JSON, and what it refuses, on real results.

use std::path::Path;
use std::process::{Command, Output};

fn hcabench(folder: &Path, words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hcabench"))
        .args(words.split_ascii_whitespace())
        .current_dir(folder)
        .env_remove("COLUMNS")
        .output()
        .unwrap()
}

#[track_caller]
fn expect(output: Output, code: i32) -> (String, String) {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
    // However the lines are broken.
    let stderr: Vec<&str> = stderr.split_whitespace().collect();
    (stdout, stderr.join(" "))
}

/// Two runs of a queue, the second with a receiver that takes its time; a copy of the first.
fn queue_runs(folder: &Path) {
    let run = "queue --queue lamport --capacity 64 --count 2000 --warmup 100 --clock monotonic --quiet --load constant-wait \
               --wait 1us";
    expect(hcabench(folder, &format!("{run} --out base")), 0);
    let slow = format!("{run} --receiver-load constant-wait --receiver-wait 50us --out slow");
    expect(hcabench(folder, &slow), 0);
    let copied = Command::new("cp")
        .args(["-r", "base", "same"])
        .current_dir(folder)
        .status();
    assert!(copied.unwrap().success());
}

#[test]
fn queues_are_compared_run_by_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    queue_runs(folder);

    let (table, _) = expect(
        hcabench(
            folder,
            "compare base same --max-regression 0%@p50,0%@throughput",
        ),
        0,
    );
    for words in [
        "latency p50",
        "throughput",
        "no difference shown",
        "9 repetitions",
        "limit 0%@p50: kept by 3 of 3 figures",
    ] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    let header = table.lines().next().unwrap();
    let verdict_at = header.find("verdict").unwrap();
    for line in table
        .lines()
        .filter(|line| line.contains("no difference shown") && !line.contains(':'))
    {
        assert_eq!(line.find("no difference"), Some(verdict_at), "{table}");
    }

    // The receiver's load is a setting of the point.
    let (_, error) = expect(hcabench(folder, "compare base slow"), 2);
    assert!(
        error.contains("no point in common")
            && error.contains("receiver_load")
            && error.contains("--anyway"),
        "{error}"
    );
    let limits = "--max-regression 10%@p50,10%@throughput";
    let (table, warnings) = expect(
        hcabench(folder, &format!("compare base slow --anyway {limits}")),
        3,
    );
    assert!(table.contains("worse, BROKEN"), "{table}");
    assert!(
        warnings.contains("differ in receiver_load: none and constant-wait"),
        "{warnings}"
    );

    let (text, _) = expect(
        hcabench(
            folder,
            &format!("compare base slow --anyway {limits} --json"),
        ),
        3,
    );
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["verdict"]["broken"], true);
    let figures = document["comparison"]["points"][0]["figures"]
        .as_array()
        .unwrap();
    let of = |of: &str, kind: &str| {
        figures
            .iter()
            .find(|figure| figure["of"] == of && figure["kind"] == kind)
            .unwrap_or_else(|| panic!("{of} {kind} is not in {figures:?}"))
    };
    // A full queue of 64 waits for 64 times 50 us.
    let latency = of("latency", "p50");
    assert_eq!(latency["verdict"], "worse");
    assert_eq!(latency["unit"], "ns");
    assert!(
        latency["difference"]["together"][0].as_f64().unwrap() > 1e6,
        "{latency}"
    );
    assert_eq!(of("queue", "throughput")["verdict"], "worse");

    let (nothing, _) = expect(hcabench(folder, "compare base same --quiet"), 0);
    assert_eq!(nothing, "");

    // What happened to a file is said with its name.
    let point = std::fs::read_dir(folder.join("same"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    let file = point.join("runs.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let fewer = lines[..lines.len() - 1].join("\n") + "\n";
    let last = lines[lines.len() - 1];
    let throughput = lines[0]
        .split(',')
        .position(|column| column == "throughput_per_s")
        .unwrap();
    let mut cells: Vec<&str> = last.split(',').collect();
    cells[throughput] = "abc";
    let other = format!("{fewer}{}\n", cells.join(","));
    for (text, reason) in [
        (&fewer, "has 8 rows, where the summary tells of 9"),
        (&other, "in line 10: throughput_per_s is \"abc\""),
    ] {
        std::fs::write(&file, text).unwrap();
        let (_, error) = expect(hcabench(folder, "compare base same"), 1);
        assert!(
            error.contains("runs.csv") && error.contains(reason),
            "{error}"
        );
    }
    std::fs::remove_file(&file).unwrap();
    let (_, error) = expect(hcabench(folder, "compare base same"), 1);
    assert!(
        error.contains("runs.csv is missing") && error.contains("measure again"),
        "{error}"
    );
}

#[test]
fn clocks_are_compared_by_their_jumps() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = "clock --clock monotonic --duration 300ms --baseline-iterations 100k --threshold 1us --quiet --out";
    expect(hcabench(folder, &format!("{run} base")), 0);
    let (table, _) = expect(hcabench(folder, "compare base base"), 0);
    for words in ["jump-time", "jumps", "jump length p50", "jump length p99"] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    let (_, error) = expect(
        hcabench(folder, "compare base base --max-regression 5%@throughput"),
        2,
    );
    assert!(
        error.contains("--max-regression")
            && error.contains("no throughput to compare, but percentiles of jump lengths"),
        "{error}"
    );
    // No 300 ms have so many jumps that this is judged, and a limit that is not judged is not kept. Whether the others are
    // judged is a matter of what else the machine does; made-up clocks keep them in src/compare/tests.rs.
    let limits = "5%@jump-time,5%@jumps,5%@p99.9999";
    let (_, error) = expect(
        hcabench(
            folder,
            &format!("compare base base --max-regression {limits}"),
        ),
        1,
    );
    assert!(error.contains("jump length p99.9999 at cpu"), "{error}");
}

#[test]
fn what_cannot_be_compared_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_, error) = expect(hcabench(folder, "compare nowhere nothing"), 1);
    assert!(
        error.contains("BASE") && error.contains("nowhere does not exist"),
        "{error}"
    );
    let (_, error) = expect(hcabench(folder, "compare . . --max-regression 5"), 2);
    assert!(error.contains("5%@p50"), "{error}");

    // Five runs give no interval, so that a limit cannot be kept or broken.
    let run = "queue --queue lamport --count 500 --warmup 10 --clock monotonic --quiet --repeat 5 --out base";
    expect(hcabench(folder, run), 0);
    let (table, _) = expect(hcabench(folder, "compare base base"), 0);
    assert!(table.contains("not judged"), "{table}");
    let (_, error) = expect(
        hcabench(folder, "compare base base --max-regression 5%@p50"),
        1,
    );
    assert!(
        error.contains("could not be judged at all points: latency p50 at")
            || error.contains("could not be judged at all points: enqueue p50 at"),
        "{error}"
    );
    let (_, error) = expect(hcabench(folder, "compare base base --percentiles p95"), 2);
    assert!(
        error.contains("no p95") && error.contains("p99.99"),
        "{error}"
    );
}
