//! Readings of the counter that must never go backwards: by one thread that is moved from CPU to CPU, and by threads on
//! all CPUs, each reading against the latest of all.
//!
//! A thread that is moved sees offsets longer than its move, which takes microseconds. Threads that share their latest
//! reading see those longer than a cache line takes from CPU to CPU.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde::Serialize;

use super::TrustError;
use super::exchange::join;
use crate::host::{CpuSet, HostError, pinning};
use crate::time::trust::monotony::Monotony;

/// Stays on a CPU, on a machine with few.
const STAYS: u64 = 200;

/// Readings between two looks at the clock and at the stop flag.
const READS_BETWEEN_LOOKS: u64 = 1024;

/// What a thread saw that was moved from CPU to CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Crossed {
    /// Readings asked for.
    pub asked_reads: u64,
    /// How often the thread was moved.
    pub migrations: u64,
    /// CPUs that it read on.
    pub cpus: usize,
    /// Stays in which TSC_AUX named another CPU than the thread was pinned to; `None` without rdtscp.
    pub wrong_cpu_names: Option<u64>,
    /// What the readings showed.
    #[serde(flatten)]
    pub monotony: Monotony,
}

/// A reading of the counter, and what TSC_AUX said with it.
pub type CountAndAux = (u64, Option<u32>);

/// The CPU in TSC_AUX as Linux fills it: below the node's number, in twelve bits.
pub fn cpu_of(aux: u32) -> u32 {
    aux & 0xfff
}

/// Reads `reads` times while going round `cpus`: `pin` moves the thread, `read` reads, `ended` is asked now and then.
///
/// # Errors
/// What `pin` returns.
pub fn across<E>(
    cpus: &CpuSet,
    reads: u64,
    mut pin: impl FnMut(usize) -> Result<(), E>,
    mut read: impl FnMut() -> CountAndAux,
    mut ended: impl FnMut() -> bool,
) -> Result<Crossed, E> {
    let stays = STAYS.max(4 * cpus.len() as u64);
    let per_stay = reads.div_ceil(stays).max(1);
    let mut found = Crossed {
        asked_reads: reads,
        monotony: Monotony::new(),
        ..Crossed::default()
    };
    let mut visited = CpuSet::new();
    let mut before: Option<(u64, Option<u32>)> = None;
    let round: Vec<usize> = cpus.iter().collect();
    for (stay, cpu) in round.into_iter().cycle().enumerate() {
        if found.monotony.reads >= reads || ended() {
            break;
        }
        if stay == 0 || cpus.len() > 1 {
            pin(cpu)?;
            found.migrations += u64::from(stay > 0);
        }
        visited.insert(cpu);
        for done in 0..per_stay.min(reads - found.monotony.reads) {
            let (ticks, aux) = read();
            let named = aux.map(cpu_of);
            if done == 0
                && let Some(named) = named
            {
                *found.wrong_cpu_names.get_or_insert(0) += u64::from(named as usize != cpu);
            }
            // Without TSC_AUX the CPU is the one pinned to.
            let now = (ticks, named.or(u32::try_from(cpu).ok()));
            match before {
                Some(before) => found.monotony.compare(before, now),
                None => found.monotony.start(),
            }
            before = Some(now);
            if done % READS_BETWEEN_LOOKS == READS_BETWEEN_LOOKS - 1 && ended() {
                break;
            }
        }
    }
    found.cpus = visited.len();
    Ok(found)
}

/// As [`across`], by a thread of its own that is really moved.
///
/// # Errors
/// When the thread cannot be started or pinned, or `stop` says so.
pub fn across_migrations(
    cpus: &CpuSet,
    reads: u64,
    read: impl Fn() -> CountAndAux + Send,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Crossed, TrustError> {
    let deadline = Instant::now() + super::time_for(reads);
    let found = thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("migrate".to_owned())
            .spawn_scoped(scope, || {
                across(cpus, reads, pinning::pin_current_thread, read, || {
                    stop() || Instant::now() > deadline
                })
            })
            .map_err(TrustError::Spawn)?;
        join(thread).map_err(TrustError::from)
    })?;
    if stop() {
        return Err(TrustError::Interrupted);
    }
    Ok(found)
}

/// What threads on all CPUs saw that share their latest reading.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Shared {
    /// Readings asked for.
    pub asked_reads: u64,
    /// Threads, one a CPU.
    pub cpus: usize,
    /// What the readings showed; a backward step is one behind the latest of any CPU, a crossing a reading whose latest
    /// was another CPU's: only those compare CPUs.
    #[serde(flatten)]
    pub monotony: Monotony,
}

/// The latest reading of all threads, on a line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Latest(AtomicU64);

/// Reads on all CPUs at once; `read` gets the CPU's number.
///
/// # Errors
/// When a thread cannot be started or pinned, or `stop` says so.
pub fn shared(
    cpus: &CpuSet,
    reads: u64,
    read: &(dyn Fn(usize) -> u64 + Sync),
    pinned: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Shared, TrustError> {
    let deadline = Instant::now() + super::time_for(reads);
    let each = reads.div_ceil(cpus.len().max(1) as u64);
    let latest = Latest::default();
    let ready = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let ended = || over.load(Ordering::Relaxed) || stop() || Instant::now() > deadline;
    let on = |cpu: usize| -> Result<Monotony, HostError> {
        let mut found = Monotony::new();
        if pinned && let Err(error) = pinning::pin_current_thread(cpu) {
            over.store(true, Ordering::Relaxed);
            return Err(error);
        }
        ready.fetch_add(1, Ordering::Relaxed);
        while ready.load(Ordering::Relaxed) < cpus.len() {
            if ended() {
                return Ok(found);
            }
            thread::yield_now();
        }
        let name = u32::try_from(cpu).ok();
        let mut own = 0;
        for done in 0..each {
            // Acquire: what is read behind it was read behind the reading it holds.
            let before = latest.0.load(Ordering::Acquire);
            let now = read(cpu);
            // Whose the latest is is not known, only whether it is another's.
            let whose = name.filter(|_| before == own);
            found.compare((before, whose), (now, name));
            own = now;
            latest.0.fetch_max(now, Ordering::AcqRel);
            if done % READS_BETWEEN_LOOKS == 0 && ended() {
                break;
            }
        }
        Ok(found)
    };
    let mut all = Shared {
        asked_reads: each * cpus.len() as u64,
        cpus: cpus.len(),
        monotony: Monotony::new(),
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut failure = None;
        for cpu in cpus.iter() {
            let spawned = thread::Builder::new()
                .name(format!("read {cpu}"))
                .spawn_scoped(scope, move || on(cpu));
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    over.store(true, Ordering::Relaxed);
                    failure = Some(TrustError::Spawn(error));
                    break;
                }
            }
        }
        for thread in threads {
            match join(thread) {
                Ok(monotony) => all.monotony.merge(&monotony),
                Err(error) => failure = Some(error.into()),
            }
        }
        failure.map_or(Ok(()), Err)
    })?;
    if stop() {
        return Err(TrustError::Interrupted);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;
    use crate::time::{Clock, Monotonic};

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// Goes round the CPUs of a scripted machine: `step` counts between readings, `ahead` the offset of each CPU.
    fn scripted(
        ahead: &[u64],
        step: u64,
        reads: u64,
        aux: impl Fn(usize) -> Option<u32>,
    ) -> Crossed {
        let (now, here) = (Cell::new(1_000_000), Cell::new(0));
        let pin = |cpu| {
            here.set(cpu);
            Ok::<_, Infallible>(())
        };
        let read = || {
            now.set(now.get() + step);
            (now.get() + ahead[here.get()], aux(here.get()))
        };
        let all = (0..ahead.len()).collect();
        across(&all, reads, pin, read, || false).unwrap()
    }

    fn named(cpu: usize) -> Option<u32> {
        // Node 3 above the CPU's number.
        Some(3 << 12 | cpu as u32)
    }

    #[test]
    fn counters_that_agree_never_step_back() {
        let found = scripted(&[0, 0, 0, 0], 20, 10_000, named);
        assert_eq!(found.monotony.reads, 10_000);
        assert_eq!((found.migrations, found.cpus), (199, 4));
        assert_eq!(found.monotony.crossings, 199);
        assert_eq!(
            (found.monotony.backward_steps, found.monotony.repeated),
            (0, 0)
        );
        assert_eq!(found.wrong_cpu_names, Some(0));
    }

    #[test]
    fn a_cpu_that_is_ahead_makes_a_step_back_whenever_it_is_left() {
        let found = scripted(&[0, 1000], 20, 10_000, named);
        // 200 stays, every second one on CPU 1; the last one is not left.
        assert_eq!(found.monotony.backward_steps, 99);
        let step = found.monotony.largest_steps[0];
        assert_eq!(
            (step.ticks, step.from_cpu, step.to_cpu),
            (980, Some(1), Some(0))
        );
    }

    #[test]
    fn an_offset_shorter_than_the_move_does_not_show() {
        assert_eq!(
            scripted(&[0, 20], 20, 10_000, named)
                .monotony
                .backward_steps,
            0
        );
        assert_eq!(scripted(&[0, 21], 20, 10_000, named).monotony.largest(), 1);
    }

    #[test]
    fn a_counter_that_stands_still_repeats_itself() {
        let found = scripted(&[0, 0], 0, 1000, named);
        assert_eq!((found.monotony.reads, found.monotony.repeated), (1000, 999));
        assert!(found.monotony.stood_still());
    }

    #[test]
    fn what_tsc_aux_says_is_checked_and_replaced_where_it_is_missing() {
        let wrong = scripted(&[0, 0], 20, 10_000, |_| Some(0));
        assert_eq!(
            (wrong.wrong_cpu_names, wrong.monotony.crossings),
            (Some(100), 0)
        );
        let none = scripted(&[0, 0], 20, 10_000, |_| None);
        assert_eq!((none.wrong_cpu_names, none.monotony.crossings), (None, 199));
    }

    #[test]
    fn every_cpu_is_read_on_even_with_few_readings() {
        let found = scripted(&[0; 300], 1, 2_000, named);
        assert_eq!((found.cpus, found.monotony.reads), (300, 2_000));
        let one = scripted(&[0], 1, 777, named);
        assert_eq!((one.migrations, one.monotony.reads), (0, 777));
    }

    #[test]
    fn an_end_before_the_last_reading_is_told() {
        let looks = Cell::new(0);
        let ended = || {
            looks.set(looks.get() + 1);
            looks.get() > 3
        };
        let found = across(
            &cpus("0-1"),
            1 << 30,
            |_| Ok::<_, Infallible>(()),
            || (1, None),
            ended,
        );
        let found = found.unwrap();
        assert!(found.monotony.reads > 0 && found.monotony.reads < found.asked_reads);
    }

    #[test]
    fn a_thread_is_really_moved() {
        let all = pinning::current_affinity().unwrap();
        let read = || {
            let cpu = pinning::current_cpu().unwrap() as u32;
            (Monotonic::default().now().0, Some(cpu))
        };
        let found = across_migrations(&all, 20_000, read, &|| false).unwrap();
        assert_eq!((found.monotony.reads, found.cpus), (20_000, all.len()));
        assert_eq!(found.wrong_cpu_names, Some(0));
        assert_eq!(found.monotony.backward_steps, 0);
        if all.len() > 1 {
            assert_eq!(found.monotony.crossings, found.migrations);
        }
    }

    #[test]
    fn threads_that_share_their_latest_reading_find_the_one_behind() {
        let agree = |_| Monotonic::default().now().0;
        let found = shared(&cpus("0-1"), 200_000, &agree, false, &|| false).unwrap();
        assert_eq!(
            (found.monotony.reads, found.monotony.backward_steps),
            (200_000, 0)
        );
        // Not before the other one has stored a reading: on a busy machine it may come late.
        let stored = AtomicUsize::new(0);
        let behind = |cpu: usize| {
            if cpu == 0 {
                stored.fetch_add(1, Ordering::SeqCst);
            } else {
                while stored.load(Ordering::SeqCst) < 2 {
                    thread::yield_now();
                }
            }
            Monotonic::default().now().0 - 3_000_000_000 * cpu as u64
        };
        let found = shared(&cpus("0-1"), 200_000, &behind, false, &|| false).unwrap();
        let step = found.monotony.largest_steps[0];
        assert!(found.monotony.backward_steps > 0);
        assert_eq!((step.from_cpu, step.to_cpu), (None, Some(1)));
        assert!(
            (1_000_000_000..=3_000_000_000).contains(&step.ticks),
            "{step:?}"
        );
        // All of the one that is behind, but for its first, are behind a reading of the other.
        assert!(found.monotony.crossings >= 99_999, "{found:?}");
    }

    #[test]
    fn readings_against_none_but_the_own_are_no_crossings() {
        let read = |_| Monotonic::default().now().0;
        let found = shared(&cpus("0"), 10_000, &read, false, &|| false).unwrap();
        assert_eq!(
            (found.monotony.reads, found.monotony.crossings),
            (10_000, 0)
        );
    }

    #[test]
    fn nothing_hangs_on_a_missing_cpu_or_after_the_stop_flag() {
        let read = |_| Monotonic::default().now().0;
        let begun = Instant::now();
        let missing = shared(&cpus("0,1023"), 1 << 40, &read, true, &|| false);
        assert!(matches!(missing, Err(TrustError::Host(_))), "{missing:?}");
        let stopped = shared(&cpus("0-1"), 1 << 40, &read, false, &|| true);
        assert!(matches!(stopped, Err(TrustError::Interrupted)));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
