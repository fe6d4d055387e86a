//! What several of these programs need.

#![allow(dead_code)] // None needs all of it.

use std::process::{Command, ExitCode};
use std::time::Duration;

use hcabench::time::{Clock, Ticks};
use nix::time::{ClockId, clock_gettime};

pub(crate) type Failed = Box<dyn std::error::Error>;

/// Runs a program by its arguments, without `--bench`, which Cargo passes; `run` returns nothing where it knows no such
/// arguments.
pub(crate) fn main(
    program: &str,
    usage: &str,
    run: impl FnOnce(&[&str]) -> Option<Result<bool, Failed>>,
) -> ExitCode {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let words = all.iter().map(String::as_str);
    let words: Vec<&str> = words.filter(|word| *word != "--bench").collect();
    if let ["-h" | "--help"] = words[..] {
        println!("{usage}");
        return ExitCode::SUCCESS;
    }
    match run(&words) {
        None => {
            eprintln!("{program}: unknown arguments {words:?}\n{usage}");
            ExitCode::from(2)
        }
        Some(Ok(true)) => ExitCode::SUCCESS,
        Some(Ok(false)) => ExitCode::FAILURE,
        Some(Err(error)) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The processor's counter without its calibration, which would take most of the instructions, or the system's clock.
#[derive(Clone, Copy)]
pub(crate) struct Counter;

impl Clock for Counter {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn now(&self) -> Ticks {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        // SAFETY: every x86-64 processor has both instructions.
        Ticks(unsafe {
            _mm_lfence();
            let reading = _rdtsc();
            _mm_lfence();
            reading
        })
    }

    /// Without FEAT_ECV, as the processors are that are measured on.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn now(&self) -> Ticks {
        let reading: u64;
        // SAFETY: Linux lets user space read the register.
        unsafe {
            std::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) reading, options(nostack))
        };
        Ticks(reading)
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[inline(always)]
    fn now(&self) -> Ticks {
        hcabench::time::Posix::MONOTONIC.now()
    }
}

/// What this thread has had of its CPU: time that another one has it does not count.
pub(crate) fn thread_time() -> Result<Duration, Failed> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// What this program prints when it runs below callgrind with these arguments, and all instructions of the process.
pub(crate) fn callgrind(arguments: &[&str]) -> Result<(String, f64), Failed> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind cannot be run ({error}): ci/setup bench installs it"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, number)| number.trim().parse().ok());
    match collected {
        Some(number) if output.status.success() => Ok((String::from_utf8(output.stdout)?, number)),
        _ => Err(format!("callgrind did not count {arguments:?}: {text}").into()),
    }
}
