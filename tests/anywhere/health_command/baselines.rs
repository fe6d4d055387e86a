//! `hcabench baseline`.

use super::*;

#[test]
fn a_baseline_has_what_healthy_runs_have_in_common() {
    let folder = healthy();
    let again = "baseline runs/5 runs/1 runs/3 --out again.json";
    let (text, said) = expect(&folder, again, 0);
    text.has(&[
        "3 runs, 2026-01-01 to 2026-01-05, 8 nodes",
        "leaf",
        "apart",
        "rtt/2.p50",
        "effects of nodes:",
        "spread of runs",
    ]);
    said.has(&["baseline: again.json"]);
    let json = common::json(&folder.join("baseline.json"));
    assert_eq!(json["format"], "hcabench-baseline");
    assert_eq!(json["runs"].as_array().unwrap().len(), 5);
    assert_eq!(json["runs"][1]["started_at"], "2026-01-02T02:00:00.000Z");
    assert_eq!(json["settings"]["size_bytes"], 8);
    let leaf = &json["tiers"]["leaf"]["figures"]["rtt/2.p50"];
    let centre = leaf["centre_ns"].as_f64().unwrap();
    assert!((1500.0..1580.0).contains(&centre), "{centre}");
    let node = &json["nodes"]["node3"]["figures"]["rtt/2.p50"][0];
    assert_eq!(node["runs"], 5);
    assert!(node["centre"].as_f64().unwrap().abs() < 0.02, "{node}");
    let (_, said) = expect(&folder, &format!("{again} --quiet"), 0);
    assert_eq!(said, "");
}

#[test]
fn runs_that_make_no_baseline_are_refused() {
    let folder = healthy();
    put_run(
        &folder,
        "larger",
        &MadeFabric {
            size_bytes: 64,
            ..day(6)
        },
    );
    put_run(
        &folder,
        "other",
        &MadeFabric {
            called: "gpu",
            ..day(6)
        },
    );
    put_run(
        &folder,
        "together",
        &MadeFabric {
            concurrency: "together",
            ..day(6)
        },
    );
    put_run(&folder, "killed", &day(6));
    fs::remove_file(folder.join("killed").join(PAIRS)).unwrap();
    fs::write(folder.join("killed").join(MARK), "killed").unwrap();
    put(&folder, "none/note", "");
    for (words, told) in [
        (
            "runs/1 runs/2",
            &["RESULTS: 2 given", "3 at least", "fix: "][..],
        ),
        (
            "runs/1 runs/2 runs/2",
            &["runs/2: it is given twice", "fix: "],
        ),
        (
            "runs/1 runs/2 larger",
            &[
                "larger: its settings differ",
                "size_bytes: 8 and 64",
                "fix: ",
            ],
        ),
        (
            "runs/1 runs/2 together",
            &["together: its settings", "concurrency: alone and together"],
        ),
        (
            "runs/1 runs/2 other",
            &["other: it has no node in common with runs/1", "fix: "],
        ),
        (
            "runs/1 runs/2 killed",
            &["killed: the run was killed", "--resume"],
        ),
        ("runs/1 runs/2 none", &["none", "no fabric"]),
        ("runs/1 runs/2 nowhere", &["nowhere"]),
    ] {
        let (_, said) = expect(&folder, &format!("baseline {words} --out new.json"), 2);
        said.has(told);
        assert!(!folder.join("new.json").exists(), "{words}");
    }
    let (_, said) = expect(&folder, "baseline runs/1 runs/2 runs/3", 2);
    said.has(&["--out"]);
    // What is damaged may lack nodes.
    let pairs = folder.join("runs/2").join(PAIRS);
    let text = fs::read_to_string(&pairs).unwrap();
    fs::write(&pairs, &text[..text.len() / 2]).unwrap();
    let (_, said) = expect(&folder, "baseline runs/1 runs/2 runs/3 --out new.json", 1);
    said.has(&["left out: ", PAIRS, "runs/2: files are damaged"]);
}

#[test]
fn a_baseline_of_runs_with_a_fault_is_warned_of() {
    let folder = healthy();
    put_run(
        &folder,
        "slow",
        &MadeFabric {
            slow: Some((5, 4000.0)),
            ..day(6)
        },
    );
    put_run(
        &folder,
        "dead",
        &MadeFabric {
            dead: Some(2),
            ..day(7)
        },
    );
    fs::write(folder.join("dead").join(MARK), "node2 does not answer").unwrap();
    let command = "baseline runs/1 runs/2 slow dead --out new.json --quiet";
    let (_, said) = expect(&folder, command, 0);
    said.has(&[
        "slow names node5 as slow",
        "dead is incomplete (node2 does not answer)",
    ]);
    let json = common::json(&folder.join("new.json"));
    assert_eq!(json["nodes"]["node2"]["figures"]["rtt/2.p50"][0]["runs"], 3);
}
