//! What is read back is what the program writes, made by its own writers.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::results::folder::{HISTOGRAM, LIST, MARK, SETTINGS, SUMMARY};
use crate::results::schema::{self, Schema, hca};
use crate::results::{Record, ResultsFolder, hgrm};
use crate::stats::LatencyHistogram;

#[path = "../../../tests/made_up_run/mod.rs"]
pub(crate) mod made_up_run;

use made_up_run::{MadePoint, MadeRow, hca_rounds, hca_run, run_of};

const MESSAGES: &str = hca::MESSAGES.name;

/// One column of whole numbers.
#[derive(Debug, Default)]
struct Samples {
    values: Vec<i64>,
    missing: u64,
    cut: bool,
}

impl Samples {
    fn rows(&self) -> u64 {
        self.values.len() as u64 + self.missing
    }
}

fn samples(file: Result<RowFile, ReadError>, column: &str) -> Result<Samples, ReadError> {
    let mut found = Samples::default();
    found.cut = file?.each(&[column], |cells| {
        match cells.integer(0)? {
            Some(value) => found.values.push(value),
            None => found.missing += 1,
        }
        Ok(())
    })?;
    Ok(found)
}

fn samples_of(point: &Point, file: &str, column: &str) -> Result<Samples, ReadError> {
    samples(point.rows(file), column)
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
fn a_run_and_its_points() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let run = Run::open(&path).unwrap();
    assert_eq!((run.benchmark, &run.incomplete), (Benchmark::Hca, &None));
    assert_eq!(
        (run.version(), run.started_at()),
        (
            Some(env!("CARGO_PKG_VERSION")),
            Some(made_up_run::STARTED_AT)
        )
    );
    assert_eq!(run.machine()["hostname"], "made-up");
    let [rc, uc] = &run.points[..] else {
        panic!("{:?}", run.points)
    };
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(uc.settings.len(), hca::POINT.len());
    assert_eq!(
        uc.settings[..2],
        [pair("service", "uc"), pair("operation", "send")]
    );
    assert_eq!(uc.setting("pause_ns"), Some("50000"));
    assert_eq!(
        rc.row.as_ref().unwrap().number("latency_p50_ns"),
        Some(1000.0)
    );
    assert_eq!(uc.row.as_ref().unwrap().count("messages_lost"), Some(1));
    let found = samples_of(uc, MESSAGES, "latency_ns").unwrap();
    assert_eq!(found.values, [1500, 2500, -3]);
    assert_eq!((found.missing, found.rows(), found.cut), (1, 4, false));
    let mut stamps = Vec::new();
    let cut = uc
        .rows(MESSAGES)
        .unwrap()
        .each(&["seq", "t_recv_ns"], |cells| {
            stamps.push((cells.integer(0)?, cells.integer(1)?, cells.line()));
            Ok(())
        });
    assert!(!cut.unwrap());
    assert_eq!(stamps[1], (Some(1), None, 3));
    assert_eq!(stamps[2], (Some(2), Some(1_102_500), 4));
    assert!(run.left_out().unwrap().rows.is_empty());
}

#[test]
fn a_point_alone_has_its_run_around_it_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let run = Run::open(&path.join("uc-send-16B-burst8")).unwrap();
    assert_eq!(run.points.len(), 1);
    assert_eq!(run.points[0].setting("size_bytes"), Some("16"));
    assert_eq!(run.rounds_of(&run.points[0]).count(), 1);

    let alone = folder.path().join("alone");
    fs::rename(path.join("uc-send-16B-burst8"), &alone).unwrap();
    let run = Run::open(&alone).unwrap();
    assert_eq!(run.points[0].name, "alone");
    assert_eq!(run.points[0].setting("size_bytes"), Some("16"));
    assert_eq!(
        samples_of(&run.points[0], MESSAGES, "latency_ns")
            .unwrap()
            .values
            .len(),
        3
    );
    let error = Run::open(&path).unwrap_err();
    assert!(
        matches!(&error, ReadError::MissingFile { path, .. } if path.ends_with("uc-send-16B-burst8")),
        "{error}"
    );
}

#[test]
fn points_have_the_order_of_the_summary_with_the_list_or_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = hca_run(
        &folder.path().join("run"),
        // Sorted by name, the points stand in another order than their rows.
        &[
            ("uc", 8, 16, &[Some(1)]),
            ("uc", 16, 8, &[Some(2)]),
            ("rc", 8, 16, &[Some(3)]),
        ],
        false,
    );
    for list in [true, false] {
        if !list {
            fs::remove_file(path.join(LIST)).unwrap();
        }
        let run = Run::open(&path).unwrap();
        let latencies = run.points.iter().map(|point| {
            let latency = samples_of(point, MESSAGES, "latency_ns").unwrap().values[0];
            let row = point.row.as_ref().unwrap();
            assert_eq!(row.number("latency_min_ns"), Some(latency as f64));
            latency
        });
        assert_eq!(latencies.collect::<Vec<_>>(), [1, 2, 3]);
    }
    let summary = fs::read_to_string(path.join(SUMMARY)).unwrap();
    let last = summary.lines().last().unwrap();
    for (row, line) in [
        (last.to_owned(), 5),
        (last.replace("rc-send", "../rc-send"), 5),
    ] {
        fs::write(path.join(SUMMARY), format!("{summary}{row}\n")).unwrap();
        let error = Run::open(&path).unwrap_err();
        assert!(
            matches!(error, ReadError::Foreign { line: found, .. } if found == line),
            "{error}"
        );
    }
}

#[test]
fn rounds_are_read_by_point() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: Vec<Vec<Option<i64>>> = (0..6).map(|round| vec![Some(1000 + round); 3]).collect();
    let rounds: Vec<&[Option<i64>]> = rounds.iter().map(Vec::as_slice).collect();
    let path = hca_rounds(
        &folder.path().join("run"),
        &[("rc", 8, 16, rounds.clone()), ("ud", 8, 16, rounds)],
        false,
    );
    let run = Run::open(&path).unwrap();
    for point in &run.points {
        let medians = run
            .rounds_of(point)
            .map(|row| row.number("latency_p50_ns").unwrap());
        assert_eq!(
            medians.collect::<Vec<_>>(),
            [1000.0, 1001.0, 1002.0, 1003.0, 1004.0, 1005.0]
        );
        let row = point.row.as_ref().unwrap();
        let figures = [
            "latency_p50_ns",
            "latency_p50_low_ns",
            "latency_p50_high_ns",
            "messages_sent",
        ];
        let figures = figures.map(|column| row.number(column).unwrap());
        assert_eq!(figures, [1002.5, 1000.0, 1005.0, 18.0]);
        assert_eq!(
            samples_of(point, MESSAGES, "latency_ns").unwrap().rows(),
            18
        );
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
        let names: Vec<&str> = run.points.iter().map(|point| point.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let summary = schema.summary();
        assert!(
            summary
                .iter()
                .map(|(name, _)| name.as_ref())
                .eq(run.summary.columns.iter())
        );
        assert_eq!(run.runs.rows.len(), 4);
    }
}

#[test]
fn older_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (run, clock) = (folder.path().join("run"), folder.path().join("clock"));
    fs::create_dir_all(run.join("rc-send-8B")).unwrap();
    fs::write(
        run.join(SUMMARY),
        "service,status,messages_sent\nrc,complete,1\n",
    )
    .unwrap();
    let old = r#"{"version": "0.1.0", "command": "clock", "status": "complete", "machine": {}}"#;
    fs::write(run.join("rc-send-8B").join(SETTINGS), old).unwrap();
    fs::create_dir(&clock).unwrap();
    fs::write(clock.join(SETTINGS), old).unwrap();
    for path in [&run, &run.join("rc-send-8B"), &clock] {
        let error = Run::open(path).unwrap_err();
        assert!(matches!(error, ReadError::OlderFormat { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("measure again, or use hcabench 0.1"),
            "{error}"
        );
    }
}

/// Opening a pipe would wait for somebody to write into it.
#[test]
fn pipes_in_place_of_results_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        MARK,
        LIST,
        SUMMARY,
        SETTINGS,
        "runs.csv",
        "uc-send-16B-burst8/settings.json",
    ] {
        let path = two_points(&folder.path().join(name.replace('/', "-")));
        let _ = fs::remove_file(path.join(name));
        nix::unistd::mkfifo(&path.join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = Run::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("it is a pipe, not a file"),
            "{name}: {error}"
        );
    }
    let path = two_points(&folder.path().join("samples"));
    let point = Run::open(&path).unwrap().points.remove(0);
    for name in [MESSAGES, HISTOGRAM] {
        fs::remove_file(point.file(name)).unwrap();
        nix::unistd::mkfifo(&point.file(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    assert!(samples_of(&point, MESSAGES, "latency_ns").is_err());
    assert!(Hgrm::read(&point.file(HISTOGRAM)).is_err());
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
    assert_eq!(
        last.row.as_ref().unwrap().text(schema::STATUS.name),
        Some(schema::INCOMPLETE)
    );
    // Of a file whose writer was interrupted the last row may be half there.
    let file = last.file(MESSAGES);
    let text = fs::read(&file).unwrap();
    fs::write(&file, &text[..text.len() - 3]).unwrap();
    let found = samples_of(last, MESSAGES, "latency_ns").unwrap();
    assert_eq!((found.values.as_slice(), found.cut), (&[2][..], true));
    // Rows are durable one by one; a torn one is left out.
    let summary = fs::read_to_string(path.join(SUMMARY)).unwrap();
    let whole = summary.trim_end().rfind('\n').unwrap() + 1;
    fs::write(path.join(SUMMARY), &summary[..whole + 20]).unwrap();
    let run = Run::open(&path).unwrap();
    assert_eq!((run.summary.rows.len(), run.points.len()), (1, 2));
    assert!(run.points[1].row.is_none() && run.points[1].incomplete.is_some());
    assert_eq!(run.points[1].setting("size_bytes"), Some("16"));
    fs::remove_file(path.join(MARK)).unwrap();
    let error = Run::open(&path).unwrap_err();
    assert!(
        matches!(error, ReadError::Truncated { line: 3, .. }),
        "{error}"
    );
}

#[test]
fn what_is_no_results_folder_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    assert!(matches!(
        Run::open(&path),
        Err(ReadError::NoSuchFolder { .. })
    ));
    fs::create_dir(&path).unwrap();
    assert!(matches!(
        Run::open(&path),
        Err(ReadError::EmptyFolder { .. })
    ));
    fs::write(path.join("holiday.jpg"), "x").unwrap();
    assert!(matches!(Run::open(&path), Err(ReadError::NoResults { .. })));
    assert!(matches!(
        Run::open(&path.join("holiday.jpg")),
        Err(ReadError::NotAFolder { .. })
    ));
    two_points(&path.join("run1"));
    let error = Run::open(&path).unwrap_err().to_string();
    assert!(error.contains("run1"), "{error}");
    let begun = folder.path().join("begun");
    let run = ResultsFolder::create(&begun, false, 0).unwrap();
    run.fail("no device").unwrap();
    let error = Run::open(&begun).unwrap_err();
    assert!(
        matches!(&error, ReadError::NothingMeasured { reason, .. } if reason == "no device"),
        "{error}"
    );
    fs::write(path.join(SUMMARY), "a,b\n1,2\n").unwrap();
    let error = Run::open(&path).unwrap_err();
    assert!(matches!(error, ReadError::NoResults { .. }), "{error}");
}

#[test]
fn files_that_were_changed_name_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_points(&folder.path().join("run"));
    let run = Run::open(&path).unwrap();
    let point = &run.points[1];
    let file = point.file(MESSAGES);
    let good = fs::read_to_string(&file).unwrap();
    let cases = [
        (
            good.replace("1500,", "15x0,"),
            "in line 2: latency_ns is \"15x0\"",
        ),
        (
            good.replace("2500,", "2500,,"),
            "in line 4: 11 cells under 9 columns",
        ),
        (
            good.replace("latency_ns", "delay"),
            "there is no column \"latency_ns\", only round, repeat, seq",
        ),
        (
            good.replace("1500,", "99999999999999999999,"),
            "no whole number",
        ),
        (
            good.lines()
                .take(3)
                .map(|line| format!("{line}\n"))
                .collect(),
            "2 rows, where the summary tells of 4",
        ),
        (
            format!("{good}0,0,9,1,,2,3,4,5\n"),
            "5 rows, where the summary tells of 4",
        ),
        (String::new(), "header is not whole"),
        ("repeat,se".to_owned(), "header is not whole"),
        ("\u{0}\u{1}ELF\n".to_owned(), "there is no column"),
    ];
    for (text, expected) in cases {
        fs::write(&file, &text).unwrap();
        let error = samples_of(point, MESSAGES, "latency_ns")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && error.contains("messages.csv"),
            "{error}"
        );
    }
    fs::remove_file(&file).unwrap();
    let error = samples_of(point, MESSAGES, "latency_ns").unwrap_err();
    assert!(matches!(error, ReadError::MissingFile { .. }), "{error}");

    let settings = point.file(SETTINGS);
    let good = fs::read_to_string(&settings).unwrap();
    fs::write(
        &settings,
        good.replace("\"size_bytes\": 16", "\"size_bytes\": 32"),
    )
    .unwrap();
    let error = Run::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("size_bytes of uc-send-16B-burst8 is \"16\", and \"32\""),
        "{error}"
    );
    fs::write(&settings, b"\xff\xfe{}").unwrap();
    let error = Run::open(&path).unwrap_err().to_string();
    assert!(error.contains("line 1: it is not text"), "{error}");
}

#[test]
fn a_file_without_lines_is_told_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("messages.csv");
    let good = "seq,latency_ns\n1,1500\n2,1600\n";
    let long = "7".repeat(70_000);
    // Longer than what is read in one piece, so that the line's beginning lies in another one.
    let many = "3,1700\n".repeat(100_000);
    for (text, expected) in [
        ("\0".repeat(1 << 20), "in line 1: it is longer than 64 KiB"),
        (
            format!("{good}{long}\n"),
            "in line 4: it is longer than 64 KiB",
        ),
        (
            format!("{good}{long}"),
            "in line 4: it is longer than 64 KiB",
        ),
        (
            format!("{good}{many}{long}\n{good}"),
            "in line 100004: it is longer than 64 KiB",
        ),
        (
            format!("{good}3,\"1700\n{many}"),
            "in line 4: a quote in it is not closed",
        ),
        (
            format!("{good}{many}3,\"1700\n{many}"),
            "in line 100004: a quote in it is not closed",
        ),
    ] {
        fs::write(&file, &text).unwrap();
        let error = samples(RowFile::open(&file), "latency_ns").unwrap_err();
        assert!(matches!(error, ReadError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    fs::write(&file, format!("{good}3,\"1700\"\n{many}")).unwrap();
    assert_eq!(
        samples(RowFile::open(&file), "latency_ns").unwrap().rows(),
        100_003
    );
}

/// A file that ends with a row, but too early, is told by the rows that were counted.
#[test]
fn rows_are_counted_however_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shorter = |file: &Path| {
        let text = fs::read_to_string(file).unwrap();
        let end = text.trim_end().rfind('\n').unwrap();
        fs::write(file, &text[..=end]).unwrap();
    };
    let cut = |point: &Point, file: &str, column: &str| {
        let read = |point: &Point| point.rows(file).unwrap().each(&[column], |_| Ok(()));
        assert!(!read(point).unwrap(), "{file}");
        shorter(&point.file(file));
        for error in [
            read(point).unwrap_err(),
            samples_of(point, file, column).unwrap_err(),
        ] {
            assert!(matches!(error, ReadError::Truncated { .. }), "{error}");
            assert!(error.to_string().contains("tells of"), "{error}");
        }
    };
    let run = Run::open(&two_points(&path.join("hca"))).unwrap();
    cut(&run.points[0], MESSAGES, "latency_ns");
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
        assert!(
            samples_of(&point, MESSAGES, "latency_ns").is_err(),
            "{length}"
        );
        // Without the summary's count, a file that ends with a line is whole.
        let read = samples(RowFile::open(&file), "latency_ns");
        let whole_lines = length > 0 && good[length - 1] == b'\n';
        assert_eq!(read.is_ok(), whole_lines, "{length}: {read:?}");
    }
    fs::write(&file, &good).unwrap();

    for name in [
        SUMMARY,
        "runs.csv",
        SETTINGS,
        "uc-send-16B-burst8/settings.json",
        LIST,
    ] {
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
    let closing = String::from_utf8(good.clone())
        .unwrap()
        .find("#[Buckets")
        .unwrap();
    for length in 0..good.len() {
        fs::write(&file, &good[..length]).unwrap();
        match Hgrm::read(&file) {
            Err(error) => assert!(
                matches!(error, ReadError::Truncated { .. }),
                "{length}: {error}"
            ),
            Ok(read) => assert!(read == whole && length > closing, "{length}"),
        }
    }
}

#[test]
fn distributions_of_others_and_what_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.hgrm");
    // The Java implementation's last line has three columns.
    let java = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n     1.500 0.500000000000          1           2.00\n     \
                2.500 1.000000000000          2\n#[Mean    =        2.000, StdDeviation   =        0.500]\n\
                #[Max     =        2.500, Total count    =            2]\n#[Buckets =            1, SubBuckets     =         2048]\n";
    fs::write(&file, java).unwrap();
    let read = Hgrm::read(&file).unwrap();
    let line = |value, quantile, count| super::hgrm::HgrmLine {
        value,
        quantile,
        count,
    };
    assert_eq!(read.lines, [line(1.5, 0.5, 1), line(2.5, 1.0, 2)]);
    assert_eq!((read.mean, read.max, read.total), (2.0, 2.5, 2));
    for (from, to) in [
        ("2.500 1.0", "1.000 1.0"),
        ("1.500 0.5", "NaN 0.5"),
        ("Value ", "Worth "),
        ("2.00\n", "2.00\nfoo bar\n"),
    ] {
        fs::write(&file, java.replacen(from, to, 1)).unwrap();
        let error = Hgrm::read(&file).unwrap_err();
        assert!(
            matches!(error, ReadError::Foreign { .. }),
            "{from}: {error}"
        );
    }
    hgrm::write(&file, &LatencyHistogram::of(&[])).unwrap();
    assert_eq!(
        (
            Hgrm::read(&file).unwrap().lines.len(),
            Hgrm::read(&file).unwrap().total
        ),
        (0, 0)
    );
}
