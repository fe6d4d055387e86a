//! Devices of perf in sysfs: how their events become the numbers that `perf_event_open` takes.

use super::super::cpu_set::CpuSet;
use super::super::error::HostError;
use super::super::system_files::SystemFiles;

/// Where their folders are.
pub(super) const DEVICES: &str = "sys/bus/event_source/devices";
const MEBIBYTE: f64 = (1 << 20) as f64;

/// A device, by its folder.
pub(super) struct Device<'a> {
    pub files: &'a SystemFiles,
    pub name: &'a str,
}

impl Device<'_> {
    fn file(&self, name: &str) -> String {
        format!("{DEVICES}/{}/{name}", self.name)
    }

    fn malformed(&self, file: &str, reason: &str) -> HostError {
        let text = self.files.optional(&self.file(file)).unwrap_or_default();
        HostError::Malformed(
            format!("/{}", self.file(file)).into(),
            text,
            reason.to_owned(),
        )
    }

    /// Its number.
    pub(super) fn kind(&self) -> Result<u32, HostError> {
        let number = self.files.number(&self.file("type"));
        number.ok_or_else(|| self.malformed("type", "it is not a number"))
    }

    /// Where its counters must be opened.
    pub(super) fn cpus(&self) -> Result<CpuSet, HostError> {
        Ok(self
            .files
            .cpu_list(&self.file("cpumask"))?
            .unwrap_or_default())
    }

    /// The terms of an event that the kernel has a name for.
    pub(super) fn terms_of(&self, event: &str) -> Option<String> {
        self.files.optional(&self.file(&format!("events/{event}")))
    }

    /// The events that the kernel has a name for, without the files that belong to one.
    pub(super) fn event_names(&self) -> Vec<String> {
        let mut names = self.files.names(&self.file("events"));
        names.retain(|name| ![".scale", ".unit"].iter().any(|end| name.ends_with(end)));
        names
    }

    /// The bytes of a count of an event, if the kernel reports them.
    pub(super) fn bytes_of(&self, event: &str) -> Result<Option<u64>, HostError> {
        let (scale, unit) = (
            format!("events/{event}.scale"),
            format!("events/{event}.unit"),
        );
        let Some(text) = self.files.optional(&self.file(&scale)) else {
            return Ok(None);
        };
        match self.files.optional(&self.file(&unit)).as_deref() {
            None | Some("MiB") => {}
            Some(_) => return Err(self.malformed(&unit, "only MiB is known")),
        }
        let bytes = text
            .parse()
            .map_or(0.0, |scale: f64| (scale * MEBIBYTE).round());
        match bytes {
            1.0..=1e6 => Ok(Some(bytes as u64)),
            _ => Err(self.malformed(&scale, "it is not a scale of bytes in MiB")),
        }
    }

    /// The numbers of terms such as `event=0x04,umask=0x03`, each put into the bits of its format. Where there is no
    /// format of their names, `config`, `config1` and `config2` are the numbers themselves, as for perf.
    pub(super) fn config(&self, terms: &str) -> Result<[u64; 3], HostError> {
        let mut config = [0; 3];
        for term in terms.split(',') {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let format = format!("format/{name}");
            let text = match self.files.optional(&self.file(&format)) {
                None if word(name).is_some() => format!("{name}:0-63"),
                _ => self.files.text(&self.file(&format))?,
            };
            let put = || {
                let value = match value.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                    None => value.parse().ok()?,
                };
                let (name, ranges) = text.split_once(':')?;
                Some((word(name)?, spread(value, ranges)?))
            };
            let (word, bits) = put()
                .ok_or_else(|| self.malformed(&format, &format!("{term} does not fit into it")))?;
            config[word] |= bits;
        }
        Ok(config)
    }
}

/// Which of the numbers of an event has that name.
fn word(name: &str) -> Option<usize> {
    ["config", "config1", "config2"]
        .iter()
        .position(|known| *known == name)
}

/// A value in ranges of bits such as `8-15,32-55`, its lowest bits in the first; `None` if it does not fit.
fn spread(mut value: u64, ranges: &str) -> Option<u64> {
    let mut bits = 0;
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        let width = high.checked_sub(low)?.checked_add(1)?;
        let mask = u64::MAX.checked_shr(64_u32.checked_sub(width)?)?;
        bits |= (value & mask).checked_shl(low)?;
        value = value.checked_shr(width).unwrap_or(0);
    }
    (value == 0).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_into_their_bits_or_do_not_fit() {
        let cases = [
            (0xcf, "8-15", Some(0xcf00)),
            (0x1cf, "8-15", None),
            (0x1cf, "8-15,32-55", Some(0x1_0000_cf00)),
            (1, "18", Some(1 << 18)),
            (2, "18", None),
            (u64::MAX, "0-63", Some(u64::MAX)),
            (1, "7-0", None),
            (1, "0-64", None),
            (1, "64", None),
            (1, "x", None),
        ];
        for (value, ranges, expected) in cases {
            assert_eq!(spread(value, ranges), expected, "{value:#x} {ranges}");
        }
    }
}
