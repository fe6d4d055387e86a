//! `hcabench history`, on made-up runs and on the samples of the notebooks.

use std::fs;
use std::path::Path;

use hcabench::results::folder::{RUNS, SETTINGS};
use hcabench::results::schema::hca;
use serde_json::{Value, json};

use crate::common::{self, expect, hcabench};
use crate::made_up_run::fabric::{MadeFabric, fabric_run};
use crate::made_up_run::rounds::{Made, document, run};
use crate::testing::{Has as _, Noise, Temporary, put, temporary};

/// The step, at this run from 1 on.
const STEP_AT: usize = 18;
const RUNS_MADE: usize = 30;

/// Rounds of 2 % around these levels.
fn point(size: &'static str, noise: &mut Noise, [p50, p99]: [f64; 2]) -> Made {
    let mut about = |level: f64| (level * (1.0 + 0.02 * noise.normal())).round();
    let round = |_| {
        vec![
            (hca::latency::P50, about(p50)),
            (hca::latency::P99, about(p99)),
            (hca::SENT, 1000.0),
            (hca::RECEIVED, 1000.0),
        ]
    };
    Made {
        settings: vec![(hca::SERVICE, "rc"), (hca::SIZE, size)],
        rounds: (0..5).map(round).collect(),
    }
}

/// What a run of that day of January records.
fn recorded(day: usize, machine: &Value) -> Value {
    let mut recorded = document(&hca::SCHEMA);
    recorded["started_at"] = json!(format!("2026-01-{day:02}T02:00:00.000Z"));
    recorded["machine"] = machine.clone();
    recorded
}

fn machine(kernel: &str, microcode: &str) -> Value {
    json!({
        "hostname": "node1",
        "kernel_release": kernel,
        "processor": { "name": "made-up", "cpus": 8, "microcode": microcode, "governors": ["performance"] },
    })
}

/// A run of each day: from one day on the median of 8 B is 5 % higher, with another kernel and label.
fn runs(folder: &Path, has_step: bool) {
    let mut noise = Noise::new(45);
    for day in 1..=RUNS_MADE {
        let is_after = has_step && day >= STEP_AT;
        let kernel = if is_after { "6.1.0-26" } else { "6.1.0-25" };
        // The microcode changes on another day.
        let microcode = if day >= 9 { "0x11" } else { "0x10" };
        let mut recorded = recorded(day, &machine(kernel, microcode));
        recorded["label"] = json!(if is_after { "after" } else { "before" });
        let (firmware, version) = match is_after {
            true => ("16.35.4030", "24.10-1.1.4"),
            false => ("16.35.2000", "23.10-0.5.5"),
        };
        let driver = json!({ "module": "mlx5_core", "version": version });
        let port_of = |name: &str| json!({ "device": { "name": name, "firmware": firmware, "driver": driver }, "port": 1 });
        recorded["obtained"]["devices"] =
            json!({ "receiver": port_of("mlx5_1"), "sender": port_of("mlx5_0") });
        let median = if is_after { 2100.0 } else { 2000.0 };
        let points = [
            point("8", &mut noise, [median, 9000.0]),
            point("64", &mut noise, [3000.0, 9500.0]),
        ];
        run(
            &folder.join(format!("{day:02}")),
            &hca::SCHEMA,
            &recorded,
            &points,
            0,
        );
    }
}

/// A folder with them in `runs`.
pub(crate) fn made(has_step: bool) -> Temporary {
    let folder = temporary("");
    runs(&folder.join("runs"), has_step);
    folder
}

fn json_of(folder: &Path, words: &str, code: i32) -> Value {
    serde_json::from_str(&expect(folder, &format!("history {words} --json"), code).0).unwrap()
}

/// The series of a figure at a point.
fn series<'a>(json: &'a Value, size: &str, figure: &str) -> &'a Value {
    let mut all = json["series"].as_array().unwrap().iter();
    let is_it = |it: &&Value| it["settings"]["size_bytes"] == size && it["figure"] == figure;
    all.find(is_it).unwrap()
}

#[test]
fn a_step_is_named_with_its_run_and_with_what_changed_then() {
    let folder = made(true);
    let (text, said) = expect(&folder, "history runs", 0);
    assert_eq!(said, "");
    text.begins("1 of 4 figures changed; 30 runs, 2026-01-01 02:00 to 2026-01-30 02:00\n");
    text.has(&[
        "median latency of hca, ",
        "8 B, node1, mlx5_0 port 1 to mlx5_1 port 1 +",
        "from runs/18 on (2026-01-18 02:00)",
        "label before -> after; kernel 6.1.0-25 -> 6.1.0-26; firmware of the sender's adapter 16.35.2000 -> 16.35.4030;",
        "changes:",
        "what changed then:",
        "p < 0.001",
        "no change shown",
        "worse",
    ]);
    // That of another day is no cause.
    text.lacks(&["microcode", "0x11", "too few runs"]);

    let json = json_of(&folder, "runs", 0);
    let found = &series(&json, "8", "latency.p50")["changes"];
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    let change = &found[0];
    assert_eq!(change["folder"], "runs/18");
    let (from, to) = (
        change["not_before"].as_u64().unwrap(),
        change["not_after"].as_u64().unwrap(),
    );
    assert!(
        (16..=17).contains(&from) && (17..=18).contains(&to),
        "{change}"
    );
    let shift = change["change_percent"].as_f64().unwrap();
    assert!((4.0..6.0).contains(&shift), "{shift}");
    assert!(change["p"].as_f64().unwrap() < 0.001);
    let causes: Vec<&str> = change["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["what"].as_str().unwrap())
        .collect();
    let of_both = [
        "firmware of the sender's adapter",
        "firmware of the receiver's adapter",
        "driver version of the sender's slot",
        "driver version of the receiver's slot",
    ];
    assert_eq!(causes[..2], ["label", "kernel"]);
    assert_eq!(causes[2..], of_both);
    for (size, figure) in [
        ("8", "latency.p99"),
        ("64", "latency.p50"),
        ("64", "latency.p99"),
    ] {
        assert_eq!(
            series(&json, size, figure)["changes"],
            json!([]),
            "{size} {figure}"
        );
    }
    assert_eq!(json["runs"][17]["label"], "after");
}

#[test]
fn the_exit_code_is_3_where_a_figure_changed_and_that_is_asked_for() {
    let folder = made(true);
    expect(&folder, "history runs --fail-on-change", 3);
    expect(&folder, "history runs --fail-on-change --figures p99", 0);
    expect(&folder, "history runs --fail-on-change --least 3%", 3);
    expect(&folder, "history runs --fail-on-change --least 7%", 0);
    // A change that is known is left behind.
    let (text, _) = expect(
        &folder,
        "history runs --fail-on-change --since 2026-01-18",
        0,
    );
    text.begins("0 of 4 figures changed; 13 runs");
    let (text, _) = expect(&folder, "history runs --fail-on-change --last 12", 0);
    text.begins("0 of 4 figures changed; 30 runs");
    let same = made(false);
    let (text, _) = expect(&same, "history runs --fail-on-change", 0);
    text.begins("0 of 4 figures changed");
    text.lacks(&["changes:", "what changed then:"]);
}

#[test]
fn a_change_without_a_cause_says_so() {
    let folder = made(true);
    for day in 1..=RUNS_MADE {
        let path = folder.join(format!("runs/{day:02}"));
        for file in [path.join(SETTINGS), path.join("rc-8").join(SETTINGS)] {
            let mut recorded = common::json(&file);
            recorded["machine"] = machine("6.1.0-25", "0x10");
            recorded["label"] = Value::Null;
            recorded["obtained"]["devices"] = Value::Null;
            fs::write(file, recorded.to_string()).unwrap();
        }
    }
    let (text, _) = expect(&folder, "history runs", 0);
    text.has(&["nothing in settings.json changed"]);
}

#[test]
fn other_machines_are_other_series_unless_hosts_are_of_one_pool() {
    let folder = made(true);
    for day in 1..=RUNS_MADE {
        let file = folder.join(format!("runs/{day:02}")).join(SETTINGS);
        let mut recorded = common::json(&file);
        recorded["machine"]["hostname"] = json!(format!("pod{day}"));
        let address = format!("10.0.0.{day}");
        recorded["obtained"]["devices"]["sender"]["address"] = json!(address);
        recorded["obtained"]["hosts"]["sender"]["boot_id"] = json!(format!("boot-{day}"));
        recorded["obtained"]["path"]["receiver"]["gid"] =
            json!({ "gid": address, "interface": format!("eth{day}") });
        fs::write(file, recorded.to_string()).unwrap();
    }
    let (text, _) = expect(&folder, "history runs --fail-on-change", 0);
    text.begins("0 of 120 figures changed");
    text.has(&["too few runs to be judged"]);
    let (text, _) = expect(&folder, "history runs --fail-on-change --any-host", 3);
    text.begins("1 of 4 figures changed");
    text.has(&["made-up, 8 CPUs", "kernel 6.1.0-25 -> 6.1.0-26"]);
    // Names of hosts and their addresses differ in each run.
    text.lacks(&["pod17", "10.0.0.17", "boot-17", "eth17"]);
}

#[test]
fn the_page_has_a_plot_of_each_figure_and_names_run_and_cause() {
    let folder = made(true);
    let (_, said) = expect(&folder, "history runs --out h.html", 0);
    said.has(&["page: h.html"]);
    let page = fs::read_to_string(folder.join("h.html")).unwrap();
    page.has(&[
        "<title>",
        "width=device-width",
        "runs/18",
        "6.1.0-26",
        "1 of 4 figures changed",
    ]);
    page.lacks(&["src=", "href="]);
    // Each wide and narrow.
    assert_eq!(page.matches("<svg").count(), 8);
    for svg in page.split("<svg").skip(1) {
        let svg = svg.split("</svg>").next().unwrap();
        svg.lacks(&["NaN"]);
        let document = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\"{}</svg>",
            svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "")
        );
        roxmltree::Document::parse(&document).unwrap();
    }
    let (_, said) = expect(&folder, "history runs --out h.txt", 2);
    said.has(&["--out", "h.txt", ".html"]);
    fs::create_dir(folder.join("folder.html")).unwrap();
    let (_, said) = expect(&folder, "history runs --out folder.html", 2);
    said.has(&["--out folder.html", "is a folder"]);
}

#[test]
fn a_damaged_run_is_named_and_the_rest_is_shown() {
    let folder = made(true);
    let damaged = folder.join("runs/03").join(RUNS);
    let text = fs::read_to_string(&damaged).unwrap();
    fs::write(&damaged, &text[..text.len() / 3]).unwrap();
    fs::write(folder.join("runs/05").join(SETTINGS), "{").unwrap();
    let (text, said) = expect(&folder, "history runs", 1);
    said.has(&["left out: ", "runs/03", RUNS, "runs/05", SETTINGS]);
    text.has(&["figures changed", "from runs/18 on"]);
    expect(&folder, "history runs --fail-on-change", 3);
}

#[test]
fn copies_fabrics_and_runs_without_rounds_are_left_out_with_the_reason() {
    let folder = made(false);
    fs::create_dir(folder.join("copy")).unwrap();
    let copied = crate::program::Program::under(&["cp", "-r"], "runs/07", "copy/07");
    copied.in_folder(&*folder).ends(0);
    fabric_run(&folder.join("copy/fabric"), &MadeFabric::of(4, 4));
    put(&folder, "copy/note.txt", "no run");
    let (text, said) = expect(&folder, "history runs copy runs/07", 0);
    text.begins("0 of 4 figures changed; 30 runs");
    said.has(&[
        "runs/07",
        "it is a copy of",
        "1 fabric: use hcabench health",
    ]);
}

#[test]
fn runs_over_other_ports_or_to_other_peers_are_other_series() {
    let folder = made(true);
    for day in STEP_AT..=RUNS_MADE {
        let file = folder.join(format!("runs/{day:02}")).join(SETTINGS);
        let mut recorded = common::json(&file);
        let end = |name: &str| json!({ "device": { "name": name }, "port": 1 });
        recorded["obtained"]["devices"] =
            json!({ "sender": end("mlx5_2"), "receiver": end("mlx5_1") });
        if day % 2 == 0 {
            recorded["run"]["peer"] = json!("node2");
        }
        fs::write(file, recorded.to_string()).unwrap();
    }
    let (text, _) = expect(&folder, "history runs --fail-on-change", 0);
    text.begins("0 of 12 figures changed");
    text.has(&[
        "node1, mlx5_2 port 1 to mlx5_1 port 1 ",
        "node1, mlx5_2 port 1 to mlx5_1 port 1, peer node2",
    ]);
    // Names of hosts count for nothing then, those of peers included.
    let json = json_of(&folder, "runs --any-host", 0);
    let all = json["series"].as_array().unwrap();
    assert!(
        all.iter()
            .all(|it| !it["machine"].as_str().unwrap().contains("node"))
    );
}

#[test]
fn runs_to_doubt_count_and_are_counted() {
    let folder = made(false);
    put(&folder, "runs/03/INCOMPLETE", "interrupted by SIGINT\n");
    let (text, _) = expect(&folder, "history runs", 0);
    text.has(&["not measured to the end: 1 of 30 runs"]);
    let json = json_of(&folder, "runs", 0);
    let runs = json["runs"].as_array().unwrap();
    let is_complete = |run: &&Value| run["is_complete"] == true;
    assert_eq!(runs.iter().filter(is_complete).count(), 29);
    assert_eq!(runs[2]["is_complete"], false);
    assert_eq!(json["unreadable"], json!([]));
}

#[test]
fn the_samples_of_the_notebooks_have_too_few_runs() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample");
    let ended = hcabench(&samples, "history .")
        .env("COLUMNS", "100")
        .ends(0);
    ended.stdout.begins("0 of ");
    ended.stdout.has(&[
        "queue",
        "hca",
        "clock",
        "memory",
        "node",
        "too few runs to be judged",
        "throughput",
        "not usable by their findings: ",
    ]);
    let json: Value =
        serde_json::from_str(&hcabench(&samples, "history . --json").ends(0).stdout).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 5);
    // It was measured by an emulated processor.
    let hca = runs.iter().find(|run| run["benchmark"] == "hca").unwrap();
    assert_eq!(hca["is_invalid"], true);
    let all = json["series"].as_array().unwrap();
    assert!(
        all.iter()
            .all(|it| it["judged"] == false && it["runs"].as_array().unwrap().len() == 1)
    );
}

#[test]
fn bad_input_is_refused() {
    let folder = made(false);
    fs::create_dir(folder.join("empty")).unwrap();
    for (words, told) in [
        ("", &["DIR"][..]),
        ("nowhere", &["nowhere", "cannot be read", "fix: "]),
        ("empty", &["empty: no runs", "fix: "]),
        (
            "runs --since 2027-01-01",
            &["no runs from 2027-01-01", "--since"],
        ),
        (
            "runs --since monday",
            &["--since", "\"monday\"", "2026-11-20"],
        ),
        ("runs --figures speed", &["--figures", "\"speed\"", "p99.9"]),
        ("runs --figures p42", &["--figures", "p42", "latency.p50"]),
        ("runs --least 3", &["--least", "\"3\"", "3%"]),
        ("runs --last 0", &["--last", "1 to 1000"]),
    ] {
        let (text, said) = expect(&folder, &format!("history {words}"), 2);
        assert_eq!(text, "", "{words}");
        said.has(told);
    }
}

#[test]
fn a_label_is_recorded_from_the_option_or_the_variable() {
    let folder = temporary("");
    let queue = "queue --queue baton --count 200 --warmup 1us --rounds 1 --quiet --out";
    let label = |name: &str| common::json(&folder.join(name).join(SETTINGS))["label"].clone();
    let _alone = common::alone();
    hcabench(&folder, &format!("{queue} option --label v2"))
        .env("HCABENCH_LABEL", "v1")
        .ends(0);
    assert_eq!(label("option"), "v2");
    hcabench(&folder, &format!("{queue} variable"))
        .env("HCABENCH_LABEL", "v1")
        .ends(0);
    assert_eq!(label("variable"), "v1");
    hcabench(&folder, &format!("{queue} none"))
        .env("HCABENCH_LABEL", "")
        .ends(0);
    assert_eq!(label("none"), Value::Null);
    // That of an earlier run is not that of this one.
    hcabench(&folder, "rerun option --out again --quiet").ends(0);
    assert_eq!(label("again"), Value::Null);
    // A resumed run is the one that was begun, unless another label is asked for.
    let part = queue.replace("--rounds 1", "--rounds 2 --until-round 1");
    for (out, option, expected) in [("part", "", "v1"), ("other", "--label v3", "v3")] {
        expect(&folder, &format!("{part} {out} --label v1"), 0);
        hcabench(&folder, &format!("queue --resume {out} {option} --quiet"))
            .env("HCABENCH_LABEL", "v2")
            .ends(0);
        assert_eq!(label(out), expected);
    }
    let refused = hcabench(&folder, &format!("{queue} bad"))
        .env("HCABENCH_LABEL", "two\nlines")
        .ends(2);
    refused
        .told()
        .has(&["HCABENCH_LABEL", "two\\nlines", "1 to 200"]);
    let (_, said) = expect(&folder, &format!("{queue} bad --label="), 2);
    said.has(&["--label", "1 to 200"]);
    assert!(!folder.join("bad").exists());
}
