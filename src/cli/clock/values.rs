//! The values of the options of `hcabench clock`, from text.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::arguments::values::{list_of_ranges, one, time};
use crate::bench::clock::config::Report;
use crate::host::cpu_set::CpuSet;
use crate::sorting::distinct;
use crate::time::Nanos;

/// A list of reports; `all` is those of jumps.
pub(crate) fn reports(text: &str) -> Result<BTreeSet<Report>, String> {
    let of_jumps = || {
        Report::ALL
            .iter()
            .copied()
            .filter(|it| *it != Report::Wakeup)
    };
    let reports = list_of_ranges(text, |part| {
        if part.eq_ignore_ascii_case("all") {
            return Ok(of_jumps().collect());
        }
        Ok(vec![one(part).map_err(|error| format!("{error}, all"))?])
    })?;
    Ok(distinct(reports.0))
}

/// The time between two wake-ups.
pub(crate) fn interval(text: &str) -> Result<Nanos, String> {
    let allowed = Duration::from_micros(10)..=Duration::from_secs(10);
    time(text, allowed).map(Nanos::from)
}

/// A number from 1 up, as `1000`, `1_000`, `100k`, `100M`, `1G`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let units = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
    let with_unit = units
        .iter()
        .find_map(|(unit, by)| Some((plain.strip_suffix(unit)?, *by)));
    let (digits, unit) = with_unit.unwrap_or((&plain, 1));
    let number: Option<u64> = digits.parse().ok().filter(|_| !digits.starts_with('+'));
    number
        .and_then(|number| number.checked_mul(unit))
        .filter(|number| (1..=9_000_000_000_000_000_000).contains(number))
        .ok_or_else(|| {
            format!("{text:?} is not a number from 1 to 9e18, with k, M or G as in 100M")
        })
}

/// A number of jumps that fits into memory.
pub(crate) fn kept(text: &str) -> Result<usize, String> {
    let number = count(text).ok();
    let number = number.filter(|number| (2..=100_000_000).contains(number));
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("{text:?} is not a number from 2 to 100M"))
}

/// A list of CPUs that is not empty.
pub(crate) fn cpus(text: &str) -> Result<CpuSet, String> {
    let set = text.parse::<CpuSet>();
    let set = set.map_err(|error| error.to_string())?;
    if set.is_empty() {
        return Err("no CPU is named; write for example 0-3,8".to_owned());
    }
    Ok(set)
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
    fn reports_are_a_list_or_all() {
        assert_eq!(reports("all").unwrap().len(), Report::ALL.len() - 1);
        assert_eq!(reports("all,wakeup").unwrap().len(), Report::ALL.len());
        let some = reports("highest,percentiles").unwrap();
        assert_eq!(some, [Report::Percentiles, Report::Highest].into());
        assert!(reports("none,highest").is_err() && reports("").is_err());
    }
}
