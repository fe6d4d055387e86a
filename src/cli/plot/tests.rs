//! Each setting with each figure: it changes the picture, or it is refused with what is allowed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};

use super::PlotArguments;
use super::config::FILE;
use super::made::Made;
use super::options::{Figure, SETTINGS, Setting};
use crate::cli::UsageError;
use crate::plot::svg;
use crate::results::read::tests::made_up_run::{MadePoint, hca_rounds, hca_run};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    plot: PlotArguments,
}

fn made(figure: Figure, from: &[PathBuf], options: &[&str]) -> anyhow::Result<Made> {
    let words = ["plot", figure.name(), "--out", "figure.svg"];
    let words = words.iter().chain(options).map(OsString::from);
    let line = Line::try_parse_from(words.chain(from.iter().map(OsString::from)))?;
    line.plot.kind.made(false)
}

fn picture(figure: Figure, from: &[PathBuf], words: &[&str]) -> anyhow::Result<String> {
    Ok(svg(&made(figure, from, words)?.drawing)?)
}

/// A value of a setting that changes the figure, as option and as JSON; where it has no effect, any.
fn value(setting: &Setting, figure: Figure) -> (&'static str, &'static str) {
    let surface = figure == Figure::Surface;
    match setting.id {
        "metric" => ("completion", r#""completion""#),
        "only" if surface => ("size_bytes=8,64", r#"{"size_bytes": [8, 64]}"#),
        "only" => ("service=rc", r#"{"service": "rc"}"#),
        "range" => ("1us..4us", r#""1us..4us""#),
        "bins" => ("20", "20"),
        "x" if surface => ("burst", r#""burst""#),
        "x" => ("service", r#""service""#),
        "y" => ("size_bytes", r#""size_bytes""#),
        "scale" => ("log", r#""log""#),
        "unit" => ("us", r#""us""#),
        "size" => ("700x500", r#""700x500""#),
        "title" | "subtitle" | "x-label" | "y-label" => ("mine", r#""mine""#),
        "label" => ("RC=reliable", r#"{"RC": "reliable"}"#),
        "order" => ("UC", r#"["UC"]"#),
        other => panic!("no value for {other}"),
    }
}

fn refused(drawn: anyhow::Result<String>, parts: &[&str]) {
    let error = drawn.expect_err(&format!("{parts:?}"));
    assert!(error.is::<UsageError>(), "{error}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// A run whose points have the same samples.
fn run_of(folder: &tempfile::TempDir, points: &[(&'static str, u32, u32)]) -> Vec<PathBuf> {
    let samples: Vec<Option<i64>> = (0..40).map(|n| Some(1000 + n)).collect();
    let point =
        |&(service, size, burst): &_| -> MadePoint<'_> { (service, size, burst, &samples[..]) };
    let points: Vec<MadePoint<'_>> = points.iter().map(point).collect();
    vec![hca_run(&folder.path().join("run"), &points, false)]
}

fn with_file(folder: &Path, text: &str) {
    fs::write(folder.join(FILE), text).unwrap();
}

#[test]
fn each_setting_changes_the_figure_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let level =
        |level: i64| -> Vec<Option<i64>> { (0..40).map(|n| Some(level + 10 * n)).collect() };
    let levels: Vec<_> = (1..=6).map(|n| level(700 * n)).collect();
    let run = |name: &str, points: &[(&'static str, u32, u32)]| {
        let point = |(&(service, size, burst), values): (&_, _)| -> MadePoint<'_> {
            (service, size, burst, values)
        };
        let values = levels.iter().map(Vec::as_slice);
        let points: Vec<MadePoint<'_>> = points.iter().zip(values).map(point).collect();
        hca_run(&folder.path().join(name), &points, false)
    };
    let two = run("two", &[("rc", 8, 16), ("uc", 8, 16)]);
    let sizes = [("rc", 8, 16), ("uc", 8, 16), ("rc", 64, 16), ("uc", 64, 16)];
    let sizes = run("sizes", &sizes);
    let ground = [8, 16, 64].map(|size| [("rc", size, 16), ("rc", size, 32)]);
    let ground = run("ground", ground.as_flattened());
    let distribution = two.join("rc-send-8B-burst16/latency.hgrm");

    for figure in Figure::ALL {
        let from = match figure {
            Figure::Histogram | Figure::Time => vec![two.clone()],
            Figure::Median => vec![sizes.clone()],
            Figure::Surface => vec![ground.clone()],
            Figure::Ecdf | Figure::Percentiles => vec![two.clone(), distribution.clone()],
        };
        let name = figure.name();
        let usual = picture(figure, &from, &[]).unwrap();
        for setting in &SETTINGS {
            let (text, json) = value(setting, figure);
            let (option, key) = (setting.option(), setting.key);
            let by_option = picture(figure, &from, &[&option, text]);
            with_file(&from[0], &format!(r#"{{{key:?}: {json}}}"#));
            let by_file = picture(figure, &from, &[]);
            with_file(&from[0], &format!(r#"{{{name:?}: {{{key:?}: {json}}}}}"#));
            let by_section = picture(figure, &from, &[]);
            // A mistake in a section shows with any figure.
            let other = Figure::ALL
                .into_iter()
                .find(|other| *other != figure)
                .unwrap();
            let other = picture(other, &from[..1], &[]);
            fs::remove_file(from[0].join(FILE)).unwrap();
            if setting.goes_with(figure) {
                let by_option =
                    by_option.unwrap_or_else(|error| panic!("{name} {option}: {error}"));
                assert!(
                    by_option != usual,
                    "{option} {text} changes nothing in {name}"
                );
                assert_eq!(by_file.unwrap(), by_option, "{name} {key}");
                assert_eq!(by_section.unwrap(), by_option, "{name} {key}");
            } else {
                let quoted = format!("{key:?}");
                let has = format!("{name} has ");
                let figures: Vec<&str> = setting.figures.iter().map(|it| it.name()).collect();
                let only = format!("only in {}", figures.join(", "));
                refused(by_option, &[&option, text, &has, "--metric", &only]);
                let path = from[0].join(FILE).display().to_string();
                let parts = [&path, quoted.as_str(), &has, "\"metric\"", &only];
                refused(by_file, &parts);
                refused(by_section, &parts);
                refused(other, &parts);
            }
        }
    }
}

#[test]
fn the_help_of_a_figure_shows_what_it_has() {
    let mut line = Line::command();
    for figure in Figure::ALL {
        let command = line.find_subcommand_mut(figure.name()).unwrap();
        let help = command.render_long_help().to_string();
        for setting in &SETTINGS {
            let there = help.split_whitespace().any(|word| word == setting.option());
            assert_eq!(there, setting.goes_with(figure), "{}: {help}", setting.id);
        }
        for always in ["--out", "--config", "--json", "--quiet"] {
            assert!(help.contains(always), "{always}: {help}");
        }
    }
}

#[test]
fn what_has_no_effect_on_these_results_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder, &[("rc", 8, 16), ("uc", 8, 16)]);
    let file = vec![run[0].join("rc-send-8B-burst16/latency.hgrm")];
    for figure in [Figure::Ecdf, Figure::Percentiles] {
        for (from, words, parts) in [
            (&run, ["--unit", "ns"], ["--unit \"ns\"", ".hgrm"]),
            (
                &file,
                ["--metric", "latency"],
                ["--metric \"latency\"", "folder"],
            ),
            (
                &file,
                ["--only", "service=rc"],
                ["--only \"service\"", "folder"],
            ),
        ] {
            refused(picture(figure, from, &words), &parts);
        }
        // The name of a distribution is that of its point.
        picture(figure, &file, &["--label", "rc-send-8B-burst16=mine"]).unwrap();
    }
    for figure in [
        Figure::Histogram,
        Figure::Median,
        Figure::Ecdf,
        Figure::Percentiles,
        Figure::Time,
    ] {
        let range = ["--range", "1ms..2ms"];
        let parts = ["--range: none of the", "they are 1"];
        refused(picture(figure, &run, &range), &parts);
    }
    // Of a logarithmic scale that has no place for zero, no range is to blame.
    let zeros = [Some(0); 40];
    let zeros = [("rc", 8, 16, &zeros[..])];
    let zeros = vec![hca_run(&folder.path().join("zeros"), &zeros, false)];
    let both = ["--range", "0..5us", "--scale", "log"];
    refused(
        picture(Figure::Ecdf, &zeros, &both),
        &["--scale: none of the"],
    );
    let point = vec![run[0].join("rc-send-8B-burst16")];
    let alone = picture(Figure::Ecdf, &point, &["--label", "RC=x"]);
    refused(
        alone,
        &["--label \"RC\"", "no line of this figure has a name"],
    );
}

#[test]
fn names_that_no_line_has_are_refused_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder, &[("rc", 8, 16), ("uc", 8, 16)]);
    let draw = |words: &[&str]| made(Figure::Ecdf, &run, words);
    let text = |words: &[&str]| picture(Figure::Ecdf, &run, words);
    let there = "only \"RC\", \"UC\"";
    refused(text(&["--label", "XX=y"]), &["--label \"XX\"", there]);
    refused(text(&["--order", "UC, XX"]), &["--order \"XX\"", there]);
    refused(text(&["--order", "XX, UC"]), &["--order \"XX\":", there]);
    // The order is by the names as they are shown.
    refused(
        text(&["--label", "RC=new", "--order", "RC"]),
        &["--order \"RC\"", "\"new\""],
    );

    // A file names the lines of several figures, but one of this at least.
    with_file(
        &run[0],
        r#"{"labels": {"RC": "reliable", "RC, inline on": "x"}, "order": ["UD", "UC"]}"#,
    );
    let found = draw(&[]).unwrap();
    assert_eq!(found.hints.len(), 2, "{:?}", found.hints);
    assert!(found.hints[0].contains("\"labels\"") && found.hints[0].contains("\"RC, inline on\""));
    assert!(found.hints[1].contains("\"order\"") && found.hints[1].contains("\"UD\""));
    with_file(&run[0], r#"{"labels": {"RD": "x"}}"#);
    refused(text(&[]), &["plot.json: \"labels\" \"RD\"", there]);
    with_file(&run[0], r#"{"order": ["RD"]}"#);
    refused(text(&[]), &["plot.json: \"order\" \"RD\"", there]);
    // The file of a run says nothing of one of its points only.
    let point = vec![run[0].join("rc-send-8B-burst16")];
    assert_eq!(made(Figure::Ecdf, &point, &[]).unwrap().hints.len(), 1);
    // Values of the file are named with it.
    with_file(&run[0], r#"{"only": {"colour": "red"}}"#);
    refused(text(&[]), &["plot.json: \"only\" \"colour\""]);
    // Also where options choose values of another setting.
    let rc = ["--only", "service=rc"];
    refused(text(&rc), &["plot.json: \"only\" \"colour\""]);
    with_file(&run[0], r#"{"only": {"size_bytes": 8}}"#);
    refused(
        text(&["--only", "service=ud"]),
        &["--only \"service=ud\": no point has that"],
    );
    with_file(&run[0], r#"{"size": "9x9"}"#);
    refused(text(&[]), &["plot.json: \"size\" \"9x9\"", "300 to 4000"]);
}

#[test]
fn all_rounds_are_drawn_unless_one_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let levels: Vec<Vec<Option<i64>>> = (1..=6).map(|round| vec![Some(1000 * round); 5]).collect();
    let rounds: Vec<&[Option<i64>]> = levels.iter().map(Vec::as_slice).collect();
    let run = vec![hca_rounds(
        &folder.path().join("run"),
        &[("rc", 8, 16, rounds)],
        false,
    )];
    let texts = |figure: Figure, words: &[&str]| -> Vec<String> {
        let made = made(figure, &run, words).unwrap();
        made.drawing.texts().map(|text| text.text.clone()).collect()
    };
    // A subtitle may stand in several lines.
    let says = |texts: &[String], part: &str| texts.join(" ").contains(part);
    let all = texts(Figure::Histogram, &[]);
    assert!(
        says(&all, "median 3.5 µs") && says(&all, "6 rounds"),
        "{all:?}"
    );
    let third = texts(Figure::Histogram, &["--only", "round=2"]);
    assert!(
        says(&third, "median 3 µs") && says(&third, "round 2"),
        "{third:?}"
    );
    // The times of each round begin anew.
    let first = texts(Figure::Time, &[]);
    assert!(says(&first, "round 0"), "{first:?}");
    let middle = texts(Figure::Median, &["--x", "size_bytes"]);
    assert!(
        says(&middle, "95 % interval of the median over rounds"),
        "{middle:?}"
    );
    refused(
        picture(Figure::Ecdf, &run, &["--only", "round=6"]),
        &["--only \"round=6\"", "only 0 to 5"],
    );
}

#[test]
fn a_service_looks_the_same_in_all_figures() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder, &[("ud", 8, 16), ("rc", 8, 16)]);
    let blue = "#0072B2";
    let rc = picture(Figure::Ecdf, &run, &["--only", "service=rc"]).unwrap();
    let ud = picture(Figure::Ecdf, &run, &["--only", "service=ud"]).unwrap();
    assert!(rc.contains(blue) && !ud.contains(blue));
    assert!(picture(Figure::Ecdf, &run, &[]).unwrap().contains(blue));
}

#[test]
fn a_size_that_is_too_small_names_one_that_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let points: Vec<_> = (0..9).map(|n| ("rc", 8 << n, 16)).collect();
    let run = run_of(&folder, &points);
    for figure in [Figure::Ecdf, Figure::Percentiles, Figure::Time] {
        let error = picture(figure, &run, &["--size", "340x300"])
            .unwrap_err()
            .to_string();
        let (_, size) = error.split_once("ask for --size ").expect(&error);
        picture(figure, &run, &["--size", size]).unwrap();
    }
}
