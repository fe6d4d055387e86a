//! Keeping idle CPUs from states that take time to leave, for as long as something is measured.
//!
//! The kernel lets every CPU idle only as deep as the smallest latency that anybody asks for by
//! /dev/cpu_dma_latency, for as long as the file is open (Documentation/power/pm_qos_interface.rst of the kernel).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const DEVICE: &str = "/dev/cpu_dma_latency";
/// What is asked for, in microseconds, as the kernel reads it: 32 bits.
const LATENCY_US: i32 = 0;

/// The idle states of all CPUs, held shallow until it is dropped.
#[derive(Debug)]
pub struct IdleHold {
    _open: File,
}

impl IdleHold {
    /// Asks that no CPU takes time to wake, unless they may. Returns what came of it for the result, and the error
    /// where the file is not there, or this process has no right to it.
    pub fn unless(allowed: bool) -> (Option<Self>, &'static str, Option<io::Error>) {
        if allowed {
            return (None, "allowed", None);
        }
        match Self::by(Path::new(DEVICE)) {
            Ok(hold) => (Some(hold), "held off", None),
            Err(error) => (None, "not held off", Some(error)),
        }
    }

    fn by(device: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(device)?;
        file.write_all(&LATENCY_US.to_ne_bytes())?;
        Ok(IdleHold { _open: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_zero_microseconds_in_32_bits() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("cpu_dma_latency");
        let missing = IdleHold::by(&device).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        // Nothing is made in its place.
        assert!(!device.exists());
        std::fs::write(&device, "").unwrap();
        let _hold = IdleHold::by(&device).unwrap();
        assert_eq!(std::fs::read(&device).unwrap(), [0; 4]);
    }
}
