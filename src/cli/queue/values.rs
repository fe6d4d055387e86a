//! The values of the options: lists, rates, shares and times, from text.

use std::time::Duration;

use crate::arguments::values::{DAY, List, MILLISECOND, count, decimal, list, one, rate, time};
use crate::bench::queue::config::PAYLOADS;
use crate::queues::registry;
use crate::queues::slots::MAX_CAPACITY;
use crate::time::{ClockKind, UnfencedCounter};

/// `all`, which is each queue under one name, or names of queues.
pub(crate) fn queues(text: &str) -> Result<List<String>, String> {
    if text.trim() == "all" {
        return Ok(List(
            registry::distinct_names().map(str::to_owned).collect(),
        ));
    }
    list(text, |part| {
        let part = part.to_ascii_lowercase();
        if registry::entry(&part).is_none() {
            let names: Vec<_> = registry::names().collect();
            return Err(format!(
                "{part:?} is not all or one of {}",
                names.join(", ")
            ));
        }
        registry::given(&part).map_err(|wrong| format!("{part}: {wrong}"))?;
        Ok(part)
    })
}

/// How long a round is measured.
pub(crate) fn run_length(text: &str) -> Result<Duration, String> {
    time(text, MILLISECOND..=Duration::from_secs(3600))
}

/// How long elements go through before that.
pub(crate) fn warm_up(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        _ => time(text, Duration::ZERO..=Duration::from_secs(3600)),
    }
}

pub(crate) fn capacities(text: &str) -> Result<List<usize>, String> {
    list(text, |part| count(part, 1..=MAX_CAPACITY as u64))
}

pub(crate) fn payloads(text: &str) -> Result<List<usize>, String> {
    list(text, |part| {
        let found = PAYLOADS.into_iter().find(|size| size.to_string() == part);
        found.ok_or_else(|| format!("{part:?} is not 8, 64 or 256 bytes"))
    })
}

/// A clock, and whether the processor's counter is read without fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StampClock {
    pub kind: ClockKind,
    pub unfenced: bool,
}

pub(crate) fn clock(text: &str) -> Result<StampClock, String> {
    let names = ["tsc-unfenced", "counter-unfenced"];
    let unfenced = names.iter().any(|name| name.eq_ignore_ascii_case(text));
    let kind = match unfenced {
        true => ClockKind::Counter,
        false => one(text).map_err(|wrong| format!("{wrong}, {}", UnfencedCounter::NAME))?,
    };
    Ok(StampClock { kind, unfenced })
}

/// Rates a second: `1M`, `250k`, `1000000`.
pub(crate) fn rates(text: &str) -> Result<List<f64>, String> {
    list(text, rate)
}

/// A share: `10%`, `0.1`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (digits, divisor) = match text.strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (text, 1.0),
    };
    decimal(digits)
        .map(|share| share / divisor)
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("{text:?} is not a share from 0% to 100%, such as 10%"))
}

/// A wait, in nanoseconds.
pub(crate) fn wait(text: &str) -> Result<f64, String> {
    let length = time(text, Duration::from_nanos(1)..=DAY)?;
    Ok(length.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units() {
        let expected = [1e6, 250e3, 1.5e6, 0.5];
        assert_eq!(rates("1M,250k, 1000000,1.5M/s,0.5").unwrap().0, expected);
        for bad in [
            "", "M", "0", "-1", "1T", "1e6", "inf", "nan", "2G", "1 M k", "1m",
        ] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_per_cent_or_parts_of_one() {
        assert_eq!(share("10%"), Ok(0.1));
        assert_eq!(share("0.1"), Ok(0.1));
        assert_eq!(share("0"), Ok(0.0));
        for bad in ["", "%", "101%", "1.5", "-1%", "ten", "nan"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_counter_is_read_with_fences_unless_its_name_says_so() {
        let found = |text| clock(text).map(|clock| (clock.kind.name(), clock.unfenced));
        let counter = ClockKind::Counter.name();
        assert_eq!(found("TSC-unfenced"), Ok((counter, true)));
        assert_eq!(found("counter-unfenced"), Ok((counter, true)));
        assert_eq!(found("tsc"), Ok((counter, false)));
        assert_eq!(found("monotonic"), Ok(("monotonic", false)));
        let wrong = found("monotonic-unfenced").unwrap_err();
        assert!(
            wrong.ends_with(&format!("{counter}, {}", UnfencedCounter::NAME)),
            "{wrong}"
        );
    }

    #[test]
    fn times_need_a_unit_and_are_not_zero() {
        assert_eq!((wait("100ns"), wait("2us")), (Ok(100.0), Ok(2000.0)));
        for bad in ["100", "0ns", "2days", ""] {
            assert!(wait(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_have_each_value_once_and_queues_in_any_case() {
        assert_eq!(capacities("64,1024,64").unwrap().0, [64, 1024]);
        assert_eq!(payloads("256,8").unwrap().0, [256, 8]);
        let first = queues("all").unwrap().0.remove(0);
        assert_eq!(queues(&first.to_uppercase()).unwrap().0, [first]);
    }
}
