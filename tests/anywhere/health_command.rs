//! `hcabench baseline` and `hcabench health`, on made-up fabrics.

mod baselines;
mod drain;

use std::fs;
use std::path::Path;

use hcabench::results::folder::MARK;
use hcabench::results::schema::fabric::{NODES, PAIRS};
use serde_json::Value;

use crate::common::{self, expect};
use crate::made_up_run::fabric::{MadeFabric, fabric_run};
use crate::program::exports::promtool_reads;
use crate::testing::{Has as _, put, temporary};

/// Eight healthy nodes, on that day of January.
fn day(day: u32) -> MadeFabric {
    MadeFabric {
        rounds: 1,
        seed: u64::from(day),
        started_at: Some(format!("2026-01-{day:02}T02:00:00.000Z")),
        ..MadeFabric::of(8, 4)
    }
}

fn slow_day(number: u32) -> MadeFabric {
    MadeFabric {
        slower: Some((5, 1.2)),
        ..day(number)
    }
}

fn put_run(folder: &Path, name: &str, made: &MadeFabric) {
    fabric_run(&folder.join(name), made);
}

/// Five healthy runs below `runs`, and their baseline.
fn healthy() -> crate::testing::Temporary {
    let folder = temporary("");
    for number in 1..=5 {
        put_run(&folder, &format!("runs/{number}"), &day(number));
    }
    let command = "baseline runs/1 runs/2 runs/3 runs/4 runs/5 --out baseline.json";
    expect(&folder, command, 0);
    folder
}

fn json_of(folder: &Path, words: &str, code: i32) -> Value {
    serde_json::from_str(&expect(folder, words, code).0).unwrap()
}

fn course<'a>(json: &'a Value, name: &str) -> &'a Value {
    let mut courses = json["courses"].as_array().unwrap().iter();
    courses.find(|it| it["name"] == name).unwrap()
}

#[test]
fn healthy_runs_name_no_node() {
    let folder = healthy();
    for number in 6..=9 {
        put_run(&folder, &format!("runs/{number}"), &day(number));
    }
    let (text, said) = expect(&folder, "health runs --baseline baseline.json", 0);
    text.has(&[
        "0 of 8 nodes are failing, 0 were out",
        "9 runs, 2026-01-01 02:00 to 2026-01-09 02:00",
    ]);
    assert_eq!(said, "");
    let (text, _) = expect(&folder, "health runs --all", 0);
    text.has(&["node3", "healthy", "0 of 9", "rules take a baseline"]);
    assert_eq!(
        expect(&folder, "health runs --drain-command slurm", 0).0,
        ""
    );
}

#[test]
fn a_node_that_is_a_fifth_slower_is_named_with_when_and_on_what() {
    let folder = healthy();
    for (number, slow) in [(6, true), (7, false), (8, true)] {
        let made = if slow { slow_day(number) } else { day(number) };
        put_run(&folder, &format!("runs/{number}"), &made);
    }
    put_run(
        &folder,
        "runs/9",
        &MadeFabric {
            kernel: "6.1.0-26",
            ..slow_day(9)
        },
    );
    let health = "health runs --baseline baseline.json";
    let (text, _) = expect(&folder, health, 3);
    text.has(&[
        "1 of 8 nodes are failing",
        "node5",
        "failing",
        "3 of 9",
        "2026-01-06 02:00",
        "2026-01-09 02:00",
        "rtt/2.p50 +2",
        ", 2 of 3 runs",
        "28.39.1002",
    ]);
    text.lacks(&["node3"]);
    let (text, _) = expect(&folder, &format!("{health} --all"), 3);
    text.has(&["6.1.0-26 (6.1.0-25 before 2026-01-09 02:00)"]);

    let json = json_of(&folder, &format!("{health} --json"), 3);
    assert_eq!(json["failing"], serde_json::json!(["node5"]));
    let node = course(&json, "node5");
    assert_eq!(node["verdict"], "failing");
    assert_eq!((&node["failed"], &node["runs"]), (&3.into(), &9.into()));
    assert_eq!(node["since"], "2026-01-06T02:00:00.000Z");
    let above = node["rules"][0]["above_percent"].as_f64().unwrap();
    assert!((17.0..23.0).contains(&above), "{above}");
    assert_eq!(course(&json, "node7")["changes"][0]["before"], "6.1.0-25");
    assert_eq!(course(&json, "node7")["verdict"], "healthy");

    let (text, _) = expect(&folder, &format!("{health} --drain-command slurm"), 3);
    text.begins("scontrol update nodename=node5 state=drain reason='hcabench: rtt/2.p50 +2");
    text.has(&["since 2026-01-06 02:00'"]);
    assert_eq!(text.lines().count(), 1);
    let (text, said) = expect(&folder, &format!("{health} --drain-command kubernetes"), 3);
    assert_eq!(text, "");
    said.has(&[
        "does not record what kubernetes calls its host",
        "fix: set HCABENCH_NODE",
    ]);

    expect(&folder, &format!("{health} --prometheus health.prom"), 3);
    promtool_reads(&folder.join("health.prom"));
    let text = fs::read_to_string(folder.join("health.prom")).unwrap();
    text.has(&[
        "hcabench_health_runs 9\n",
        "hcabench_health_node_failing{node=\"node5\"} 1\n",
        "hcabench_health_node_failing{node=\"node3\"} 0\n",
        "hcabench_health_node_failed_runs{node=\"node5\"} 3\n",
        "hcabench_health_node_failing_since_timestamp_seconds{node=\"node5\"} 1767664800\n",
    ]);

    // The median alone does not name it, as its limit is higher; fewer runs do.
    put(
        &folder,
        "rules.toml",
        "version = 1\nerror = 0.01\n[[rule]]\nmetric = \"rtt/2.p50\"\nscope = \"node\"\n\
         limit = \"30%\"\nruns = \"1 of 3\"\n",
    );
    expect(&folder, &format!("{health} --rules rules.toml"), 0);
    put(
        &folder,
        "rules.toml",
        "version = 1\nerror = 0.01\n[[rule]]\nmetric = \"rtt/2.p50\"\nscope = \"node\"\n\
         limit = \"4 spreads\"\nruns = \"3 of 4\"\n",
    );
    expect(&folder, &format!("{health} --rules rules.toml"), 3);
}

#[test]
fn without_a_baseline_the_verdicts_of_runs_and_dead_nodes_count() {
    let folder = healthy();
    for number in 6..=8 {
        put_run(
            &folder,
            &format!("runs/{number}"),
            &MadeFabric {
                slow: Some((5, 4000.0)),
                ..day(number)
            },
        );
    }
    let json = json_of(&folder, "health runs --json", 3);
    assert_eq!(json["failing"], serde_json::json!(["node5"]));
    assert_eq!(course(&json, "node5")["rules"][0]["metric"], "verdict");

    for number in 9..=10 {
        let path = format!("runs/{number}");
        put_run(
            &folder,
            &path,
            &MadeFabric {
                dead: Some(2),
                ..day(number)
            },
        );
        fs::write(folder.join(&path).join(MARK), "node2 does not answer").unwrap();
    }
    let json = json_of(&folder, "health runs --json", 3);
    assert_eq!(json["failing"], serde_json::json!(["node2", "node5"]));
    assert_eq!(course(&json, "node2")["rules"][0]["metric"], "missing");
    assert_eq!(json["incomplete"].as_array().unwrap().len(), 2);
    let (_, said) = expect(&folder, "health runs", 3);
    said.has(&["runs/10 is incomplete"]);

    for number in 11..=12 {
        put_run(
            &folder,
            &format!("runs/{number}"),
            &MadeFabric {
                loses: Some((3, 0.01)),
                ..day(number)
            },
        );
    }
    let json = json_of(&folder, "health runs --json", 3);
    let loss = &course(&json, "node3")["rules"][0];
    assert_eq!(
        (&loss["metric"], &loss["direction"]),
        (&"loss".into(), &"egress".into())
    );
    assert_eq!(loss["above_percent"], 1.0);
}

#[test]
fn runs_that_cannot_be_counted_are_left_out_with_the_reason() {
    let folder = healthy();
    put_run(
        &folder,
        "runs/larger",
        &MadeFabric {
            size_bytes: 64,
            ..day(6)
        },
    );
    put_run(
        &folder,
        "runs/gpu",
        &MadeFabric {
            called: "gpu",
            ..day(6)
        },
    );
    put_run(&folder, "runs/killed", &day(6));
    fs::remove_file(folder.join("runs/killed").join(PAIRS)).unwrap();
    fs::write(folder.join("runs/killed").join(MARK), "").unwrap();
    put(&folder, "runs/note.txt", "no run");
    let (text, said) = expect(&folder, "health runs --baseline baseline.json", 0);
    text.has(&["0 of 8 nodes", "5 runs"]);
    said.has(&[
        "runs/larger: its settings differ from the baseline's in settings.size_bytes",
        "runs/gpu: none of its nodes is in the baseline",
        "runs/killed: the run was killed before its pairs were judged",
    ]);
    // A damaged file is not a missing node.
    let nodes = folder.join("runs/5").join(NODES);
    fs::write(&nodes, "node,rank\nno").unwrap();
    let (text, said) = expect(&folder, "health runs --baseline baseline.json", 1);
    text.has(&["0 of 8 nodes are failing", "4 runs"]);
    said.has(&["left out: ", NODES]);
}

#[test]
fn one_run_breaks_no_rule_and_a_new_node_is_known_as_new() {
    let folder = healthy();
    put_run(&folder, "one/run", &slow_day(6));
    let (text, _) = expect(&folder, "health one --baseline baseline.json", 0);
    text.has(&[
        "1 were out and break no rule",
        "watched",
        "a rule takes 3 runs to be broken, and there are 1",
    ]);
    let (text, _) = expect(&folder, "health one/run --baseline baseline.json", 0);
    text.has(&["watched"]);

    put_run(
        &folder,
        "runs/6",
        &MadeFabric {
            nodes: 9,
            rack: 5,
            ..day(6)
        },
    );
    put_run(
        &folder,
        "runs/7",
        &MadeFabric {
            nodes: 9,
            rack: 5,
            slower: Some((8, 1.3)),
            ..day(7)
        },
    );
    put_run(
        &folder,
        "runs/8",
        &MadeFabric {
            nodes: 9,
            rack: 5,
            slower: Some((8, 1.3)),
            ..day(8)
        },
    );
    let json = json_of(&folder, "health runs --baseline baseline.json --json", 3);
    let new = course(&json, "node8");
    assert_eq!(
        (&new["new"], &new["verdict"]),
        (&true.into(), &"failing".into())
    );
    assert_eq!(new["runs"], 3);
    // A node that left is not drained.
    put_run(&folder, "runs/9", &day(9));
    let (text, said) = expect(
        &folder,
        "health runs --baseline baseline.json --drain-command pbs",
        0,
    );
    assert_eq!(text, "");
    assert_eq!(said, "");
    let (text, _) = expect(&folder, "health runs --baseline baseline.json", 0);
    text.has(&["left, new, was failing", "1 are not in the last run"]);
}

#[test]
fn bad_input_is_refused() {
    let folder = healthy();
    put(&folder, "empty/note", "");
    put(&folder, "bad.json", "{}");
    put(
        &folder,
        "bad.toml",
        "version = 1\nerror = 0.01\n[[rule]]\nmetric = \"speed\"\nscope = \"node\"\nruns = \"1 of 1\"\n",
    );
    let newer = fs::read_to_string(folder.join("baseline.json")).unwrap();
    put(
        &folder,
        "newer.json",
        &newer.replace("\"version\": 1,", "\"version\": 2,"),
    );
    for (words, told) in [
        ("health", &["DIR"][..]),
        ("health nowhere", &["nowhere", "cannot be read", "fix: "]),
        ("health empty", &["empty", "holds no fabric", "fix: "]),
        (
            "health runs --baseline nothing.json",
            &["--baseline nothing.json"],
        ),
        (
            "health runs --baseline bad.json",
            &["--baseline bad.json: not a baseline", "fix: "],
        ),
        (
            "health runs --baseline bad.toml",
            &["--baseline bad.toml: not JSON", "fix: "],
        ),
        (
            "health runs --baseline newer.json",
            &["--baseline newer.json: version 2", "version 1"],
        ),
        (
            "health runs --rules nothing.toml",
            &["--rules nothing.toml"],
        ),
        (
            "health runs --rules bad.toml",
            &["--rules bad.toml", "metric = \"speed\"", "rtt/2.p50"],
        ),
        (
            "health runs --drain-command cron",
            &["--drain-command", "cron", "slurm"],
        ),
        ("health runs --last 0", &["--last", "0"]),
        ("health runs --json --drain-command slurm", &["--json"]),
        ("health --print-rules runs", &["--print-rules"]),
        (
            "fabric --ranks 8 --dry-run --baseline baseline.json",
            &[
                "--baseline: these settings differ from the baseline's in",
                "fix: ",
            ],
        ),
        (
            "fabric --ranks 8 --dry-run --history nowhere",
            &["--history nowhere", "fix: "],
        ),
    ] {
        let (_, said) = expect(&folder, words, 2);
        said.has(told);
    }
    // All are of another cluster.
    put_run(
        &folder,
        "gpu/1",
        &MadeFabric {
            called: "gpu",
            ..day(6)
        },
    );
    let (_, said) = expect(&folder, "health gpu --baseline baseline.json", 2);
    said.has(&["no run in it can be judged", "another cluster"]);
}

#[test]
fn the_printed_rules_are_rules() {
    let folder = healthy();
    let (rules, _) = expect(&folder, "health --print-rules", 0);
    put(&folder, "rules.toml", &rules);
    let words = "health runs --baseline baseline.json --json";
    let default = json_of(&folder, words, 0);
    assert_eq!(
        json_of(&folder, &format!("{words} --rules rules.toml"), 0),
        default
    );
    assert_eq!(default["rules"][0]["limit"], "10%");
}
