//! Distributions by interval, as [`results::hlog`](crate::results::hlog) writes them.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use crate::results::durable::open_regular;
use crate::results::hlog::{LEGEND, RoundHead};
use crate::results::read_error::{ReadError, ReadErrorKind};
use crate::stats::histogram::SIGNIFICANT_DIGITS;

/// The longest line: no histogram of three digits takes more.
const LONGEST_LINE: u64 = 2 << 20;
/// The most bytes of a histogram that is not compressed.
const MOST_BYTES: usize = 1 << 20;
/// What a compressed histogram begins with, before the data: a mark of the format, and the length.
const COMPRESSED: (u32, usize) = (0x1c84_9314, 8);
/// The head of a histogram that is not compressed: in it the length of what follows, and the digits.
const HEAD: usize = 40;

/// An interval of a round.
#[derive(Debug, Clone)]
pub struct LoggedInterval {
    /// The round, from 0.
    pub round: u32,
    /// When it began, in milliseconds since its round did.
    pub begin_ms: u64,
    pub length_ms: u64,
    /// Samples of its round that no interval has: below zero, or not kept.
    pub left_out: u64,
    buckets: Histogram<u64>,
}

impl LoggedInterval {
    /// The number of its samples.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The value up to which this many percent of its samples are, to three significant digits, in nanoseconds; `None`
    /// without samples.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        (!self.buckets.is_empty()).then(|| self.buckets.value_at_quantile(percent / 100.0))
    }

    /// The largest sample, to three significant digits, in nanoseconds; `None` without samples.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.buckets.is_empty()).then(|| self.buckets.max())
    }
}

/// What was found of the round that is being read.
struct RoundSoFar {
    head: RoundHead,
    /// The line of its head.
    line: u64,
    intervals: u64,
    samples: u64,
    /// When its first interval began, and its last one so far, in milliseconds since the Unix epoch.
    begun_ms: Option<[u64; 2]>,
}

/// Reads the intervals of a log, one at a time. `may_be_cut`: its run was interrupted, and the log may end with a round
/// that is not whole.
///
/// # Errors
/// Where it is damaged: the intervals before that were taken.
pub fn each_interval(
    path: &Path,
    may_be_cut: bool,
    mut take: impl FnMut(&LoggedInterval),
) -> Result<(), ReadError> {
    let why = "percentiles over time are drawn from it; name a folder that has it";
    let file = open_regular(path).map_err(|cause| ReadError::opening(path, cause, why))?;
    let mut file = BufReader::new(file);
    let beginning = file.fill_buf();
    let beginning = beginning.map_err(|cause| ReadError::io(path, cause))?;
    if let Some(wrong) = ReadErrorKind::of_beginning(beginning) {
        return Err(wrong.at(path));
    }
    let mut round: Option<RoundSoFar> = None;
    let mut decoder = Deserializer::new();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let read = file
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut bytes);
        if read.map_err(|cause| ReadError::io(path, cause))? == 0 {
            let cut = |reason: String| ReadError::truncated(path, number - 1, reason);
            return match round {
                None if may_be_cut => Ok(()),
                None => Err(cut("it is empty".to_owned())),
                Some(_) if may_be_cut => Ok(()),
                Some(round) => round.check().map_err(cut),
            };
        }
        let foreign = |reason: &str| ReadError::foreign(path, number, reason);
        let text = str::from_utf8(&bytes).map_err(|_| foreign("it is not text"))?;
        let Some(line) = text.strip_suffix('\n') else {
            return match (bytes.len() as u64 == LONGEST_LINE, may_be_cut) {
                (true, _) => Err(foreign("it is longer than 2 MiB")),
                (false, true) => Ok(()),
                (false, false) => Err(ReadError::truncated(path, number, "the line is not whole")),
            };
        };
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.starts_with(RoundHead::BEGINS) {
            let head = RoundHead::parse(line);
            let head = head.ok_or_else(|| foreign("it is not the head of a round"))?;
            if let Some(before) = round {
                let (at, wrong) = (before.line, before.check());
                wrong.map_err(|reason| ReadError::foreign(path, at, reason))?;
            }
            round = Some(RoundSoFar {
                head,
                line: number,
                intervals: 0,
                samples: 0,
                begun_ms: None,
            });
            continue;
        }
        let Some(round) = &mut round else {
            return Err(foreign("no round begins before it"));
        };
        if line.starts_with('#') || line == LEGEND {
            continue;
        }
        let interval = round.interval(line, &mut decoder).map_err(foreign)?;
        take(&interval);
    }
    Ok(())
}

impl RoundSoFar {
    /// Whether all is there that its head counts.
    fn check(&self) -> Result<(), String> {
        let RoundHead {
            round,
            intervals,
            samples,
            ..
        } = self.head;
        if self.intervals != intervals {
            let found = self.intervals;
            return Err(format!("{found} of {intervals} intervals of round {round}"));
        }
        if self.samples != samples {
            let found = self.samples;
            return Err(format!(
                "the intervals of round {round} have {found} samples, and its head has {samples}"
            ));
        }
        Ok(())
    }

    /// The interval of a line.
    fn interval(
        &mut self,
        line: &str,
        decoder: &mut Deserializer,
    ) -> Result<LoggedInterval, &'static str> {
        let cells: Vec<&str> = line.split(',').collect();
        let [begin, length, max, histogram] = cells[..] else {
            return Err("it is not a time, a length, a maximum and a histogram");
        };
        let millis = |text: &str| {
            let seconds: f64 = text.parse().ok()?;
            let is_time = seconds.is_finite() && (0.0..1e13).contains(&seconds);
            is_time.then(|| (seconds * 1e3).round() as u64)
        };
        let begin = millis(begin).ok_or("its time is not one in seconds")?;
        let length_ms = millis(length).ok_or("its length is not one in seconds")?;
        max.parse::<f64>()
            .map_err(|_| "its maximum is not a number")?;
        let buckets = decoded(histogram, decoder).ok_or("its histogram cannot be decoded")?;
        let first = match self.begun_ms {
            None => begin,
            Some([first, _]) if begin < first => return Err("it begins before its round"),
            Some([_, last]) if begin <= last => {
                return Err("it does not begin behind the interval before it");
            }
            Some([first, _]) => first,
        };
        self.begun_ms = Some([first, begin]);
        self.intervals += 1;
        let samples = self.samples.checked_add(buckets.len());
        self.samples = samples.ok_or("its counts are beyond all that can be counted")?;
        Ok(LoggedInterval {
            round: self.head.round,
            begin_ms: begin - first,
            length_ms,
            left_out: self.head.negative + self.head.not_kept,
            buckets,
        })
    }
}

/// A histogram of the format V2, compressed and in base64. It is unpacked here: a length that is damaged must not take
/// memory.
fn decoded(text: &str, decoder: &mut Deserializer) -> Option<Histogram<u64>> {
    let packed = STANDARD.decode(text).ok()?;
    let (mark, length) = (word(&packed, 0)?, word(&packed, 4)? as usize);
    let (expected, begin) = COMPRESSED;
    if mark != expected || packed.len() != begin + length {
        return None;
    }
    let bytes = decompress_to_vec_zlib_with_limit(&packed[begin..], MOST_BYTES).ok()?;
    let (length, digits) = (word(&bytes, 4)? as usize, word(&bytes, 12)?);
    if bytes.len() != HEAD + length || digits != u32::from(SIGNIFICANT_DIGITS) {
        return None;
    }
    decoder.deserialize(&mut bytes.as_slice()).ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests;
