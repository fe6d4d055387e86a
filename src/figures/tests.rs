//! Each setting with each figure: it changes the picture, or it is refused with what is allowed.

mod cores;
mod fabric;
mod memory;

use crate::testing::{Has as _, Refused as _, temporary};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Arg, Args as _, Command, FromArgMatches as _};

use super::made::Made;
use super::options::{Figure, PlotArguments, Settings, goes_with, option};
use crate::arguments::UsageError;
use crate::bench::presentation_of;
use crate::made_up_run::fabric::{MadeFabric, fabric_run};
use crate::made_up_run::{MadeLoad, MadePoint, hca_loads, hca_rounds, hca_run};
use crate::plot::svg;
use crate::results::hlog::{self, LoggedRound, RoundLog};
use crate::results::schema::Schema;

/// The command line without a program around it.
fn command() -> Command {
    PlotArguments::augment_args(Command::new("hcabench"))
}

/// The words of a command line, such as `histogram --range auto`, with what is drawn.
fn line(words: &[String], from: &[PathBuf]) -> Result<PlotArguments, clap::Error> {
    let words = words.iter().map(OsString::from);
    let out = ["--out", "figure.svg", "--"].map(OsString::from);
    let from = from.iter().map(OsString::from);
    let line = [OsString::from("plot")].into_iter();
    let line = line.chain(words).chain(out).chain(from);
    PlotArguments::from_arg_matches(&command().try_get_matches_from(line)?)
}

fn made(figure: Figure, from: &[PathBuf], options: &[&str]) -> anyhow::Result<Made> {
    let words = [&[figure.name()], options].concat();
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    line(&words, from)?.made(false)
}

fn picture(figure: Figure, from: &[PathBuf], words: &[&str]) -> anyhow::Result<String> {
    Ok(svg(&made(figure, from, words)?.drawing)?)
}

/// A value of a setting, as an option and as it is written in a file.
fn value(id: &str, figure: Figure) -> (&'static str, String) {
    let surface = figure == Figure::Surface;
    let load = figure == Figure::Load;
    let curves = figure == Figure::Curves;
    let matrix = figure == Figure::Matrix;
    let time = figure == Figure::Time;
    let text = match id {
        "percentile" => "p90",
        "metric" if curves => "loaded",
        "metric" if matrix => "excess",
        "only" if curves => "read_share_percent=50",
        "range" if curves => "0..500",
        "with" => "src/figures/tests/published.csv",
        "label" if curves => "50 % reads=half",
        "order" if curves => "50 % reads",
        "metric" => "completion",
        "only" if surface => "size_bytes=8,64",
        "only" => "service=rc",
        "range" => "1us..4us",
        "bins" => "20",
        "show" => "samples",
        "label" if time => "RC, p50=reliable",
        "order" if time => "UC, p50",
        "x" if surface => "burst",
        "x" => "service",
        "y" => "size_bytes",
        "scale" => "log",
        "unit" => "us",
        "size" => "700x500",
        "title" | "subtitle" | "x_label" | "y_label" => "mine",
        "label" if load => "RC, p50=reliable",
        "order" if load => "UC, p50",
        "label" => "RC=reliable",
        "order" => "UC",
        other => panic!("no value for {other}"),
    };
    let written = match (id, text.split_once('=')) {
        ("bins", _) => text.to_owned(),
        // A path is relative to the file.
        ("with", _) => "\"published.csv\"".to_owned(),
        ("order", _) => format!("[{text:?}]"),
        ("only", Some((name, list))) => {
            let values: Vec<&str> = list.split(',').collect();
            format!("{{ {name:?} = {values:?} }}")
        }
        (_, Some((name, value))) => format!("{{ {name:?} = {value:?} }}"),
        _ => format!("{text:?}"),
    };
    (text, written)
}

#[track_caller]
fn refused(drawn: anyhow::Result<String>, parts: &[&str]) {
    let is_usage = drawn.as_ref().is_err_and(|error| error.is::<UsageError>());
    assert!(is_usage, "{parts:?}: {:?}", drawn.as_ref().err());
    drawn.refused(parts);
}

fn run_of(folder: &tempfile::TempDir, name: &str, points: &[Setup], apart: i64) -> Vec<PathBuf> {
    let level = |level: i64| -> Vec<_> { (0..40).map(|n| Some(level + 10 * n)).collect() };
    let levels: Vec<Vec<_>> = (1..=points.len() as i64)
        .map(|n| level(700 + apart * n))
        .collect();
    let all = points.iter().zip(&levels);
    let all = all.map(|(&(service, size, burst), values)| (service, size, burst, &values[..]));
    let all: Vec<MadePoint<'_>> = all.collect();
    vec![hca_run(&folder.path().join(name), &all, false)]
}

/// What is in the background of the points of [`loads_of`], whose latencies rise with it.
const LOADS: [MadeLoad; 4] = [
    ("0", None, [0.0, 0.0]),
    ("200@4096", Some("sent"), [819_200.0, 819_200.0]),
    ("200@4096", Some("none"), [0.0, 0.0]),
    ("4000@4096", Some("sent"), [16_384_000.0, 9e6]),
];

fn loads_of(folder: &tempfile::TempDir, services: &[&'static str]) -> Vec<PathBuf> {
    let both = services
        .iter()
        .flat_map(|&service| LOADS.map(|load| (service, load)));
    let both: Vec<(&str, MadeLoad)> = both.collect();
    let latencies = |place: usize| -> Vec<_> {
        let level = 1500 + 700 * place as i64;
        (0..100).map(|n| Some(level + 10 * n)).collect()
    };
    let latencies: Vec<Vec<_>> = (0..both.len()).map(latencies).collect();
    let points = both.iter().zip(&latencies);
    let points: Vec<_> = points
        .map(|(&(service, load), latencies)| (service, load, &latencies[..]))
        .collect();
    vec![hca_loads(&folder.path().join("loads"), &points)]
}

/// Service, size and burst.
type Setup = (&'static str, u32, u32);

const TWO: [Setup; 2] = [("rc", 8, 16), ("uc", 8, 16)];

const FILE: &str = "plot.toml";

fn with_file(run: &[PathBuf], text: &str) {
    fs::write(run[0].join(FILE), text).unwrap();
}

/// Gives each point a log of its latency by interval.
fn add_logs(run: &Path) {
    let round = LoggedRound {
        number: 0,
        interval: Duration::from_secs(1),
        zero: SystemTime::UNIX_EPOCH,
    };
    for (number, name) in ["rc-send-8B-burst16", "uc-send-8B-burst16"]
        .into_iter()
        .enumerate()
    {
        let sample = |at: u64| (at * 2_000_000, 1000 * (number as i64 + 1) + at as i64 % 700);
        let samples = (0..3000).map(sample).collect();
        let log = RoundLog::of("latency.hlog".to_owned(), samples, 0, &round).unwrap();
        hlog::append(&run.join(name).join(&log.file), &log.text).unwrap();
    }
}

/// All settings; the help of a figure hides those that have no effect in it.
fn all_settings() -> Vec<Arg> {
    let command = Settings::command(Figure::Histogram);
    command.get_arguments().cloned().collect()
}

#[test]
fn metrics_are_columns_that_are_declared() {
    for schema in Schema::ALL {
        let of = presentation_of(schema);
        assert!(schema.samples.contains(&of.file), "{}", of.file.name);
        let (summary, declared) = (schema.summary(), of.file.columns);
        for metric in of.metrics {
            let times = (!metric.samples.is_empty()).then_some(&of.time);
            for column in metric.samples.iter().chain(&metric.arrival).chain(times) {
                assert!(declared.contains(column), "{}", column.name);
            }
            let median = format!("{}_p50_ns", metric.stem);
            let is_there = summary.iter().any(|(name, _)| *name == median);
            let has_percentiles = of.causes.is_none() && schema.has_percentiles();
            assert_eq!(is_there, has_percentiles, "{median}");
        }
        let texts = [of.title, of.plural, of.figures[0].caption, of.reading[0]];
        assert!(!texts.contains(&""), "{}", of.name);
    }
}

#[test]
fn each_setting_changes_the_figure_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let two = run_of(&folder, "two", &TWO, 700);
    let sizes = [("rc", 8, 16), ("uc", 8, 16), ("rc", 64, 16), ("uc", 64, 16)];
    let sizes = run_of(&folder, "sizes", &sizes, 700);
    let ground = [8, 16, 64].map(|size| [("rc", size, 16), ("rc", size, 32)]);
    let ground = run_of(&folder, "ground", ground.as_flattened(), 700);
    let distribution = vec![two[0].join("rc-send-8B-burst16/latency.hgrm")];
    let divided = run_of(&folder, "divided", &TWO, 700);
    add_logs(&divided[0]);
    let loads = loads_of(&folder, &["rc", "uc"]);
    let curves = memory::curves_in(&folder, "curves", &memory::family());
    let fabric = vec![fabric_run(
        &folder.path().join("fabric"),
        &MadeFabric::of(8, 4),
    )];
    let published = "src/figures/tests/published.csv";
    fs::copy(published, curves[0].join("published.csv")).unwrap();

    for &figure in Figure::ALL {
        let from = match figure {
            Figure::Histogram => two.clone(),
            Figure::Time => divided.clone(),
            Figure::Median => sizes.clone(),
            Figure::Surface => ground.clone(),
            Figure::Load => loads.clone(),
            Figure::Curves => curves.clone(),
            Figure::Matrix => fabric.clone(),
            Figure::Ecdf | Figure::Percentiles => [two.clone(), distribution.clone()].concat(),
        };
        let name = figure.name();
        let usual = picture(figure, &from, &[]).unwrap();
        for setting in &all_settings() {
            let (text, written) = value(setting.get_id().as_str(), figure);
            let (option, key) = (option(setting), setting.get_long().unwrap());
            let by_option = picture(figure, &from, &[&option, text]);
            with_file(&from, &format!("{key} = {written}"));
            let by_file = picture(figure, &from, &[]);
            with_file(&from, &format!("[{name}]\n{key} = {written}"));
            let by_section = picture(figure, &from, &[]);
            // A mistake in a section shows with any figure.
            let mut others = Figure::ALL.iter().copied();
            let other = others.find(|other| *other != figure).unwrap();
            let other = picture(other, &from[..1], &[]);
            fs::remove_file(from[0].join(FILE)).unwrap();
            if goes_with(setting, figure) {
                let by_option = by_option.expect(&option);
                assert!(by_option != usual, "{option} changes nothing in {name}");
                assert_eq!(by_file.unwrap(), by_option, "{name} {key}");
                assert_eq!(by_section.unwrap(), by_option, "{name} {key}");
            } else {
                let has = format!("{name} has ");
                let figures = Figure::ALL.iter().copied();
                let figures = figures.filter(|figure| goes_with(setting, *figure));
                let figures: Vec<&str> = figures.map(Figure::name).collect();
                let only = format!("only in {}", figures.join(", "));
                refused(by_option, &[&option, text, &has, "--metric", &only]);
                let path = from[0].join(FILE).display().to_string();
                let parts = [&path, option.as_str(), &has, "--metric", &only];
                refused(by_file, &parts);
                refused(by_section, &parts);
                refused(other, &parts);
            }
        }
    }
}

#[test]
fn the_help_of_a_figure_shows_what_it_has() {
    let mut line = command();
    for &figure in Figure::ALL {
        let command = line.find_subcommand_mut(figure.name()).unwrap();
        let help = command.render_long_help().to_string();
        for setting in &all_settings() {
            let option = option(setting);
            let there = help.split_whitespace().any(|word| word == option);
            assert_eq!(there, goes_with(setting, figure), "{option}: {help}");
        }
        help.has(&["--out", "--config", "--json", "--quiet"]);
    }
}

#[test]
fn what_has_no_effect_on_these_results_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder, "run", &TWO, 0);
    let file = vec![run[0].join("rc-send-8B-burst16/latency.hgrm")];
    for figure in [Figure::Ecdf, Figure::Percentiles] {
        for (from, option, value, parts) in [
            (&run, "--unit", "ns", ["--unit \"ns\"", ".hgrm"]),
            (&file, "--metric", "latency", ["\"latency\"", "folder"]),
            (&file, "--only", "service=rc", ["\"service\"", "folder"]),
        ] {
            refused(picture(figure, from, &[option, value]), &parts);
        }
        // The name of a distribution is that of its point.
        picture(figure, &file, &["--label", "rc-send-8B-burst16=mine"]).unwrap();
    }
    for &figure in Figure::ALL {
        if ![
            Figure::Surface,
            Figure::Load,
            Figure::Curves,
            Figure::Matrix,
        ]
        .contains(&figure)
        {
            let range = ["--range", "1ms..2ms"];
            let parts = ["--range: none of the", "they are "];
            refused(picture(figure, &run, &range), &parts);
        }
    }
    // Of a logarithmic scale that has no place for zero, no range is to blame.
    let zeros = [("rc", 8, 16, &[Some(0); 40][..])];
    let zeros = vec![hca_run(&folder.path().join("zeros"), &zeros, false)];
    let both = ["--range", "0..5us", "--scale", "log"];
    let drawn = picture(Figure::Ecdf, &zeros, &both);
    refused(drawn, &["--scale: none of the"]);
    let point = vec![run[0].join("rc-send-8B-burst16")];
    let alone = picture(Figure::Ecdf, &point, &["--label", "RC=x"]);
    let why = "no line of this figure has a name";
    refused(alone, &["--label \"RC\"", why]);
}

#[test]
fn names_that_no_line_has_are_refused_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder, "run", &TWO, 0);
    let there = "only \"RC\", \"UC\"";
    // The order is by the names as they are shown.
    let renamed = ["--label", "RC=new", "--order", "RC"];
    for (words, parts) in [
        (&["--label", "XX=y"][..], ["--label \"XX\"", there]),
        (&["--order", "UC, XX"], ["--order \"XX\":", there]),
        (&["--order", "XX, UC"], ["--order \"XX\":", there]),
        (&renamed, ["--order \"RC\"", "\"new\""]),
    ] {
        refused(picture(Figure::Ecdf, &run, words), &parts);
    }

    // A file names the lines of several figures, but one of this at least.
    let names = r#"
        label = { RC = "reliable", "RC, inline on" = "x" }
        order = ["UD", "UC"]
    "#;
    with_file(&run, names);
    let hints = made(Figure::Ecdf, &run, &[]).unwrap().told.hints;
    let [labels, order] = &hints[..] else {
        panic!("{hints:?}")
    };
    labels.has(&["plot.toml: label", "\"RC, inline on\""]);
    order.has(&["plot.toml: order", "\"UD\""]);
    for (file, words, parts) in [
        ("label.RD = 'x'", &[][..], ["--label \"RD\"", there]),
        ("order = 'RD'", &[], ["--order \"RD\"", there]),
        // Also where options choose values of another setting.
        (
            "only.colour = 'red'",
            &["--only", "service=rc"],
            ["--only \"colour\"", ""],
        ),
        (
            "only.size_bytes = 8",
            &["--only", "service=ud"],
            ["--only \"service=ud\": no point has that", ""],
        ),
        ("size = '9x9'", &[], ["'9x9' for '--size", "300 to 4000"]),
    ] {
        with_file(&run, file);
        // The file is named, too: its settings were not typed.
        refused(
            picture(Figure::Ecdf, &run, words),
            &[&parts[..], &[FILE]].concat(),
        );
    }
    // The file of a run says nothing of one of its points only.
    with_file(&run, "order = ['RD']");
    let point = vec![run[0].join("rc-send-8B-burst16")];
    assert_eq!(made(Figure::Ecdf, &point, &[]).unwrap().told.hints.len(), 1);
}

#[test]
fn all_rounds_are_drawn_unless_one_is_asked_for() {
    let levels: Vec<Vec<Option<i64>>> = (1..=6).map(|round| vec![Some(1000 * round); 5]).collect();
    let rounds: Vec<&[Option<i64>]> = levels.iter().map(Vec::as_slice).collect();
    let path = temporary("run");
    let run = vec![hca_rounds(&path, &[("rc", 8, 16, rounds)], false)];
    let third = ["--only", "round=2"];
    let interval = "95 % interval over rounds";
    for (figure, words, told) in [
        (Figure::Histogram, &[][..], ["median 3.5 µs", "6 rounds"]),
        (Figure::Histogram, &third, ["median 3 µs", "round 2"]),
        // The times of each round begin anew.
        (Figure::Time, &[], ["round 0", ""]),
        (Figure::Median, &["--x", "size_bytes"], [interval, ""]),
    ] {
        let made = made(figure, &run, words).unwrap();
        // A subtitle may stand in several lines.
        let texts: Vec<&str> = made.drawing.texts().map(|text| &text.text[..]).collect();
        let texts = texts.join(" ");
        assert!(told.iter().all(|told| texts.contains(told)), "{texts}");
    }
    let drawn = picture(Figure::Ecdf, &run, &["--only", "round=6"]);
    refused(drawn, &["--only \"round=6\"", "only 0 to 5"]);
}

#[test]
fn a_service_has_its_colour_whatever_is_drawn_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let points = ["ud", "uc", "rc"].map(|service| [8, 64].map(|size| (service, size, 16)));
    let run = run_of(&folder, "run", points.as_flattened(), 100);
    let loads = loads_of(&folder, &["rc", "uc", "ud"]);
    for figure in Figure::ALL
        .iter()
        .copied()
        .filter(|it| ![Figure::Surface, Figure::Curves, Figure::Matrix].contains(it))
    {
        let run = match figure {
            Figure::Load => &loads,
            _ => &run,
        };
        for (service, colour) in [("rc", "#0072B2"), ("uc", "#E69F00"), ("ud", "#000000")] {
            let all = picture(figure, run, &[]).unwrap();
            let only = format!("service={service}");
            let alone = picture(figure, run, &["--only", &only]).unwrap();
            assert!(all.contains(colour), "{}", figure.name());
            assert!(alone.contains(colour), "{}", figure.name());
            assert_eq!(
                alone.contains("#0072B2"),
                service == "rc",
                "{}",
                figure.name()
            );
        }
    }
    // A line over the services has none of their colours.
    let over = ["--x", "service", "--only", "size_bytes=8"];
    picture(Figure::Median, &run, &over)
        .unwrap()
        .lacks(&["#0072B2"]);
}

#[test]
fn a_percentile_is_that_of_the_summary_or_of_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder, "run", &TWO, 700);
    // 40 samples from 1400 on, and from 2100 on, 10 apart.
    for (list, ends) in [
        ("p50", "they are 1.59 µs to 2.29 µs"),
        ("p99", "they are 1.79 µs to 2.49 µs"),
        // No p99.
        ("p9.9", "they are 1.44 µs to 2.14 µs"),
        ("p97.5,p90", "they are 1.75 µs to 2.48 µs"),
    ] {
        let words = ["--percentile", list, "--x", "size_bytes"];
        let outside = [&words[..], &["--range", "1ms..2ms"]].concat();
        refused(picture(Figure::Median, &run, &outside), &[ends]);
        let drawing = made(Figure::Median, &run, &words).unwrap().drawing;
        let texts = Vec::from_iter(drawing.texts().map(|text| &text.text[..]));
        for name in list.split(',') {
            let several = list.contains(',');
            let label = if several {
                format!("UC, {name}")
            } else {
                "UC".to_owned()
            };
            assert!(texts.contains(&&label[..]), "{label:?} is not in {texts:?}");
        }
        assert_eq!(
            texts.iter().any(|text| text.contains("middle 80 %")),
            list == "p50"
        );
    }
    let several = picture(Figure::Surface, &run, &["--percentile", "p50,p99"]);
    refused(several, &["--percentile", "one of them"]);
}

#[test]
fn a_size_that_is_too_small_names_one_that_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let points: Vec<_> = (0..9).map(|n| ("rc", 8 << n, 16)).collect();
    let run = run_of(&folder, "run", &points, 0);
    for figure in [Figure::Ecdf, Figure::Percentiles, Figure::Time] {
        let error = picture(figure, &run, &["--size", "340x300"]).unwrap_err();
        let error = error.to_string();
        let (_, size) = error.split_once("ask for --size ").expect(&error);
        picture(figure, &run, &["--size", size]).unwrap();
    }
}

#[test]
fn a_curve_under_load_is_over_what_was_delivered_and_what_sends_nothing_stands_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = loads_of(&folder, &["rc"]);
    let svg = picture(Figure::Load, &run, &[]).unwrap();
    svg.has(&[
        "delivered in the background (MB/s)",
        "same work on that CPU, no traffic",
        "lead to what was offered",
        "p50",
        "p99",
    ]);
    // Without those that send nothing, and without the point that one of them stands beside.
    let sent = ["--only", "background=0,4000@4096"];
    let without = picture(Figure::Load, &run, &sent).unwrap();
    assert!(!without.contains("no traffic"), "{without}");
    let alone = ["--only", "background_traffic=none"];
    refused(
        picture(Figure::Load, &run, &alone),
        &["all points have the background 200@4096"],
    );

    let plain = run_of(&folder, "plain", &TWO, 0);
    let parts = [
        "all points have the background 0",
        "--background 0,200@4KiB",
    ];
    refused(picture(Figure::Load, &plain, &[]), &parts);
}

/// A search over four rates: of two services, if there are several.
fn search_of(folder: &tempfile::TempDir, name: &str, services: &[&'static str]) -> PathBuf {
    use crate::made_up_run::rounds::{Made, document, run};
    use crate::results::schema::hca;
    let rates = ["1000", "2000", "2050", "4000"];
    let points = services.iter().flat_map(|&service| {
        rates.map(|rate| {
            let p99 = rate.parse::<f64>().unwrap() * 20.0;
            let figures = vec![(hca::intended::P99, p99), (hca::intended::P50, p99 / 2.0)];
            Made {
                settings: vec![(hca::SERVICE, service), (hca::RATE, rate)],
                rounds: vec![figures; 6],
            }
        })
    });
    let points: Vec<Made> = points.collect();
    let mut document = document(&hca::SCHEMA);
    let searches = services.iter().map(|service| {
        serde_json::json!({
            "conditions": "p99<41us,loss<1%",
            "of": if services.len() > 1 { format!("service {service}") } else { String::new() },
            "found": true,
            "probes": [
                { "is": "holds", "rate_per_s": 2000.0, "point": format!("{service}-2000") },
                { "is": "fails", "rate_per_s": 2050.0, "point": format!("{service}-2050") },
            ],
        })
    });
    document["details"] = serde_json::json!({ "find_rate": searches.collect::<Vec<_>>() });
    run(
        &folder.path().join(name),
        &hca::SCHEMA,
        &document,
        &points,
        0,
    )
}

#[test]
fn the_place_that_a_search_found_is_marked_over_the_rate() {
    let folder = tempfile::tempdir().unwrap();
    let one = [search_of(&folder, "one", &["rc"])];
    let words = ["--x", "rate_per_s", "--metric", "intended", "--percentile"];
    let p99 = [&words[..], &["p99"]].concat();
    let found = made(Figure::Median, &one, &p99).unwrap();
    let expected = serde_json::json!([
        { "x": 2000.0, "label": "p99 < 41us and loss < 1% holds up to 2.00 k/s", "holds": true, "line": null },
        { "x": 2050.0, "label": "p99 < 41us and loss < 1% fails at 2.05 k/s", "holds": false, "line": null },
    ]);
    assert_eq!(found.data["found"], expected);
    svg(&found.drawing)
        .unwrap()
        .has(&["holds up to 2.00 k/s", "fails at 2.05 k/s"]);
    // Not over another setting, nor where its points are not drawn.
    let of = |figure: anyhow::Result<Made>| figure.unwrap().data["found"].clone();
    let chosen = [&p99[..], &["--only", "rate_per_s=1000,2000"]].concat();
    assert_eq!(
        of(made(Figure::Median, &one, &chosen))
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let elsewhere = [
        "--x",
        "service",
        "--only",
        "rate_per_s=2000",
        "--metric",
        "intended",
    ];
    assert!(of(made(Figure::Median, &one, &elsewhere)).is_null());
    // Of several searches each has the colour of its line.
    let two = [search_of(&folder, "two", &["rc", "uc"])];
    let both = of(made(Figure::Median, &two, &p99));
    let lines = both.as_array().unwrap().iter();
    let lines: Vec<_> = lines.map(|it| it["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [0, 0, 1, 1]);
    both[2]["label"]
        .as_str()
        .unwrap()
        .begins("service uc: p99 < 41us");
}
