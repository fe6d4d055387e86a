//! The jumps of a clock: how often it jumps, for what share of the time, by what cause, and how long the jumps are.
//!
//! Rates and shares are means over slices of the time of a watch; lengths are samples in the order of the jumps. Of two
//! runs only jumps longer than the larger of both thresholds count.
//!
//! Left out: percentiles of all differences, of which the results have no order that would tell their spread; the
//! extremes.

use super::figures::{Figure, Kind, Side, Unit};
use super::matching::Pair;
use crate::results::read::{Cells, Point, ReadError};
use crate::stats::{Resampling, Series};

/// The file of the jumps.
const JUMPS: &str = "jumps.csv";
/// What begins the columns of the figures.
const COLUMN: &str = "jump_ns";
/// The time of a watch is parted into so many slices.
const SLICES: usize = 640;
/// A cause is compared by itself where either run has so many jumps of it.
const LEAST_OF_CAUSE: u64 = 10;
/// And if it is among so many, by the time that they took: each figure more makes all intervals wider.
const MOST_CAUSES: usize = 6;

/// The figures that all clocks have.
pub fn figures(percentiles: &[f64]) -> Vec<Figure> {
    let lengths = percentiles
        .iter()
        .map(|&percent| ("jump length", Kind::Percentile(percent), Unit::Nanoseconds));
    [
        ("clock", Kind::JumpTime, Unit::Percent),
        ("clock", Kind::Jumps, Unit::PerSecond),
    ]
    .into_iter()
    .chain(lengths)
    .map(|(of, kind, unit)| Figure::new(of, kind, unit, COLUMN))
    .collect()
}

/// The figures of single causes that a pair has.
pub fn by_cause(pair: &Pair<'_>) -> Vec<Figure> {
    // Cause, the most jumps of either run, the time in both.
    let mut causes: Vec<(String, u64, u64)> = Vec::new();
    for point in [pair.base, pair.new] {
        let told = of_cpu(point).and_then(|cpu| cpu["causes"].as_array());
        for row in told.into_iter().flatten() {
            let number = |name: &str| row[name].as_u64().unwrap_or(0);
            let Some(cause) = row["cause"].as_str() else {
                continue;
            };
            match causes.iter_mut().find(|(known, ..)| known == cause) {
                Some((_, count, total)) => {
                    *count = number("count").max(*count);
                    *total += number("total_ns");
                }
                None => causes.push((cause.to_owned(), number("count"), number("total_ns"))),
            }
        }
    }
    causes.retain(|&(_, count, _)| count >= LEAST_OF_CAUSE);
    causes.sort_by_key(|&(_, _, total)| std::cmp::Reverse(total));
    causes.truncate(MOST_CAUSES);
    causes
        .into_iter()
        .flat_map(|(cause, ..)| {
            [
                (Kind::JumpTime, Unit::Percent),
                (Kind::Jumps, Unit::PerSecond),
            ]
            .map(|(kind, unit)| Figure::new("clock", kind, unit, COLUMN).by(&cause))
        })
        .collect()
}

/// Which jumps of either point are told of by both: those longer than this.
pub fn told_above_ns(pair: &Pair<'_>) -> f64 {
    [pair.base, pair.new]
        .iter()
        .flat_map(|point| {
            let row = point.row.as_ref();
            let threshold = row.and_then(|row| row.number("threshold_ns"));
            let told = of_cpu(point);
            let kept =
                told.and_then(|cpu| cpu["jumps_longer_than_this_are_in_the_file_ns"].as_f64());
            [threshold, kept]
        })
        .flatten()
        .fold(0.0, f64::max)
}

/// What `settings.json` tells of a CPU.
fn of_cpu(point: &Point) -> Option<&serde_json::Value> {
    let cpu: u64 = point.setting("cpu")?.parse().ok()?;
    let cpus = point.document.pointer("/result/cpus")?.as_array()?;
    cpus.iter()
        .find(|one| one["summary"]["cpu"].as_u64() == Some(cpu))
}

/// A jump.
#[derive(Debug, Clone, Copy)]
struct Jump {
    begin_ns: i64,
    /// Negative for a step backwards.
    length_ns: i64,
    /// Its place in [`Jumps::causes`].
    cause: usize,
}

/// The jumps of some CPUs of a run.
#[derive(Debug, Default)]
pub struct Jumps {
    causes: Vec<String>,
    /// By name of the point.
    points: Vec<(String, Vec<Jump>)>,
}

impl Jumps {
    /// Reads the file of a run, once for all of these points.
    ///
    /// # Errors
    /// [`ReadError`]. Without the file a point that is incomplete has no jumps that are known.
    pub fn read(points: &[&Point]) -> Result<Self, ReadError> {
        let mut found = Jumps::default();
        if points.is_empty() {
            return Ok(found);
        }
        let columns = ["t_ns", "jump_ns", "cause"];
        let mut jumps = Vec::new();
        for point in points {
            let mut own = Vec::new();
            let take = |cells: Cells<'_>| {
                let text = cells.text(2);
                let known = found.causes.iter().position(|cause| *cause == text);
                let cause = known.unwrap_or_else(|| {
                    found.causes.push(text.into_owned());
                    found.causes.len() - 1
                });
                if let (Some(begin_ns), Some(length_ns)) = (cells.integer(0)?, cells.integer(1)?) {
                    own.push(Jump {
                        begin_ns,
                        length_ns,
                        cause,
                    });
                }
                Ok(())
            };
            match point.rows(JUMPS).and_then(|file| file.each(&columns, take)) {
                Err(ReadError::MissingFile { .. }) if point.incomplete.is_some() => {}
                read => drop(read?),
            }
            jumps.push(own);
        }
        let names = points.iter().map(|point| point.name.clone());
        found.points = names.zip(jumps).collect();
        for (_, jumps) in &mut found.points {
            jumps.sort_by_key(|jump| jump.begin_ns);
        }
        Ok(found)
    }

    /// The figures of a point, of its jumps longer than `above_ns`.
    pub fn sides(
        &self,
        point: &Point,
        above_ns: f64,
        figures: &[Figure],
        resampling: Resampling,
    ) -> Vec<Side> {
        let missing = |reason: &str| vec![Side::missing(reason); figures.len()];
        let Some((_, jumps)) = self.points.iter().find(|(name, _)| *name == point.name) else {
            return missing("nothing was written");
        };
        let elapsed = point.row.as_ref().and_then(|row| row.number("elapsed_ns"));
        let Some(elapsed) = elapsed.filter(|elapsed| *elapsed > 0.0) else {
            return missing("its length is not told");
        };
        let counted = |figure: &Figure| {
            let cause = figure.cause.as_deref();
            let is_counted = |jump: &&Jump| {
                let of_cause = cause.is_none_or(|cause| self.causes[jump.cause] == cause);
                of_cause && jump.length_ns as f64 > above_ns
            };
            jumps
                .iter()
                .filter(is_counted)
                .copied()
                .collect::<Vec<Jump>>()
        };
        let of = |figure: &Figure| {
            if let Kind::Percentile(percent) = figure.kind {
                let lengths: Vec<f64> = counted(figure)
                    .iter()
                    .map(|jump| jump.length_ns as f64)
                    .collect();
                let all = lengths.len();
                let series = Series::new(lengths, vec![all]);
                return Side::new(
                    series.value_at(percent),
                    series.percentile(percent, resampling),
                );
            }
            let slice_ns = elapsed / SLICES as f64;
            let mut slices = vec![0.0; SLICES];
            for jump in counted(figure) {
                let slice = ((jump.begin_ns as f64 / slice_ns) as usize).min(SLICES - 1);
                slices[slice] += match figure.kind {
                    Kind::JumpTime => jump.length_ns as f64 / slice_ns * 100.0,
                    _ => 1e9 / slice_ns,
                };
            }
            let mean = slices.iter().sum::<f64>() / SLICES as f64;
            let series = Series::new(slices, vec![SLICES]);
            Side::new(Some(mean), series.mean(resampling))
        };
        figures.iter().map(of).collect()
    }
}
