//! Curves of a memory: what is drawn of runs that bend backwards, are noisy or have few points.

use crate::testing::{Has as _, Refused as _, temporary};
use serde_json::Value;

use super::*;
use crate::made_up_run::memory::{MadeCurve, SIZE, memory_run};

pub(super) fn curves_in(
    folder: &tempfile::TempDir,
    name: &str,
    curves: &[MadeCurve],
) -> Vec<PathBuf> {
    vec![memory_run(&folder.path().join(name), curves, 1, false)]
}

pub(super) fn family() -> Vec<MadeCurve> {
    let shares = [(0, 7_000.0), (50, 10_000.0), (100, 14_000.0)];
    shares
        .map(|(reads, peak)| MadeCurve::bent(reads, 14, 3, peak, 0.01))
        .to_vec()
}

fn data(from: &[PathBuf], words: &[&str]) -> Value {
    made(Figure::Curves, from, words).unwrap().data
}

fn numbers(curve: &Value, of: &str) -> Vec<(f64, f64)> {
    let points = curve[of].as_array().unwrap().iter();
    let pair = |point: &Value| match point {
        Value::Array(pair) => (pair[0].as_f64().unwrap(), pair[1].as_f64().unwrap()),
        dot => {
            let [x, y] = ["bandwidth_gb_s", "latency_ns"].map(|name| dot[name].as_f64().unwrap());
            (x, y)
        }
    };
    points.map(pair).collect()
}

fn texts(from: &[PathBuf], words: &[&str]) -> String {
    let drawing = made(Figure::Curves, from, words).unwrap().drawing;
    let texts: Vec<&str> = drawing.texts().map(|text| &text.text[..]).collect();
    texts.join(" ")
}

#[test]
fn a_curve_that_bends_backwards_is_drawn_in_the_order_of_load() {
    let folder = tempfile::tempdir().unwrap();
    let run = curves_in(&folder, "run", &family());
    let drawn = data(&run, &[]);
    let curves = drawn["curves"].as_array().unwrap();
    let labels: Vec<&str> = curves
        .iter()
        .map(|it| it["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["0 % reads", "50 % reads", "100 % reads"]);
    for curve in curves {
        let (dots, line) = (numbers(curve, "dots"), numbers(curve, "smoothed"));
        assert_eq!((dots.len(), line.len()), (14, 14));
        let most = dots.iter().map(|dot| dot.0).fold(0.0, f64::max);
        let peak = dots.iter().position(|dot| dot.0 == most).unwrap();
        assert_eq!(peak, 11, "{dots:?}");
        // Behind the peak there is less bandwidth with each point, and more latency.
        assert!(
            dots[peak..]
                .windows(2)
                .all(|pair| pair[1].0 < pair[0].0 && pair[1].1 > pair[0].1)
        );
        // The line has the same bandwidths, in the same order.
        assert!(dots.iter().zip(&line).all(|(dot, point)| dot.0 == point.0));
    }
    // Both the line and the axis tell what they are.
    let texts = texts(&run, &[]);
    texts.has(&[
        "estimated bandwidth (GB/s)",
        "latency of a load (ns)",
        "order of load",
    ]);
    assert!(!texts.contains("not smoothed"), "{texts}");
}

#[test]
fn noise_stays_in_the_dots_and_the_line_is_smooth() {
    let folder = tempfile::tempdir().unwrap();
    let noisy = MadeCurve::bent(50, 20, 0, 10_000.0, 0.2);
    let run = curves_in(&folder, "run", &[noisy]);
    let drawn = data(&run, &[]);
    let curve = &drawn["curves"][0];
    let rough = |points: &[(f64, f64)]| -> f64 {
        let bends = points
            .windows(3)
            .map(|it| (it[0].1 - 2.0 * it[1].1 + it[2].1).abs());
        bends.sum()
    };
    let (dots, line) = (numbers(curve, "dots"), numbers(curve, "smoothed"));
    assert!(rough(&line) < 0.3 * rough(&dots), "{dots:?} {line:?}");
}

#[test]
fn ten_points_have_no_smoothed_line_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let curves = [50, 100].map(|reads| MadeCurve::bent(reads, 10, 2, 9_000.0, 0.02));
    let run = curves_in(&folder, "run", &curves);
    let drawn = data(&run, &[]);
    for curve in drawn["curves"].as_array().unwrap() {
        assert_eq!(numbers(curve, "dots").len(), 10);
        assert_eq!(numbers(curve, "smoothed").len(), 0);
    }
    let why = "2 curves are not smoothed, thin lines join their points (savgol:11:3 needs 11 points in a curve, and \
               there are 10)";
    assert!(texts(&run, &[]).contains("2 curves are not smoothed"));
    let hints = made(Figure::Curves, &run, &[]).unwrap().told.hints;
    assert_eq!(hints, [why]);
}

#[test]
fn marked_points_are_hollow_and_the_legend_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut curve = MadeCurve::bent(50, 12, 1, 9_000.0, 0.0);
    curve.loads[3].3 = "unstable";
    curve.loads[7].3 = "in-cache stalled";
    let run = curves_in(&folder, "run", &[curve]);
    let drawn = data(&run, &[]);
    let dots = drawn["curves"][0]["dots"].as_array().unwrap();
    let marked: Vec<(usize, &str)> = (0..)
        .zip(dots)
        .filter_map(|(place, dot)| {
            Some((place, dot["marks"].as_str().filter(|it| !it.is_empty())?))
        })
        .collect();
    assert_eq!(marked, [(3, "unstable"), (7, "in-cache stalled")]);
    assert!(texts(&run, &[]).contains("unstable or in-cache or stalled"));
    // One curve without another setting that varies has no name.
    assert_eq!(drawn["curves"][0]["label"], "");
}

#[test]
fn curves_of_others_stand_beside_and_their_zeros_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let run = curves_in(&folder, "run", &family());
    let with = ["--with", "src/figures/tests/published.csv"];
    let drawn = data(&run, &with);
    let published = drawn["published"].as_array().unwrap();
    let labels: Vec<&str> = published
        .iter()
        .map(|it| it["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["50 %", "100 %"]);
    let expected = [(9.5, 210.0), (9.1, 330.0)];
    assert_eq!(numbers(&published[0], "points")[2..], expected);
    let told = made(Figure::Curves, &run, &with).unwrap().told;
    let zeros = "1 row has no bandwidth or no latency above zero in published.csv";
    assert!(told.hints[0].starts_with(zeros), "{:?}", told.hints);
    assert!(texts(&run, &with).contains("published: published.csv"));
    let own = run[0].join("summary.csv").display().to_string();
    for (path, part) in [
        (own.as_str(), "memory_curves.csv of Mess"),
        ("none.csv", "cannot be read"),
    ] {
        refused(
            picture(Figure::Curves, &run, &["--with", path]),
            &["--with", path, part],
        );
    }
}

#[test]
fn the_latency_under_load_is_a_figure_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let run = curves_in(&folder, "run", &family());
    let drawn = data(&run, &["--metric", "loaded"]);
    let lines = drawn["lines"].as_array().unwrap();
    let labels: Vec<&str> = lines
        .iter()
        .map(|it| it["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["unloaded", "at 50 %", "at 80 %", "at 95 %"]);
    for place in 0..3 {
        let of = |line: &Value| line["middles"][place]["value"].as_f64().unwrap();
        let rises = lines.is_sorted_by(|one, other| of(one) < of(other));
        assert!(rises, "{lines:?}");
        assert_eq!(lines[0]["middles"][place]["x"], [0.0, 50.0, 100.0][place]);
    }
    for (words, parts) in [
        (
            &["--metric", "latency,loaded"][..],
            ["--metric \"latency,loaded\"", "name that only"],
        ),
        (
            &["--metric", "loaded", "--with", "x.csv"],
            ["--with \"x.csv\"", "loaded"],
        ),
        (
            &["--metric", "jump"],
            ["--metric \"jump\"", "latency, loaded"],
        ),
    ] {
        refused(picture(Figure::Curves, &run, words), &parts);
    }
    for figure in [Figure::Median, Figure::Histogram, Figure::Time] {
        let drawn = picture(
            figure,
            &run,
            &["--metric", "loaded", "--only", "pause_nops=0"],
        );
        refused(drawn, &["--metric \"loaded\"", "whole curves"]);
    }
}

#[test]
fn other_figures_draw_a_memory_s_means_and_windows() {
    let folder = &*temporary("");
    let run = vec![memory_run(&folder.join("run"), &family(), 6, false)];
    let pauses = ["--only", "pause_nops=0,16"];
    let drawn = made(Figure::Median, &run, &pauses).unwrap();
    let said: Vec<&str> = drawn.drawing.texts().map(|text| &text.text[..]).collect();
    let said = said.join(" ");
    said.has(&[
        "Latency of a load by share of reads",
        "no pause",
        "pause 16 nops",
        "95 % interval over rounds",
    ]);
    assert!(!said.contains("edian"), "{said}");
    // Over the pause there is no place for what has none.
    let by_pause = made(
        Figure::Median,
        &run,
        &["--x", "pause", "--only", "read_share=50"],
    )
    .unwrap();
    let without = "1 point without generators has no place on the axis";
    assert_eq!(by_pause.told.hints, [without]);
    for figure in [
        Figure::Histogram,
        Figure::Ecdf,
        Figure::Percentiles,
        Figure::Time,
    ] {
        picture(figure, &run, &["--only", "pause_nops=0"]).unwrap();
    }
    picture(Figure::Surface, &run, &[]).unwrap();
    let none = hca_run(&folder.join("hca"), &[("rc", 8, 16, &[Some(1)])], false);
    let parts = ["bandwidth of a memory", "results of HCA", "hcabench memory"];
    refused(picture(Figure::Curves, &[none], &[]), &parts);
}

#[test]
fn two_runs_have_their_names_and_other_settings_another_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut stores = vec![MadeCurve::bent(50, 12, 1, 9_000.0, 0.0); 2];
    stores[1].store = "non-temporal";
    let one = curves_in(&folder, "one", &stores);
    let drawn = data(&one, &[]);
    let kinds: Vec<_> = drawn["curves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert_eq!(kinds, [0, 1]);
    let both = [one, curves_in(&folder, "two", &stores[..1])].concat();
    let drawn = data(&both, &["--only", "store=regular"]);
    let labels: Vec<&str> = (drawn["curves"].as_array().unwrap().iter())
        .map(|it| it["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["one", "two"]);
}

#[test]
fn an_incomplete_point_is_in_no_curve_and_the_title_says_so() {
    let folder = &*temporary("");
    let run = vec![memory_run(&folder.join("run"), &family(), 1, true)];
    let drawn = data(&run, &[]);
    let counts: Vec<usize> = (drawn["curves"].as_array().unwrap().iter())
        .map(|curve| numbers(curve, "dots").len())
        .collect();
    assert_eq!(counts, [14, 14, 13]);
    assert!(texts(&run, &[]).contains("(incomplete)"));
}

#[test]
fn a_point_without_a_latency_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = curves_in(&folder, "run", &family());
    let path = run[0].join("summary.csv");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let place = |column: &str| lines[0].split(',').position(|name| name == column).unwrap();
    let emptied = ["latency_ns", "latency_smoothed_ns", "latency_sd_ns"].map(place);
    let cells = lines[3].split(',').enumerate();
    let cells: Vec<&str> = cells
        .map(|(place, cell)| if emptied.contains(&place) { "" } else { cell })
        .collect();
    lines[3] = cells.join(",");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let told = made(Figure::Curves, &run, &[]).unwrap().told.hints;
    let [why] = &told[..] else { panic!("{told:?}") };
    why.begins("1 point has no samples and is not drawn: regular-reads0-");
    let drawn = data(&run, &[]);
    assert_eq!(numbers(&drawn["curves"][0], "dots").len(), 13);
}

/// Two nodes with CPUs, and one without.
fn node_pairs() -> Vec<MadeCurve> {
    let pairs = [0, 1]
        .into_iter()
        .flat_map(|cpus| [0, 1, 2].map(|memory| [cpus, memory]));
    let curve = |nodes: [u32; 2]| {
        let far = f64::from(nodes[0].abs_diff(nodes[1]) * 50);
        MadeCurve {
            loads: vec![
                (None, 0.0, 100.0 + far, ""),
                (Some(0), 20_000.0 - 100.0 * far, 300.0, ""),
            ],
            nodes: Some(nodes),
            ..MadeCurve::bent(100, 2, 1, 1.0, 0.0)
        }
    };
    pairs.map(curve).collect()
}

#[test]
fn pairs_of_nodes_are_a_matrix_with_the_memory_of_nodes_without_cpus() {
    let folder = tempfile::tempdir().unwrap();
    // Smaller buffers are of caches, and in no cell.
    let mut all = node_pairs();
    all.extend(node_pairs().into_iter().map(|mut curve| {
        curve.size = 64 << 10;
        curve.loads = vec![(None, 0.0, 1.0, ""), (Some(0), 90_000.0, 2.0, "")];
        curve
    }));
    let run = curves_in(&folder, "run", &all);
    let cells = |words: &[&str]| {
        let drawn = made(Figure::Matrix, &run, words).unwrap().data;
        let names = drawn["nodes"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|node| node["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["node 0", "node 1", "node 2"]);
        let cell = |from: usize, to: usize| drawn["cells"][from][to].as_f64();
        [0, 1, 2].map(|from| [0, 1, 2].map(|to| cell(from, to).map(f64::round)))
    };
    let latency = cells(&[]);
    let is_near = |found: Option<f64>, wanted: f64| (found.unwrap() / wanted - 1.0).abs() < 0.02;
    assert!(
        is_near(latency[0][0], 100.0) && is_near(latency[1][1], 100.0),
        "{latency:?}"
    );
    assert!(
        is_near(latency[0][1], 150.0) && is_near(latency[0][2], 200.0),
        "{latency:?}"
    );
    assert_eq!(latency[2], [None; 3]);
    let bandwidth = cells(&["--metric", "bandwidth"]);
    assert!(
        is_near(bandwidth[0][0], 20.0) && is_near(bandwidth[0][2], 10.0),
        "{bandwidth:?}"
    );
    let drawing = made(Figure::Matrix, &run, &[]).unwrap().drawing;
    let said: Vec<&str> = drawing.texts().map(|text| &text.text[..]).collect();
    said.join(" ").has(&[
        "NUMA nodes: latency of a load, idle",
        "3 pairs without this figure are hatched",
        "memory of",
        "buffers of 64 MiB",
    ]);
    // Where one of them has generators at all its points, no figure is called idle.
    let mut loaded = node_pairs();
    loaded[2].loads.remove(0);
    loaded[2].loads.push((Some(512), 10_000.0, 200.0, ""));
    let loaded = curves_in(&folder, "loaded", &loaded);
    let drawing = made(Figure::Matrix, &loaded, &[]).unwrap().drawing;
    let said: Vec<&str> = drawing.texts().map(|text| &text.text[..]).collect();
    let said = said.join(" ");
    said.has(&["NUMA nodes: latency of a load, at the least load"]);
    assert!(!said.contains("idle"), "{said}");
    made(Figure::Matrix, &run, &["--metric", "lost"]).refused(&["lost", "latency, bandwidth"]);
    let plain = curves_in(&folder, "plain", &family());
    made(Figure::Matrix, &plain, &[]).refused(&["--node-pairs"]);
}

#[test]
fn sizes_are_an_axis_from_cache_to_memory() {
    let folder = tempfile::tempdir().unwrap();
    let of = |size: u64, latency: f64| MadeCurve {
        loads: vec![(None, 0.0, latency, "")],
        size,
        ..MadeCurve::bent(100, 2, 1, 1.0, 0.0)
    };
    let run = curves_in(
        &folder,
        "run",
        &[of(1 << 20, 8.0), of(16 << 10, 2.0), of(SIZE, 120.0)],
    );
    let drawn = made(Figure::Median, &run, &["--x", "size_bytes"])
        .unwrap()
        .data;
    let lines = drawn["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1, "{drawn}");
    let middles = lines[0]["middles"].as_array().unwrap().iter();
    let middles: Vec<f64> = middles
        .map(|it| it["value"].as_f64().unwrap().round())
        .collect();
    assert_eq!(middles.len(), 3);
    assert!(middles.is_sorted() && middles[0] == 2.0, "{middles:?}");
}
