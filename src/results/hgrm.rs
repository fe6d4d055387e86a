//! Distributions in HdrHistogram's percentile text, which its public plotter (`plotFiles.html`) reads.
//!
//! The layout is that of `AbstractHistogram.outputPercentileDistribution` in the Java implementation with five steps
//! per half distance: columns Value, Percentile (a fraction), TotalCount and 1/(1-Percentile), then three closing lines
//! in
//! `#[...]`. The last line's fourth column is `inf`, as in the C and Go implementations and in the plotter's own sample
//! file, so that every line has four; the plotter itself passes over that line.
//!
//! Values are nanoseconds. The format does not name its unit: choose "nanoseconds" in the plotter, whose preset is
//! milliseconds. Interval logs (`.hlog`), which HistogramLogAnalyzer reads,
//! are another format.
//!
//! Mean, standard deviation (divisor n - 1) and maximum are those of the samples themselves, and no value exceeds the
//! maximum, where the other implementations give a bucket's middle and end. Samples below zero have no place in the
//! format: a comment line says how many there were.

use std::io::{self, Write};
use std::path::Path;

use super::durable;
use super::error::ReportError;
use crate::stats::LatencyHistogram;

/// Steps in each halving of the distance to 100 %.
pub const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// Writes the distribution to `path` in nanoseconds, in one step and durable on return.
///
/// # Errors
/// [`ReportError`] when the file cannot be written; `path` is then as it was.
pub fn write(path: &Path, histogram: &LatencyHistogram) -> Result<(), ReportError> {
    write_scaled(path, histogram, 1000.0)
}

/// As [`write()`], for a histogram in another unit than the nanosecond, of which so many make a microsecond.
///
/// # Errors
/// [`ReportError`] when the file cannot be written; `path` is then as it was.
pub fn write_scaled(
    path: &Path,
    histogram: &LatencyHistogram,
    units_per_microsecond: f64,
) -> Result<(), ReportError> {
    durable::replace(path, |out| {
        write_to(out, histogram, units_per_microsecond / 1000.0)
            .map_err(|cause| ReportError::from_io("write", path, cause))
    })
}

/// Writes the distribution to `out` in nanoseconds with three decimals, where the histogram counts so many units in a
/// nanosecond.
///
/// # Errors
/// The errors of `out`.
pub fn write_to(
    out: &mut impl Write,
    histogram: &LatencyHistogram,
    units_per_nanosecond: f64,
) -> io::Result<()> {
    let scaled = |units: f64| units / units_per_nanosecond;
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    for point in histogram.percentiles(TICKS_PER_HALF_DISTANCE) {
        let (value, quantile) = (scaled(point.value_ns as f64), point.quantile);
        write!(out, "{value:>12.3} {quantile:.12} {:>10} ", point.count)?;
        if quantile < 1.0 {
            writeln!(out, "{:>14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(out, "{:>14}", "inf")?;
        }
    }
    // The format has a figure in each place, so that an empty distribution and a single sample have zeros.
    let mean = scaled(histogram.mean_ns().unwrap_or(0.0));
    let stdev = scaled(histogram.stdev_ns().unwrap_or(0.0));
    let max = scaled(histogram.max_ns().unwrap_or(0) as f64);
    writeln!(
        out,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]"
    )?;
    writeln!(
        out,
        "#[Max     = {max:>12.3}, Total count    = {:>12}]",
        histogram.count()
    )?;
    writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        histogram.ranges(),
        histogram.parts_of_a_range()
    )?;
    if histogram.negative() > 0 {
        writeln!(
            out,
            "# {} samples below zero are not in this distribution",
            histogram.negative()
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a reader of the format gets: the rows, and the closing figures by name.
    struct Parsed {
        rows: Vec<[f64; 4]>,
        closing: Vec<(String, f64)>,
    }

    /// Reads as the plotter does: lines not starting with `#` that fall into four numbers at runs of spaces.
    fn parse(text: &str) -> Parsed {
        let mut parsed = Parsed {
            rows: Vec::new(),
            closing: Vec::new(),
        };
        for line in text.lines().map(str::trim) {
            if let Some(figures) = line
                .strip_prefix("#[")
                .and_then(|rest| rest.strip_suffix(']'))
            {
                for figure in figures.split(',') {
                    let (name, value) = figure.split_once('=').unwrap();
                    parsed
                        .closing
                        .push((name.trim().to_owned(), value.trim().parse().unwrap()));
                }
            } else if !line.starts_with('#') && !line.starts_with("Value") && !line.is_empty() {
                let numbers: Vec<f64> = line
                    .split_whitespace()
                    .map(|cell| cell.parse().unwrap())
                    .collect();
                parsed.rows.push(numbers.try_into().expect("four columns"));
            }
        }
        parsed
    }

    fn text_of(samples: &[i64]) -> String {
        let mut out = Vec::new();
        write_to(&mut out, &LatencyHistogram::of(samples), 1.0).unwrap();
        String::from_utf8(out).unwrap()
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
        let parsed = parse(&text_of(&[]));
        assert!(parsed.rows.is_empty());
        assert_eq!(parsed.closing.len(), 6);
        let text = text_of(&[-5, -6, 10]);
        assert!(
            text.ends_with("# 2 samples below zero are not in this distribution\n"),
            "{text}"
        );
        assert_eq!(parse(&text).rows.last().unwrap()[..3], [10.0, 1.0, 1.0]);
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latency.hgrm");
        durable::tests::fill_the_disk_for(&path);
        let error = write(&path, &LatencyHistogram::of(&[1, 2, 3])).unwrap_err();
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");
        assert!(!path.exists());
        durable::tests::empty_the_disk();
        write(&path, &LatencyHistogram::of(&[1, 2, 3])).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text_of(&[1, 2, 3]));
    }

    proptest! {
        #[test]
        fn reads_back_as_the_exact_percentiles(samples in prop::collection::vec(0_i64..100_000_000, 1..2000)) {
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let parsed = parse(&text_of(&samples));
            for row in &parsed.rows {
                let [value_ns, quantile, count, inverse] = *row;
                // The smallest rank that reaches the level; its sample lies in the bucket shown. A level that falls on
                // a rank exactly may miss it by the last bit, and then shows the next.
                let rank_of = |level: f64| (level * sorted.len() as f64).ceil().max(1.0) as usize;
                let (rank, next) = (rank_of(quantile - 1e-9), rank_of(quantile + 1e-9).min(sorted.len()));
                let at_least_ns = sorted[rank - 1] as f64;
                let at_most_ns = sorted[next - 1] as f64 * 1.001 + 1.0;
                prop_assert!((at_least_ns..=at_most_ns).contains(&value_ns), "{:?}: {}", row, at_least_ns);
                prop_assert!(count as usize >= rank);
                if quantile < 1.0 {
                    prop_assert!((inverse * (1.0 - quantile) - 1.0).abs() < 0.01, "{:?}", row);
                }
            }
            prop_assert!(parsed.rows.is_sorted_by(|a, b| a[0] <= b[0] && a[1] < b[1] && a[2] <= b[2]));
            let last = parsed.rows.last().unwrap();
            let max_ns = *sorted.last().unwrap() as f64;
            prop_assert_eq!(last, &[max_ns, 1.0, sorted.len() as f64, f64::INFINITY]);
            let mean = sorted.iter().sum::<i64>() as f64 / sorted.len() as f64;
            prop_assert_eq!(&parsed.closing[0].0, "Mean");
            prop_assert!((parsed.closing[0].1 - mean).abs() < 0.0006);
            prop_assert_eq!(&parsed.closing[2], &("Max".to_owned(), max_ns));
            prop_assert_eq!(&parsed.closing[3], &("Total count".to_owned(), sorted.len() as f64));
        }
    }
}
