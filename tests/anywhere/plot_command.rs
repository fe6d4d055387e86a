//! `hcabench plot` as its user has it.

use crate::common;
use crate::made_up_run;
use crate::testing::{Has as _, temporary};
use std::fs;
use std::path::Path;

use common::ends;
use common::figures::{OUT, Texts, drawn, not_drawn};
use made_up_run::memory::{MadeCurve, memory_run};
use made_up_run::{Made, hca_run};
use serde_json::json;

/// The middles of the rings around what is incomplete: closed lines of 32 corners.
fn rings(folder: &Path) -> Vec<(f64, f64)> {
    let text = fs::read_to_string(folder.join(OUT)).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let nodes = document.descendants();
    let lines = nodes.filter(|node| node.has_tag_name("polyline"));
    let points = lines.map(|line| -> Vec<(f64, f64)> {
        let pair = |pair: &str| {
            let (x, y) = pair.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        let points = line.attribute("points").unwrap();
        points.split_whitespace().map(pair).collect()
    });
    let ring = |points: Vec<(f64, f64)>| {
        let round = points.len() == 33 && points[0] == points[32];
        round.then(|| ((points[0].0 + points[16].0) / 2.0, points[0].1))
    };
    points.filter_map(ring).collect()
}

/// A run of eight points in `run`.
fn sweep() -> tempfile::TempDir {
    let one: Vec<Made> = (0..100).map(|n| Some(1000 + 10 * n)).collect();
    let two = (0..100).map(|n| (n % 4 != 0).then_some(3000 + 100 * n));
    let two: Vec<Made> = two.collect();
    let three: Vec<Made> = (0..100).map(|n| Some(5000 + n)).collect();
    let points = [
        ("rc", 8, 16, &one[..]),
        ("rc", 64, 16, &three),
        ("uc", 8, 16, &two),
        ("uc", 64, 16, &three),
        ("rc", 8, 32, &three),
        ("rc", 64, 32, &two),
        ("uc", 8, 32, &one),
        ("uc", 64, 32, &two),
    ];
    let folder = tempfile::tempdir().unwrap();
    hca_run(&folder.path().join("run"), &points, false);
    folder
}

#[test]
fn figures_of_a_sweep() {
    let folder = sweep();
    let folder = folder.path();

    let only = "--only burst=16 --only size_bytes=8";
    let (texts, data) = drawn(folder, &format!("histogram run {only}"));
    texts.has(&[
        "One-way latency",
        "RC: median 1.5 µs",
        "UC: median 8 µs, 25 lost",
        "one-way latency (ns)",
        "10000",
        "above 10 µs",
    ]);
    let is_subtitle = |text: &str| text.starts_with("send, 8 B, burst 16, ");
    let is_there = texts.any(|text| is_subtitle(text) && text.contains("pause 50 µs"));
    assert!(is_there, "{texts:?}");
    let rc = &data["series"][0];
    assert_eq!(rc["total"], 100);
    assert_eq!(rc["median"].as_f64(), Some(1495.0));
    assert_eq!(rc["max"].as_i64(), Some(1990));
    assert_eq!(rc["counts"][10], 10);
    // 3000 + 100 n above 10000: n from 71 on, but for each fourth.
    let above = (71..100).filter(|n| n % 4 != 0).count();
    assert_eq!(data["series"][1]["above"], above);

    let both = format!("histogram run {only} --only service=rc --metric t_lat,t_comp");
    let (texts, data) = drawn(folder, &both);
    texts.has(&[
        "Latency",
        "one-way latency: median 1.5 µs",
        "completion latency: median 700 ns",
    ]);
    assert_eq!(data["series"].as_array().unwrap().len(), 2);

    let (texts, data) = drawn(folder, "median run");
    texts.has(&[
        "One-way latency by message size",
        "8 B",
        "64 B",
        "RC, burst 16",
        "UC, burst 32",
        "message size",
    ]);
    let first = &data["lines"][0]["middles"][0];
    // The summary has three decimals of a microsecond, which are nanoseconds.
    assert_eq!(first["value"].as_f64(), Some(1495.0));
    assert_eq!(first["most"], json!([1099.0, 1891.0]));
    let (texts, _) = drawn(
        folder,
        "median run --x burst --order UC --only size_bytes=64",
    );
    texts.has(&["messages in a burst"]);

    // The medians are 1495 twice and about 7900 ns twice.
    let (texts, _) = drawn(folder, "surface run --only service=uc --range 0..7us");
    let note = "2 points lie outside of the range";
    assert!(texts.any(|text| text.starts_with(note)), "{texts:?}");
    let (texts, data) = drawn(folder, "surface run --only service=uc");
    texts.has(&[
        "message size",
        "messages in a burst",
        "lost messages",
        "20 %",
    ]);
    assert_eq!(data["heights"][0][0]["share"], 0.25);
    let (texts, data) = drawn(folder, "ecdf run --only service=rc");
    texts.has(&[
        "8 B, burst 16",
        "64 B, burst 32, 25 lost",
        "share of received messages up to it (%)",
    ]);
    assert_eq!(data["curves"][3]["lost"], 25);
    assert_eq!(data["curves"][0]["points"][0], json!([1000.0, 0.01]));
    let (texts, _) = drawn(folder, "percentiles run --only service=rc");
    texts.has(&["90 %", "99 %", "percentile", "64 B, burst 32, 25 lost"]);
    let (texts, data) = drawn(folder, "time run --only service=uc --only burst=16");
    texts.has(&["One-way latency over time", "8 B, 25 lost", "64 B"]);
    assert_eq!(data["clouds"][0]["points"][0], json!([0, 3100]));

    // The maximum's share of a distribution is drawn, too.
    let two = (0..100).map(|n| Some(if n < 90 { 1000 } else { 1_000_000 }));
    let two: Vec<Made> = two.collect();
    hca_run(&folder.join("two"), &[("rc", 8, 16, &two)], false);
    let (texts, data) = drawn(folder, "percentiles two/rc-send-8B-burst16/latency.hgrm");
    texts.has(&["90 %", "99 %"]);
    let points = data["curves"][0]["points"].clone();
    let points: Vec<(f64, f64)> = serde_json::from_value(points).unwrap();
    assert_eq!(points[0], (0.0, 1000.0));
    assert_eq!(points.last().unwrap().0, 0.99);
    for (share, value) in points {
        let is = if share <= 0.9 { 1000.0 } else { 1e6 };
        assert!((value - is).abs() <= 0.001 * is, "{share}: {value}");
    }

    // A point's folder, a distribution, and PNG.
    let point = "run/rc-send-8B-burst16";
    let (texts, _) = drawn(folder, &format!("percentiles {point} {point}/latency.hgrm"));
    texts.has(&["rc-send-8B-burst16"]);
    let png = format!("plot histogram {point} --size 300x300 --bins 20 --quiet --out x.png");
    assert_eq!(ends(folder, &png, 0).stderr, "");
    let png = fs::read(folder.join("x.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
}

#[test]
fn settings_in_a_file_and_what_is_wrong_with_options() {
    let folder = sweep();
    let folder = folder.path();
    let file = folder.join("run/plot.toml");
    let old = folder.join("run/plot.json");
    let text = r#"
        title = "Our fabric"
        label = { RC = "reliable" }
        [histogram]
        only = { size_bytes = 8, burst = 16 }
        range = "0..5us"
    "#;
    let as_before = r#"{
        "title": "Our fabric", "labels": {"RC": "reliable"},
        "histogram": {"only": {"size_bytes": 8, "burst": 16}, "range": "0..5us"}
    }"#;
    // One of an earlier version, and beside it a new one, which is read in its place.
    for (path, text) in [(&old, as_before), (&file, text)] {
        fs::write(path, text).unwrap();
        let (texts, _) = drawn(folder, "histogram run --title Mine --order UC,reliable");
        texts.has(&["Mine", "reliable: median 1.5 µs", "above 5 µs"]);
        let Texts(all) = &texts;
        let place = |begin| all.iter().position(|text| text.starts_with(begin));
        assert!(place("UC:") < place("reliable:"));
        let (texts, _) = drawn(folder, "histogram run/rc-send-8B-burst16");
        texts.has(&["Our fabric"]);
        let words = format!("histogram run --config {}", path.display());
        let (texts, _) = drawn(folder, &words);
        texts.has(&["Our fabric"]);
        fs::write(path, "{ }").unwrap();
    }
    fs::write(&file, "colour = 'red'").unwrap();
    let parts = ["plot.toml", "'colour' is not an option of plot median"];
    not_drawn(folder, "median run", 2, &parts);
    fs::remove_file(&old).unwrap();
    fs::remove_file(&file).unwrap();

    for out in ["figure.eps", "figure"] {
        let ended = ends(folder, &format!("plot median run --out {out}"), 2);
        ended.told().has(&[out, ".svg, .png or .pdf"]);
    }
    for (words, parts) in [
        ("median run --config none.json", &["none.json"][..]),
        ("histogram run --range 9..2", &["--range", "0..50us"]),
        (
            "histogram run --only colour=red",
            &["colour", "service, operation, size_bytes"],
        ),
        (
            "histogram run --only service=xrc",
            &["service=xrc", "rc, uc"],
        ),
        (
            "histogram run --metric enqueue",
            &["enqueue", "latency, completion"],
        ),
        ("median run --x colour", &["colour", "size_bytes"]),
        ("surface run", &["service vary", "--only service=rc"]),
        ("surface run --x burst --y burst", &["two settings"]),
        ("median run run", &["two points have the same place"]),
        ("ecdf run --order nobody", &["nobody"]),
        (
            "surface run --metric latency,completion",
            &["--metric \"latency,completion\"", "a surface is of one"],
        ),
        (
            "median run --metric latency,t_lat",
            &["\"latency\" and \"t_lat\" are the same"],
        ),
    ] {
        not_drawn(folder, words, 2, parts);
    }
    // Labels of several settings have commas in them.
    let order = |orders: &str| {
        let (_, data) = drawn(folder, &format!("ecdf run --only service=rc {orders}"));
        let curves = data["curves"].as_array().unwrap().iter();
        let label = |curve: &serde_json::Value| curve["label"].as_str().unwrap().to_owned();
        curves.map(label).collect::<Vec<String>>()
    };
    assert_eq!(order("")[0], "8 B, burst 16");
    let wanted = [
        "64 B, burst 32",
        "8 B, burst 32",
        "8 B, burst 16",
        "64 B, burst 16",
    ];
    assert_eq!(order("--order '64 B, burst 32,8 B, burst 32'"), wanted);
    assert_eq!(
        order("--order '64 B, burst 32' --order '8 B, burst 32'"),
        wanted
    );
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let folder = sweep();
    let folder = folder.path();
    fs::create_dir_all(folder.join("empty")).unwrap();
    fs::create_dir_all(folder.join("holiday")).unwrap();
    fs::write(folder.join("holiday/holiday.txt"), "sun").unwrap();
    fs::write(folder.join("x.hgrm"), "hello\n").unwrap();
    for (words, parts) in [
        ("ecdf nowhere", &["nowhere", "does not exist"][..]),
        ("ecdf empty", &["is empty"]),
        ("ecdf holiday", &["no results of hcabench"]),
        ("percentiles x.hgrm", &["x.hgrm", "line 1"]),
    ] {
        not_drawn(folder, words, 1, parts);
    }
    let ended = ends(
        folder,
        "plot ecdf run --only service=rc --out missing/f.svg",
        1,
    );
    ended.told().has(&["missing/f.svg"]);

    let file = folder.join("run/rc-send-8B-burst16/messages.csv");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    let only = "histogram run --only service=rc --only burst=16 --only size_bytes=8";
    let parts = [
        "rc-send-8B-burst16/messages.csv",
        "cut off in line",
        "measure again",
    ];
    not_drawn(folder, only, 1, &parts);
    // Beside others the damaged one is left out.
    let others = "histogram run --only service=rc";
    for figure in ["histogram", "ecdf", "percentiles", "time"] {
        let words = format!("plot {figure} run --only service=rc --json --out {OUT}");
        let ended = ends(folder, &words, 1);
        ended.told().has(&["warning: left out: "]);
        ended.told().has(&parts);
        let data: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let mut lines = ["series", "curves", "clouds"].iter();
        let lines = lines.find_map(|name| data[*name].as_array());
        assert_eq!(lines.unwrap().len(), 3, "{figure}");
        let picture = fs::read_to_string(folder.join(OUT)).unwrap();
        picture.has(&["left out, as it is damaged: rc-send-8B-burst16/messages.csv"]);
    }
    fs::remove_file(&file).unwrap();
    let ended = ends(folder, &format!("plot {others} --out {OUT}"), 1);
    ended.told().has(&["messages.csv is missing"]);
    fs::remove_file(folder.join(OUT)).unwrap();
    not_drawn(
        folder,
        only,
        1,
        &["rc-send-8B-burst16", "copy the folder whole"],
    );
    // The medians are in the summary.
    drawn(folder, "median run");
    let _ = fs::remove_file(folder.join(OUT));
    // Without samples of any point the message says how they are recorded.
    let queue = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample/queue");
    let words = format!("time {}", queue.display());
    let parts = ["a single round's samples", "measure with --elements"];
    not_drawn(folder, &words, 1, &parts);
}

#[test]
fn a_distribution_that_is_compressed_is_named_so() {
    let folder = &*temporary("");
    fs::write(folder.join("x.hgrm.gz"), b"\x1f\x8b\x08\0\0\0\0\0").unwrap();
    let parts = ["x.hgrm.gz is compressed with gzip", "gunzip"];
    not_drawn(folder, "percentiles x.hgrm.gz", 1, &parts);
}

#[test]
fn incomplete_lost_and_lonely_points() {
    let folder = &*temporary("");
    let points = [
        ("rc", 8, 16, &[Some(1500)][..]),
        ("rc", 16, 16, &[Some(2500), Some(2600)]),
    ];
    hca_run(&folder.join("cut"), &points, true);
    for figure in ["histogram", "ecdf", "percentiles", "time", "median"] {
        let (texts, _) = drawn(folder, &format!("{figure} cut"));
        assert!(texts.0[0].ends_with("(incomplete)"), "{figure}: {texts:?}");
        let is_there = texts.any(|text| text.contains("interrupted by SIGINT"));
        assert!(is_there, "{figure}: {texts:?}");
    }
    // In the figure of medians, that point and no other has a ring, and the legend says what a ring is.
    let (texts, data) = drawn(folder, "median cut");
    texts.has(&["incomplete"]);
    let marks = [0, 1].map(|at: usize| {
        let middle = &data["lines"][0]["middles"][at];
        (middle["x"].as_f64(), middle["incomplete"].as_bool())
    });
    assert_eq!(marks, [(Some(8.0), Some(false)), (Some(16.0), Some(true))]);
    let rings_of_it = rings(folder);
    let [sign, around] = rings_of_it[..] else {
        panic!("{rings_of_it:?}")
    };
    // Right of the middle, as 16 is of 8, and above the legend.
    assert!(around.0 > 5000.0 && around.1 < sign.1, "{rings_of_it:?}");
    let points = [
        ("rc", 8, 16, &[Some(1500)][..]),
        ("rc", 16, 16, &[Some(2500)]),
        ("rc", 8, 32, &[Some(3500)]),
        ("rc", 16, 32, &[Some(4500)]),
    ];
    hca_run(&folder.join("cut-surface"), &points, true);
    let (texts, data) = drawn(folder, "surface cut-surface");
    texts.has(&["incomplete"]);
    let marks = [(0, 0), (0, 1), (1, 0), (1, 1)]
        .map(|(x, y): (usize, usize)| data["heights"][x][y]["incomplete"].as_bool());
    assert_eq!(marks, [Some(false), Some(false), Some(false), Some(true)]);
    assert_eq!(rings(folder).len(), 2);
    let points = [("ud", 8, 16, &[None; 5][..]), ("ud", 16, 16, &[Some(7); 3])];
    hca_run(&folder.join("lost"), &points, false);
    let (texts, _) = drawn(folder, "histogram lost");
    texts.has(&["8 B: no samples, 5 lost"]);
    let ended = ends(folder, "plot median lost --out x.svg", 0);
    ended.told().has(&["has no samples and is not drawn"]);
    let (texts, _) = drawn(folder, "median lost");
    texts.has(&["1 point has no samples and is not drawn: ud-send-8B-burst16"]);
    let points = [
        ("ud", 8, 16, &[None; 5][..]),
        ("ud", 16, 16, &[Some(7); 3]),
        ("ud", 8, 32, &[Some(8); 3]),
        ("ud", 16, 32, &[Some(9), Some(9), Some(9), None]),
    ];
    hca_run(&folder.join("surface"), &points, false);
    let (texts, data) = drawn(folder, "surface surface");
    texts.has(&["1 point has no samples: crossed on the ground", "100 %"]);
    let lost = json!({"value": null, "share": 1.0, "incomplete": false});
    assert_eq!(data["heights"][0][0], lost);
    let first = "histogram lost/ud-send-8B-burst16";
    not_drawn(folder, first, 1, &["all of 5 messages were lost"]);
}

#[test]
fn figures_of_queues_and_clocks() {
    let folder = &*temporary("");
    let queue = "queue --warmup 1ms --clock monotonic --quiet";
    let two = "--queue baton,lamport --count 1000 --repeat 2 --elements --out queue";
    ends(folder, &format!("{queue} {two}"), 0);
    let (texts, data) = drawn(folder, "median queue");
    texts.has(&[
        "baton",
        "lamport",
        "time of an enqueue",
        "time of a dequeue",
    ]);
    let middles = data["lines"][0]["middles"].as_array().unwrap();
    let values = middles.iter().map(|it| it["value"].as_f64().unwrap());
    assert!(values.clone().count() == 2, "{data}");
    assert!(values.clone().all(|it| it > 0.0), "{data}");
    for figure in ["histogram --range auto", "ecdf", "percentiles", "time"] {
        let (texts, data) = drawn(folder, &format!("{figure} queue"));
        let is_there = texts.any(|text| text.starts_with("baton"));
        assert!(is_there, "{figure}: {texts:?}");
        if figure.starts_with("histogram") {
            assert_eq!(data["series"][0]["total"], 2000);
        }
    }
    drawn(folder, "ecdf queue --metric enqueue,dequeue");

    let curve = "--queue baton --count 500 --repeat 1 --load-curve --out curve";
    ends(folder, &format!("{queue} {curve}"), 0);
    let (texts, data) = drawn(folder, "median curve");
    texts.has(&["offered rate (% of saturation)", "100"]);
    assert_eq!(data["lines"].as_array().unwrap().len(), 1);
    not_drawn(
        folder,
        "histogram curve",
        2,
        &["histograms over each other"],
    );
    let one = "histogram curve --only percent_of_saturation=50";
    not_drawn(folder, one, 1, &["--elements"]);

    ends(
        folder,
        "clock --clock monotonic --duration 500ms --quiet --out clock",
        0,
    );
    // A folder for each CPU that is watched.
    let rows_of = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("jumps.csv"));
        text.map_or(0, |text| text.lines().count() - 1)
    };
    let entries = fs::read_dir(folder.join("clock")).unwrap();
    let rows: usize = entries.map(|entry| rows_of(entry.unwrap())).sum();
    assert!(rows > 0, "half a second without any jump");
    let (texts, data) = drawn(folder, "time clock");
    texts.has(&["Jumps over time, by cause"]);
    let clouds = data["clouds"].as_array().unwrap();
    let cause = clouds[0]["label"].as_str().unwrap();
    let points = clouds
        .iter()
        .map(|it| it["points"].as_array().unwrap().len());
    assert_eq!(points.sum::<usize>(), rows);
    let (texts, _) = drawn(folder, "median clock");
    texts.has(&["Length of jumps by cause"]);
    let (texts, _) = drawn(folder, "percentiles clock");
    texts.has(&["Difference between two readings"]);
    drawn(folder, "histogram clock");
    drawn(folder, "ecdf clock");
    for figure in ["histogram", "median", "time"] {
        let words = format!("{figure} clock --metric difference");
        let parts = ["--metric \"difference\"", "ecdf and percentiles draw it"];
        not_drawn(folder, &words, 2, &parts);
    }
    let (_, data) = drawn(folder, &format!("time clock --label '{cause}=mine'"));
    assert_eq!(data["clouds"][0]["label"], "mine");
    not_drawn(folder, "surface clock", 2, &["surface"]);
    not_drawn(
        folder,
        "ecdf clock queue",
        2,
        &["do not fit into one figure"],
    );
}

#[test]
fn curves_of_a_memory_are_drawn_beside_published_ones() {
    let folder = &*temporary("");
    let curves = [50, 100].map(|reads| MadeCurve::bent(reads, 12, 2, 9_000.0, 0.01));
    memory_run(&folder.join("run"), &curves, 6, false);
    let mess = "read_pct_rounded,pause,bandwidth_smooth,latency_smooth\n\
                51,900,0.0,120\n51,800,1.5,120\n51,0,8.5,300\n51,10,9.0,250\n";
    fs::write(folder.join("mess.csv"), mess).unwrap();
    let words = "curves run --with mess.csv";
    let (texts, data) = drawn(folder, words);
    texts.has(&[
        "Latency by memory bandwidth",
        "50 % reads",
        "published: mess.csv",
        "51 %",
    ]);
    let published = json!([[1.5, 120.0], [9.0, 250.0], [8.5, 300.0]]);
    assert_eq!(data["published"][0]["points"], published);
    for ending in ["png", "pdf"] {
        let out = format!("curves.{ending}");
        let ended = ends(folder, &format!("plot {words} --out {out}"), 0);
        ended.told().has(&["warning: 1 row has no bandwidth"]);
        assert!(folder.join(out).metadata().unwrap().len() > 5_000);
    }
    fs::write(folder.join("mess.csv"), "a,b\n1,2\n").unwrap();
    let parts = [
        "--with",
        "mess.csv: its columns are those of no curves",
        "read_share_percent,bandwidth_mb_s,latency_ns",
    ];
    not_drawn(folder, words, 2, &parts);
    // Two runs are compared, and a report is made, of the same made-up results.
    let compared = ends(folder, "compare run run", 0);
    compared.stdout.has(&["latency", "bandwidth"]);
    ends(folder, "report run --out report.html", 0);
}
