//! Events that somebody names for a processor of which this program knows none.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes of a count that there can be.
const LARGEST_COUNT: u64 = 1 << 20;

/// An event of perf's devices of one name: `DEVICE/EVENT` or `DEVICE/EVENT/BYTES`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenEvent {
    /// With or without a number behind it: without one it is all that differ in that. `*` stands for any text.
    pub device: String,
    /// A name in the device's folder `events`, or terms such as `event=0x0a,rdwrmask=1`.
    pub event: String,
    /// Of a count; where none are given those of the kernel, or else a cache line.
    pub bytes: Option<u64>,
}

impl FromStr for ChosenEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "{text:?} is not an event: {why}; write DEVICE/EVENT or DEVICE/EVENT/BYTES, as in uncore_imc/cas_count_read \
                 or amd_umc/event=0x0a,rdwrmask=1/64"
            )
        };
        let mut parts = text.split('/');
        let mut part = |what: &str| {
            let found = parts.next().filter(|part| !part.is_empty());
            found.ok_or_else(|| refused(&format!("it has no {what}")))
        };
        let (device, event) = (part("device")?, part("event")?);
        // They become parts of paths.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.,=".contains(&byte);
        if !event.bytes().all(is_name)
            || !device.bytes().all(|byte| is_name(byte) || byte == b'*')
            || device.starts_with('.')
            || event.starts_with('.')
        {
            return Err(refused(
                "a name has letters, digits and _-.,= only, and that of a device * for any text",
            ));
        }
        let bytes = match parts.next() {
            None | Some("") => None,
            Some(number) => {
                let bytes = number
                    .parse()
                    .ok()
                    .filter(|bytes| (1..=LARGEST_COUNT).contains(bytes));
                let why = || {
                    refused(&format!(
                        "the bytes of a count are a number from 1 to {LARGEST_COUNT}"
                    ))
                };
                Some(bytes.ok_or_else(why)?)
            }
        };
        match parts.next() {
            Some(_) => Err(refused("it has too many parts")),
            None => Ok(ChosenEvent {
                device: device.to_owned(),
                event: event.to_owned(),
                bytes,
            }),
        }
    }
}

impl fmt::Display for ChosenEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.device, self.event)?;
        self.bytes
            .map_or(Ok(()), |bytes| write!(formatter, "/{bytes}"))
    }
}

/// Those that count what memory controllers read, and those that count what they write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenEvents {
    /// Out of memory.
    pub read: Vec<ChosenEvent>,
    /// Into memory.
    pub written: Vec<ChosenEvent>,
}

impl ChosenEvents {
    /// Whether none are named.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.written.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn an_event_is_read_as_it_is_written() {
        for text in [
            "uncore_imc/cas_count_read",
            "amd_umc_3/event=0x0a,rdwrmask=0x1/64",
            "hisi_sccl*_ddrc*/flux_rd/32",
            "a/b/1048576",
        ] {
            let event: ChosenEvent = text.parse().unwrap();
            assert_eq!(event.to_string(), text);
        }
        // As perf writes it.
        let event: ChosenEvent = "uncore_imc/cas_count_read/".parse().unwrap();
        assert_eq!(event.to_string(), "uncore_imc/cas_count_read");
        for (bad, why) in [
            ("", "no device"),
            ("/cas", "no device"),
            ("imc", "no event"),
            ("imc/", "no event"),
            ("../x", "letters, digits"),
            ("imc/..", "letters, digits"),
            ("imc/a b", "letters, digits"),
            ("imc/cas*", "letters, digits"),
            ("imc/a/0", "from 1 to 1048576"),
            ("imc/a/many", "from 1 to 1048576"),
            ("imc/a/64/", "too many parts"),
        ] {
            bad.parse::<ChosenEvent>()
                .refused(&[&format!("{bad:?}"), why, "DEVICE/EVENT"]);
        }
    }
}
