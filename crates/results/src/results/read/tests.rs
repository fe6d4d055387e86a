//! What is read back is what the program writes, made by its own writers.

use crate::testing::{Has as _, Refused as _, temporary};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

use super::rows::RowFile;
use super::*;
use crate::results::finding::{FINDINGS, Finding, Findings, kinds};
use crate::results::folder::{HISTOGRAM, LIST, MARK, PACKAGE, RUNS, SETTINGS, SUMMARY};
use crate::results::schema::fabric::FABRIC;
use crate::results::schema::{self, Schema, hca};
use crate::results::{Record, ResultsFolder};

use crate::made_up_run::{self, MadePoint, MadeRow, hca_rounds, hca_run, run_of};

const MESSAGES: &str = hca::MESSAGES.name;
const POINTS_SETTINGS: &str = "uc-send-16B-burst8/settings.json";

/// A column of whole numbers, and whether the file is cut off.
type Samples = (Vec<Option<i64>>, bool);

fn samples(file: Result<RowFile, ReadError>, column: &str) -> Result<Samples, ReadError> {
    let mut values = Vec::new();
    let cut = file?.each(&[column], |cells| {
        values.push(cells.integer(0)?);
        Ok(())
    })?;
    Ok((values, cut))
}

fn latencies(point: &Point) -> Result<Samples, ReadError> {
    samples(point.rows(MESSAGES), "latency_ns")
}

fn two_points(path: &Path) -> PathBuf {
    let lost = [Some(1500), None, Some(2500), Some(-3)];
    hca_run(
        path,
        &[("rc", 8, 16, &[Some(1000); 3]), ("uc", 16, 8, &lost)],
        false,
    )
}

#[test]
fn a_file_of_another_program_that_names_this_one_is_no_run() {
    let folder = &*temporary("");
    for name in [SETTINGS, FABRIC, PACKAGE] {
        for text in [
            r#"{"name": "bench", "tools": ["hcabench"], "benchmark": 1, "engine": 2"#,
            r#"{"hcabench": {"path": "a"}, "hcabench:kind": 1"#,
        ] {
            fs::write(folder.join(name), text).unwrap();
            assert!(!is_of_hcabench(folder), "{name}: {text}");
        }
        fs::remove_file(folder.join(name)).unwrap();
    }
    // Of a damaged run one of these is enough.
    let run = two_points(&folder.join("run"));
    for name in [SETTINGS, PACKAGE] {
        let whole = fs::read(run.join(name)).unwrap();
        fs::write(folder.join(name), &whole[..whole.len() / 2]).unwrap();
        assert!(is_of_hcabench(folder), "{name}");
        fs::remove_file(folder.join(name)).unwrap();
    }
    let fabric = "{\n  \"hcabench\": {},\n  \"command_line\": [],\n  \"engine\": ";
    fs::write(folder.join(FABRIC), fabric).unwrap();
    assert!(is_of_hcabench(folder));
}

#[test]
fn a_run_and_its_points() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let run = Run::open(&path).unwrap();
    assert_eq!((run.schema.benchmark, &run.incomplete), ("hca", &None));
    assert_eq!(run.version(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(run.started_at(), Some(made_up_run::STARTED_AT));
    assert_eq!(run.machine()["hostname"], "made-up");
    let [rc, uc] = &run.points[..] else {
        panic!("{:?}", run.points)
    };
    let names = hca::POINT.iter().map(|column| column.name);
    assert!(names.eq(uc.settings.iter().map(|(name, _)| name.as_str())));
    assert_eq!(uc.setting("service"), Some("uc"));
    assert_eq!(uc.setting("pause_ns"), Some("50000"));
    let [rc, row] = [rc, uc].map(|point| point.row.as_ref().unwrap());
    assert_eq!(rc.number("latency_p50_ns"), Some(1000.0));
    assert_eq!(row.count("messages_lost"), Some(1));
    let values = vec![Some(1500), None, Some(2500), Some(-3)];
    assert_eq!(latencies(uc).unwrap(), (values, false));
    let mut stamps = Vec::new();
    let rows = uc.rows(MESSAGES).unwrap();
    let cut = rows.each(&["seq", "t_recv_ns"], |cells| {
        stamps.push((cells.integer(0)?, cells.integer(1)?));
        Ok(())
    });
    assert!(!cut.unwrap());
    assert_eq!(stamps[1], (Some(1), None));
    assert_eq!(stamps[2], (Some(2), Some(1_102_500)));
    assert!(run.left_out.rows.is_empty());
}

#[test]
fn a_point_alone_has_its_run_around_it_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let run = Run::open(&path.join("uc-send-16B-burst8")).unwrap();
    assert_eq!(run.points.len(), 1);
    assert_eq!(run.points[0].setting("size_bytes"), Some("16"));
    assert_eq!(run.points[0].rounds.len(), 1);

    let alone = folder.path().join("alone");
    fs::rename(path.join("uc-send-16B-burst8"), &alone).unwrap();
    let run = Run::open(&alone).unwrap();
    assert_eq!(run.points[0].name, "alone");
    assert_eq!(run.points[0].setting("size_bytes"), Some("16"));
    assert_eq!(latencies(&run.points[0]).unwrap().0.len(), 4);
    Run::open(&path).refused(&["uc-send-16B-burst8 is missing"]);
}

#[test]
fn points_have_the_order_of_the_summary_with_the_list_or_without() {
    let folder = tempfile::tempdir().unwrap();
    // Sorted by name, the points stand in another order than their rows.
    let points: [MadePoint<'_>; 3] = [
        ("uc", 8, 16, &[Some(1)]),
        ("uc", 16, 8, &[Some(2)]),
        ("rc", 8, 16, &[Some(3)]),
    ];
    let path = hca_run(&folder.path().join("run"), &points, false);
    for list in [true, false] {
        if !list {
            fs::remove_file(path.join(LIST)).unwrap();
        }
        let run = Run::open(&path).unwrap();
        let latencies = run.points.iter().map(|point| {
            let latency = latencies(point).unwrap().0[0].unwrap();
            let row = point.row.as_ref().unwrap();
            assert_eq!(row.number("latency_min_ns"), Some(latency as f64));
            latency
        });
        assert_eq!(latencies.collect::<Vec<_>>(), [1, 2, 3]);
    }
    let summary = fs::read_to_string(path.join(SUMMARY)).unwrap();
    let last = summary.lines().last().unwrap();
    for (row, told) in [
        (last, "is in it twice, first in line 4"),
        (
            &*last.replace("rc-send", "../rc-send"),
            "is not the name of a point",
        ),
    ] {
        fs::write(path.join(SUMMARY), format!("{summary}{row}\n")).unwrap();
        Run::open(&path).refused(&["in line 5", told]);
        assert_eq!(Run::salvage(&path).unwrap().points.len(), 3);
    }
}

#[test]
fn rounds_are_read_by_point() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: Vec<Vec<Option<i64>>> = (0..6).map(|round| vec![Some(1000 + round); 3]).collect();
    let rounds: Vec<&[Option<i64>]> = rounds.iter().map(Vec::as_slice).collect();
    let points = [("rc", 8, 16, rounds.clone()), ("ud", 8, 16, rounds)];
    let path = hca_rounds(&folder.path().join("run"), &points, false);
    let run = Run::open(&path).unwrap();
    for point in &run.points {
        let rounds = point.rounds.iter();
        let medians = rounds.map(|row| row.number("latency_p50_ns").unwrap());
        assert!(medians.eq([1000.0, 1001.0, 1002.0, 1003.0, 1004.0, 1005.0]));
        let row = point.row.as_ref().unwrap();
        for (column, figure) in [
            ("latency_p50_ns", 1002.5),
            ("latency_p50_low_ns", 1000.0),
            ("latency_p50_high_ns", 1005.0),
            ("messages_sent", 18.0),
        ] {
            assert_eq!(row.number(column), Some(figure), "{column}");
        }
        assert_eq!(latencies(point).unwrap().0.len(), 18);
    }
}

#[test]
fn a_run_of_each_benchmark() {
    for schema in Schema::ALL {
        let folder = tempfile::tempdir().unwrap();
        let rows = ["a", "b"].map(|name| MadeRow {
            name: name.to_owned(),
            rounds: vec![Record::new(); 2],
            files: Box::new(|_, _| ()),
        });
        let path = run_of(&folder.path().join("run"), schema, &rows, false);
        let run = Run::open(&path).unwrap();
        assert_eq!(run.schema.benchmark, schema.benchmark);
        assert_eq!([&run.points[0].name, &run.points[1].name], ["a", "b"]);
        let columns = schema.summary().into_iter();
        let columns = columns.map(|(name, _)| name.into_owned());
        assert!(columns.eq(run.summary.columns.iter().cloned()));
        assert!(run.points.iter().all(|point| point.rounds.len() == 2));
    }
}

#[test]
fn older_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (run, clock) = (folder.path().join("run"), folder.path().join("clock"));
    fs::create_dir_all(run.join("rc-send-8B")).unwrap();
    let summary = "service,status,messages_sent\nrc,complete,1\n";
    fs::write(run.join(SUMMARY), summary).unwrap();
    let old = r#"{"version": "0.1.0", "command": "clock", "status": "complete", "machine": {}}"#;
    fs::write(run.join("rc-send-8B").join(SETTINGS), old).unwrap();
    fs::create_dir(&clock).unwrap();
    fs::write(clock.join(SETTINGS), old).unwrap();
    for path in [&run, &run.join("rc-send-8B"), &clock] {
        Run::open(path).refused(&["this version reads format 2; measure again"]);
    }
}

/// Opening a pipe would wait for somebody to write into it.
#[test]
fn pipes_in_place_of_results_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let put_pipe = |path: &Path| {
        let _ = fs::remove_file(path);
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    let told = ["it is a pipe, not a file"];
    for name in [MARK, LIST, SUMMARY, SETTINGS, RUNS, POINTS_SETTINGS] {
        let path = two_points(&folder.path().join(name.replace('/', "-")));
        put_pipe(&path.join(name));
        Run::open(&path).refused(&told);
    }
    let path = two_points(&folder.path().join("samples"));
    let point = Run::open(&path).unwrap().points.remove(0);
    for name in [MESSAGES, HISTOGRAM] {
        put_pipe(&point.file(name));
    }
    latencies(&point).refused(&told);
    Hgrm::read(&point.file(HISTOGRAM)).refused(&told);
}

#[test]
fn incomplete_runs_are_read_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let points: [MadePoint<'_>; 2] = [("rc", 8, 16, &[Some(1)]), ("rc", 16, 16, &[Some(2), None])];
    let path = hca_run(&folder.path().join("run"), &points, true);
    let run = Run::open(&path).unwrap();
    assert_eq!(run.incomplete.as_deref(), Some("interrupted by SIGINT"));
    assert_eq!(run.points[0].incomplete, None);
    let last = &run.points[1];
    assert_eq!(last.incomplete.as_deref(), Some("interrupted by SIGINT"));
    let status = last.row.as_ref().unwrap().text(schema::STATUS.name);
    assert_eq!(status, Some(schema::INCOMPLETE));
    // It may have been ended between putting a folder on its list and making it, or writing to it.
    let list = fs::read_to_string(path.join(LIST)).unwrap();
    fs::write(path.join(LIST), format!("{list}rc-send-32B/\n")).unwrap();
    assert_eq!(Run::open(&path).unwrap().points.len(), 2);
    fs::create_dir(path.join("rc-send-32B")).unwrap();
    assert_eq!(Run::open(&path).unwrap().points.len(), 2);
    // Of a file whose writer was interrupted the last row may be half there.
    let file = last.file(MESSAGES);
    let text = fs::read(&file).unwrap();
    fs::write(&file, &text[..text.len() - 3]).unwrap();
    assert_eq!(latencies(last).unwrap(), (vec![Some(2)], true));
    // While a run is marked, its summary may be behind the rows of each round, which are durable one by one.
    let tear = |file: &str| {
        let text = fs::read_to_string(path.join(file)).unwrap();
        let last = text.trim_end().rfind('\n').unwrap() + 1;
        fs::write(path.join(file), &text[..last + 20]).unwrap();
    };
    tear(SUMMARY);
    let run = Run::open(&path).unwrap();
    assert_eq!((run.summary.rows.len(), run.points.len()), (2, 2));
    assert_eq!(
        run.points[1].number(&hca::latency::P50),
        last.number(&hca::latency::P50)
    );
    // A torn row is left out.
    tear(RUNS);
    let run = Run::open(&path).unwrap();
    assert_eq!((run.summary.rows.len(), run.points.len()), (1, 2));
    assert!(run.points[1].row.is_none() && run.points[1].incomplete.is_some());
    assert_eq!(run.points[1].setting("size_bytes"), Some("16"));
    fs::remove_file(path.join(MARK)).unwrap();
    Run::open(&path).refused(&["is cut off in line 3"]);
}

#[test]
fn what_is_no_results_folder_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    Run::open(&path).refused(&["does not exist"]);
    fs::create_dir(&path).unwrap();
    Run::open(&path).refused(&["is empty"]);
    fs::write(path.join("holiday.jpg"), "x").unwrap();
    Run::open(&path).refused(&["holds no results of hcabench: neither"]);
    Run::open(&path.join("holiday.jpg")).refused(&["is not a folder"]);
    two_points(&path.join("run1"));
    Run::open(&path).refused(&["but these in it do: run1"]);
    let begun = folder.path().join("begun");
    let run = ResultsFolder::create(&begun, false, 0).unwrap();
    run.fail("no device").unwrap();
    let told = "before anything was measured: no device";
    Run::open(&begun).refused(&[told]);
    fs::write(path.join(SUMMARY), "a,b\n1,2\n").unwrap();
    Run::open(&path).refused(&["summary.csv has no column point"]);
}

#[test]
fn files_that_were_changed_name_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let run = Run::open(&path).unwrap();
    let point = &run.points[1];
    let file = point.file(MESSAGES);
    let good = fs::read_to_string(&file).unwrap();
    let shorter: String = good.split_inclusive('\n').take(3).collect();
    let longer = format!("{good}0,0,9,,1,,2,3,0,4,5,,\n");
    let columns = "there is no column \"latency_ns\", only round, repeat, seq";
    for (from, to, told) in [
        ("1500,", "15x0,", "in line 2: latency_ns is \"15x0\""),
        ("2500,", "2500,,", "in line 4: 15 cells under 13 columns"),
        ("latency_ns", "delay", columns),
        ("1500,", "99999999999999999999,", "not a whole number"),
        (&*good, &*shorter, "2 rows instead of the 4"),
        (&good, &longer, "5 rows instead of the 4"),
        (&good, "", "header is not whole"),
        (&good, "repeat,se", "header is not whole"),
        (&good, "\u{0}\u{1}ELF\n", "there is no column"),
    ] {
        fs::write(&file, good.replace(from, to)).unwrap();
        latencies(point).refused(&[told, "messages.csv"]);
    }
    fs::remove_file(&file).unwrap();
    latencies(point).refused(&["messages.csv is missing"]);

    let settings = point.file(SETTINGS);
    let good = fs::read_to_string(&settings).unwrap();
    let other = good.replace("\"size_bytes\": 16", "\"size_bytes\": 32");
    fs::write(&settings, other).unwrap();
    let told = "size_bytes of uc-send-16B-burst8 is \"16\", and \"32\"";
    Run::open(&path).refused(&[told]);
    fs::write(&settings, b"\xff\xfe{}").unwrap();
    Run::open(&path).refused(&["line 1: it is not text"]);
}

#[test]
fn a_file_without_lines_is_told_from_its_beginning() {
    let file = temporary("messages.csv");
    let good = "seq,latency_ns\n1,1500\n2,1600\n";
    let long = "7".repeat(70_000);
    // Longer than what is read in one piece, so that the line's beginning lies in another one.
    let many = "3,1700\n".repeat(100_000);
    let (too_long, open) = ("it is longer than 64 KiB", "a quote in it is not closed");
    for (text, line, expected) in [
        ("\0".repeat(1 << 20), 1, too_long),
        (format!("{good}{long}\n"), 4, too_long),
        (format!("{good}{long}"), 4, too_long),
        (format!("{good}{many}{long}\n{good}"), 100_004, too_long),
        (format!("{good}3,\"1700\n{many}"), 4, open),
        (format!("{good}{many}3,\"1700\n{many}"), 100_004, open),
        (format!("{good}\n"), 4, "it is empty"),
    ] {
        fs::write(&file, &text).unwrap();
        let found = samples(RowFile::open(&file), "latency_ns");
        found.refused(&[&format!("in line {line}: "), expected]);
    }
    fs::write(&file, format!("{good}3,\"1700\"\n{many}")).unwrap();
    let found = samples(RowFile::open(&file), "latency_ns").unwrap();
    assert_eq!(found.0.len(), 100_003);
}

/// Cut anywhere, a file gives an error or what is in its whole lines, and never a panic.
#[test]
fn truncation_at_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let point = Run::open(&path).unwrap().points.remove(1);

    let file = point.file(MESSAGES);
    let good = fs::read(&file).unwrap();
    for length in 0..good.len() {
        fs::write(&file, &good[..length]).unwrap();
        assert!(latencies(&point).is_err(), "{length}");
        // Without the summary's count, a file that ends with a line is whole.
        let read = samples(RowFile::open(&file), "latency_ns");
        let whole_lines = length > 0 && good[length - 1] == b'\n';
        assert_eq!(read.is_ok(), whole_lines, "{length}: {read:?}");
    }
    fs::write(&file, &good).unwrap();

    for name in [SUMMARY, RUNS, SETTINGS, POINTS_SETTINGS, LIST] {
        let file = path.join(name);
        let good = fs::read(&file).unwrap();
        let whole = Run::open(&path).unwrap();
        // The last newline of a document may go.
        for length in 0..good.len() - 1 {
            fs::write(&file, &good[..length]).unwrap();
            match Run::open(&path) {
                Err(error) => assert!(!error.to_string().is_empty()),
                // The list also names files, which nobody asks for.
                Ok(run) => {
                    assert_eq!(name, LIST, "{length}");
                    assert_eq!(run.points.len(), whole.points.len());
                }
            }
        }
        fs::write(&file, &good).unwrap();
    }

    let file = point.file(HISTOGRAM);
    let good = fs::read(&file).unwrap();
    let whole = Hgrm::read(&file).unwrap();
    for length in 0..good.len() {
        fs::write(&file, &good[..length]).unwrap();
        match Hgrm::read(&file) {
            // What may go is the comment behind the closing lines.
            Ok(read) => assert!(read == whole && good[..length].contains(&b']'), "{length}"),
            cut => cut.refused(&["is cut off"]),
        }
    }
}

/// 1500, 2500, 2500 and 7000 as other programs write them: those of Java, Python and Rust by the libraries
/// (HdrHistogram 2.1.11, hdrhistogram 0.10.8, the example `cli` of hdrhistogram 7.6.0), that of C in the format of
/// `hdr_percentiles_print`, that of Go without the last line, marked, and as Windows ends lines.
const OF_OTHERS: [(&str, &str); 5] = [
    ("C", include_str!("hgrm_of_others/c.hgrm")),
    ("Go", include_str!("hgrm_of_others/go.hgrm")),
    ("Java", include_str!("hgrm_of_others/java.hgrm")),
    ("Python", include_str!("hgrm_of_others/python.hgrm")),
    ("Rust", include_str!("hgrm_of_others/rust.hgrm")),
];

#[test]
fn a_link_that_leads_nowhere_is_named() {
    let told = "is a symbolic link to gone, which does not exist";
    for name in [RUNS, SUMMARY, SETTINGS, LIST, POINTS_SETTINGS] {
        let folder = tempfile::tempdir().unwrap();
        let path = two_points(&folder.path().join("run"));
        fs::remove_file(path.join(name)).unwrap();
        std::os::unix::fs::symlink("gone", path.join(name)).unwrap();
        Run::open(&path).refused(&[name, told]);
    }
    let link = temporary("link");
    std::os::unix::fs::symlink("gone", &link).unwrap();
    Run::open(&link).refused(&["link", told]);
}

#[test]
fn distributions_of_others_are_read() {
    let file = temporary("x.hgrm");
    for (by, text) in OF_OTHERS {
        fs::write(&file, text).unwrap();
        let read = Hgrm::read(&file).unwrap_or_else(|error| panic!("{by}: {error}"));
        let lines = read.lines.iter().map(|line| (line.value, line.count));
        let mut lines: Vec<_> = lines.collect();
        lines.dedup();
        assert_eq!(lines, [(1500.0, 1), (2501.0, 3), (7003.0, 4)], "{by}");
        assert_eq!((read.lines[4].quantile, read.total), (1.0, 4), "{by}");
        // Without its last rows it is not whole.
        let is_last = |line: &&str| line.contains("7003") && !line.contains('#');
        let without: String = (text.split_inclusive('\n'))
            .filter(|line| !is_last(line))
            .collect();
        fs::write(&file, without).unwrap();
        Hgrm::read(&file).refused(&["is cut off", "3 of 4 samples"]);
    }
    let none = "Value Percentile TotalCount 1/(1-Percentile)\n\n0.000 1.000000 0 inf\n#[Max = 0.000, Total count = 0]\n";
    fs::write(&file, none).unwrap();
    assert!(Hgrm::read(&file).unwrap().lines.is_empty());
}

#[test]
fn what_is_no_distribution_is_named() {
    let file = temporary("x.hgrm");
    let java = OF_OTHERS[2].1;
    for (from, to) in [
        ("7003.000 1.0", "1000.000 1.0"),
        ("1500.000 0.0", "NaN 0.0"),
        ("Value ", "Worth "),
        ("2.00\n", "2.00\nfoo bar\n"),
    ] {
        fs::write(&file, java.replacen(from, to, 1)).unwrap();
        Hgrm::read(&file).refused(&["is not as hcabench writes it"]);
    }
}

/// What happens to files between two machines, and the words that name the cause.
fn damages(good: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let text = String::from_utf8(good.to_vec()).unwrap();
    let utf_16 = text.encode_utf16().flat_map(u16::to_le_bytes);
    let mut zeros = good[..good.len() / 2].to_vec();
    zeros.resize(good.len(), 0);
    vec![
        (
            "is compressed with gzip",
            b"\x1f\x8b\x08\0\0\0\0\0".to_vec(),
        ),
        ("UTF-16", [0xff, 0xfe].into_iter().chain(utf_16).collect()),
        ("it is empty", Vec::new()),
        (
            "separated by semicolons",
            text.replace(',', ";").into_bytes(),
        ),
        ("separated by tabs", text.replace(',', "\t").into_bytes()),
        ("zeros in place of text", zeros),
        ("is cut off", good[..good.len() - 3].to_vec()),
    ]
}

#[test]
fn the_cause_of_a_damage_is_named_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let whole = Run::open(&path).unwrap();
    for name in [
        SUMMARY,
        RUNS,
        SETTINGS,
        POINTS_SETTINGS,
        LIST,
        "findings.json",
        "left_out.csv",
    ] {
        let file = path.join(name);
        let good = fs::read(&file).ok();
        let text = good.clone().unwrap_or_else(|| match name {
            "findings.json" => b"{\n  \"count\": 0,\n  \"findings\": []\n}\n".to_vec(),
            _ => b"service,reason\nrc,no device\n".to_vec(),
        });
        for (cause, damaged) in damages(&text) {
            let is_table = name.ends_with(".csv");
            let is_list = name == LIST && ["it is empty", "is cut off"].contains(&cause);
            if cause.starts_with("separated") && !is_table || is_list {
                continue;
            }
            fs::write(&file, damaged).unwrap();
            let run = Run::salvage(&path).unwrap();
            let [found] = &run.damaged[..] else {
                panic!("{name}, {cause}: {:?}", run.damaged)
            };
            assert_eq!(found.path, file);
            if is_table || !["zeros in place of text", "it is empty"].contains(&cause) {
                found.has(&[cause]);
            }
            assert_eq!(run.points.len(), whole.points.len(), "{name}, {cause}");
            // One of the two tables is made of the other.
            let medians = |run: &Run| -> Vec<_> {
                let points = run.points.iter();
                points
                    .map(|point| point.number(&hca::latency::P50))
                    .collect()
            };
            assert_eq!(medians(&run), medians(&whole), "{name}, {cause}");
            Run::open(&path).refused(&[&found.to_string()]);
        }
        // As editors of other systems write them.
        let crlf = String::from_utf8(text.clone())
            .unwrap()
            .replace('\n', "\r\n");
        for alike in [[b"\xef\xbb\xbf", &text[..]].concat(), crlf.into_bytes()] {
            fs::write(&file, alike).unwrap();
            let run = Run::open(&path).unwrap();
            assert_eq!(run.summary, whole.summary, "{name}");
            assert_eq!(run.points.len(), whole.points.len(), "{name}");
        }
        match good {
            Some(good) => fs::write(&file, good).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
    }
}

#[test]
fn a_row_that_is_there_twice_is_named_and_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: Vec<Vec<Option<i64>>> = (0..4).map(|round| vec![Some(1000 + round); 3]).collect();
    let rounds: Vec<&[Option<i64>]> = rounds.iter().map(Vec::as_slice).collect();
    let path = hca_rounds(&folder.path().join("run"), &[("rc", 8, 16, rounds)], false);
    let whole = Run::open(&path).unwrap();
    let file = path.join(RUNS);
    let text = fs::read_to_string(&file).unwrap();
    let second = text.split_inclusive('\n').nth(2).unwrap();
    fs::write(&file, format!("{text}{second}")).unwrap();
    let run = Run::salvage(&path).unwrap();
    let told = [
        "runs.csv",
        "in line 6",
        "round 1 of rc-send-8B-burst16 is in it twice, first in line 3",
    ];
    run.damaged[0].has(&told);
    assert_eq!(run.points[0].rounds, whole.points[0].rounds);

    let point = &whole.points[0];
    let text = fs::read_to_string(point.file(MESSAGES)).unwrap();
    let second = text.split_inclusive('\n').nth(1).unwrap();
    fs::write(
        point.file(MESSAGES),
        text.replacen(second, &format!("{second}{second}"), 1),
    )
    .unwrap();
    let told = [
        "in line 3",
        "13 rows instead of the 12 in the summary; it is the same as the line before it",
    ];
    latencies(point).refused(&told);
}

#[test]
fn a_compressed_file_is_named_with_what_unpacks_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let file = folder.path().join("x.hgrm.gz");
    fs::write(&file, b"\x1f\x8b\x08\0\0\0\0\0\0\x03").unwrap();
    Run::open(&file).refused(&["x.hgrm.gz is compressed with gzip", "gunzip"]);
    Hgrm::read(&file).refused(&["x.hgrm.gz is compressed with gzip", "gunzip"]);
    let messages = Run::open(&path).unwrap().points.remove(0).file(MESSAGES);
    fs::copy(&file, messages.with_file_name("messages.csv.gz")).unwrap();
    fs::remove_file(&messages).unwrap();
    RowFile::open(&messages).refused(&[
        "messages.csv is missing: messages.csv.gz is there in its place",
        "gunzip",
    ]);
    fs::copy(&file, &messages).unwrap();
    RowFile::open(&messages).refused(&["messages.csv is compressed with gzip", "gunzip"]);
}

#[test]
fn a_finding_that_was_lost_shows_and_a_list_of_an_earlier_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    two_findings().write(&path).unwrap();
    let file = path.join(FINDINGS);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"count\": 2", "\"count\": 3")).unwrap();
    let run = Run::salvage(&path).unwrap();
    run.damaged[0]
        .to_string()
        .has(&["findings.json", "2 findings in place of 3"]);
    let list = serde_json::to_string(&two_findings()).unwrap();
    fs::write(&file, list).unwrap();
    assert_eq!(Run::open(&path).unwrap().findings, Some(two_findings()));
}

/// A change of a file at a place of it, as a share of its length.
#[derive(Debug, Clone)]
enum Mutation {
    Cut(f64),
    Replace(f64, u8),
    Insert(f64, u8),
    Remove(f64, usize),
    Twice(f64),
    Swap(f64, f64),
}

impl Mutation {
    fn any() -> impl Strategy<Value = Self> {
        let byte = prop_oneof![
            any::<u8>(),
            prop::sample::select(&b",;\"\n\r\t\0{}[]0 -.e"[..])
        ];
        let place = 0.0..1.0_f64;
        prop_oneof![
            place.clone().prop_map(Mutation::Cut),
            (place.clone(), byte.clone()).prop_map(|(place, byte)| Mutation::Replace(place, byte)),
            (place.clone(), byte).prop_map(|(place, byte)| Mutation::Insert(place, byte)),
            (place.clone(), 1..400_usize).prop_map(|(place, count)| Mutation::Remove(place, count)),
            place.clone().prop_map(Mutation::Twice),
            (place.clone(), place).prop_map(|(one, other)| Mutation::Swap(one, other)),
        ]
    }

    fn of(&self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        let at = |share: f64| (share * good.len() as f64) as usize;
        let mut lines: Vec<&[u8]> = good.split_inclusive(|&byte| byte == b'\n').collect();
        let line = |share: f64| (share * lines.len() as f64) as usize;
        match *self {
            Mutation::Cut(place) => bytes.truncate(at(place)),
            Mutation::Replace(place, byte) => bytes[at(place)] = byte,
            Mutation::Insert(place, byte) => bytes.insert(at(place), byte),
            Mutation::Remove(place, count) => {
                bytes.drain(at(place)..(at(place) + count).min(good.len()));
            }
            Mutation::Twice(place) => {
                let place = line(place);
                lines.insert(place, lines[place]);
                bytes = lines.concat();
            }
            Mutation::Swap(one, other) => {
                let (one, other) = (line(one), line(other));
                lines.swap(one, other);
                bytes = lines.concat();
            }
        }
        bytes
    }
}

fn two_findings() -> Findings {
    let mut all = Findings::default();
    all.add(
        Finding::of(&kinds::PAGE_FAULTS).count("count", 3),
        None,
        None,
    );
    all.add(
        Finding::note("as a test wants it"),
        Some("uc-send-16B-burst8"),
        Some(0),
    );
    all
}

proptest! {
    /// Whatever becomes of a file, nothing panics, and what is not damaged has as many points, rows and samples as
    /// before.
    #[test]
    fn a_file_that_was_changed_is_as_large_or_named(
        file in prop::sample::select(vec![SUMMARY, RUNS, SETTINGS, POINTS_SETTINGS, LIST, FINDINGS,
            "uc-send-16B-burst8/messages.csv", "uc-send-16B-burst8/latency.hgrm"]),
        mutations in prop::collection::vec(Mutation::any(), 1..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = two_points(&folder.path().join("run"));
        two_findings().write(&path).unwrap();
        let total = Hgrm::read(&path.join("uc-send-16B-burst8/latency.hgrm")).unwrap().total;
        let good = fs::read(path.join(file)).unwrap();
        let damaged = mutations.iter().fold(good, |bytes, mutation| match bytes.is_empty() {
            true => bytes,
            false => mutation.of(&bytes),
        });
        fs::write(path.join(file), damaged).unwrap();
        let Ok(run) = Run::salvage(&path) else {
            return Ok(());
        };
        for point in &run.points {
            let _ = (point.rows(MESSAGES).map(|_| ()), Hgrm::read(&point.file(HISTOGRAM)).map(|_| ()));
        }
        if !run.damaged.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(run.points.len(), 2);
        prop_assert_eq!(run.findings.unwrap_or_default().all().len(), 2);
        for point in &run.points {
            let samples = if point.name.starts_with("uc") { 4 } else { 3 };
            prop_assert_eq!(point.rounds.len(), 1);
            prop_assert!(point.row.is_some());
            if let Ok((values, _)) = latencies(point) {
                prop_assert_eq!(values.len(), samples);
            }
        }
        let lines = run.points.iter().filter(|it| it.name.starts_with("uc")).map(|it| Hgrm::read(&it.file(HISTOGRAM)));
        for read in lines.flatten() {
            prop_assert_eq!(read.total, total);
        }
    }
}
