//! What a sweep writes for other programs, read by these: the lines of `--json-lines` by Python's jsonschema, the file of
//! `--prometheus` by promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::LIMIT;
use crate::common::{Row, ends, hcabench, rows};
use crate::program::exports::{lines, promtool_reads, read_by};
use crate::testing::{Has as _, temporary};

const QUEUES: &str = "queue --queue lamport,rtrb --count 200 --warmup 1ms --repeat 1 --capacity 64 --clock \
                      monotonic --out run";

fn of_type<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == name).collect()
}

/// That the objects have the cells of the rows, in their order.
#[track_caller]
fn assert_same(lines: &[&Value], rows: &[Row]) {
    assert_eq!(lines.len(), rows.len());
    for (line, row) in lines.iter().zip(rows) {
        let cells = line["row"].as_object().unwrap();
        assert_eq!(cells.len(), row.len());
        for (name, cell) in cells {
            let text = &row[name];
            match cell {
                Value::Null => assert_eq!(text, "", "{name}"),
                Value::String(cell) => assert_eq!(cell, text, "{name}"),
                Value::Bool(cell) => assert_eq!(&cell.to_string(), text, "{name}"),
                other => assert_eq!(other.as_f64(), text.parse().ok(), "{name}"),
            }
        }
    }
}

#[test]
fn the_lines_of_a_run_are_its_rows_as_they_come() {
    let folder = &*temporary("");
    ends(
        folder,
        &format!("{QUEUES} --rounds 2 --json-lines run.jsonl"),
        0,
    );
    let (lines, types) = lines(&folder.join("run.jsonl"));
    assert_eq!(types[0], "begin");
    assert_eq!(types.last().unwrap(), "end");
    let begin = &lines[0];
    assert_eq!((&begin["points"], &begin["rounds"]), (&2.into(), &2.into()));
    assert_eq!(begin["columns"]["latency_p50_ns"]["unit"], "ns");
    assert_same(
        &of_type(&lines, "round"),
        &rows(&folder.join("run/runs.csv")),
    );
    // They come in the order in which points were completed, each behind its last round.
    let mut points = of_type(&lines, "point");
    points.sort_by_key(|line| line["row"]["point"].to_string());
    let mut summary = rows(&folder.join("run/summary.csv"));
    summary.sort_by_key(|row| row["point"].clone());
    assert_same(&points, &summary);
    let last = types.iter().rposition(|it| it == "round").unwrap();
    let first = types.iter().position(|it| it == "point").unwrap();
    assert!(first < last, "{types:?}");
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["status"], &end["rounds_done"]),
        (&"complete".into(), &2.into())
    );
    let found = fs::read_to_string(folder.join("run/findings.json")).unwrap();
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(end["findings"], found["findings"]);
    let kinds = |all: &Value| {
        let all = all.as_array().unwrap().iter();
        all.map(|it| it["kind"].to_string())
            .collect::<BTreeSet<_>>()
    };
    let streamed: Value = of_type(&lines, "finding")
        .iter()
        .map(|it| it["finding"].clone())
        .collect();
    // Some follow from all rows, and come with the end alone.
    assert!(kinds(&streamed).is_subset(&kinds(&end["findings"])));
    // A run again has a file of its own.
    ends(folder, "rerun run --out again --rounds 1", 0);
}

#[test]
fn lines_take_the_place_of_the_tables() {
    let folder = &*temporary("");
    let ended = ends(folder, &format!("{QUEUES} --json-lines -"), 0);
    fs::write(folder.join("printed"), &ended.stdout).unwrap();
    let (_, types) = lines(&folder.join("printed"));
    assert_eq!(types.iter().filter(|it| *it == "round").count(), 2);
    // A reader that is gone has seen enough.
    let ended = hcabench(
        folder,
        &format!("{QUEUES} --force --json-lines /dev/stdout"),
    );
    ended.ends(0);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let running = hcabench(folder, &format!("{QUEUES} --force --json-lines -"));
    running.change(|command| command.stdout(writer)).ends(0);
    assert!(!folder.join("run/INCOMPLETE").exists());
}

#[test]
fn what_could_not_be_written_is_refused_before_anything_is_measured() {
    let folder = &*temporary("");
    fs::write(folder.join("ours"), "ours").unwrap();
    for (options, parts) in [
        ("--json-lines ours", ["--json-lines ours", "it exists"]),
        (
            "--json-lines none/run.jsonl",
            ["--json-lines none/run.jsonl", "No such file"],
        ),
        (
            "--json-lines - --json",
            ["--json-lines -", "leave one of them out"],
        ),
        (
            "--prometheus none/run.prom",
            ["--prometheus none/run.prom", "its folder does not exist"],
        ),
        ("--prometheus .", ["--prometheus .", "name a file"]),
    ] {
        ends(folder, &format!("{QUEUES} {options}"), 2)
            .told()
            .has(&parts);
        assert!(!folder.join("run").exists(), "{options}");
    }
    assert_eq!(fs::read_to_string(folder.join("ours")).unwrap(), "ours");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

#[test]
fn an_interrupted_run_says_so_in_its_last_line() {
    let folder = &*temporary("");
    let words = "queue --queue lamport --load constant-rate --rate 1k --duration 100s --warmup 0 --repeat 1 --clock \
                 monotonic --rounds 2 --out run --json-lines run.jsonl --prometheus run.prom";
    let running = hcabench(folder, words).start();
    let file = folder.join("run.jsonl");
    crate::program::until("the first line", LIMIT, || {
        fs::read_to_string(&file)
            .ok()
            .filter(|text| text.contains('\n'))
    });
    running.signal(Signal::SIGINT);
    running.wait(LIMIT).expect(1);
    let (lines, types) = lines(&file);
    assert_eq!(types.last().unwrap(), "end");
    let end = lines.last().unwrap();
    assert_eq!(end["status"], "incomplete");
    end["failure"]
        .as_str()
        .unwrap()
        .has(&["interrupted by SIGINT"]);
    let gauges = fs::read_to_string(folder.join("run.prom")).unwrap();
    gauges.has(&["hcabench_queue_run_complete 0\n"]);
}

#[test]
fn each_benchmark_is_read_by_jsonschema_promtool_and_a_parser_of_openmetrics() {
    for (benchmark, words) in [
        ("queue", QUEUES.strip_prefix("queue ").unwrap()),
        (
            "clock",
            "--clock monotonic --iterations 100k --baseline-iterations 10k --out run",
        ),
        (
            "memory",
            "--windows 2 --size 1M --pause off --read-share 100 --rounds 1 --out run",
        ),
        (
            "node",
            "--type loopback,shmem --rate 1k --duration 50ms --warmup 0 --out run",
        ),
        ("cores", "--duration 5ms --rounds 1 --out run"),
    ] {
        let folder = &*temporary("");
        let exports = "--json-lines run.jsonl --prometheus run.prom --label 'v\"1'";
        ends(folder, &format!("{benchmark} {words} {exports}"), 0);
        let summary = rows(&folder.join("run/summary.csv"));
        let (found, types) = lines(&folder.join("run.jsonl"));
        assert_eq!(types.last().unwrap(), "end", "{benchmark}");
        assert_eq!(of_type(&found, "point").len(), summary.len(), "{benchmark}");

        let file = folder.join("run.prom");
        let text = fs::read_to_string(&file).unwrap();
        promtool_reads(&file);
        text.has(&[&format!("hcabench_{benchmark}_run_complete 1\n"), "# EOF\n"]);
        // The one that Debian's python3-prometheus-client is for.
        let mut parser = Command::new("/usr/bin/python3");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let parser = parser.arg(root.join("tests/anywhere/gauges.py"));
        let parsed = read_by(parser.arg(&file));
        let parsed = parsed.lines().filter_map(|line| {
            let (of, value) = line.rsplit_once(' ')?;
            Some((of, value.parse::<f64>().ok()?))
        });
        let parsed: BTreeMap<&str, f64> = parsed.collect();
        let mut checked = 0;
        for row in &summary {
            for (column, value) in row.iter().filter(|(name, _)| name.ends_with("_ns")) {
                let Ok(value) = value.parse::<f64>() else {
                    continue;
                };
                let name = column.strip_suffix("_ns").unwrap();
                let gauge = format!("hcabench_{benchmark}_{name}_seconds {}", row["point"]);
                // Settings are labels.
                if !name.ends_with("_p50") && !parsed.contains_key(&*gauge) {
                    continue;
                }
                assert_eq!(
                    parsed.get(&*gauge),
                    Some(&(value / 1e9)),
                    "{gauge}: {parsed:?}"
                );
                checked += 1;
            }
        }
        assert!(checked > 0, "{benchmark}: {parsed:?}");
    }
}

#[test]
fn a_run_that_goes_on_has_lines_of_its_new_rounds() {
    let folder = &*temporary("");
    ends(
        folder,
        &format!("{QUEUES} --rounds 2 --until-round 1 --json-lines first.jsonl"),
        0,
    );
    ends(folder, "--resume run --json-lines second.jsonl", 0);
    let (first, _) = lines(&folder.join("first.jsonl"));
    let (second, _) = lines(&folder.join("second.jsonl"));
    assert_eq!(first.last().unwrap()["status"], "incomplete");
    for (part, is_resumed, round, status) in [
        (&first, false, 0, "incomplete"),
        (&second, true, 1, "complete"),
    ] {
        assert_eq!(part[0]["resumed"], is_resumed);
        let measured = of_type(part, "round");
        assert_eq!(measured.len(), 2);
        assert!(measured.iter().all(|line| line["row"]["round"] == round));
        assert_eq!(of_type(part, "point").len(), 2);
        assert_eq!(part.last().unwrap()["status"], status);
    }
}
