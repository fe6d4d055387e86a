//! The values of the options of `hcabench clock`, from text.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::bench::clock::config::Report;
use crate::bench::clock::limit::Limit;
use crate::host::cpu_set::{CpuListError, CpuSet};
use crate::time::{Nanos, ReadingKind};

/// Reports, and whether all of them were asked for by one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reports {
    /// Which.
    pub reports: BTreeSet<Report>,
    /// Whether by the word `all`.
    pub all: bool,
}

/// Limits, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits(pub Vec<Limit>);

/// A way of reading a clock.
pub fn clock(text: &str) -> Result<ReadingKind, String> {
    let found = ReadingKind::ALL
        .into_iter()
        .find(|kind| kind.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let names: Vec<_> = ReadingKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("{text:?} is not one of {}", names.join(", "))
    })
}

/// A list of reports, or `all`.
pub fn reports(text: &str) -> Result<Reports, String> {
    if text.eq_ignore_ascii_case("all") {
        return Ok(Reports {
            reports: Report::ALL.into(),
            all: true,
        });
    }
    let one = |part: &str| {
        let found = Report::ALL
            .into_iter()
            .find(|report| report.name().eq_ignore_ascii_case(part.trim()));
        found.ok_or_else(|| {
            let names: Vec<_> = Report::ALL.iter().map(|report| report.name()).collect();
            format!("{part:?} is not one of {}, all", names.join(", "))
        })
    };
    Ok(Reports {
        reports: text.split(',').map(one).collect::<Result<_, _>>()?,
        all: false,
    })
}

/// A number from 1 up, as `1000`, `1_000`, `100k`, `100M`, `1G`.
pub fn count(text: &str) -> Result<u64, String> {
    let bad = || {
        format!(
            "{text:?} is not a number from 1 up to 9e18; k, M and G may stand behind it, as in 100M"
        )
    };
    let digits = text.replace('_', "");
    let (digits, unit) = match digits.as_bytes().last() {
        Some(b'k') => (&digits[..digits.len() - 1], 1_000),
        Some(b'M') => (&digits[..digits.len() - 1], 1_000_000),
        Some(b'G') => (&digits[..digits.len() - 1], 1_000_000_000),
        _ => (&digits[..], 1),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(bad());
    }
    let number = digits
        .parse::<u64>()
        .ok()
        .and_then(|it| it.checked_mul(unit));
    number
        .filter(|number| (1..=9_000_000_000_000_000_000).contains(number))
        .ok_or_else(bad)
}

/// A number of jumps that memory can be had for.
pub fn kept(text: &str) -> Result<usize, String> {
    let number = count(text)
        .ok()
        .and_then(|number| usize::try_from(number).ok());
    number
        .filter(|number| (2..=100_000_000).contains(number))
        .ok_or_else(|| format!("{text:?} is not a number from 2 to 100M"))
}

/// A length of time: at least a nanosecond, at most a day.
pub fn length(text: &str) -> Result<Nanos, String> {
    let length = humantime::parse_duration(text).map_err(|_| {
        format!("{text:?} is not a time: a number with ns, us, ms, s, min or h, such as 50us")
    })?;
    if (Duration::from_nanos(1)..=Duration::from_secs(86_400)).contains(&length) {
        Ok(Nanos::from(length))
    } else {
        Err(format!("{text:?} is not between 1ns and a day"))
    }
}

/// A list of CPUs that is not empty.
pub fn cpus(text: &str) -> Result<CpuSet, String> {
    let set: CpuSet = text
        .parse()
        .map_err(|error: CpuListError| error.to_string())?;
    if set.is_empty() {
        return Err("no CPU is named; write for example 0-3,8".to_owned());
    }
    Ok(set)
}

/// Limits: `50us`, `50us,2us@p99.99`.
pub fn limits(text: &str) -> Result<Limits, String> {
    let one = |part: &str| -> Result<Limit, String> {
        let (length_text, percent) = match part.trim().split_once('@') {
            None => (part.trim(), None),
            Some((length, percentile)) => {
                let number = percentile
                    .strip_prefix('p')
                    .and_then(|digits| digits.parse::<f64>().ok())
                    .filter(|percent| *percent > 0.0 && *percent <= 100.0);
                let number = number.ok_or_else(|| {
                    format!("{percentile:?} is not a percentile: p with a number above 0 and up to 100, as in p99.99")
                })?;
                (length, Some(number))
            }
        };
        Ok(Limit {
            length: length(length_text)?,
            percent,
        })
    };
    text.split(',')
        .map(one)
        .collect::<Result<_, _>>()
        .map(Limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_units() {
        for (text, number) in [
            ("1", 1),
            ("1_000", 1000),
            ("100M", 100_000_000),
            ("2G", 2_000_000_000),
            ("3k", 3000),
        ] {
            assert_eq!(count(text), Ok(number));
        }
        for bad in ["0", "", "k", "-1", "1.5", "1m", "99999999999G", "M1", "+5"] {
            assert!(count(bad).is_err(), "{bad}");
        }
        assert!(kept("1").is_err() && kept("101M").is_err());
    }

    #[test]
    fn limits_are_for_the_maximum_or_a_percentile() {
        let limits = limits("50us, 2us@p99.99").unwrap().0;
        assert_eq!(
            limits,
            [
                Limit {
                    length: Nanos(50_000),
                    percent: None
                },
                Limit {
                    length: Nanos(2_000),
                    percent: Some(99.99)
                }
            ]
        );
        assert_eq!(limits[0].describe(), "50us");
        assert_eq!(limits[1].describe(), "2us@p99.99");
        for bad in [
            "50",
            "",
            "50us@99",
            "50us@p0",
            "50us@p101",
            "50us@pNaN",
            "@p99",
            "50us,",
        ] {
            assert!(super::limits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn reports_are_a_list_or_all() {
        assert!(reports("all").unwrap().all);
        let some = reports("highest,percentiles").unwrap();
        assert_eq!(some.reports, [Report::Percentiles, Report::Highest].into());
        assert!(!some.all && reports("all,highest").is_err() && reports("").is_err());
    }
}
