//! How fast the time stamp counter is by the kernel's word: a file, the page of a perf event, the log, and what NTP has
//! found of the kernel's second.
//!
//! No source needs to be there; each has the reason why it is not. `rig::trust::frequency` turns them into a rate.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use memmap2::MmapOptions;
use nix::errno::Errno;
use perf_event::Builder;
use perf_event::events::Software;

use super::system_files::SystemFiles;

/// Why a source does not report it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub enum TscRateError {
    #[error("this kernel has no file {0}")]
    NoFile(&'static str),
    #[error("{0} holds {1:?}, which is not a number")]
    NoNumber(&'static str, String),
    /// The kernel refuses this operation; what would help.
    #[error("{0} is refused ({1}): {2}")]
    Refused(&'static str, Errno, &'static str),
    /// It answers, and leaves the answer out.
    #[error("{0}")]
    LeftOut(&'static str),
}

impl TscRateError {
    fn refused(operation: &'static str, error: io::Error, advice: &'static str) -> Self {
        let errno = Errno::try_from(error).unwrap_or(Errno::UnknownErrno);
        TscRateError::Refused(operation, errno, advice)
    }
}

/// How the kernel converts counts to nanoseconds: times `multiplier`, shifted right by `shift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    /// `time_mult` of the perf event's page.
    pub multiplier: u32,
    /// `time_shift`.
    pub shift: u16,
}

/// The rate in kHz from the file `tsc_freq_khz`, which some kernels and modules have.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub fn from_file() -> Result<f64, TscRateError> {
    from_files(&SystemFiles::of_this_machine())
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn from_files(files: &SystemFiles) -> Result<f64, TscRateError> {
    const PATH: &str = "/sys/devices/system/cpu/cpu0/tsc_freq_khz";
    let text = files
        .optional(&PATH[1..])
        .ok_or(TscRateError::NoFile(PATH))?;
    text.parse().map_err(|_| TscRateError::NoNumber(PATH, text))
}

/// The head of `struct perf_event_mmap_page`; source: `linux/perf_event.h`.
#[repr(C)]
struct EventPage {
    version: u32,
    compatible_version: u32,
    /// Odd while the kernel writes.
    sequence: u32,
    index: u32,
    offset: i64,
    time_enabled: u64,
    time_running: u64,
    capabilities: u64,
    counter_width: u16,
    time_shift: u16,
    time_multiplier: u32,
}

/// The kernel's conversion, from the page of a perf event that counts nothing. Needs no privilege where
/// `kernel.perf_event_paranoid` is 2 or less.
///
/// # Errors
/// When perf events are forbidden, or the kernel does not keep its own time by the counter.
pub fn from_perf() -> Result<Conversion, TscRateError> {
    const USER_TIME: u64 = 1 << 3;
    const TRIES: usize = 1000;
    let advice = "needs kernel.perf_event_paranoid of 2 or less, and no seccomp filter against it";
    let event = Builder::new(Software::DUMMY).enabled(true).build();
    let event = event.map_err(|error| TscRateError::refused("perf_event_open", error, advice))?;
    let page = MmapOptions::new()
        .len(size_of::<EventPage>())
        .map_raw_read_only(event.as_raw_fd())
        .map_err(|error| TscRateError::refused("mmap of a perf event", error, advice))?;
    let head = page.as_ptr().cast::<EventPage>();
    for _ in 0..TRIES {
        // SAFETY: the mapping has the head's length, is aligned to a page, and outlives the reads; the kernel writes to
        // it at any time, which is why they are volatile and bracketed by the sequence number.
        let (before, capabilities, shift, multiplier, after) = unsafe {
            let before = (&raw const (*head).sequence).read_volatile();
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            let capabilities = (&raw const (*head).capabilities).read_volatile();
            let shift = (&raw const (*head).time_shift).read_volatile();
            let multiplier = (&raw const (*head).time_multiplier).read_volatile();
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            let after = (&raw const (*head).sequence).read_volatile();
            (before, capabilities, shift, multiplier, after)
        };
        if before != after || before % 2 == 1 {
            continue;
        }
        if capabilities & USER_TIME == 0 {
            return Err(TscRateError::LeftOut(
                "the kernel gives no conversion: its scheduler's clock is not the TSC (usual in a guest)",
            ));
        }
        return Ok(Conversion { multiplier, shift });
    }
    Err(TscRateError::LeftOut(
        "the page of the perf event never stood still",
    ))
}

/// The lines of the kernel's log, the oldest first, as far as they are still there.
pub fn log() -> Result<Vec<String>, TscRateError> {
    // More than any log holds; a bound on a kernel that logs faster than this reads.
    const MOST_RECORDS: usize = 200_000;
    const LONGEST_RECORD: usize = 8192;
    let advice = "needs root, or kernel.dmesg_restrict of 0";
    let refused = |error| TscRateError::refused("reading the kernel's log", error, advice);
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg")
        .map_err(refused)?;
    let mut lines = Vec::new();
    let mut record = [0; LONGEST_RECORD];
    for _ in 0..MOST_RECORDS {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(length) => lines.push(String::from_utf8_lossy(&record[..length]).into_owned()),
            // Overwritten before it was read: go on with the next. A record that is too long is left out.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::EINVAL))
                    || error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(refused(error)),
        }
    }
    Ok(lines)
}

/// How fast the kernel's clock, steered by NTP, runs against its raw one, in steered seconds per raw one: above 1 it is
/// faster, and its second shorter.
///
/// # Errors
/// When NTP does not hold this machine's clock.
pub fn ntp_speed() -> Result<f64, TscRateError> {
    let mut state = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: a timex of zeros is valid and asks for no change (modes is 0); the call fills it.
    let (code, state) = unsafe {
        let code = libc::adjtimex(state.as_mut_ptr());
        (code, state.assume_init())
    };
    if code < 0 {
        let error = io::Error::last_os_error();
        return Err(TscRateError::refused(
            "adjtimex",
            error,
            "a sandbox forbids it",
        ));
    }
    if code == libc::TIME_ERROR || state.status & libc::STA_UNSYNC != 0 {
        return Err(TscRateError::LeftOut(
            "no NTP keeps this machine's clock (adjtimex calls it unsynchronised)",
        ));
    }
    Ok(speed(state.tick, state.freq))
}

/// Steered seconds per raw one, of a tick in microseconds (nominally 10000) and a frequency in ppm with 16 bits behind
/// the point: either above its nominal value makes the clock faster; source: `adjtimex(2)`.
fn speed(tick: libc::c_long, frequency: libc::c_long) -> f64 {
    tick as f64 / 10_000.0 + frequency as f64 / 65_536.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use crate::testing::Refused as _;

    #[test]
    fn the_file_holds_a_number_or_is_missing_by_name() {
        let machine = Machine::new(1, 1, 1);
        let read = || from_files(&SystemFiles::below(machine.root()));
        read().refused(&["tsc_freq_khz"]);
        machine.file("sys/devices/system/cpu/cpu0/tsc_freq_khz", "2300000");
        assert_eq!(read(), Ok(2_300_000.0));
        machine.file("sys/devices/system/cpu/cpu0/tsc_freq_khz", "fast");
        read().refused(&["tsc_freq_khz holds \"fast\", which is not a number"]);
    }

    #[test]
    fn the_structures_are_those_of_the_kernel() {
        assert_eq!(std::mem::offset_of!(EventPage, capabilities), 40);
        assert_eq!(std::mem::offset_of!(EventPage, time_shift), 50);
        assert_eq!(std::mem::offset_of!(EventPage, time_multiplier), 52);
    }

    #[test]
    fn ntp_makes_the_clock_faster_or_slower() {
        assert_eq!(speed(10_000, 0), 1.0);
        assert!((speed(10_000, 50 * 65_536) - 1.000_05).abs() < 1e-12);
        assert!((speed(10_001, -100 * 65_536) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn this_machine_tells_or_says_why_not() {
        match from_perf() {
            Ok(found) => assert!(found.multiplier > 0 && found.shift < 64, "{found:?}"),
            Err(reason) => assert!(reason.to_string().len() > 20),
        }
        match log() {
            Ok(lines) => assert!(!lines.is_empty()),
            Err(reason) => assert!(reason.to_string().contains("dmesg_restrict")),
        }
        match ntp_speed() {
            Ok(speed) => assert!((0.8..1.2).contains(&speed)),
            Err(reason) => assert!(reason.to_string().contains("adjtimex")),
        }
    }
}
