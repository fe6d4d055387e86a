//! Distributions in HdrHistogram's percentile text, which its public plotter (`plotFiles.html`) reads.
//!
//! The layout is that of `AbstractHistogram.outputPercentileDistribution` in the Java implementation with five steps
//! per half distance: columns Value, Percentile (a fraction), TotalCount and 1/(1-Percentile), then three closing lines
//! in `#[...]`. The last line's fourth column is `inf`, as in the C and Go implementations and in the plotter's own
//! sample file, so that every line has four; the plotter itself passes over that line.
//!
//! Values are nanoseconds. The format does not name its unit: choose "nanoseconds" in the plotter, whose preset is
//! milliseconds. Interval logs ([`hlog`](super::hlog)) are another format.
//!
//! Mean, standard deviation (divisor n - 1) and maximum are those of the samples themselves, and no value exceeds the
//! maximum, where the other implementations give a bucket's middle and end. Samples below zero have no place in the
//! format: a comment line has their number.

use std::io::{self, Write};
use std::path::Path;

use super::durable;
use super::error::ReportError;
use crate::stats::LatencyHistogram;

/// Steps in each halving of the distance to 100 %.
pub const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// Writes the distribution to `path` in nanoseconds, in one step and durable on return.
pub fn write(path: &Path, histogram: &LatencyHistogram) -> Result<(), ReportError> {
    durable::replace(path, |out| write_to(out, histogram))
}

/// Writes the distribution to `out` in nanoseconds with three decimals.
fn write_to(out: &mut impl Write, histogram: &LatencyHistogram) -> io::Result<()> {
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    for point in histogram.percentiles(TICKS_PER_HALF_DISTANCE) {
        let (value, quantile) = (point.value_ns as f64, point.quantile);
        write!(out, "{value:>12.3} {quantile:.12} {:>10} ", point.count)?;
        if quantile < 1.0 {
            writeln!(out, "{:>14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(out, "{:>14}", "inf")?;
        }
    }
    // The format has a figure in each place, so that an empty distribution and a single sample have zeros.
    let mean = histogram.mean_ns().unwrap_or(0.0);
    let stdev = histogram.stdev_ns().unwrap_or(0.0);
    let max = histogram.max_ns().unwrap_or(0) as f64;
    let (total, ranges) = (histogram.count(), histogram.ranges());
    let parts = histogram.parts_of_a_range();
    writeln!(
        out,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]\n\
         #[Max     = {max:>12.3}, Total count    = {total:>12}]\n\
         #[Buckets = {ranges:>12}, SubBuckets     = {parts:>12}]"
    )?;
    if histogram.negative() > 0 {
        let negative = histogram.negative();
        writeln!(
            out,
            "# {negative} samples below zero are not in this distribution"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::read::Hgrm;
    use crate::testing::Has as _;
    use proptest::prelude::*;

    fn text_of(samples: &[i64]) -> String {
        let mut out = Vec::new();
        write_to(&mut out, &LatencyHistogram::of(samples)).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn parse(text: &str) -> Hgrm {
        Hgrm::of(Path::new("latency.hgrm"), text).unwrap()
    }

    #[test]
    fn the_layout_to_the_letter() {
        let expected = "       Value     Percentile TotalCount 1/(1-Percentile)

       1.000 0.000000000000          1           1.00
       1.000 0.100000000000          1           1.11
       1.000 0.200000000000          1           1.25
       1.000 0.300000000000          1           1.43
       1.000 0.400000000000          1           1.67
       1.000 0.500000000000          1           2.00
       2.000 0.550000000000          2           2.22
       2.000 1.000000000000          2            inf
#[Mean    =        1.500, StdDeviation   =        0.707]
#[Max     =        2.000, Total count    =            2]
#[Buckets =            1, SubBuckets     =         2048]
";
        assert_eq!(text_of(&[2, 1]), expected);
    }

    #[test]
    fn empty_and_negative() {
        let empty = parse(&text_of(&[]));
        assert!(empty.lines.is_empty() && empty.total == 0);
        let text = text_of(&[-5, -6, 10]);
        text.ends("# 2 samples below zero are not in this distribution\n");
        assert_eq!(parse(&text).total, 1);
    }

    proptest! {
        #[test]
        fn reads_back_as_the_exact_percentiles(samples in prop::collection::vec(0_i64..100_000_000, 1..2000)) {
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let parsed = parse(&text_of(&samples));
            for line in &parsed.lines {
                // A level that falls on a rank exactly may miss it by the last bit, and then shows the next.
                let rank_of = |level: f64| (level * sorted.len() as f64).ceil().max(1.0) as usize;
                let rank = rank_of(line.quantile - 1e-9);
                let next = rank_of(line.quantile + 1e-9).min(sorted.len());
                let at_least_ns = sorted[rank - 1] as f64;
                let at_most_ns = sorted[next - 1] as f64 * 1.001 + 1.0;
                prop_assert!((at_least_ns..=at_most_ns).contains(&line.value), "{:?}: {}", line, at_least_ns);
                prop_assert!(line.count as usize >= rank);
            }
            let last = parsed.lines.last().unwrap();
            let max_ns = *sorted.last().unwrap() as f64;
            prop_assert_eq!((last.value, last.quantile, last.count), (max_ns, 1.0, sorted.len() as u64));
            prop_assert_eq!(parsed.total, sorted.len() as u64);
        }
    }
}
