//! Readings of the counter that must never go backwards: by one thread that is moved from CPU to CPU, and by threads on
//! all CPUs, each reading against the latest of all.
//!
//! A thread that is moved sees offsets longer than its move, which takes microseconds. Threads that share their latest
//! reading see those longer than a cache line takes from CPU to CPU.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::host::{CpuSet, HostError, pinning};
use crate::rig::in_threads::{SignalCheck, ThreadJob, ThreadsError, in_threads};

/// How many backward steps are kept one by one.
const KEPT_STEPS: usize = 10;

/// Stays on a CPU, on a machine with few.
const STAYS: u64 = 200;

/// Readings between two looks at the clock and at the stop flag.
const READS_BETWEEN_LOOKS: u64 = 1024;

/// A reading that was earlier than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BackwardStep {
    pub ticks: u64,
    /// The CPU of the reading before, where it is known.
    pub from_cpu: Option<u32>,
    pub to_cpu: Option<u32>,
}

/// What a row of readings showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Monotony {
    pub asked_reads: u64,
    pub cpus: usize,
    pub reads: u64,
    /// Pairs of neighbours that were read on two CPUs.
    pub crossings: u64,
    pub repeated: u64,
    /// Readings that were earlier than the one before.
    pub backward_steps: u64,
    /// The ten largest of those, the largest first.
    pub largest_steps: Vec<BackwardStep>,
}

impl Monotony {
    fn new(asked_reads: u64, cpus: usize) -> Self {
        Self {
            asked_reads,
            cpus,
            largest_steps: Vec::with_capacity(KEPT_STEPS + 1),
            ..Self::default()
        }
    }

    /// Takes a reading and the one before it, each with its CPU where that is known.
    #[inline]
    fn compare(&mut self, before: (u64, Option<u32>), now: (u64, Option<u32>)) {
        self.reads += 1;
        if before.1 != now.1 {
            self.crossings += 1;
        }
        if now.0 == before.0 {
            self.repeated += 1;
        }
        if now.0 < before.0 {
            self.backward_steps += 1;
            self.keep(BackwardStep {
                ticks: before.0 - now.0,
                from_cpu: before.1,
                to_cpu: now.1,
            });
        }
    }

    #[cold]
    fn keep(&mut self, step: BackwardStep) {
        self.largest_steps.push(step);
        self.largest_steps.sort_by(|a, b| b.cmp(a));
        self.largest_steps.truncate(KEPT_STEPS);
    }

    fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.crossings += other.crossings;
        self.repeated += other.repeated;
        self.backward_steps += other.backward_steps;
        other.largest_steps.iter().for_each(|step| self.keep(*step));
    }

    /// The largest step back, in counts; 0 if there was none.
    pub fn largest(&self) -> u64 {
        self.largest_steps.first().map_or(0, |step| step.ticks)
    }

    /// Whether no reading differed from the one before.
    pub fn stood_still(&self) -> bool {
        self.reads > 1 && self.repeated + 1 >= self.reads
    }
}

/// What a thread saw that was moved from CPU to CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MigrationReadings {
    pub migrations: u64,
    /// Stays in which TSC_AUX named another CPU than the thread was pinned to; `None` without rdtscp.
    pub wrong_cpu_names: Option<u64>,
    #[serde(flatten)]
    pub monotony: Monotony,
}

/// A reading of the counter, and of TSC_AUX with it.
pub type CountAndAux = (u64, Option<u32>);

/// The CPU in TSC_AUX as Linux fills it: below the node's number, in twelve bits.
fn cpu_of(aux: u32) -> u32 {
    aux & 0xfff
}

/// Reads `reads` times while going round `cpus`: `pin` moves the thread, `read` reads, `ended` is asked now and then.
fn across(
    cpus: &CpuSet,
    reads: u64,
    mut pin: impl FnMut(usize) -> Result<(), HostError>,
    mut read: impl FnMut() -> CountAndAux,
    mut ended: impl FnMut() -> bool,
) -> Result<MigrationReadings, HostError> {
    let stays = STAYS.max(4 * cpus.len() as u64);
    let per_stay = reads.div_ceil(stays).max(1);
    let mut found = MigrationReadings {
        monotony: Monotony::new(reads, 0),
        ..MigrationReadings::default()
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
                None => found.monotony.reads += 1,
            }
            before = Some(now);
            if done % READS_BETWEEN_LOOKS == READS_BETWEEN_LOOKS - 1 && ended() {
                break;
            }
        }
    }
    found.monotony.cpus = visited.len();
    Ok(found)
}

/// How long this many readings may take: far more than they do, so that a machine under load comes to an end too.
fn deadline(reads: u64) -> Instant {
    Instant::now() + Duration::from_secs(10) + Duration::from_micros(reads)
}

/// Reads `reads` times in a thread that is moved from CPU to CPU.
pub fn across_migrations(
    cpus: &CpuSet,
    reads: u64,
    read: impl Fn() -> CountAndAux + Send,
    stop: SignalCheck<'_>,
) -> Result<MigrationReadings, ThreadsError> {
    let deadline = deadline(reads);
    let ended = || stop() || Instant::now() > deadline;
    let work: ThreadJob<'_, _> =
        Box::new(|| across(cpus, reads, pinning::pin_current_thread, read, ended));
    let jobs = vec![("migrate".to_owned(), work)];
    let found = in_threads(jobs, &AtomicBool::new(false), stop)?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// The latest reading of all threads, on a separate line.
#[repr(align(128))]
#[derive(Default)]
struct LatestReading(AtomicU64);

/// Reads on all CPUs at once; `read` gets the CPU's number. Threads are pinned but in tests.
pub fn shared(
    cpus: &CpuSet,
    reads: u64,
    read: &(dyn Fn(usize) -> u64 + Sync),
    pinned: bool,
    stop: SignalCheck<'_>,
) -> Result<Monotony, ThreadsError> {
    let deadline = deadline(reads);
    let each = reads.div_ceil(cpus.len().max(1) as u64);
    let latest = LatestReading::default();
    let ready = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let ended = || over.load(Ordering::Relaxed) || stop() || Instant::now() > deadline;
    let on = |cpu: usize| {
        let mut found = Monotony::new(0, 0);
        if pinned {
            pinning::pin_current_thread(cpu)?;
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
    let on = &on;
    let jobs = cpus.iter().map(|cpu| {
        let job: ThreadJob<'_, _> = Box::new(move || on(cpu));
        (format!("read {cpu}"), job)
    });
    let mut all = Monotony::new(each * cpus.len() as u64, cpus.len());
    for found in in_threads(jobs.collect(), &over, stop)? {
        all.merge(&found);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::time::{Clock, Posix};

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// Goes round the CPUs of a scripted machine: `step` counts between readings, `ahead` the offset of each CPU.
    fn scripted(
        ahead: &[u64],
        step: u64,
        reads: u64,
        aux: impl Fn(usize) -> Option<u32>,
    ) -> MigrationReadings {
        let (now, here) = (Cell::new(1_000_000), Cell::new(0));
        let pin = |cpu| {
            here.set(cpu);
            Ok(())
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
    fn a_step_back_is_found_whenever_a_cpu_is_left_that_is_ahead_by_more_than_the_move() {
        // 200 stays, every second one on CPU 1; the last one is not left.
        for (ahead, repeated, steps, largest) in [
            (0, 0, 0, 0),
            (20, 99, 0, 0),
            (21, 0, 99, 1),
            (1000, 0, 99, 980),
        ] {
            let found = scripted(&[0, ahead], 20, 10_000, named);
            assert_eq!((found.migrations, found.wrong_cpu_names), (199, Some(0)));
            let found = found.monotony;
            assert_eq!((found.reads, found.cpus), (10_000, 2));
            assert_eq!((found.crossings, found.repeated), (199, repeated));
            assert_eq!((found.backward_steps, found.largest()), (steps, largest));
            assert!(!found.stood_still());
            // Of all steps the largest are kept.
            assert_eq!(found.largest_steps.len() as u64, steps.min(10));
            for step in found.largest_steps {
                assert_eq!((step.from_cpu, step.to_cpu), (Some(1), Some(0)));
            }
        }
    }

    #[test]
    fn steps_of_two_rows_are_kept_by_their_size() {
        let of = |sizes: std::ops::Range<u64>| {
            let mut found = Monotony::new(0, 0);
            sizes.for_each(|size| found.compare((1000, None), (1000 - size, None)));
            found
        };
        let mut both = of(1..6);
        both.merge(&of(3..51));
        assert_eq!((both.reads, both.backward_steps), (53, 53));
        let sizes = both.largest_steps.iter().map(|step| step.ticks);
        assert!(sizes.eq((41..51).rev()));
    }

    #[test]
    fn a_counter_that_stands_still_repeats_itself() {
        let found = scripted(&[0, 0], 0, 1000, named).monotony;
        assert_eq!((found.reads, found.repeated), (1000, 999));
        assert!(found.stood_still());
        assert!(!scripted(&[0], 0, 1, named).monotony.stood_still());
    }

    #[test]
    fn what_tsc_aux_says_is_checked_and_replaced_where_it_is_missing() {
        let wrong = scripted(&[0, 0], 20, 10_000, |_| Some(0));
        assert_eq!(wrong.wrong_cpu_names, Some(100));
        assert_eq!(wrong.monotony.crossings, 0);
        let none = scripted(&[0, 0], 20, 10_000, |_| None);
        assert_eq!((none.wrong_cpu_names, none.monotony.crossings), (None, 199));
    }

    #[test]
    fn every_cpu_is_read_on_even_with_few_readings() {
        let found = scripted(&[0; 300], 1, 2_000, named).monotony;
        assert_eq!((found.cpus, found.reads), (300, 2_000));
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
        let found = across(&cpus("0-1"), 1 << 30, |_| Ok(()), || (1, None), ended);
        let found = found.unwrap().monotony;
        assert!(found.reads > 0 && found.reads < found.asked_reads);
    }

    #[test]
    fn a_thread_is_really_moved() {
        let all = pinning::current_affinity().unwrap();
        let read = || {
            let cpu = pinning::current_cpu().unwrap() as u32;
            (Posix::MONOTONIC.now().0, Some(cpu))
        };
        let found = across_migrations(&all, 20_000, read, &|| false).unwrap();
        assert_eq!(found.wrong_cpu_names, Some(0));
        let monotony = found.monotony;
        assert_eq!((monotony.reads, monotony.cpus), (20_000, all.len()));
        assert_eq!(monotony.backward_steps, 0);
        assert_eq!(monotony.crossings, found.migrations);
    }

    #[test]
    fn threads_that_share_their_latest_reading_find_the_one_behind() {
        let agree = |_| Posix::MONOTONIC.now().0;
        let found = shared(&cpus("0-1"), 200_000, &agree, false, &|| false).unwrap();
        assert_eq!((found.reads, found.backward_steps), (200_000, 0));
        // A thread that is alone follows none but itself.
        let alone = shared(&cpus("0"), 10_000, &agree, false, &|| false).unwrap();
        assert_eq!((alone.reads, alone.crossings), (10_000, 0));
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
            Posix::MONOTONIC.now().0 - 3_000_000_000 * cpu as u64
        };
        let found = shared(&cpus("0-1"), 200_000, &behind, false, &|| false).unwrap();
        let step = found.largest_steps[0];
        assert_eq!((step.from_cpu, step.to_cpu), (None, Some(1)));
        let is_within = (1_000_000_000..=3_000_000_000).contains(&step.ticks);
        assert!(is_within, "{step:?}");
        // All of the one that is behind, but for its first, are behind a reading of the other.
        assert!(found.crossings >= 99_999, "{found:?}");
    }

    #[test]
    fn nothing_hangs_on_a_missing_cpu_or_after_the_stop_flag() {
        let read = |_| Posix::MONOTONIC.now().0;
        let begun = Instant::now();
        let missing = shared(&cpus("0,1023"), 1 << 40, &read, true, &|| false);
        assert!(matches!(missing, Err(ThreadsError::Host(_))), "{missing:?}");
        let stopped = shared(&cpus("0-1"), 1 << 40, &read, false, &|| true);
        assert!(matches!(stopped, Err(ThreadsError::Interrupted)));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
