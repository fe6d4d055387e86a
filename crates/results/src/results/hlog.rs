//! Distributions by interval in HdrHistogram's log format (`.hlog`), which HistogramLogProcessor, HistogramLogAnalyzer
//! and the libraries of all its languages read.
//!
//! A file has the logs of a point's rounds one after another, each with its own head:
//!
//! ```text
//! #[Round: 0, 60 intervals of 1.000 s, 59998 samples, 0 below zero, 0 not kept]
//! #[Histogram log format version 1.3]
//! #Values are nanoseconds. Interval_Max is in milliseconds. Times are seconds since the Unix epoch.
//! #[StartTime: 1441812279.474 (seconds since epoch)]
//! "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//! #[MaxValueDivisor: 1000000.000]
//! 1441812279.474,1.000,0.084,HISTFAAAA...
//! ```
//!
//! Lines are without tags, so that programs which know no tags read all rounds. To other programs the first line is a
//! comment; by it a file that is damaged is recognised. `samples` are those in the intervals. Those below zero have no
//! place in the format; those that were not kept are known by their number alone.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use serde::{Deserialize, Serialize};

use super::durable::{self, cut_torn_line, folder_of, sync_folder};
use super::error::ReportError;
use crate::stats::TimedSamples;
use crate::stats::intervals::MOST_INTERVALS;

/// How the name of such a file ends.
pub const ENDING: &str = "hlog";

/// The names of the columns.
pub(super) const LEGEND: &str =
    r#""StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram""#;
const FORMAT: &str = "[Histogram log format version 1.3]";
const UNITS: &str = "Values are nanoseconds. Interval_Max is in milliseconds. Times are seconds since the Unix epoch.";
/// Nanoseconds in the unit of `Interval_Max`.
const MAX_UNIT: f64 = 1e6;

/// An upper estimate of the line of an interval, in bytes: of three significant digits few distributions have more than
/// some thousand buckets.
const BYTES_PER_INTERVAL: u64 = 8 << 10;

/// The log of a round, on its way to its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundLog {
    /// The name of the file.
    pub file: String,
    /// The lines to add to it.
    pub text: String,
}

/// What is the same for all logs of a round.
#[derive(Debug, Clone, Copy)]
pub struct LoggedRound {
    /// The round, from 0.
    pub number: u32,
    /// The length of an interval.
    pub interval: Duration,
    /// When the clock of the moments was at zero.
    pub zero: SystemTime,
}

/// The first line of a round's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoundHead {
    pub round: u32,
    pub intervals: u64,
    /// Of an interval that is not the last.
    pub length_ms: u64,
    pub samples: u64,
    pub negative: u64,
    pub not_kept: u64,
}

impl RoundHead {
    /// How a line with it begins.
    pub(super) const BEGINS: &str = "#[Round: ";

    /// The head that a line is, if it is one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let parts = line.strip_prefix(Self::BEGINS)?.strip_suffix(']')?;
        let mut parts = parts.split(", ");
        let round = parts.next()?.parse().ok()?;
        let (intervals, length) = parts.next()?.split_once(" intervals of ")?;
        let (seconds, millis) = length.strip_suffix(" s")?.split_once('.')?;
        let seconds: u64 = seconds.parse().ok()?;
        let millis: u64 = millis.parse().ok().filter(|_| millis.len() == 3)?;
        let mut count = |what: &str| parts.next()?.strip_suffix(what)?.parse().ok();
        let head = RoundHead {
            round,
            intervals: intervals.parse().ok()?,
            length_ms: seconds.checked_mul(1000)?.checked_add(millis)?,
            samples: count(" samples")?,
            negative: count(" below zero")?,
            not_kept: count(" not kept")?,
        };
        let is_all = parts.next().is_none() && head.negative.checked_add(head.not_kept).is_some();
        is_all.then_some(head)
    }
}

impl fmt::Display for RoundHead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.length_ms / 1000, self.length_ms % 1000);
        write!(
            formatter,
            "{}{}, {} intervals of {seconds}.{millis:03} s, {} samples, {} below zero, {} not kept]",
            Self::BEGINS,
            self.round,
            self.intervals,
            self.samples,
            self.negative,
            self.not_kept
        )
    }
}

/// The log beside a distribution: `latency.hlog` beside `latency.hgrm`.
pub fn beside(distribution: &str) -> String {
    let stem = distribution
        .rsplit_once('.')
        .map_or(distribution, |it| it.0);
    format!("{stem}.{ENDING}")
}

/// Bytes that the log of a round of that length takes, at the most.
pub fn most_bytes(run: Duration, interval: Duration) -> u64 {
    let intervals = run.as_nanos() / interval.as_nanos().max(1) + 1;
    let intervals = u64::try_from(intervals).unwrap_or(u64::MAX);
    intervals.min(MOST_INTERVALS) * BYTES_PER_INTERVAL
}

impl RoundLog {
    /// The log of samples; `None` without any. `not_kept`: how many more there were.
    pub fn of(
        file: String,
        mut samples: TimedSamples,
        not_kept: u64,
        round: &LoggedRound,
    ) -> Option<Self> {
        let divided = samples.divided(round.interval)?;
        let head = RoundHead {
            round: round.number,
            intervals: divided.count(),
            length_ms: divided.length_ns() / 1_000_000,
            samples: divided.samples(),
            negative: divided.negative(),
            not_kept,
        };
        let since_epoch = |moment_ns: u64| {
            let zero = round.zero.duration_since(SystemTime::UNIX_EPOCH);
            zero.unwrap_or_default() + Duration::from_nanos(moment_ns)
        };
        let mut text = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut intervals = divided.iter().peekable();
        let begun = intervals.peek().map_or(0, |first| first.begin_ns);
        let written = (|| {
            let mut head_lines = IntervalLogWriterBuilder::new();
            head_lines
                .add_comment(head.to_string().trim_start_matches('#'))
                .add_comment(FORMAT)
                .add_comment(UNITS)
                .with_start_time(SystemTime::UNIX_EPOCH + since_epoch(begun))
                .begin_log_with(&mut text, &mut serializer)?;
            writeln!(text, "{LEGEND}")?;
            let mut lines = IntervalLogWriterBuilder::new()
                .with_max_value_divisor(MAX_UNIT)
                .begin_log_with(&mut text, &mut serializer)?;
            for interval in intervals {
                let (begin, length) = (interval.begin_ns, Duration::from_nanos(interval.length_ns));
                let buckets = interval.histogram.as_buckets();
                lines
                    .write_histogram(buckets, since_epoch(begin), length, None)
                    .map_err(|cause| io::Error::other(cause.to_string()))?;
            }
            Ok::<(), io::Error>(())
        })();
        written.expect("memory takes it, and counts of samples fit into an i64");
        let text = String::from_utf8(text).expect("it is ASCII");
        Some(RoundLog { file, text })
    }
}

/// Adds the log of a round to a file; durable on return. What a killed process has left of a line is cut off.
pub fn append(path: &Path, log: &str) -> Result<(), ReportError> {
    let failed = ReportError::on("write to", path);
    let mut file = match durable::create_new(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            let mut file = durable::open_to_go_on(path).map_err(failed)?;
            cut_torn_line(&mut file).map_err(failed)?;
            file
        }
        made => made.map_err(ReportError::on("create", path))?,
    };
    let written = file.write_all(log.as_bytes());
    written.and_then(|()| file.sync_all()).map_err(failed)?;
    sync_folder(folder_of(path))
}

/// Rewrites a file without the logs of rounds for which `keep` returns false, in one step. A file without any left is
/// removed; one that is not there is left so.
pub fn keep_rounds(path: &Path, mut keep: impl FnMut(u32) -> bool) -> Result<(), ReportError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let failed = ReportError::on("rewrite", path);
    let mut file = durable::open_to_go_on(path).map_err(failed)?;
    cut_torn_line(&mut file).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let mut any = false;
    durable::replace_with(path, |out| {
        let mut copy = |file: File| -> io::Result<()> {
            let mut is_kept = false;
            for line in BufReader::new(file).lines() {
                let line = line?;
                if let Some(head) = RoundHead::parse(&line) {
                    is_kept = keep(head.round);
                    any |= is_kept;
                } else if line.starts_with(RoundHead::BEGINS) {
                    let reason =
                        format!("{line:?} is not the first line of a round; remove the file");
                    return Err(io::Error::other(reason));
                }
                if is_kept {
                    writeln!(out, "{line}")?;
                }
            }
            Ok(())
        };
        copy(file).map_err(failed)
    })?;
    match any {
        true => Ok(()),
        false => std::fs::remove_file(path).map_err(ReportError::on("remove", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_round_says_what_follows() {
        let head = RoundHead {
            round: 3,
            intervals: 61,
            length_ms: 1050,
            samples: 59_998,
            negative: 2,
            not_kept: 7,
        };
        let line = head.to_string();
        let expected =
            "#[Round: 3, 61 intervals of 1.050 s, 59998 samples, 2 below zero, 7 not kept]";
        assert_eq!(line, expected);
        assert_eq!(RoundHead::parse(&line), Some(head));
        for (from, to) in [
            ("Round", "round"),
            (": 3", ": three"),
            ("1.050", "1.05"),
            (" not kept", ""),
            ("]", ""),
            ("]", ", 5]"),
        ] {
            assert_eq!(RoundHead::parse(&line.replace(from, to)), None, "{to:?}");
        }
    }

    #[test]
    fn a_log_has_the_name_of_the_distribution_beside_it() {
        assert_eq!(beside("latency.hgrm"), "latency.hlog");
        assert_eq!(
            most_bytes(Duration::from_secs(9), Duration::from_secs(2)),
            5 * BYTES_PER_INTERVAL
        );
        let days = Duration::from_secs(1_000_000);
        assert_eq!(
            most_bytes(days, Duration::from_secs(1)),
            MOST_INTERVALS * BYTES_PER_INTERVAL
        );
    }
}
