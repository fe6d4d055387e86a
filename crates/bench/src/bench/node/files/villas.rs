//! Rows as lines of `villas.human`, the text format of VILLASnode (1.2.0, `lib/formats/villas_human.cpp`).
//!
//! A line begins with `SECONDS.NANOSECONDS+OFFSET(SEQUENCE)`: when a sample was made, how long after it that was
//! received, and its number. Offset and number may be absent. Signals follow, each after a tab: here the numbers of
//! round, publisher and subscriber, and what else our own rows tell. The values of a sample are the last signals of what
//! was sent.

use std::fmt::Write as _;

use serde::Serialize;

use super::{InRow, OutRow};

/// What is between signals.
pub(super) const BETWEEN: char = '\t';
const SECOND: u64 = 1_000_000_000;

/// A step that was made.
#[derive(Debug, Serialize)]
pub(super) struct InLine {
    #[serde(rename = "# seconds.nanoseconds+offset(sequence)")]
    time: String,
    round: u32,
    publisher: u32,
    step: u64,
    t_intended_ns: u64,
    /// Each a signal.
    values: String,
}

/// A sample that has come.
#[derive(Debug, Serialize)]
pub(super) struct OutLine {
    #[serde(rename = "# seconds.nanoseconds+offset(sequence)")]
    time: String,
    round: u32,
    subscriber: u32,
    publisher: u32,
    intact: u8,
}

/// VILLASnode writes seven digits of an offset, and reads as many as there are: here it is exact.
fn time(origin_ns: u64, offset_ns: Option<i64>, sequence: Option<u64>) -> String {
    let parts = |ns: u64| (ns / SECOND, ns % SECOND);
    let (seconds, nanoseconds) = parts(origin_ns);
    let mut text = format!("{seconds}.{nanoseconds:09}");
    if let Some(offset) = offset_ns {
        let sign = if offset < 0 { '-' } else { '+' };
        let (seconds, nanoseconds) = parts(offset.unsigned_abs());
        // Writing to a text does not fail.
        let _ = write!(text, "{sign}{seconds}.{nanoseconds:09}");
    }
    if let Some(sequence) = sequence {
        let _ = write!(text, "({sequence})");
    }
    text
}

impl From<InRow> for InLine {
    fn from(row: InRow) -> Self {
        InLine {
            time: time(row.t_sent_ns, None, row.seq),
            round: row.round,
            publisher: row.publisher,
            step: row.step,
            t_intended_ns: row.t_intended_ns,
            values: row.values,
        }
    }
}

impl From<OutRow> for OutLine {
    /// What was never sent may have no number.
    fn from(row: OutRow) -> Self {
        OutLine {
            time: time(row.t_sent_ns, Some(row.latency_ns), row.seq.try_into().ok()),
            round: row.round,
            subscriber: row.subscriber,
            publisher: row.publisher,
            intact: row.intact.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_nanoseconds_with_a_sign_and_a_number() {
        let origin = 1_700_000_000_000_000_042;
        assert_eq!(time(origin, None, None), "1700000000.000000042");
        let expected = "1700000000.000000042+0.000012345(7)";
        assert_eq!(time(origin, Some(12_345), Some(7)), expected);
        let expected = "0.000000005-2.000000001";
        assert_eq!(time(5, Some(-2_000_000_001), None), expected);
    }
}
