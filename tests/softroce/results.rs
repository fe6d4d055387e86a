//! Results read back, and figures computed from them again by other code than the program's.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::program::until;

#[derive(Debug)]
pub(crate) struct Table {
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone)]
pub(crate) struct Row(BTreeMap<String, String>);

impl Table {
    pub(crate) fn read(path: &Path) -> Self {
        let failed = |error: csv::Error| -> ! { panic!("{}: {error}", path.display()) };
        let reader = csv::Reader::from_path(path);
        let mut reader = reader.unwrap_or_else(|error| failed(error));
        let row = |row: csv::Result<_>| Row(row.unwrap_or_else(|error| failed(error)));
        Table {
            rows: reader.deserialize().map(row).collect(),
        }
    }

    pub(crate) fn matching(&self, cells: &[(&str, &str)]) -> Vec<&Row> {
        self.rows
            .iter()
            .filter(|row| cells.iter().all(|(name, value)| row.text(name) == *value))
            .collect()
    }
}

impl Row {
    /// Whether its point is one of reads or atomics, of which nothing arrives.
    pub(crate) fn is_of_requests(&self) -> bool {
        ["read", "compare-swap", "fetch-add"].contains(&self.text("operation"))
    }

    pub(crate) fn text(&self, column: &str) -> &str {
        self.0
            .get(column)
            .unwrap_or_else(|| panic!("no column {column} in {:?}", self.0.keys()))
    }

    fn number<T: FromStr<Err: Display>>(&self, column: &str) -> T {
        let text = self.text(column);
        let number = text.parse();
        number.unwrap_or_else(|error| panic!("{column} {text:?}: {error}"))
    }

    pub(crate) fn count(&self, column: &str) -> u64 {
        self.number(column)
    }

    pub(crate) fn whole(&self, column: &str) -> i64 {
        self.number(column)
    }

    pub(crate) fn decimal(&self, column: &str) -> f64 {
        self.number(column)
    }

    pub(crate) fn optional(&self, column: &str) -> Option<i64> {
        (!self.text(column).is_empty()).then(|| self.whole(column))
    }

    /// That no messages of these kinds were counted.
    #[track_caller]
    pub(crate) fn has_no(&self, kinds: &[&str]) {
        for kind in kinds {
            assert_eq!(
                self.count(&format!("messages_{kind}")),
                0,
                "{kind}: {self:?}"
            );
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub round: u64,
    pub repeat: u64,
    pub seq: u64,
    pub t_intended: Option<i64>,
    pub t_subm: i64,
    pub t_send: Option<i64>,
    pub t_recv: Option<i64>,
    pub t_comp: Option<i64>,
    pub in_flight: u64,
    pub latency: Option<i64>,
    pub completion_latency: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct Point {
    pub path: PathBuf,
    pub settings: serde_json::Value,
}

impl Point {
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap().to_str().unwrap().to_owned()
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        let table = Table::read(&self.path.join("messages.csv"));
        let message = |row: &Row| Message {
            round: row.count("round"),
            repeat: row.count("repeat"),
            seq: row.count("seq"),
            t_intended: row.optional("t_intended_ns"),
            t_subm: row.optional("t_subm_ns").expect("each was submitted"),
            t_send: row.optional("t_send_ns"),
            t_recv: row.optional("t_recv_ns"),
            t_comp: row.optional("t_comp_ns"),
            in_flight: row.count("in_flight"),
            latency: row.optional("latency_ns"),
            completion_latency: row.optional("completion_latency_ns"),
        };
        table.rows.iter().map(message).collect()
    }

    /// The samples that `latency.hgrm` says it was made from.
    pub(crate) fn histogram_count(&self) -> u64 {
        let text = std::fs::read_to_string(self.path.join("latency.hgrm")).unwrap();
        let (_, rest) = text.split_once("Total count").expect("a closing line");
        let number = rest.trim_start_matches([' ', '=']).split(']').next();
        number.unwrap().trim().parse().unwrap()
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.path.join("INCOMPLETE").exists()
    }
}

#[derive(Debug)]
pub(crate) struct Results {
    pub path: PathBuf,
}

impl Results {
    /// Waits, while a run writes to `path`, until it has begun its point number `number`, counted from 1.
    pub(crate) fn wait_for_point(path: &Path, number: usize) {
        let what = format!("point {number} begins");
        // Until the run has begun, the folder may come and go: whether it can be made is tried first.
        until(&what, Duration::from_secs(60), || {
            let folders = folders_in(path).unwrap_or_default();
            (folders.len() == number).then_some(())
        });
        // Past connecting, and for most tests past the warm-up.
        std::thread::sleep(Duration::from_millis(800));
    }

    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        assert!(path.is_dir(), "there are no results at {}", path.display());
        Results { path }
    }

    pub(crate) fn summary(&self) -> Table {
        Table::read(&self.path.join("summary.csv"))
    }

    pub(crate) fn left_out(&self) -> Table {
        Table::read(&self.path.join("left_out.csv"))
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.path.join("INCOMPLETE").exists()
    }

    pub(crate) fn mark(&self) -> String {
        std::fs::read_to_string(self.path.join("INCOMPLETE")).expect("the mark is there")
    }

    fn folders(&self) -> Vec<PathBuf> {
        folders_in(&self.path).unwrap()
    }

    pub(crate) fn points(&self) -> Vec<Point> {
        let point = |path: PathBuf| {
            let settings = match std::fs::read_to_string(path.join("settings.json")) {
                Ok(text) => serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
                // A point that broke off may not have come so far; it is marked then.
                Err(error) => {
                    let is_there = path.join("INCOMPLETE").exists();
                    assert!(is_there, "{}: {error}", path.display());
                    serde_json::Value::Null
                }
            };
            Point { path, settings }
        };
        self.folders().into_iter().map(point).collect()
    }

    /// The points of a run that broke off in its second one: the first is whole.
    pub(crate) fn whole_and_broken(&self) -> [Point; 2] {
        let [whole, broken] = <[Point; 2]>::try_from(self.points()).unwrap();
        self.check_point(&whole);
        assert!(broken.is_marked());
        assert_eq!(self.row_of(&broken).text("status"), "incomplete");
        [whole, broken]
    }

    pub(crate) fn row_of(&self, point: &Point) -> Row {
        let name = point.name();
        let summary = self.summary();
        let found = summary.matching(&[("point", name.as_str())]);
        assert_eq!(found.len(), 1, "rows in the summary for {name}");
        found[0].clone()
    }

    pub(crate) fn check(&self, points: usize) {
        assert!(!self.is_marked(), "{}", self.mark());
        let found = self.points();
        assert_eq!(found.len(), points, "{found:?}");
        assert_eq!(self.summary().rows.len(), points);
        for point in &found {
            self.check_point(point);
        }
    }

    /// Checks the files of a finished point of one round against each other and against figures computed anew.
    pub(crate) fn check_point(&self, point: &Point) {
        let name = point.name();
        let row = self.row_of(point);
        assert_eq!(row.count("rounds"), 1, "{name}");
        assert!(!point.is_marked(), "{name} is marked");
        assert_eq!(point.settings["status"], "complete", "{name}");
        assert_eq!(point.settings["failure"], serde_json::Value::Null, "{name}");
        assert_eq!(row.text("status"), "complete", "{name}");
        let messages = point.messages();
        let (burst, repeats) = (row.count("burst"), row.count("repeat"));
        assert_eq!(messages.len() as u64, burst * repeats, "{name}");
        let numbers = (0..repeats).flat_map(|repeat| (0..burst).map(move |seq| (0, repeat, seq)));
        let found = messages.iter().map(|one| (one.round, one.repeat, one.seq));
        assert!(found.eq(numbers), "{name}: the numbers of the messages");
        let send_stamps = row.text("timestamp") == "send";
        for pair in messages.windows(2) {
            assert!(pair[0].t_subm < pair[1].t_subm, "{name}: {pair:?}");
        }
        for message in &messages {
            check_message(message, send_stamps);
        }
        let queue_pairs = row.count("queue_pairs");
        // Within a depth, of each queue pair one message out of half of its share of that, too.
        let depth = row.optional("depth").map(|depth| depth as u64);
        let every = depth.map_or(u64::MAX, |depth| (depth / (2 * queue_pairs)).max(1));
        let is_signaled = |message: &&Message| {
            let number = message.seq / queue_pairs + 1;
            number.is_multiple_of(every) || message.seq + queue_pairs >= burst
        };
        if row.text("unsignaled") == "on" {
            let numbers = |one: &Message| (one.repeat, one.seq);
            let completed = messages.iter().filter(|one| one.t_comp.is_some());
            let signaled = messages.iter().filter(is_signaled).map(numbers);
            assert!(completed.map(numbers).eq(signaled), "{name}");
        } else {
            assert!(messages.iter().all(|one| one.t_comp.is_some()), "{name}");
        }
        check_counts(&name, &row, point, &messages);
        check_queueing(&name, &row, &messages);
        let latencies = messages.iter().filter_map(|one| one.latency).collect();
        check_figures(&name, &row, "latency", latencies);
        let completions = messages.iter().filter_map(|one| one.completion_latency);
        let completions = completions.collect();
        check_figures(&name, &row, "completion_latency", completions);
    }
}

fn folders_in(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(path)? {
        folders.extend(Some(entry?.path()).filter(|path| path.is_dir()));
    }
    folders.sort();
    Ok(folders)
}

fn check_message(message: &Message, send_stamps: bool) {
    let t_subm = message.t_subm;
    // Without an arrival there is no stamp of the sending either, which the message would have brought.
    let arrived = message.t_recv.is_some();
    let has_send = message.t_send.is_some();
    assert!(!has_send || send_stamps && arrived, "{message:?}");
    let has_both = arrived && (!send_stamps || has_send);
    assert_eq!(message.latency.is_some(), has_both, "{message:?}");
    if let Some(t_recv) = message.t_recv {
        assert!(t_recv > t_subm, "{message:?}");
    } else {
        assert_eq!(message.latency, None, "{message:?}");
    }
    if let (Some(t_send), Some(t_recv)) = (message.t_send, message.t_recv) {
        assert!(t_subm <= t_send && t_send <= t_recv, "{message:?}");
    }
    if let Some(latency) = message.latency {
        let from = message.t_send.unwrap_or(t_subm);
        assert_eq!(Some(latency), message.t_recv.map(|to| to - from));
    }
    let took = message.t_comp.map(|to| to - t_subm);
    assert_eq!(message.completion_latency, took, "{message:?}");
    assert!(took.is_none_or(|took| took > 0), "{message:?}");
}

fn check_counts(name: &str, row: &Row, point: &Point, messages: &[Message]) {
    let sent = messages.len() as u64;
    let completed = messages.iter().filter(|one| one.t_comp.is_some()).count() as u64;
    assert_eq!(row.count("completions"), completed, "{name}");
    if row.is_of_requests() {
        assert_eq!(row.count("messages_sent"), sent, "{name}");
        assert_eq!(row.count("messages_corrupted"), 0, "{name}");
        let arrivals = messages.iter().filter(|one| one.t_recv.is_some()).count() as u64;
        assert_eq!((arrivals, point.histogram_count()), (0, 0), "{name}");
        for empty in [
            "messages_received",
            "messages_lost",
            "messages_duplicated",
            "messages_late",
            "messages_foreign",
            "messages_not_restamped",
            "delivery_rate",
            "floor_p50_ns",
            "clock_offset_ns",
        ] {
            assert_eq!(row.text(empty), "", "{name}: {empty}");
        }
        return;
    }
    assert_ne!(row.text("floor_p50_ns"), "", "{name}");
    let lost = messages.iter().filter(|one| one.t_recv.is_none()).count() as u64;
    let measured = messages.iter().filter(|one| one.latency.is_some()).count() as u64;
    let has_latency = !row.text("latency_p50_ns").is_empty();
    assert_eq!(has_latency, measured > 0, "{name}");
    let received = measured + row.count("messages_not_restamped");
    // Another that arrived and has no latency was found to be corrupted.
    let corrupted = sent - lost - received;
    for (key, count) in [("sent", sent), ("received", received), ("lost", lost)] {
        let found = row.count(&format!("messages_{key}"));
        assert_eq!(found, count, "{name}: {key} in the summary");
    }
    assert_eq!(corrupted, 0, "{name}");
    row.has_no(&["corrupted"]);
    assert_eq!(point.histogram_count(), measured, "{name}");
    let share = received as f64 / sent as f64;
    close(name, row, "delivery_rate", share, 5e-7);
}

/// Counts anew what was in flight when some of the messages were posted, the slow way.
fn check_queueing(name: &str, row: &Row, messages: &[Message]) {
    for message in messages.iter().step_by(messages.len() / 50 + 1) {
        let earlier = messages.iter().filter(|one| {
            (one.round, one.repeat) == (message.round, message.repeat) && one.seq < message.seq
        });
        let end = |one: &&Message| match row.is_of_requests() {
            true => one.t_comp,
            false => one.t_recv,
        };
        let in_flight = earlier.filter(|one| end(one) > Some(message.t_subm));
        let in_flight = in_flight.count() as u64;
        assert_eq!(in_flight, message.in_flight, "{name}: {message:?}");
    }
    let most = messages.iter().map(|one| one.in_flight).max().unwrap();
    assert_eq!(row.count("in_flight_max"), most, "{name}");
    let alone: Vec<_> = messages.iter().filter(|one| one.in_flight == 0).collect();
    let share = alone.len() as f64 / messages.len() as f64;
    close(name, row, "alone_share", share, 5e-7);
    let has_none = alone.iter().all(|one| one.latency.is_none());
    let is_empty = row.text("latency_alone_p50_ns").is_empty();
    assert_eq!(is_empty, has_none, "{name}");
}

/// Compares a summary's figures, in nanoseconds, with those of the samples.
fn check_figures(name: &str, row: &Row, prefix: &str, mut samples: Vec<i64>) {
    samples.sort_unstable();
    let (Some(&min), Some(&max)) = (samples.first(), samples.last()) else {
        assert_eq!(row.text(&format!("{prefix}_p50_ns")), "", "{name}");
        return;
    };
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<i64>() as f64 / count;
    let squares = samples.iter().map(|&it| (it as f64 - mean).powi(2));
    let squares: f64 = squares.sum();
    // Hyndman and Fan's type 7.
    let percentile = |percent: f64| {
        let rank = (count - 1.0) * percent / 100.0;
        let (low, high) = (rank.floor() as usize, rank.ceil() as usize);
        samples[low] as f64 + (rank - rank.floor()) * (samples[high] - samples[low]) as f64
    };
    let figures = [
        ("min", min as f64),
        ("p10", percentile(10.0)),
        ("p50", percentile(50.0)),
        ("p90", percentile(90.0)),
        ("p95", percentile(95.0)),
        ("p99", percentile(99.0)),
        ("p999", percentile(99.9)),
        ("p9999", percentile(99.99)),
        ("max", max as f64),
        ("mean", mean),
    ];
    for (figure, ns) in figures {
        close(name, row, &format!("{prefix}_{figure}_ns"), ns, 0.0501);
    }
    let column = format!("{prefix}_stdev_ns");
    if samples.len() > 1 {
        let stdev = (squares / (count - 1.0)).sqrt();
        close(name, row, &column, stdev, 0.0501);
    } else {
        assert_eq!(row.text(&column), "", "{name}");
    }
}

fn close(name: &str, row: &Row, column: &str, expected: f64, tolerance: f64) {
    let apart = (row.decimal(column) - expected).abs();
    let is_close = apart <= tolerance;
    assert!(is_close, "{name}: {column} is not {expected}: {row:?}");
}
