//! The time that the hypervisor gave to others while the CPU had something to run.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::table::words;

/// The steal column of a CPU's line in `/proc/stat`, in ticks of 10 ms (USER_HZ).
#[derive(Debug)]
pub(super) struct StealCounter {
    file: File,
    text: Vec<u8>,
    line: Vec<u8>,
    value: u64,
}

/// CPU lines are first in the file, each of at most this many bytes.
const LINE: usize = 256;

impl StealCounter {
    /// Opens the counter; an error is the reason why it cannot be used.
    pub(super) fn open(cpu: usize) -> Result<Self, String> {
        let file = File::open("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        let mut counter = StealCounter {
            file,
            text: vec![0; (cpu + 2) * LINE],
            line: format!("cpu{cpu} ").into_bytes(),
            value: 0,
        };
        counter.value = counter
            .load()
            .ok_or_else(|| format!("/proc/stat has no steal time of CPU {cpu}"))?;
        Ok(counter)
    }

    /// Ticks added since the last time.
    pub(super) fn rise(&mut self) -> u32 {
        let Some(value) = self.load() else { return 0 };
        let before = std::mem::replace(&mut self.value, value);
        u32::try_from(value.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    fn load(&mut self) -> Option<u64> {
        let length = self.file.read_at(&mut self.text, 0).ok()?;
        steal_of(&self.text[..length], &self.line)
    }
}

/// proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice.
fn steal_of(text: &[u8], line: &[u8]) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.find(|candidate| candidate.starts_with(line))?;
    let word = words(line).nth(8)?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_column_of_the_cpu() {
        let text = b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 11 12 13 14 15 16 17 18 0 0\ncpu11 1 1 1 1 1 1 1 99 0 0\n";
        assert_eq!(steal_of(text, b"cpu1 "), Some(18));
        assert_eq!(steal_of(text, b"cpu11 "), Some(99));
        assert_eq!(steal_of(text, b"cpu2 "), None);
    }

    #[test]
    fn this_machine_has_one_and_it_does_not_run_backwards() {
        let cpu = super::super::super::pinning::current_cpu().unwrap();
        let mut counter = StealCounter::open(cpu).unwrap();
        assert!(counter.rise() < 1000);
    }
}
