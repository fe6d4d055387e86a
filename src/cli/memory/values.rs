//! The values of the options, from text.

use std::time::Duration;

use crate::arguments::values::{
    DAY, List, MILLISECOND, bytes, count, list, list_of_ranges, one, time,
};
use crate::bench::memory::config::Pause;
use crate::buffer::Bytes;
use crate::generators::LONGEST_PAUSE;
use crate::host::CpuSet;
use crate::rig::named::Named;
use crate::stats::smoothing::Smoothing;

/// From no pause to one that is longer than all accesses of its group, in steps that a curve shows, and `max`.
pub(crate) const DEFAULT_PAUSES: &str =
    "0,128,256,512,768,1024,1536,2048,3072,4096,6144,8192,16384,65536,max";

/// Latency and bandwidth of each pair of nodes.
pub(crate) const PAUSES_OF_PAIRS: &str = "off,0";

/// Sizes of a buffer that there can be.
const SIZES: std::ops::RangeInclusive<u64> = 16 << 10..=128 << 30;

/// A value of a fixed set, or none, so that the best there is will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrAuto<T>(pub Option<T>);

/// One value of a fixed set, or `auto`.
pub(crate) fn or_auto<T: Named>(text: &str) -> Result<OrAuto<T>, String> {
    match text {
        "auto" => Ok(OrAuto(None)),
        _ => one(text)
            .map(|value| OrAuto(Some(value)))
            .map_err(|error| format!("{error}, auto")),
    }
}

/// Shares of reads: even numbers up to 100.
pub(crate) fn shares(text: &str) -> Result<List<u32>, String> {
    list(text, |part| {
        let number = part
            .parse()
            .ok()
            .filter(|number: &u32| *number <= 100 && number.is_multiple_of(2));
        number.ok_or_else(|| format!("{part:?} is not an even number from 0 to 100"))
    })
}

/// Pauses in nops; `max`, `off`.
pub(crate) fn pauses(text: &str) -> Result<List<Pause>, String> {
    list(text, |part| {
        let nops = match part {
            "off" => return Ok(Pause::Off),
            "max" => Ok(LONGEST_PAUSE),
            _ => count(part, 0..=LONGEST_PAUSE),
        };
        let refused = |error| format!("{error}, nor max or off");
        nops.map(Pause::Nops).map_err(refused)
    })
}

/// Sizes of buffers: `256M`, `16k..1G`, which is 16k and each twofold up to 1G.
pub(crate) fn sizes(text: &str) -> Result<List<Bytes>, String> {
    list_of_ranges(text, |part| {
        let Some((from, to)) = part.split_once("..") else {
            return Ok(vec![size(part)?]);
        };
        let (from, to) = (size(from)?, size(to)?);
        if from.0 > to.0 {
            return Err(format!("the range {part:?} ends before it starts"));
        }
        let sizes = std::iter::successors(Some(from), |size| Some(Bytes(size.0 * 2)));
        Ok(sizes.take_while(|size| size.0 <= to.0).collect())
    })
}

/// The size of a buffer.
fn size(text: &str) -> Result<Bytes, String> {
    let size = bytes(text).filter(|size| SIZES.contains(&size.0));
    size.ok_or_else(|| {
        format!("{text:?} is not a size from 16 KiB to 128 GiB, such as 256M or 1GiB")
    })
}

/// The time of a window.
pub(crate) fn window(text: &str) -> Result<Duration, String> {
    time(text, MILLISECOND..=Duration::from_secs(1))
}

/// How long is waited for a stable bandwidth.
pub(crate) fn settle(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        _ => time(text, Duration::ZERO..=DAY),
    }
}

/// CPUs in the kernel's way to write them.
pub(crate) fn cpus(text: &str) -> Result<CpuSet, String> {
    let cpus: CpuSet = text.parse().map_err(|error| format!("{error}"))?;
    match cpus.is_empty() {
        true => Err("name at least one, as in 3 or 0-3,8".to_owned()),
        false => Ok(cpus),
    }
}

/// The filter of a curve.
pub(crate) fn smoothing(text: &str) -> Result<Smoothing, String> {
    text.parse()
        .map_err(|error: <Smoothing as std::str::FromStr>::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::InstructionSet;

    #[test]
    fn values_are_read_and_others_are_refused_with_what_is_allowed() {
        assert_eq!(shares("0,26,100").unwrap().0, [0, 26, 100]);
        let read = pauses("0,4.096k,max,off").unwrap().0;
        assert_eq!(
            read,
            [
                Pause::Nops(0),
                Pause::Nops(4096),
                Pause::Nops(LONGEST_PAUSE),
                Pause::Off
            ]
        );
        let text: Vec<String> = read.iter().map(Pause::to_string).collect();
        assert_eq!(text, ["0", "4096", "max", "off"]);
        assert_eq!(size("256M"), Ok(Bytes(256 << 20)));
        let kibibytes = |text| {
            sizes(text)
                .unwrap()
                .0
                .iter()
                .map(|size| size.0 >> 10)
                .collect()
        };
        let read: Vec<u64> = kibibytes("1M,16k..100k,32k");
        assert_eq!(read, [1024, 16, 32, 64]);
        assert_eq!(or_auto::<InstructionSet>("auto"), Ok(OrAuto(None)));
        for (refused, allowed) in [
            (shares("27").err(), "even number from 0 to 100"),
            (shares("102").err(), "even number from 0 to 100"),
            (pauses("4195k").err(), "from 0 to 4194304"),
            (pauses("-1").err(), "max or off"),
            (size("1k").err(), "from 16 KiB"),
            (sizes("16k..1k").err(), "from 16 KiB"),
            (sizes("1M..16k").err(), "ends before it starts"),
            (sizes("16k..").err(), "from 16 KiB"),
            (
                or_auto::<InstructionSet>("mmx").err(),
                "sse2, avx2, avx512, neon, sve, auto",
            ),
            (cpus("").err(), "at least"),
            (window("2s").err(), "1ms to 1s"),
        ] {
            let text = refused.unwrap();
            assert!(text.contains(allowed), "{text}");
        }
        // The default is enough for the default filter.
        assert!(pauses(DEFAULT_PAUSES).unwrap().0.len() >= 11);
    }
}
