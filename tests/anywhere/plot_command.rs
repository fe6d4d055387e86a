//! `hcabench plot` as its user has it: figures of real results of the queue and clock benchmarks, and of an HCA run
//! made by the program's own writers; exit codes; what is said when something is wrong.

use crate::common;
use crate::made_up_run;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::told;
use made_up_run::memory::{MadeCurve, memory_run};
use made_up_run::{MadePoint, hca_run};

fn hcabench(words: &str) -> Output {
    let mut command = Command::new(crate::common::program());
    command
        .args(words.split_ascii_whitespace())
        .output()
        .unwrap()
}

/// Draws into `out`; returns the texts of the figure, and the data.
fn drawn(words: &str, out: &Path) -> (Vec<String>, serde_json::Value) {
    let output = hcabench(&format!("plot {words} --json --out {}", out.display()));
    assert_eq!(output.status.code(), Some(0), "{words}: {}", told(&output));
    let text = fs::read_to_string(out).unwrap();
    let document =
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{words}: {error}"));
    for elsewhere in ["href", "<script", "<image", "NaN"] {
        assert!(!text.contains(elsewhere), "{words}: {elsewhere}");
    }
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    let texts = texts
        .map(|node| node.text().unwrap().trim().to_owned())
        .collect();
    (texts, serde_json::from_slice(&output.stdout).unwrap())
}

/// The middles of the rings around what is incomplete: closed lines of 32 corners.
fn rings(out: &Path) -> Vec<(f64, f64)> {
    let text = fs::read_to_string(out).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let lines = document.descendants().filter_map(|node| {
        node.attribute("points")
            .filter(|_| node.has_tag_name("polyline"))
    });
    let points = lines.map(|line| -> Vec<(f64, f64)> {
        let pair = |pair: &str| {
            let (x, y) = pair.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        line.split_whitespace().map(pair).collect()
    });
    let ring = |points: Vec<(f64, f64)>| {
        let round = points.len() == 33 && points[0] == points[32];
        round.then(|| ((points[0].0 + points[16].0) / 2.0, points[0].1))
    };
    points.filter_map(ring).collect()
}

/// Exit code and standard error of a command that must fail.
fn refused(words: &str, code: i32, parts: &[&str]) {
    let output = hcabench(&format!("plot {words}"));
    let text = told(&output);
    assert_eq!(output.status.code(), Some(code), "{words}: {text}");
    for part in parts {
        assert!(text.contains(part), "{words}: {part:?} is not in {text}");
    }
}

fn sweep(folder: &Path) -> String {
    let one: Vec<Option<i64>> = (0..100).map(|n| Some(1000 + 10 * n)).collect();
    let two: Vec<Option<i64>> = (0..100)
        .map(|n| (n % 4 != 0).then_some(3000 + 100 * n))
        .collect();
    let three: Vec<Option<i64>> = (0..100).map(|n| Some(5000 + n)).collect();
    let points: Vec<MadePoint<'_>> = vec![
        ("rc", 8, 16, &one),
        ("rc", 64, 16, &three),
        ("uc", 8, 16, &two),
        ("uc", 64, 16, &three),
        ("rc", 8, 32, &three),
        ("rc", 64, 32, &two),
        ("uc", 8, 32, &one),
        ("uc", 64, 32, &two),
    ];
    hca_run(&folder.join("run"), &points, false)
        .display()
        .to_string()
}

fn has(texts: &[String], wanted: &[&str]) {
    for text in wanted {
        assert!(
            texts.iter().any(|found| found == text),
            "{text:?} is not in {texts:?}"
        );
    }
}

#[test]
fn figures_of_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let run = sweep(folder.path());
    let out = folder.path().join("figure.svg");

    let (texts, data) = drawn(
        &format!("histogram {run} --only burst=16 --only size_bytes=8"),
        &out,
    );
    has(
        &texts,
        &[
            "One-way latency",
            "RC: median 1.5 µs",
            "UC: median 8 µs, 25 lost",
            "one-way latency (ns)",
            "10000",
            "above 10 µs",
        ],
    );
    assert!(
        texts
            .iter()
            .any(|text| text.starts_with("send, 8 B, burst 16, ") && text.contains("pause 50 µs")),
        "{texts:?}"
    );
    let rc = &data["series"][0];
    assert_eq!(
        (
            rc["total"].as_u64(),
            rc["median"].as_f64(),
            rc["max"].as_i64()
        ),
        (Some(100), Some(1495.0), Some(1990))
    );
    assert_eq!(rc["counts"][10], 10);
    // 3000 + 100 n above 10000: n from 71 on, but for each fourth.
    assert_eq!(
        data["series"][1]["above"],
        (71..100).filter(|n| n % 4 != 0).count()
    );

    let (texts, data) = drawn(
        &format!(
            "histogram {run} --only burst=16 --only size_bytes=8 --only service=rc --metric t_lat,t_comp"
        ),
        &out,
    );
    has(
        &texts,
        &[
            "One-way latency".replace("One-way l", "L").as_str(),
            "one-way latency: median 1.5 µs",
            "completion latency: median 700 ns",
        ],
    );
    assert_eq!(data["series"].as_array().unwrap().len(), 2);

    let (texts, data) = drawn(&format!("median {run}"), &out);
    has(
        &texts,
        &[
            "One-way latency by message size",
            "8 B",
            "64 B",
            "RC, burst 16",
            "UC, burst 32",
            "message size",
        ],
    );
    let first = &data["lines"][0]["middles"][0];
    // The summary has three decimals of a microsecond, which are nanoseconds.
    assert_eq!(
        (first["value"].as_f64(), &first["most"]),
        (Some(1495.0), &serde_json::json!([1099.0, 1891.0]))
    );
    let (texts, _) = drawn(
        &format!("median {run} --x burst --order UC --only size_bytes=64"),
        &out,
    )
    .clone();
    has(&texts, &["messages in a burst"]);

    // The medians are 1495 twice and about 7900 ns twice.
    let (texts, _) = drawn(
        &format!("surface {run} --only service=uc --range 0..7us"),
        &out,
    );
    let note = "2 points lie outside of the range";
    assert!(texts.iter().any(|text| text.starts_with(note)), "{texts:?}");
    let (texts, data) = drawn(&format!("surface {run} --only service=uc"), &out);
    has(
        &texts,
        &[
            "message size",
            "messages in a burst",
            "lost messages",
            "20 %",
        ],
    );
    assert_eq!(data["heights"][0][0]["share"], 0.25);
    let (texts, data) = drawn(&format!("ecdf {run} --only service=rc"), &out);
    has(
        &texts,
        &[
            "8 B, burst 16",
            "64 B, burst 32, 25 lost",
            "share of received messages up to it (%)",
        ],
    );
    assert_eq!(data["curves"][3]["lost"], 25);
    assert_eq!(
        data["curves"][0]["points"][0],
        serde_json::json!([1000.0, 0.01])
    );
    let (texts, _) = drawn(&format!("percentiles {run} --only service=rc"), &out);
    has(
        &texts,
        &["90 %", "99 %", "percentile", "64 B, burst 32, 25 lost"],
    );
    let (texts, data) = drawn(
        &format!("time {run} --only service=uc --only burst=16"),
        &out,
    );
    has(
        &texts,
        &["One-way latency over time", "8 B, 25 lost", "64 B"],
    );
    assert_eq!(data["clouds"][0]["points"][0], serde_json::json!([0, 3100]));

    // The maximum's share of a distribution is drawn, too.
    let two: Vec<Option<i64>> = (0..100)
        .map(|n| Some(if n < 90 { 1000 } else { 1_000_000 }))
        .collect();
    let two = hca_run(&folder.path().join("two"), &[("rc", 8, 16, &two)], false);
    let two = two.join("rc-send-8B-burst16/latency.hgrm");
    let (texts, data) = drawn(&format!("percentiles {}", two.display()), &out);
    has(&texts, &["90 %", "99 %"]);
    let points: Vec<(f64, f64)> =
        serde_json::from_value(data["curves"][0]["points"].clone()).unwrap();
    assert_eq!(points[0], (0.0, 1000.0));
    assert_eq!(points.last().unwrap().0, 0.99);
    for (share, value) in points {
        let is = if share <= 0.9 { 1000.0 } else { 1e6 };
        assert!((value - is).abs() <= 0.001 * is, "{share}: {value}");
    }

    // A point's folder, a distribution, and PNG.
    let point = format!("{run}/rc-send-8B-burst16");
    let (texts, _) = drawn(&format!("percentiles {point} {point}/latency.hgrm"), &out);
    has(&texts, &["rc-send-8B-burst16"]);
    let png = folder.path().join("figure.png");
    let output = hcabench(&format!(
        "plot histogram {point} --size 300x300 --bins 20 --quiet --out {}",
        png.display()
    ));
    assert_eq!(
        (output.status.code(), told(&output).as_str()),
        (Some(0), "")
    );
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn settings_in_a_file_and_what_is_wrong_with_options() {
    let folder = tempfile::tempdir().unwrap();
    let run = sweep(folder.path());
    let out = folder.path().join("figure.svg");
    let file = Path::new(&run).join("plot.json");
    fs::write(&file, r#"{"title": "Our fabric", "labels": {"RC": "reliable"}, "histogram": {"only": {"size_bytes": 8, "burst": 16}, "range": "0..5us"}}"#).unwrap();
    let (texts, _) = drawn(
        &format!("histogram {run} --title Mine --order UC,reliable"),
        &out,
    );
    has(&texts, &["Mine", "reliable: median 1.5 µs", "above 5 µs"]);
    assert!(
        texts.iter().position(|text| text.starts_with("UC:"))
            < texts.iter().position(|text| text.starts_with("reliable:"))
    );
    let (texts, _) = drawn(&format!("histogram {run}/rc-send-8B-burst16"), &out);
    has(&texts, &["Our fabric"]);
    fs::write(&file, r#"{"colour": "red"}"#).unwrap();
    let to = format!("--out {}", out.display());
    refused(
        &format!("median {run} {to}"),
        2,
        &["plot.json", "unknown field `colour`", "title"],
    );
    fs::remove_file(&file).unwrap();
    let missing = folder.path().join("none.json").display().to_string();
    refused(
        &format!("median {run} {to} --config {missing}"),
        2,
        &["none.json"],
    );

    refused(
        &format!("median {run} --out figure.eps"),
        2,
        &["--out figure.eps", ".svg, .png or .pdf"],
    );
    refused(
        &format!("median {run} --out figure"),
        2,
        &[".svg, .png or .pdf"],
    );
    refused(
        &format!("histogram {run} {to} --range 9..2"),
        2,
        &["--range", "0..50us"],
    );
    refused(
        &format!("histogram {run} {to} --only colour=red"),
        2,
        &["colour", "service, operation, size_bytes"],
    );
    refused(
        &format!("histogram {run} {to} --only service=xrc"),
        2,
        &["service=xrc", "rc, uc"],
    );
    refused(
        &format!("histogram {run} {to} --metric enqueue"),
        2,
        &["enqueue", "latency, completion"],
    );
    refused(
        &format!("median {run} {to} --x colour"),
        2,
        &["colour", "size_bytes"],
    );
    refused(
        &format!("surface {run} {to}"),
        2,
        &["service vary", "--only service=rc"],
    );
    refused(
        &format!("surface {run} {to} --x burst --y burst"),
        2,
        &["two settings"],
    );
    refused(
        &format!("median {run} {run} {to}"),
        2,
        &["two points have the same place"],
    );
    refused(&format!("ecdf {run} {to} --order nobody"), 2, &["nobody"]);
    refused(
        &format!("surface {run} {to} --metric latency,completion"),
        2,
        &["--metric \"latency,completion\"", "a surface is of one"],
    );
    refused(
        &format!("median {run} {to} --metric latency,t_lat"),
        2,
        &["\"latency\" and \"t_lat\" are the same"],
    );
    // Labels of several settings have commas in them.
    let order = |orders: &[&str]| {
        let mut command = Command::new(crate::common::program());
        command.args(["plot", "ecdf", &run, "--only", "service=rc", "--json"]);
        command.args(["--out", &out.display().to_string()]);
        for order in orders {
            command.args(["--order", order]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", told(&output));
        let data: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let curves = data["curves"].as_array().unwrap();
        let label = |curve: &serde_json::Value| curve["label"].as_str().unwrap().to_owned();
        curves.iter().map(label).collect::<Vec<String>>()
    };
    let usual = order(&[]);
    assert_eq!(usual[0], "8 B, burst 16");
    let wanted = [
        "64 B, burst 32",
        "8 B, burst 32",
        "8 B, burst 16",
        "64 B, burst 16",
    ];
    assert_eq!(order(&["64 B, burst 32,8 B, burst 32"]), wanted);
    assert_eq!(order(&["64 B, burst 32", "8 B, burst 32"]), wanted);
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = sweep(folder.path());
    let out = folder.path().join("figure.svg");
    let to = format!("--out {}", out.display());
    let path = |name: &str| folder.path().join(name).display().to_string();
    refused(
        &format!("ecdf {} {to}", path("nowhere")),
        1,
        &["nowhere", "does not exist"],
    );
    fs::create_dir(path("empty")).unwrap();
    refused(&format!("ecdf {} {to}", path("empty")), 1, &["is empty"]);
    fs::write(path("empty/holiday.txt"), "sun").unwrap();
    refused(
        &format!("ecdf {} {to}", path("empty")),
        1,
        &["no results of hcabench"],
    );
    refused(
        &format!(
            "ecdf {run} --only service=rc --out {}",
            path("missing/f.svg")
        ),
        1,
        &["missing/f.svg"],
    );
    fs::write(path("x.hgrm"), "hello\n").unwrap();
    refused(
        &format!("percentiles {} {to}", path("x.hgrm")),
        1,
        &["x.hgrm", "line 1"],
    );

    let file = Path::new(&run).join("rc-send-8B-burst16/messages.csv");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    let only = "--only service=rc --only burst=16";
    refused(
        &format!("histogram {run} {only} {to}"),
        1,
        &[
            "rc-send-8B-burst16/messages.csv",
            "cut off in line",
            "measure again",
        ],
    );
    fs::remove_file(&file).unwrap();
    refused(
        &format!("histogram {run} {only} {to}"),
        1,
        &["rc-send-8B-burst16", "copy the folder whole"],
    );
    assert!(!out.exists());
    // The medians are in the summary.
    drawn(&format!("median {run}"), &out);
}

#[test]
fn incomplete_lost_and_lonely_points() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("figure.svg");
    let run = hca_run(
        &folder.path().join("cut"),
        &[
            ("rc", 8, 16, &[Some(1500)]),
            ("rc", 16, 16, &[Some(2500), Some(2600)]),
        ],
        true,
    );
    for figure in ["histogram", "ecdf", "percentiles", "time", "median"] {
        let (texts, _) = drawn(&format!("{figure} {}", run.display()), &out);
        assert!(texts[0].ends_with("(incomplete)"), "{figure}: {texts:?}");
        assert!(
            texts
                .iter()
                .any(|text| text.contains("interrupted by SIGINT")),
            "{figure}: {texts:?}"
        );
    }
    // In the figure of medians, that point and no other has a ring, and the legend says what a ring is.
    let (texts, data) = drawn(&format!("median {}", run.display()), &out);
    has(&texts, &["incomplete"]);
    let middles = data["lines"][0]["middles"].as_array().unwrap();
    let marks: Vec<(f64, bool)> = middles
        .iter()
        .map(|it| {
            (
                it["x"].as_f64().unwrap(),
                it["incomplete"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(marks, [(8.0, false), (16.0, true)]);
    let rings_of_it = rings(&out);
    let [sign, around] = rings_of_it[..] else {
        panic!("{rings_of_it:?}")
    };
    // Right of the middle, as 16 is of 8, and above the legend.
    assert!(around.0 > 5000.0 && around.1 < sign.1, "{rings_of_it:?}");
    let cut = hca_run(
        &folder.path().join("cut-surface"),
        &[
            ("rc", 8, 16, &[Some(1500)]),
            ("rc", 16, 16, &[Some(2500)]),
            ("rc", 8, 32, &[Some(3500)]),
            ("rc", 16, 32, &[Some(4500)]),
        ],
        true,
    );
    let (texts, data) = drawn(&format!("surface {}", cut.display()), &out);
    has(&texts, &["incomplete"]);
    let marks = |x: usize, y: usize| data["heights"][x][y]["incomplete"].as_bool();
    let whole = Some(false);
    assert_eq!(
        [marks(0, 0), marks(0, 1), marks(1, 0), marks(1, 1)],
        [whole, whole, whole, Some(true)]
    );
    assert_eq!(rings(&out).len(), 2);
    let all_lost = hca_run(
        &folder.path().join("lost"),
        &[("ud", 8, 16, &[None; 5]), ("ud", 16, 16, &[Some(7); 3])],
        false,
    );
    let (texts, _) = drawn(&format!("histogram {}", all_lost.display()), &out);
    has(&texts, &["8 B: no samples, 5 lost"]);
    let output = hcabench(&format!(
        "plot median {} --out {}",
        all_lost.display(),
        out.display()
    ));
    assert!(
        output.status.success() && told(&output).contains("has no samples and is not drawn"),
        "{}",
        told(&output)
    );
    let (texts, _) = drawn(&format!("median {}", all_lost.display()), &out);
    has(
        &texts,
        &["1 point has no samples and is not drawn: ud-send-8B-burst16"],
    );
    let some_lost = hca_run(
        &folder.path().join("surface"),
        &[
            ("ud", 8, 16, &[None; 5]),
            ("ud", 16, 16, &[Some(7); 3]),
            ("ud", 8, 32, &[Some(8); 3]),
            ("ud", 16, 32, &[Some(9), Some(9), Some(9), None]),
        ],
        false,
    );
    let (texts, data) = drawn(&format!("surface {}", some_lost.display()), &out);
    has(
        &texts,
        &["1 point has no samples: crossed on the ground", "100 %"],
    );
    assert_eq!(
        data["heights"][0][0],
        serde_json::json!({"value": null, "share": 1.0, "incomplete": false})
    );
    let first = all_lost.join("ud-send-8B-burst16");
    refused(
        &format!("histogram {} --out {}", first.display(), out.display()),
        1,
        &["all of 5 messages were lost"],
    );
}

#[test]
fn figures_of_queues_and_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let measured = |words: &str, to: &str| {
        let output = hcabench(&format!("{words} --quiet --out {}", path(to)));
        assert_eq!(output.status.code(), Some(0), "{words}: {}", told(&output));
    };
    let out = folder.path().join("figure.svg");
    measured(
        "queue --queue baton,lamport --count 1000 --warmup 1ms --repeat 2 --clock monotonic --elements",
        "queue",
    );
    let (texts, data) = drawn(&format!("median {}", path("queue")), &out);
    has(
        &texts,
        &[
            "baton",
            "lamport",
            "time of an enqueue",
            "time of a dequeue",
        ],
    );
    let middles = data["lines"][0]["middles"].as_array().unwrap();
    assert!(
        middles.len() == 2 && middles.iter().all(|it| it["value"].as_f64().unwrap() > 0.0),
        "{data}"
    );
    for figure in ["histogram --range auto", "ecdf", "percentiles", "time"] {
        let (texts, data) = drawn(&format!("{figure} {}", path("queue")), &out);
        assert!(
            texts.iter().any(|text| text.starts_with("baton")),
            "{figure}: {texts:?}"
        );
        if figure.starts_with("histogram") {
            assert_eq!(data["series"][0]["total"], 2000);
        }
    }
    drawn(
        &format!("ecdf {} --metric enqueue,dequeue", path("queue")),
        &out,
    );

    measured(
        "queue --queue baton --count 500 --warmup 1ms --repeat 1 --clock monotonic --load-curve",
        "curve",
    );
    let (texts, data) = drawn(&format!("median {}", path("curve")), &out);
    has(&texts, &["offered rate (% of saturation)", "100"]);
    assert_eq!(data["lines"].as_array().unwrap().len(), 1);
    refused(
        &format!("histogram {} --out {}", path("curve"), out.display()),
        2,
        &["histograms over each other"],
    );
    refused(
        &format!(
            "histogram {} --only percent_of_saturation=50 --out {}",
            path("curve"),
            out.display()
        ),
        1,
        &["--elements"],
    );

    measured("clock --clock monotonic --duration 500ms", "clock");
    // A folder for each CPU that is watched.
    let rows_of = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("jumps.csv"));
        text.map_or(0, |text| text.lines().count() - 1)
    };
    let entries = fs::read_dir(folder.path().join("clock")).unwrap();
    let rows: usize = entries.map(|entry| rows_of(entry.unwrap())).sum();
    assert!(rows > 0, "half a second without any jump");
    let (texts, data) = drawn(&format!("time {}", path("clock")), &out);
    has(&texts, &["Jumps over time, by cause"]);
    let clouds = data["clouds"].as_array().unwrap();
    let cause = clouds[0]["label"].as_str().unwrap().to_owned();
    assert_eq!(
        clouds
            .iter()
            .map(|cloud| cloud["points"].as_array().unwrap().len())
            .sum::<usize>(),
        rows
    );
    let (texts, _) = drawn(&format!("median {}", path("clock")), &out);
    has(&texts, &["Length of jumps by cause"]);
    let (texts, _) = drawn(&format!("percentiles {}", path("clock")), &out);
    has(&texts, &["Difference between two readings"]);
    drawn(&format!("histogram {}", path("clock")), &out);
    drawn(&format!("ecdf {}", path("clock")), &out);
    for figure in ["histogram", "median", "time"] {
        refused(
            &format!(
                "{figure} {} --metric difference --out {}",
                path("clock"),
                out.display()
            ),
            2,
            &["--metric \"difference\"", "ecdf and percentiles draw it"],
        );
    }
    let renamed = Command::new(crate::common::program())
        .args([
            "plot",
            "time",
            &path("clock"),
            "--label",
            &format!("{cause}=mine"),
        ])
        .args(["--json", "--out", &out.display().to_string()])
        .output()
        .unwrap();
    assert_eq!(renamed.status.code(), Some(0), "{}", told(&renamed));
    let data: serde_json::Value = serde_json::from_slice(&renamed.stdout).unwrap();
    assert_eq!(data["clouds"][0]["label"], "mine");
    refused(
        &format!("surface {} --out {}", path("clock"), out.display()),
        2,
        &["surface"],
    );
    refused(
        &format!(
            "ecdf {} {} --out {}",
            path("clock"),
            path("queue"),
            out.display()
        ),
        2,
        &["do not fit into one figure"],
    );
}

#[test]
fn curves_of_a_memory_are_drawn_beside_published_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let curves = [50, 100].map(|reads| MadeCurve::bent(reads, 12, 2, 9_000.0, 0.01));
    let run = memory_run(&path.join("run"), &curves, 6, false);
    let (run, csv, out) = (
        run.display(),
        path.join("mess.csv"),
        path.join("curves.svg"),
    );
    let mess = "read_pct_rounded,pause,bandwidth_smooth,latency_smooth\n\
                51,900,0.0,120\n51,800,1.5,120\n51,0,8.5,300\n51,10,9.0,250\n";
    fs::write(&csv, mess).unwrap();
    let words = format!("curves {run} --with {}", csv.display());
    let (texts, data) = drawn(&words, &out);
    for text in [
        "Latency by memory bandwidth",
        "50 % reads",
        "published: mess.csv",
        "51 %",
    ] {
        assert!(texts.iter().any(|it| it == text), "{text}: {texts:?}");
    }
    let published = serde_json::json!([[1.5, 120.0], [9.0, 250.0], [8.5, 300.0]]);
    assert_eq!(data["published"][0]["points"], published);
    let hint = hcabench(&format!("plot {words} --out {}", out.display()));
    assert!(
        told(&hint).contains("warning: 1 row has no bandwidth"),
        "{}",
        told(&hint)
    );
    for ending in ["png", "pdf"] {
        let out = path.join(format!("curves.{ending}"));
        let output = hcabench(&format!("plot {words} --out {}", out.display()));
        assert!(output.status.success() && out.metadata().unwrap().len() > 5_000);
    }
    fs::write(&csv, "a,b\n1,2\n").unwrap();
    let out = path.join("none.svg");
    let parts = [
        "--with",
        "mess.csv: its columns are those of no curves",
        "read_share_percent,bandwidth_mb_s,latency_ns",
    ];
    refused(&format!("{words} --out {}", out.display()), 2, &parts);
    assert!(!out.exists());
    // Two runs are compared, and a report is made, of the same made-up results.
    let compared = hcabench(&format!("compare {run} {run}"));
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert_eq!(compared.status.code(), Some(0), "{}", told(&compared));
    assert!(
        text.contains("latency") && text.contains("bandwidth"),
        "{text}"
    );
    let page = path.join("report.html");
    let report = hcabench(&format!("report {run} --out {}", page.display()));
    assert_eq!(report.status.code(), Some(0), "{}", told(&report));
}
