//! Values of options that several commands take, from text.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

use crate::buffer::Bytes;
use crate::generators::MemoryLoad;
use crate::rig::limit::Limit;
use crate::rig::named::Named;
use crate::rig::ports::PortRequest;
use crate::time::Nanos;

/// A millisecond.
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
/// A day.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// A year of 365.25 days, as times with their units have it.
const YEAR: Duration = Duration::from_secs(31_557_600);

/// The most values that a list can have.
const LONGEST_LIST: usize = 10_000;

/// Values in the order given, each once, at least one. A separate type, because clap takes a `Vec` for repeated
/// options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List<T>(pub Vec<T>);

/// A list whose parts are a value each.
pub(crate) fn list<T: PartialEq>(
    text: &str,
    mut item: impl FnMut(&str) -> Result<T, String>,
) -> Result<List<T>, String> {
    list_of_ranges(text, |part| Ok(vec![item(part)?]))
}

/// A list whose parts may be several values.
pub(crate) fn list_of_ranges<T: PartialEq>(
    text: &str,
    mut items: impl FnMut(&str) -> Result<Vec<T>, String>,
) -> Result<List<T>, String> {
    let mut values = Vec::new();
    for part in text.split(',') {
        for value in items(part.trim())? {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.len() > LONGEST_LIST {
            return Err(format!("more than {LONGEST_LIST} values"));
        }
    }
    Ok(List(values))
}

/// One value of a fixed set.
pub(crate) fn one<T: Named>(text: &str) -> Result<T, String> {
    let all = T::ALL.iter().map(|value| (value.name(), *value));
    let found = all
        .chain(T::ALSO.iter().copied())
        .find_map(|(name, value)| name.eq_ignore_ascii_case(text).then_some(value));
    found.ok_or_else(|| {
        let names: Vec<_> = T::ALL.iter().map(|value| value.name()).collect();
        format!("{text:?} is not one of {}", names.join(", "))
    })
}

/// A list of values of a fixed set.
pub(crate) fn named<T: Named + PartialEq>(text: &str) -> Result<List<T>, String> {
    list(text, one)
}

/// A length of time with its unit, in a range.
pub(crate) fn time(text: &str, allowed: RangeInclusive<Duration>) -> Result<Duration, String> {
    let found = humantime::parse_duration(text).ok();
    found.filter(|length| allowed.contains(length)).ok_or_else(|| {
        let [least, most] = [allowed.start(), allowed.end()].map(|&end| humantime::format_duration(end));
        format!("{text:?} is not a time from {least} to {most}: a number with ns, us, ms, s, min or h, such as 50us")
    })
}

/// A length of time from a millisecond to a year.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    time(text, MILLISECOND..=YEAR)
}

/// How long something may stand still: from a millisecond to a day.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    time(text, MILLISECOND..=DAY)
}

/// How far something is off: from a nanosecond to a second.
pub(crate) fn uncertainty(text: &str) -> Result<Duration, String> {
    time(text, Duration::from_nanos(1)..=Duration::from_secs(1))
}

/// The units of numbers, with the zeros that each stands for.
const UNITS: [(char, u32); 3] = [('k', 3), ('M', 6), ('G', 9)];

/// The digits of a number, without `_` between them, and the zeros of its unit.
fn digits_and_zeros(text: &str) -> (String, u32) {
    let with_unit = UNITS
        .into_iter()
        .find_map(|(unit, zeros)| Some((text.strip_suffix(unit)?, zeros)));
    let (digits, zeros) = with_unit.unwrap_or((text, 0));
    (digits.trim_end().replace('_', ""), zeros)
}

/// A whole number with `k`, `M` or `G`, as it may be written: `20000`, `20_000`, `20k`, `0.02M`.
fn whole(text: &str) -> Option<u64> {
    let (digits, zeros) = digits_and_zeros(text);
    let (before, behind) = digits.split_once('.').unwrap_or((&digits, ""));
    let behind = behind.trim_end_matches('0');
    let zeros = zeros.checked_sub(u32::try_from(behind.len()).ok()?)?;
    decimal(&digits)?;
    let number: u64 = format!("{before}{behind}").parse().ok()?;
    number.checked_mul(10_u64.pow(zeros))
}

/// A number of things, such as `100`, `20k` or `1.5M`.
pub(crate) fn count<T: TryFrom<u64>>(
    text: &str,
    allowed: RangeInclusive<u64>,
) -> Result<T, String> {
    let number = whole(text.trim()).filter(|number| allowed.contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    let (least, most) = (allowed.start(), allowed.end());
    number.ok_or_else(|| {
        format!(
            "{text:?} is not a whole number from {least} to {most}; k, M and G are units, as in 20k"
        )
    })
}

/// A number that counts no things, such as a port, a priority or a seed.
pub(crate) fn number<T: TryFrom<u64>>(
    text: &str,
    allowed: RangeInclusive<u64>,
) -> Result<T, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text
        .parse()
        .ok()
        .filter(|number| plain && allowed.contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    let (least, most) = (allowed.start(), allowed.end());
    number.ok_or_else(|| format!("{text:?} is not a whole number from {least} to {most}"))
}

/// The number of a CPU.
pub(crate) fn cpu(text: &str) -> Result<usize, String> {
    let found = number(text, 0..=u64::from(u16::MAX));
    found.map_err(|_| format!("{text:?} is not the number of a CPU, from 0"))
}

/// The seed of what is random: any number.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    number(text, 0..=u64::MAX)
}

/// A rate a second: `1M`, `250k`, `0.5`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim_end();
    let (digits, zeros) = digits_and_zeros(number);
    decimal(&digits)
        .map(|rate| rate * 10_f64.powi(zeros as i32))
        .filter(|rate| (0.001..=1e9).contains(rate))
        .ok_or_else(|| {
            format!("{text:?} is not a rate a second from 0.001 to 1G: a number, with k, M or G, such as 1M")
        })
}

/// A number of bytes: `100`, `1MiB`, or `4k`, which is 4 KiB.
pub(crate) fn bytes(text: &str) -> Option<Bytes> {
    let unit = text.chars().last();
    let unit = unit.filter(|unit| "kKmMgG".contains(*unit));
    let text = unit.map_or(text.to_owned(), |_| format!("{text}iB"));
    let bytes: Option<ByteSize> = text.parse().ok();
    bytes.map(|bytes| Bytes(bytes.as_u64()))
}

/// Memory loads: `off`, `50%`, `50`.
pub(crate) fn memory_loads(text: &str) -> Result<List<MemoryLoad>, String> {
    list(text, |part| {
        if part.eq_ignore_ascii_case("off") {
            return Ok(MemoryLoad::OFF);
        }
        let number = part.strip_suffix('%').unwrap_or(part).trim_end();
        let load = number.parse().ok().and_then(MemoryLoad::of_percent);
        load.ok_or_else(|| {
            format!(
                "{part:?} is neither off nor a whole number of per cent from 1 to 100, such as 50%"
            )
        })
    })
}

/// Digits with at most one point.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

/// `DEVICE[:PORT][@ADDRESS]`.
pub(crate) fn port_request(text: &str) -> Result<PortRequest, String> {
    let (place, address) = match text.split_once('@') {
        Some((place, address)) => (place, Some(address)),
        None => (text, None),
    };
    let (device, port) = match place.split_once(':') {
        Some((device, port)) => (device, Some(port)),
        None => (place, None),
    };
    let to_address = |text: &str| {
        let parsed = text.parse::<IpAddr>();
        parsed.map_err(|_| format!("{text:?} is not an IP address"))
    };
    let address = address.map(to_address).transpose()?;
    let to_number = |text: &str| {
        let parsed = text.parse::<u8>().ok().filter(|&number| number > 0);
        parsed.ok_or_else(|| format!("{text:?} is not a port number from 1 to 255"))
    };
    let port = port.map(to_number).transpose()?;
    if device.is_empty() {
        return Err("the name of a device is missing; write DEVICE[:PORT][@ADDRESS]".to_owned());
    }
    Ok(PortRequest {
        device: device.to_owned(),
        port,
        address,
    })
}

/// A length of time: at least a nanosecond, at most a day.
pub(crate) fn length(text: &str) -> Result<Nanos, String> {
    time(text, Duration::from_nanos(1)..=DAY).map(Nanos::from)
}

/// Limits: `50us`, `50us,2us@p99.99`.
pub(crate) fn limits(text: &str) -> Result<List<Limit>, String> {
    list(text, |part| {
        let Some((length_text, percentile)) = part.split_once('@') else {
            return Ok(Limit {
                length: length(part)?,
                percent: None,
            });
        };
        let number = percentile.strip_prefix('p').map(str::parse);
        let percent = number.and_then(Result::ok);
        let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
        if percent.is_none() {
            return Err(format!(
                "{percentile:?} is not a percentile: p with a number above 0 and up to 100, as in p99.99"
            ));
        }
        Ok(Limit {
            length: length(length_text)?,
            percent,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Has as _, Refused as _};

    #[test]
    fn times_need_a_unit_and_are_in_their_range() {
        assert_eq!(timeout("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        for bad in ["50", "us", "-1us", "0", "0s", "1us", "2days", ""] {
            timeout(bad).refused(&["from 1ms to 1day"]);
        }
        assert!(duration("2years").is_err());
    }

    #[test]
    fn counts_take_the_units_of_rates() {
        for (text, expected) in [
            ("1", 1),
            ("1_000", 1000),
            ("20k", 20_000),
            ("100M", 100_000_000),
            ("2G", 2_000_000_000),
            ("1.5k", 1500),
            ("0.25M", 250_000),
            ("7.0", 7),
            ("2 k", 2000),
        ] {
            assert_eq!(count::<u64>(text, 1..=u64::MAX), Ok(expected));
            assert_eq!(
                rate(text).ok(),
                Some(expected as f64).filter(|rate| *rate <= 1e9)
            );
        }
        for bad in [
            "",
            "0",
            "k",
            "-1",
            "+5",
            "1.5",
            "0.0001k",
            "1m",
            "1K",
            "M1",
            "1e3",
            ".",
            "1.2.3",
            "19999999999G",
        ] {
            count::<u64>(bad, 1..=u64::MAX).refused(&["from 1 to", "20k"]);
        }
        assert_eq!(count::<u8>("0.2k", 1..=255), Ok(200));
        count::<u32>("10k", 1..=9999).refused(&["\"10k\"", "from 1 to 9999"]);
    }

    #[test]
    fn numbers_that_count_nothing_have_no_units() {
        assert_eq!(
            (number::<u16>("80", 1..=65_535), seed("0")),
            (Ok(80), Ok(0))
        );
        for bad in ["1k", "", "-1", "+1", "x", "65536", "0"] {
            number::<u16>(bad, 1..=65_535).refused(&["from 1 to 65535"]);
        }
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        seed("18446744073709551616").refused(&["from 0 to 18446744073709551615"]);
    }

    #[test]
    fn memory_loads_are_off_or_per_cent() {
        let parsed = |text| {
            Ok::<_, String>(
                memory_loads(text)?
                    .0
                    .iter()
                    .map(|load| load.percent())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(parsed("off,50%, 100 %,Off,7").unwrap(), [0, 50, 100, 7]);
        for bad in [
            "", "0", "0%", "101%", "-1", "1.5%", "%", "on", "50%%", "off,",
        ] {
            let error = parsed(bad).unwrap_err();
            error.has(&["from 1 to 100, such as 50%"]);
        }
    }

    #[test]
    fn lists_keep_their_order_and_drop_repetitions() {
        let number = |part: &str| part.parse::<u32>().map_err(|error| error.to_string());
        assert_eq!(list("3, 1,3", number).unwrap().0, [3, 1]);
        assert!(list("", number).is_err() && list("1,,2", number).is_err());
        assert!(list_of_ranges("1", |_| Ok((0..=10_000).collect())).is_err());
    }

    #[test]
    fn limits_are_for_the_maximum_or_a_percentile() {
        let found = limits("50us, 2us@p99.99").unwrap().0;
        let found = found
            .iter()
            .map(|it| (it.length.0, it.percent, it.describe()));
        assert!(found.eq([
            (50_000, None, "50us".to_owned()),
            (2_000, Some(99.99), "2us@p99.99".to_owned())
        ]));
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
            assert!(limits(bad).is_err(), "{bad}");
        }
    }
}
