//! The values of the options: lists, ranges, sizes, times and ports, from text.

use std::time::Duration;

use crate::arguments::values::{
    DAY, List, MILLISECOND, bytes, count, list, list_of_ranges, rate, time,
};
use crate::bench::hca::settings::background::{Background, QUEUE_PAIRS, Traffic};
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::bench::hca::settings::config::doubled_sizes;
use crate::bench::hca::settings::limits::{
    LARGEST_BURST, LARGEST_SIZE, MOST_QUEUE_PAIRS, SMALLEST_SIZE,
};
use crate::bench::hca::settings::warmup::Warmup;
use crate::time::Nanos;

/// Message sizes: `8`, `100`, `4KiB`, `8..32768`, which is 8 and its doubles.
pub(crate) fn sizes(text: &str) -> Result<List<u32>, String> {
    list_of_ranges(text, |part| {
        if !part.contains("..") {
            return Ok(vec![size(part)?]);
        }
        let (from, to) = ends(part, size)?;
        let sizes: Vec<u32> = doubled_sizes(from..=to).collect();
        if sizes.is_empty() {
            return Err(format!(
                "the range {part:?} holds no 8 times a power of two"
            ));
        }
        Ok(sizes)
    })
}

/// The ends of a range `A..B` or `A..=B`; those of a single value are that.
fn ends(text: &str, value: impl Fn(&str) -> Result<u32, String>) -> Result<(u32, u32), String> {
    let Some((from, to)) = text.split_once("..") else {
        let only = value(text)?;
        return Ok((only, only));
    };
    let (from, to) = (value(from)?, value(to.strip_prefix('=').unwrap_or(to))?);
    if from > to {
        return Err(format!("the range {text:?} ends before it starts"));
    }
    Ok((from, to))
}

fn size(text: &str) -> Result<u32, String> {
    let number = text.trim();
    let size = bytes(number).and_then(|bytes| u32::try_from(bytes.0).ok());
    size.filter(|size| (SMALLEST_SIZE..=LARGEST_SIZE).contains(size))
        .ok_or_else(|| {
            format!("{number:?} is not a message size from {SMALLEST_SIZE} bytes to 2 GiB, such as 100, 4k or 1MiB")
        })
}

/// Burst sizes: `1`, `1,64,8192`, `1..8192`, which doubles.
pub(crate) fn bursts(text: &str) -> Result<List<u32>, String> {
    list_of_ranges(text, |part| {
        let (from, to) = ends(part, burst)?;
        let doubled = std::iter::successors(Some(from), |&last| last.checked_mul(2));
        let mut values: Vec<_> = doubled.take_while(|&value| value < to).collect();
        values.push(to);
        Ok(values)
    })
}

fn burst(text: &str) -> Result<u32, String> {
    count(text, 1..=u64::from(LARGEST_BURST))
}

/// Messages in flight at most: `1,2,16`.
pub(crate) fn depths(text: &str) -> Result<List<u32>, String> {
    list(text, burst)
}

/// Numbers of queue pairs: `1,2,16`.
pub(crate) fn queue_pairs(text: &str) -> Result<List<u32>, String> {
    list(text, |part| count(part, 1..=u64::from(MOST_QUEUE_PAIRS)))
}

/// Messages a second: `5k,20k,100k`.
pub(crate) fn rates(text: &str) -> Result<List<u32>, String> {
    list(text, whole_rate)
}

fn whole_rate(text: &str) -> Result<u32, String> {
    let whole = rate(text)?;
    if whole < 1.0 || whole.fract() != 0.0 {
        return Err(format!(
            "{text:?} is not a whole number of messages a second"
        ));
    }
    Ok(whole as u32)
}

/// What is sent in the background: `0`, `200@4KiB`, `4k@4KiBx2`.
pub(crate) fn backgrounds(text: &str) -> Result<List<Option<Background>>, String> {
    list(text, |part| {
        if part == "0" {
            return Ok(None);
        }
        let (of, rest) = part.split_once('@').ok_or_else(|| {
            format!("{part:?} is neither 0 nor RATE@SIZE[xQPS], such as 200@4KiB or 4k@4KiBx2")
        })?;
        let (bytes, pairs) = rest.split_once('x').unwrap_or((rest, "1"));
        let number = pairs.trim().parse().ok();
        let queue_pairs = number.filter(|number| QUEUE_PAIRS.contains(number));
        Ok(Some(Background {
            per_second: whole_rate(of.trim())?,
            size: size(bytes)?,
            queue_pairs: queue_pairs.ok_or_else(|| {
                let (least, most) = (QUEUE_PAIRS.start(), QUEUE_PAIRS.end());
                format!("{pairs:?} is not a number of queue pairs from {least} to {most}")
            })?,
            traffic: Traffic::Sent,
            shares_cpu: None,
        }))
    })
}

/// A list of times.
pub(crate) fn pauses(text: &str) -> Result<List<Nanos>, String> {
    list(text, pause)
}

/// A time up to a day.
pub(crate) fn pause(text: &str) -> Result<Nanos, String> {
    if text == "0" {
        return Ok(Nanos(0));
    }
    time(text, Duration::ZERO..=DAY).map(Nanos::from)
}

/// A number of messages, or a time from a millisecond to a day.
pub(crate) fn warmup(text: &str) -> Result<Warmup, String> {
    // A unit of times is not one of numbers.
    let number = count(text, 0..=u64::from(Warmup::MOST)).map(Warmup::Messages);
    number.or_else(|refused| {
        let time = time(text, MILLISECOND..=DAY).map(Warmup::Time);
        time.map_err(|error| format!("{refused}; and {error}"))
    })
}

/// The completion vectors of both ends: `N`, or `N,M` for sender and receiver.
pub(crate) fn comp_vectors(text: &str) -> Result<CompletionVectors, String> {
    let (sender, receiver) = text.split_once(',').unwrap_or((text, text));
    let number = |text: &str| {
        let number = text.trim().parse().ok();
        // The verbs take an int.
        let number = number.filter(|&number: &u32| i32::try_from(number).is_ok());
        number.ok_or_else(|| {
            format!("{text:?} is not the number of a completion vector, from 0; write N or N,M")
        })
    };
    Ok(CompletionVectors {
        sender: number(sender)?,
        receiver: number(receiver)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::values::{named, port_request};
    use crate::bench::hca::settings::config::Service;

    #[test]
    fn lists_keep_their_order_and_drop_repetitions() {
        let services = |text| named::<Service>(text).map(|list| list.0);
        assert_eq!(services("ud, rc,UD").unwrap(), [Service::Ud, Service::Rc]);
        let error = services("rc,xrc").unwrap_err();
        assert_eq!(error, "\"xrc\" is not one of rc, uc, ud");
        assert!(services("").is_err());
    }

    #[test]
    fn sizes_take_units_and_ranges() {
        assert_eq!(sizes("8..32768").unwrap().0.len(), 13);
        let listed = sizes("8, 64..=256, 4KiB").unwrap().0;
        assert_eq!(listed, [8, 64, 128, 256, 4096]);
        assert_eq!(sizes("8..4k").unwrap(), sizes("8..4096").unwrap());
        assert_eq!(sizes("1K,2 k").unwrap().0, [1024, 2048]);
        // A single size may be any, a range is of those that double.
        let listed = sizes("8,9, 100,4kB,1M,2GiB").unwrap().0;
        assert_eq!(listed, [8, 9, 100, 4000, 1 << 20, 1 << 31]);
        assert_eq!(sizes("60..=300").unwrap().0, [64, 128, 256]);
        assert_eq!(sizes("1MiB..4M").unwrap().0, [1 << 20, 2 << 20, 4 << 20]);
        let bad = "0 7 2.1GiB 3G 1..8 256..64 9..15 8.. .. -8 8,,8 99999999999999999999";
        for bad in bad.split(' ') {
            let error = sizes(bad).unwrap_err();
            let said = error.contains("message size") || error.contains("range");
            assert!(said, "{bad}: {error}");
        }
    }

    #[test]
    fn bursts_double_in_ranges() {
        assert_eq!(bursts("1..8192").unwrap().0.len(), 14);
        assert_eq!(bursts("1,3..20").unwrap().0, [1, 3, 6, 12, 20]);
        assert_eq!(bursts("1k,2k..8k").unwrap().0, [1000, 2000, 4000, 8000]);
        for bad in ["0", "8193", "x", "5..4", ""] {
            assert!(bursts(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        let listed = pauses("0,50us,1ms").unwrap().0;
        assert_eq!(listed, [0, 50_000, 1_000_000].map(Nanos));
        for bad in ["50", "us", "-1us", "2days", ""] {
            assert!(pauses(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_warm_up_is_a_number_of_messages_or_a_time() {
        assert_eq!(warmup("0"), Ok(Warmup::Messages(0)));
        assert_eq!(warmup("8192"), Ok(Warmup::Messages(8192)));
        assert_eq!(warmup("2k"), Ok(Warmup::Messages(2000)));
        let second = Duration::from_secs(1);
        assert_eq!(warmup("1s"), Ok(Warmup::Time(second)));
        for bad in ["8193", "-1", "1.5", "", "1us", "2days", "x"] {
            assert!(warmup(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn completion_vectors_are_one_number_or_two() {
        let parsed = |text| comp_vectors(text).map(|found| (found.sender, found.receiver));
        assert_eq!(parsed("3"), Ok((3, 3)));
        assert_eq!(parsed("0,2"), Ok((0, 2)));
        for bad in ["", "x", "-1", "1,", ",1", "1,2,3", "2147483648"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_are_whole_messages_a_second() {
        let expected = [5000, 20_000, 1_000_000, 1500];
        assert_eq!(rates("5k,20k, 1000000,1.5k/s").unwrap().0, expected);
        for bad in ["0", "0.5", "1.5", "2G", "-1", "x", ""] {
            assert!(rates(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_background_is_a_rate_a_size_and_perhaps_queue_pairs() {
        let parsed = |text| {
            let list = backgrounds(text)?.0.into_iter();
            let settings = |it: Background| (it.per_second, it.size, it.queue_pairs);
            Ok::<_, String>(list.map(|it| it.map(settings)).collect::<Vec<_>>())
        };
        let listed = parsed("0, 200@4KiB,4k@4k x 2,1@100x64").unwrap();
        let (some, two) = (Some((200, 4096, 1)), Some((4000, 4096, 2)));
        assert_eq!(listed, [None, some, two, Some((1, 100, 64))]);
        for (bad, names) in [
            ("200", "RATE@SIZE[xQPS]"),
            ("", "RATE@SIZE[xQPS]"),
            ("0@4k", "rate a second"),
            ("0.5@4k", "whole number"),
            ("2G@4k", "rate a second"),
            ("1k@7", "from 8 bytes"),
            ("1k@", "from 8 bytes"),
            ("1k@4kx0", "from 1 to 64"),
            ("1k@4kx65", "from 1 to 64"),
            ("1k@4kx", "from 1 to 64"),
        ] {
            let error = parsed(bad).unwrap_err();
            assert!(error.contains(names), "{bad}: {error}");
        }
    }

    #[test]
    fn ports_have_up_to_three_parts() {
        let full = port_request("mlx5_0:2@10.0.0.1").unwrap();
        assert_eq!((full.device.as_str(), full.port), ("mlx5_0", Some(2)));
        assert_eq!(full.address, Some("10.0.0.1".parse().unwrap()));
        assert_eq!(port_request("rxe0").unwrap().port, None);
        let v6 = port_request("rxe0@fd00::1").unwrap();
        assert_eq!(v6.address, Some("fd00::1".parse().unwrap()));
        for bad in ["", ":1", "a:0", "a:x", "a@b", "a:1@", "@10.0.0.1"] {
            assert!(port_request(bad).is_err(), "{bad}");
        }
    }
}
