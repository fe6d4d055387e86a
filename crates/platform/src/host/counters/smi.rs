//! The number of system management interrupts that a CPU has had.
//!
//! Intel processors count them in MSR_SMI_COUNT (34H). The kernel shows it as the event `smi` of perf's `msr` device,
//! and, with its module `msr`, in `/dev/cpu/N/msr`. Both need privileges as a rule.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 4; perf_event_open(2).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use perf_event::events::Dynamic;
use perf_event::{Builder, Counter};

const MSR_SMI_COUNT: u64 = 0x34;

/// The SMI counter of one CPU.
#[derive(Debug)]
pub(super) struct SmiCounter {
    source: SmiSource,
    value: u64,
}

#[derive(Debug)]
enum SmiSource {
    Perf(Counter),
    Msr(File),
}

impl SmiCounter {
    /// Opens the counter; an error is the reason why it cannot be used.
    pub(super) fn open(cpu: usize) -> Result<Self, String> {
        let source = match open_perf(cpu) {
            Ok(counter) => SmiSource::Perf(counter),
            Err(perf) => {
                let path = format!("/dev/cpu/{cpu}/msr");
                let file = File::open(&path).map_err(|error| format!("{perf}; {path}: {error}"))?;
                SmiSource::Msr(file)
            }
        };
        let mut counter = SmiCounter { source, value: 0 };
        counter.value = counter
            .load()
            .map_err(|error| format!("the SMI counter of CPU {cpu}: {error}"))?;
        Ok(counter)
    }

    /// SMIs since the last time.
    pub(super) fn rise(&mut self) -> u32 {
        let Ok(value) = self.load() else { return 0 };
        let before = std::mem::replace(&mut self.value, value);
        u32::try_from(value.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    fn load(&mut self) -> io::Result<u64> {
        match &mut self.source {
            SmiSource::Perf(counter) => counter.read(),
            SmiSource::Msr(file) => {
                let mut bytes = [0; 8];
                file.read_exact_at(&mut bytes, MSR_SMI_COUNT)?;
                // The counter is 32 bits wide.
                Ok(u64::from_ne_bytes(bytes) & u64::from(u32::MAX))
            }
        }
    }
}

fn open_perf(cpu: usize) -> Result<Counter, String> {
    let failed = |error: io::Error| format!("/sys/bus/event_source/devices/msr: {error}");
    let mut event = Dynamic::builder("msr").map_err(failed)?;
    let event = event.event("smi").map_err(failed)?.build();
    let event = event.map_err(|error| failed(io::Error::other(error)))?;
    let mut event = Builder::new(event);
    event.any_pid().one_cpu(cpu).enabled(true);
    let opened = event.exclude_kernel(false).exclude_hv(false).build();
    opened.map_err(|error| {
        let errno = Errno::try_from(error).unwrap_or(Errno::UnknownErrno);
        format!(
            "perf_event_open of msr/smi/ on CPU {cpu}: {errno} (run as root or with CAP_PERFMON)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_or_says_why_not() {
        match SmiCounter::open(0) {
            Ok(mut counter) => assert!(counter.rise() < 1000),
            Err(reason) => assert!(reason.contains("msr"), "{reason}"),
        }
        assert!(SmiCounter::open(60_000).is_err());
    }
}
