//! What is read back is what the program writes, made by its own writers.

use crate::testing::{Refused as _, temporary};
use std::fs;
use std::path::{Path, PathBuf};

use super::rows::RowFile;
use super::*;
use crate::results::folder::{HISTOGRAM, LIST, MARK, RUNS, SETTINGS, SUMMARY};
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
    assert!(run.left_out().unwrap().rows.is_empty());
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
    for row in [last, &last.replace("rc-send", "../rc-send")] {
        fs::write(path.join(SUMMARY), format!("{summary}{row}\n")).unwrap();
        Run::open(&path).refused(&["in line 5", "is not the name of a point"]);
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
    let longer = format!("{good}0,0,9,,1,,2,3,0,4,5\n");
    let columns = "there is no column \"latency_ns\", only round, repeat, seq";
    for (from, to, told) in [
        ("1500,", "15x0,", "in line 2: latency_ns is \"15x0\""),
        ("2500,", "2500,,", "in line 4: 13 cells under 11 columns"),
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

#[test]
fn distributions_of_others_and_what_is_none() {
    let file = temporary("x.hgrm");
    // The Java implementation's last line has three columns.
    let java = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n     1.500 0.500000000000          1           2.00\n     \
                2.500 1.000000000000          2\n#[Mean    =        2.000, StdDeviation   =        0.500]\n\
                #[Max     =        2.500, Total count    =            2]\n#[Buckets =            1, SubBuckets     =         2048]\n";
    fs::write(&file, java).unwrap();
    let read = Hgrm::read(&file).unwrap();
    let lines = read.lines.iter();
    let lines = lines.map(|line| (line.value, line.quantile, line.count));
    assert!(lines.eq([(1.5, 0.5, 1), (2.5, 1.0, 2)]));
    assert_eq!(read.total, 2);
    for (from, to) in [
        ("2.500 1.0", "1.000 1.0"),
        ("1.500 0.5", "NaN 0.5"),
        ("Value ", "Worth "),
        ("2.00\n", "2.00\nfoo bar\n"),
    ] {
        fs::write(&file, java.replacen(from, to, 1)).unwrap();
        Hgrm::read(&file).refused(&["is not as hcabench writes it"]);
    }
}
