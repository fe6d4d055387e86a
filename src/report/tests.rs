mod cores;
mod damage;
mod memory;

use crate::testing::{Has as _, Refused as _};
use std::path::Path;

use super::*;
use crate::made_up_run::{MadePoint, hca_rounds, hca_run};
use crate::results::finding::Severity;

fn page(unfinished: bool) -> Page {
    let folder = tempfile::tempdir().unwrap();
    let samples = |level: i64| -> Vec<Option<i64>> {
        let places = 0..200;
        places
            .map(|place| (place != 7).then_some(level + place))
            .collect()
    };
    let (small, large) = (samples(2_000), samples(5_000));
    let points = [("rc", 8, 64, &small[..]), ("rc", 16, 64, &large)];
    page_of_run(&hca_run(&folder.path().join("run"), &points, unfinished))
}

fn page_of_points(path: &Path, points: impl IntoIterator<Item = (&'static str, u32, u32)>) -> Page {
    let samples: Vec<Option<i64>> = (0..20).map(|place| Some(2_000 + place)).collect();
    let point = |(service, size, burst)| (service, size, burst, &samples[..]);
    let points: Vec<MadePoint<'_>> = points.into_iter().map(point).collect();
    page_of_run(&hca_run(path, &points, false))
}

fn page_of_run(path: &Path) -> Page {
    let arguments = arguments(path, Path::new("report.html"));
    page_of(&Run::open(path).unwrap(), &arguments).0
}

fn arguments(folder: &Path, out: &Path) -> ReportArguments {
    ReportArguments {
        folder: folder.to_path_buf(),
        out: out.to_path_buf(),
        title: None,
        quiet: true,
    }
}

#[track_caller]
fn told(texts: &[String], part: &str) {
    let is_told = texts.iter().any(|text| text.contains(part));
    assert!(is_told, "{part:?} is not in {texts:?}");
}

#[track_caller]
fn untold(texts: &[String], part: &str) {
    let is_told = texts.iter().any(|text| text.contains(part));
    assert!(!is_told, "{part:?} is in {texts:?}");
}

fn figures(page: &Page) -> Vec<String> {
    page.figures.iter().map(|it| it.title.clone()).collect()
}

/// The findings with all that is folded up.
fn lines(page: &Page) -> Vec<String> {
    let findings = page.findings.iter();
    let lines = findings.map(|it| format!("{} {}", it.line, it.more.join(" ")));
    lines.collect()
}

fn titles(sheet: &page::Sheet) -> Vec<&str> {
    let columns = sheet.columns.iter();
    columns.map(|(title, _)| title.as_str()).collect()
}

fn fact<'a>(page: &'a Page, label: &str) -> &'a str {
    let found = page.facts.iter().find(|(name, _)| name == label);
    found.map_or("", |(_, text)| text)
}

#[test]
fn what_varies_is_in_the_table_and_the_rest_is_a_fact() {
    let page = page(false);
    let expected = "One-way latency between HCAs, 2026-01-02 03:04 UTC";
    assert_eq!(page.title, expected);
    assert_eq!(
        titles(&page.points.1),
        [
            "size", "sent", "lost", "min", "p50", "p90", "p99", "p99.9", "max", "comp p50",
            "comp p99"
        ]
    );
    assert_eq!(page.points.0, "All 2 points in full");
    assert_eq!(page.points.1.columns[0].1, "B");
    assert_eq!(page.points.1.columns[4].1, "us");
    assert_eq!(
        page.points.1.rows[0][..5],
        ["8", "200", "1", "2.000", "2.100"]
    );
    assert_eq!(titles(&page.answer.sheet), ["size", "median", "p99"]);
    assert_eq!(page.answer.title, "Median one-way latency");
    let rows = &page.answer.sheet.rows;
    assert_eq!(rows[0], ["8 B", "2.100", "2.197"]);
    assert_eq!(rows[1], ["16 B", "5.100", "5.197"]);
    assert_eq!(
        page.opening,
        "One-way latency between two HCAs was measured on made-up in 1 round at 2 points, which differ in size. \
         Median one-way latency 2.1 µs (one round, so no interval) at the best of 2 points (8 B)."
    );
    let verdict =
        "Usable with 1 reservation: messages lost. Whether the machine was ready is unknown.";
    assert_eq!(page.verdict.text, verdict);
    assert_eq!(page.verdict.severity, Some(Severity::Reservation));
    assert_eq!(page.sound, "");
    // The title and the opening state these.
    assert_eq!([fact(&page, "Rounds"), fact(&page, "Measured")], ["", ""]);
    assert_eq!(fact(&page, "Machine"), "made-up");
    let same = &page.same;
    assert!(
        same.starts_with("In all points: RC, send, burst 64") && same.contains("pause 50 µs"),
        "{same}"
    );
    told(&lines(&page), "All 2 points: 2 of 400 messages were lost.");
}

#[test]
fn the_opening_has_the_interval_over_rounds_and_what_to_distrust() {
    let folder = tempfile::tempdir().unwrap();
    let levels: Vec<Vec<Option<i64>>> = (0..8)
        .map(|round| vec![Some(2000 + 10 * round); 9])
        .collect();
    let rounds: Vec<&[Option<i64>]> = levels.iter().map(Vec::as_slice).collect();
    let path = hca_rounds(&folder.path().join("run"), &[("uc", 8, 64, rounds)], false);
    let page = page_of_run(&path);
    let found =
        "Median one-way latency 2.04 µs (95 % interval 2 µs to 2.07 µs over 8 rounds) (UC, 8 B).";
    told(std::slice::from_ref(&page.opening), found);
    assert!(fact(&page, "Rounds").starts_with("8, each in a separate process"));
    let change = |file: &str, from: &str, to: &str| {
        let file = path.join(file);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
    };
    change(
        "settings.json",
        "\"readiness\": []",
        r#""readiness": {"ready": false, "checks": [{"title": "load", "found": "9\u001b[2J", "verdict": "spoils", "advice": null}]}"#,
    );
    let page = page_of_run(&path);
    let verdict = "Not usable: machine not ready (load).";
    assert_eq!(page.verdict.text, verdict);
    let sound = "In favour of the figures: none of 72 messages lost.";
    assert_eq!(page.sound, sound);
    told(&lines(&page), "Load: 9");
    assert!(!page.html().contains('\u{1b}'));

    let text = std::fs::read_to_string(path.join("summary.csv")).unwrap();
    let (columns, row) = text.trim_end().split_once('\n').unwrap();
    let mut names = columns.split(',');
    let floor = names.position(|name| name == "floor_p50_ns").unwrap();
    for (cell, of_verdict, of_sound) in [
        (
            "120.0",
            "",
            "the floor of 120 ns (p50) is credible; none of",
        ),
        (
            "8000000.0",
            " The floor of 8 ms (p50) is NOT credible.",
            ": none of",
        ),
    ] {
        let mut cells: Vec<&str> = row.split(',').collect();
        cells[floor] = cell;
        let text = format!("{columns}\n{}\n", cells.join(","));
        std::fs::write(path.join("summary.csv"), text).unwrap();
        let page = page_of_run(&path);
        assert_eq!(page.verdict.text, format!("{verdict}{of_verdict}"));
        page.sound.has(&[of_sound]);
    }
}

#[test]
fn an_incomplete_run_is_marked_in_its_verdict_and_its_row() {
    let page = page(true);
    told(&lines(&page), "Interrupted by SIGINT");
    page.verdict.text.has(&[
        "Incomplete; usable with 1 reservation: ",
        "1 of 2 points incomplete;",
    ]);
    assert!(
        page.answer.sheet.rows[1][1].ends_with(" *"),
        "{:?}",
        page.answer
    );
    page.answer.note.has(&["* Incomplete"]);
    assert_eq!(titles(&page.points.1).last(), Some(&"mark"));
    let rows = page.points.1.rows.iter();
    let marks: Vec<&String> = rows.filter_map(|row| row.last()).collect();
    assert_eq!(marks, ["", "incomplete"]);
}

#[test]
fn the_file_s_name_says_what_it_is() {
    assert!(html_file("a/b.html").is_ok() && html_file("b.HTM").is_ok());
    for bad in ["b.pdf", "html", "b"] {
        html_file(bad).refused(&[bad, ".html"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let in_place_of_it = run(&arguments(folder.path(), folder.path()));
    in_place_of_it.refused(&["is a folder; name a file in it"]);
}

#[test]
fn a_real_report_is_well_formed_and_takes_nothing_from_elsewhere() {
    let page = page(false);
    let wanted = [
        "Median latency",
        "Latencies",
        "The tail",
        "The tail of completions",
    ];
    assert_eq!(figures(&page), wanted, "{:?}", page.notes);
    let html = page.html();
    // Names of XML, which nothing is fetched from.
    let bare = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    bare.lacks(&["http://", "https://", "src=\"", "@import", "url("]);
    let drawings: Vec<&str> = html.split("<svg").skip(1).collect();
    // Each of them for narrow screens as well.
    assert_eq!(drawings.len(), 2 * wanted.len());
    for drawing in drawings {
        let svg = format!("<svg{}</svg>", drawing.split("</svg>").next().unwrap());
        let root = svg.split('>').next().unwrap();
        for attribute in ["role=", "aria-label="] {
            assert_eq!(root.matches(attribute).count(), 1, "{root}");
        }
        roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    }
}

/// With more services and bursts than a figure can tell apart, of which not all were measured together.
#[test]
fn combinations_that_were_not_measured_are_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let points = [("rc", 1), ("rc", 2), ("uc", 4), ("uc", 8)].into_iter();
    let points =
        points.flat_map(|(service, burst)| (1..=12).map(move |size| (service, size, burst)));
    let page = page_of_points(&folder.path().join("run"), points);
    told(&figures(&page), "RC, burst 2");
    untold(&page.notes, "no point");
}

/// One for each value of the rest, of which those that are left are named.
#[test]
fn a_surface_is_parted_by_the_settings_that_are_not_on_its_ground() {
    let folder = tempfile::tempdir().unwrap();
    let [path, many] = ["run", "many"].map(|name| folder.path().join(name));
    let of = |services: &[&'static str]| {
        let sizes = [8, 16, 32].map(|size| [(size, 1), (size, 64)]);
        let all = services.iter().flat_map(|service| {
            let sizes = sizes.as_flattened().iter();
            sizes.map(|&(size, burst)| (*service, size, burst))
        });
        all.collect::<Vec<_>>()
    };
    let surfaces = |page: &Page| -> Vec<String> {
        let begin = "Median latency over two settings";
        let titles = figures(page).into_iter();
        titles
            .filter_map(|title| title.strip_prefix(begin).map(str::to_owned))
            .collect()
    };
    let page = page_of_points(&path, of(&["rc", "uc"]));
    let both = [": RC", ": UC"];
    assert_eq!(surfaces(&page), both);
    untold(&page.notes, "surface");

    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let page = page_of_points(&many, of(&names));
    assert_eq!(surfaces(&page).len(), 6);
    let left =
        "not shown here are G; H. To draw them: hcabench plot surface --percentile p50 --only";
    told(&page.notes, left);

    let with_file = |path: &Path, text: &str| {
        std::fs::write(path.join("plot.toml"), text).unwrap();
        page_of_run(path)
    };
    // What the file leaves out stays out of the parts, too.
    let page = with_file(&path, "only.service = 'RC'");
    assert_eq!(surfaces(&page), [""]);
    let page = with_file(
        &path,
        "only.size_bytes = [8, 16]\n\
         [surface]\n\
         only = { size_bytes = [8, 16], service = ['rc', 'uc'], burst = [1, 64] }",
    );
    assert_eq!(surfaces(&page), both);
    let page = with_file(&many, "only.service = ['b', 'h']");
    assert_eq!(surfaces(&page), [": B", ": H"]);
    untold(&page.notes, "not shown");

    // Names for lines that only some of the figures have are no reason to leave the others out.
    let page = with_file(&path, "[histogram]\nlabel = { 'RC, 8 B' = 'x' }");
    told(&figures(&page), "Latencies");
    untold(&page.notes, "Latencies");

    // What no line of any figure is called is told; what one of them has is not.
    let mut page = with_file(
        &path,
        "label = { XX = 'x', 'RC, burst 1' = 'short' }\norder = ['YY']",
    );
    page.notes.retain(|note| note.starts_with("plot.toml"));
    let wanted = [
        "plot.toml: label: no line of these figures is called \"XX\".",
        "plot.toml: order: no line of these figures is called \"YY\".",
    ];
    assert_eq!(page.notes, wanted);
}

fn sample(benchmark: &str) -> Page {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample");
    page_of_run(&samples.join(benchmark))
}

/// The lines of one-way latency over the size, and a figure beside them.
#[test]
fn the_headline_of_a_sweep_is_short_and_has_each_line() {
    let page = sample("hca");
    let sheet = &page.answer.sheet;
    assert_eq!(
        page.answer.title,
        "Median one-way latency / p99, by message size"
    );
    assert_eq!(
        titles(sheet),
        ["service, burst, inline", "8 B", "256 B", "1 KiB", "4 KiB"]
    );
    assert_eq!(sheet.rows.len(), 12);
    assert_eq!(
        sheet.rows[0][..2],
        ["RC, burst 32, inline off", "120.8 / 685.7"]
    );
    assert_eq!(sheet.columns[1].1, "us");
    assert_eq!(page.answer.note, "");
    assert!(page.findings.len() <= 12 && !page.figures[0].is_more);
    page.verdict
        .also
        .has(&["messages lost (18 of 34 points), ", "no core left, "]);
    let lost = &page.findings[2];
    lost.line
        .has(&["18 of 34 points: 82 of 2336 messages were lost."]);
    lost.more
        .join(" ")
        .has(&["At UC, 8 B, burst 32, inline off; ", "; and 10 more."]);
    untold(&page.notes, "is not here");
}

/// A run whose figures are not drawn: of hundreds of points that takes long.
fn run_of_points(path: &Path, points: impl IntoIterator<Item = (&'static str, u32, u32)>) -> Run {
    let samples = [2_000, 2_010, 2_020].map(Some);
    let point = |(service, size, burst)| (service, size, burst, &samples[..]);
    let points: Vec<MadePoint<'_>> = points.into_iter().map(point).collect();
    Run::open(&hca_run(path, &points, false)).unwrap()
}

#[test]
fn of_many_points_the_best_and_the_worst_are_in_the_headline() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = (1..=125).flat_map(|size| [("rc", 8 * size), ("uc", 8 * size)]);
    let points = sizes.flat_map(|(service, size)| [(service, size, 1), (service, size, 64)]);
    let run = run_of_points(&folder.path().join("run"), points);
    let sheet = answer::of(&run).sheet;
    assert_eq!(
        titles(&sheet),
        ["service, burst", "best", "at", "worst", "at"]
    );
    assert_eq!(sheet.rows.len(), 4);
    let first = ["RC, burst 1", "2.010 / 2.020", "8 B"];
    assert_eq!(sheet.rows[0][..3], first);
    let (title, all) = content::points(&run);
    assert_eq!(
        (title.as_str(), all.rows.len()),
        ("All 500 points in full", 500)
    );

    let points = (1..=40).flat_map(|burst| [("rc", 8, burst), ("rc", 16, burst)]);
    let answer = answer::of(&run_of_points(&folder.path().join("lines"), points));
    assert_eq!(answer.sheet.rows.len(), 12);
    let note = "The 6 best and the 6 worst of 40 lines";
    answer.note.begins(note);

    let page = page_of_points(&folder.path().join("one"), [("rc", 8, 64)]);
    assert_eq!(page.answer.sheet.rows, [["RC, 8 B", "2.010", "2.019"]]);
    page.same.has(&["Settings: RC, send"]);
}

#[test]
fn each_sample_has_a_headline_and_all_of_its_figures() {
    for (benchmark, title) in [
        ("queue", "Median latency in the queue"),
        (
            "node",
            "Median latency of a sample / p99, by offered rate (per s)",
        ),
        ("clock", "Difference between two readings"),
        ("memory", "Latency of each curve"),
    ] {
        let page = sample(benchmark);
        assert_eq!(page.answer.title, title);
        assert!(
            (2..=12).contains(&page.answer.sheet.rows.len()),
            "{benchmark}"
        );
        untold(&page.notes, "is not here");
        assert!(page.figures.len() >= 3 && page.findings.len() <= 12);
    }
}

#[test]
fn a_damaged_file_is_named_and_all_else_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<Option<i64>> = (0..20).map(|place| Some(2_000 + place)).collect();
    let points = [8, 16, 32].map(|size| ("rc", size, 8, &samples[..]));
    let path = hca_run(&folder.path().join("run"), &points, false);
    let whole = page_of_run(&path);
    let good = |name: &str| std::fs::read(path.join(name)).unwrap();
    for name in [
        "rc-send-8B-burst8/messages.csv",
        "rc-send-8B-burst8/settings.json",
        "summary.csv",
        "runs.csv",
        "settings.json",
    ] {
        let text = good(name);
        for damaged in [&text[..text.len() / 2], b"", b"\x1f\x8b\x08\0\0\0"] {
            std::fs::write(path.join(name), damaged).unwrap();
            let out = folder.path().join("report.html");
            assert_eq!(run(&arguments(&path, &out)).unwrap(), 1, "{name}");
            let (page, files) = page_of(
                &Run::salvage(&path).unwrap(),
                &arguments(&path, Path::new("report.html")),
            );
            assert_eq!(figures(&page), figures(&whole), "{name}");
            assert_eq!(page.points.1.rows.len(), 3, "{name}");
            let [file] = &files[..] else {
                panic!("{name}: {files:?}")
            };
            assert_eq!(file.path, path.join(name));
            let html = std::fs::read_to_string(&out).unwrap();
            html.has(&["files damaged", &format!("left out: {name}.")]);
        }
        std::fs::write(path.join(name), text).unwrap();
    }
}
