//! What is done with the folder of a fabric: compared, reported, drawn; and refused by all that reads points.

use crate::common;
use crate::made_up_run;
use crate::testing::{Has as _, temporary};
use std::fs;

use hcabench::results::folder::{MARK, RUNS, SUMMARY};
use hcabench::results::schema::fabric::{FABRIC, NODES, PAIRS};
use serde_json::Value;

use common::expect;
use common::figures::FIGURES;
use made_up_run::fabric::{MadeFabric, fabric_run};

fn made(seed: u64) -> MadeFabric {
    MadeFabric {
        rounds: 12,
        seed,
        ..MadeFabric::of(8, 4)
    }
}

/// Two that are alike, and one in which node5 sends more slowly.
fn fabrics() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let slow = MadeFabric {
        slow: Some((5, 4000.0)),
        ..made(1)
    };
    for (name, made) in [("base", &made(1)), ("same", &made(1)), ("slow", &slow)] {
        fabric_run(&folder.path().join(name), made);
    }
    folder
}

fn change(json: &Value, figure: &str, of: &str, name: &str) -> Value {
    let figures = json["comparison"]["figures"].as_array().unwrap();
    let figure = figures.iter().find(|it| it["figure"] == figure).unwrap();
    let mut changes = figure["changes"].as_array().unwrap().iter();
    let found = changes.find(|it| it["of"] == of && it["name"] == name);
    found.unwrap().clone()
}

#[test]
fn a_node_that_got_slower_is_told_and_breaks_a_limit() {
    let folder = fabrics();
    let folder = folder.path();
    let (table, warnings) = expect(folder, "compare base same --max-regression 5%@p50", 0);
    table.has(&[
        "tier leaf",
        "tier apart",
        "No difference is shown in median rtt/2",
        " not shown",
        "broken by none",
        " 0 worse",
    ]);
    assert_eq!(warnings, "");
    let fits = table.lines().all(|line| line.chars().count() <= 100);
    assert!(fits, "{table}");

    let (table, _) = expect(folder, "compare base slow", 0);
    table.has(&[
        "median rtt/2: slow is ",
        "; higher in 1 of 18 tiers",
        "egress of node5",
        "worse",
        "node5  node0",
        "whose rtt/2.p50 rose most",
    ]);
    let (table, _) = expect(
        folder,
        "compare base slow --max-regression 50%@rtt/2.p50",
        3,
    );
    table.has(&["worse, BROKEN", "limits: BROKEN by 1 of"]);
    // What one sends more slowly by 2 us is no 500 % of the usual.
    expect(
        folder,
        "compare base slow --max-regression 500%@rtt/2.p50",
        0,
    );

    let (text, _) = expect(
        folder,
        "compare base slow --json --max-regression 50%@p50",
        3,
    );
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["verdict"]["broken"], true);
    let found = change(&json, "rtt/2.p50", "egress", "node5");
    assert_eq!(found["verdict"], "worse");
    assert_eq!(found["broken"], true);
    let shift = found["shift_ns"].as_f64().unwrap();
    assert!((1900.0..2100.0).contains(&shift), "{shift}");
    let others = change(&json, "rtt/2.p50", "ingress", "node1");
    assert_eq!(others["broken"], false);
    // The better way round.
    let (text, _) = expect(folder, "compare slow base --json", 0);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        change(&json, "rtt/2.p50", "egress", "node5")["verdict"],
        "better"
    );
}

#[test]
fn few_rounds_judge_nothing_and_break_no_silence() {
    let folder = &*temporary("");
    for (name, slow) in [("base", None), ("slow", Some((5, 4000.0)))] {
        let made = MadeFabric {
            slow,
            rounds: 2,
            ..made(1)
        };
        fabric_run(&folder.join(name), &made);
    }
    let (table, _) = expect(folder, "compare base slow", 0);
    table.has(&[
        "With 2 rounds no difference between base and slow can be judged",
        "rounds of either (--rounds ",
        "egress of node5",
    ]);
    table.lacks(&["verdict", "interval"]);
    let (_, error) = expect(
        folder,
        "compare base slow --max-regression 5%@p50 --quiet",
        1,
    );
    error.has(&["could not be judged", "rounds of either run"]);
}

#[test]
fn fabrics_of_other_nodes_or_settings_are_refused() {
    let folder = fabrics();
    let folder = folder.path();
    let together = MadeFabric {
        concurrency: "together",
        ..made(3)
    };
    fabric_run(&folder.join("together"), &together);
    let larger = MadeFabric {
        rounds: 12,
        ..MadeFabric::of(9, 4)
    };
    fabric_run(&folder.join("larger"), &larger);
    fs::create_dir(folder.join("none")).unwrap();
    fs::write(folder.join("none/note"), "").unwrap();
    for (words, told) in [
        (
            "base together",
            &["schedule.concurrency: alone and together", "--allow"][..],
        ),
        ("base larger", &["nodes only in larger: node8", "--anyway"]),
        (
            "base larger --allow concurrency",
            &["nodes only in larger: node8"],
        ),
        ("base same --allow nonsense", &["--allow", "nonsense"]),
        ("base none", &["NEW", "no fabric", "pairs.csv"]),
        ("none base", &["BASE", "no fabric", "pairs.csv"]),
        (
            "base same --percentiles p99.9",
            &["--percentiles p99.9", "p50, p90 and p99"],
        ),
        (
            "base same --max-regression 1%@lost",
            &["1%@lost", "p50, p90 and p99"],
        ),
        (
            "base same --max-regression 1%@latency.p50",
            &["1%@latency.p50", "rtt/2"],
        ),
        ("base same --sort nonsense", &["--sort nonsense", "verdict"]),
        ("base --by size", &["--by size", "second folder"]),
    ] {
        let (_, error) = expect(folder, &format!("compare {words}"), 2);
        error.has(told);
    }
    let (_, warnings) = expect(folder, "compare base together --allow concurrency", 0);
    warnings.has(&["warning: base and together differ in schedule.concurrency"]);
    let (table, warnings) = expect(folder, "compare base larger --anyway", 0);
    warnings.has(&["only in larger: node8"]);
    assert!(!table.contains("node8"), "{table}");
}

#[test]
fn a_report_names_who_stands_out_and_what_is_missing() {
    let folder = &*temporary("");
    let whole = MadeFabric {
        slow: Some((5, 4000.0)),
        dead: Some(2),
        rounds: 2,
        ..made(1)
    };
    fabric_run(&folder.join("fabric"), &whole);
    expect(folder, "report fabric --out page.html", 0);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    page.has(&[
        "Fabric of 8 nodes, 2026-01-02 03:04 UTC",
        "One node is slow: node5, in what it sends.",
        "median of 42 of 56 ordered pairs; from 1.5 µs to 2.48 µs",
        "Nothing was measured of node2",
        "Ordered pairs that were left out: 14",
        "node2 does not answer",
        "slurm, job 7, step 0",
        "7 x InfiniBand, MTU 4096 B, 200 Gbit/s",
        "<h2>Nodes that stand out most</h2>",
        "<h2>The worst pairs</h2>",
        "Fabric: median of half a round trip",
        "14 pairs without this figure are hatched",
        "Fabric: lost messages",
        "<dt>hatched</dt>",
    ]);
    let nodes = page
        .split("<h2>Nodes that stand out most</h2>")
        .nth(1)
        .unwrap();
    nodes.split("<td>").nth(1).unwrap().begins("node5<");
    let pairs = page.split("<h2>The worst pairs</h2>").nth(1).unwrap();
    assert!(pairs.split("<td>").nth(1).unwrap().starts_with("node5<"));

    fabric_run(&folder.join("healthy"), &made(1));
    expect(folder, "report healthy --out page.html --title Mine", 0);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    page.has(&["<title>Mine</title>", "No node stands out."]);
    page.lacks(&[
        "One node is slow",
        "Fabric: lost messages",
        "<h2>Left out</h2>",
        "hatched</text>",
    ]);
}

#[test]
fn what_rank_0_had_when_it_was_killed_is_shown_and_marked() {
    let folder = &*temporary("");
    let path = fabric_run(&folder.join("fabric"), &made(1));
    for name in [PAIRS, NODES, SUMMARY] {
        fs::remove_file(path.join(name)).unwrap();
    }
    fs::write(path.join(MARK), "").unwrap();
    // In the middle of a row.
    let text = fs::read_to_string(path.join(RUNS)).unwrap();
    fs::write(path.join(RUNS), &text[..text.len() - 30]).unwrap();
    expect(folder, "report fabric --out page.html", 0);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    page.has(&[
        "not measured to its end",
        "before its pairs were judged",
        "Whether a node stands out was not judged.",
        "Fabric: median of half a round trip (incomplete)",
    ]);
    let (text, _) = expect(folder, "plot matrix fabric --out matrix.svg --json", 0);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["nodes"][7]["name"], "node7");
    let cell = json["cells"][0][7].as_f64().unwrap();
    assert!((2400.0..2600.0).contains(&cell), "{cell}");
    assert!(path.join(FABRIC).exists());
}

#[test]
fn what_reads_points_refuses_a_fabric_and_names_what_reads_it() {
    let folder = &*temporary("");
    fabric_run(&folder.join("fabric"), &made(1));
    for figure in FIGURES.into_iter().filter(|figure| *figure != "matrix") {
        let words = format!("plot {figure} fabric --out x.svg");
        let (_, error) = expect(folder, &words, 2);
        error.has(&[
            "fabric holds a fabric",
            "hcabench report, hcabench compare and hcabench plot matrix",
        ]);
    }
    assert!(!folder.join("x.svg").exists());
    expect(folder, "rerun fabric", 2);
    let (_, error) = expect(folder, "plot matrix . --out x.svg", 2);
    error.has(&["holds no fabric", "pairs.csv", "hcabench fabric"]);
}

#[test]
fn a_damaged_file_of_a_fabric_is_named_by_all_that_reads_it() {
    let folder = fabrics();
    let folder = folder.path();
    let fabric = folder.join("base");
    for file in [PAIRS, NODES, FABRIC, SUMMARY, RUNS] {
        let good = fs::read(fabric.join(file)).unwrap();
        for damaged in [&good[..good.len() / 2], b"\x1f\x8b\x08"] {
            fs::write(fabric.join(file), damaged).unwrap();
            let mut commands = vec!["report base --out page.html", "compare base same --anyway"];
            // These read the pairs.
            if file != RUNS {
                commands.extend(["plot matrix base --out x.svg", "list ."]);
            }
            for command in commands {
                let (_, error) = expect(folder, command, 1);
                error.has(&["left out: ", file]);
            }
        }
        fs::write(fabric.join(file), good).unwrap();
    }
    expect(folder, "report base --out page.html", 0);
    expect(folder, "list .", 0);
}
