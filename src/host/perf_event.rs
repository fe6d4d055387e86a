//! Opening an event of the kernel's performance counters: one that only counts, without samples or groups.
//!
//! What the file then holds, a count or a page to map, is for those who open it.

use std::fs::File;
use std::os::fd::FromRawFd;

use nix::errno::Errno;

/// `struct perf_event_attr` as its first version has it, 64 bytes; source: `linux/perf_event.h`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// What is counted, in the terms of `perf_event_open(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The kind: a constant, or the number of a device.
    pub kind: u32,
    /// Which event of that kind.
    pub config: u64,
    /// The bits of the attributes, such as `exclude_kernel`.
    pub flags: u64,
}

/// For whom it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// For the calling thread, on any CPU.
    ThisThread,
    /// For all that runs on a CPU.
    AllOn(usize),
}

impl Event {
    /// Opens it; it is closed on exec.
    ///
    /// # Errors
    /// What the kernel answers; EACCES and EPERM are for want of a privilege.
    pub fn open(self, counted: Counted) -> Result<File, Errno> {
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        let (process, cpu): (libc::pid_t, libc::c_int) = match counted {
            Counted::ThisThread => (0, -1),
            Counted::AllOn(cpu) => (-1, cpu.try_into().map_err(|_| Errno::EINVAL)?),
        };
        let attributes = Attributes {
            kind: self.kind,
            size: size_of::<Attributes>() as u32,
            config: self.config,
            flags: self.flags,
            ..Attributes::default()
        };
        // SAFETY: the attributes are alive, of the size that they state, and only read; the other arguments are numbers:
        // the process, the CPU, no group, close on exec.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                process,
                cpu,
                -1,
                CLOSE_ON_EXEC,
            )
        };
        match i32::try_from(descriptor) {
            // SAFETY: the descriptor is new and known to nobody else.
            Ok(descriptor) if descriptor >= 0 => Ok(unsafe { File::from_raw_fd(descriptor) }),
            _ => Err(Errno::last()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_published_size() {
        assert_eq!(size_of::<Attributes>(), 64);
    }

    #[test]
    fn an_event_that_does_not_exist_is_an_error() {
        let event = Event {
            kind: u32::MAX,
            config: 0,
            flags: 0,
        };
        assert!(event.open(Counted::ThisThread).is_err());
        assert_eq!(
            event.open(Counted::AllOn(usize::MAX)).unwrap_err(),
            Errno::EINVAL
        );
    }
}
