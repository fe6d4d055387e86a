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
    fn reports_are_a_list_or_all() {
        assert_eq!(reports("all").unwrap().len(), Report::ALL.len() - 1);
        assert_eq!(reports("all,wakeup").unwrap().len(), Report::ALL.len());
        let some = reports("highest,percentiles").unwrap();
        assert_eq!(some, [Report::Percentiles, Report::Highest].into());
        assert!(reports("none,highest").is_err() && reports("").is_err());
    }
}
