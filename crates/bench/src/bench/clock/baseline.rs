//! The usual difference between two readings, from which jumps are told.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::rig::control::StopFlag;
use crate::time::Reading;

use super::hot_loop::watch;

/// The mean difference of a CPU, before the watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Baseline {
    /// The mean, in ticks, over everything, jumps included.
    pub mean_ticks: f64,
    /// The smallest, in ticks.
    pub least_ticks: u64,
    /// The mean of the block of readings that was over soonest, in ticks: others on the CPU slow some blocks, not all.
    /// Only blocks of 1024 readings and more, or of half a [`LOOK`], are taken; where there is none, as with few
    /// iterations, it is the mean of everything.
    pub quickest_ticks: f64,
    pub iterations: u64,
}

/// It may take so long where a number of readings was asked for.
pub(super) const LONGEST: Duration = Duration::from_secs(10);
/// As long as it takes otherwise, where that has enough readings.
pub(super) const QUICK: Duration = Duration::from_millis(500);
/// Enough of them: a thread that has its CPU for the least of the time would take its stops for the usual.
pub(super) const ENOUGH: u64 = 100_000;

/// Readings between two looks at the time, at first; later as many as take [`LOOK`].
const FIRST_BLOCK: u64 = 64;
/// Blocks with fewer readings say nothing of the speed, unless they take long: a clock may move on in steps.
const LEAST_BLOCK: u64 = 1024;
/// The time between two looks, about.
pub(super) const LOOK: Duration = Duration::from_millis(5);

impl Baseline {
    /// Jumps are above this: twice the mean, in ticks, and at least two.
    pub(super) fn ticks(&self) -> u64 {
        (2.0 * self.mean_ticks).round().max(2.0) as u64
    }

    /// The mean of a watch, in ticks, is hardly below this: the smallest difference, which may be a freak, or half the
    /// mean of the quickest block, as the processor may get faster. Not the mean, which a busy machine makes larger
    /// without bound.
    pub(super) fn quickest_mean(&self) -> f64 {
        (self.least_ticks as f64)
            .max(self.quickest_ticks / 2.0)
            .max(0.5)
    }

    /// Readings that take about [`LOOK`].
    pub(super) fn block(&self, ticks_in_look: u64) -> u64 {
        (ticks_in_look as f64 / self.mean_ticks.max(0.5)).clamp(16.0, 1e6) as u64
    }
}

/// Measures the baseline over `asked` differences, or for [`QUICK`] and over at least [`ENOUGH`]; never longer than
/// [`LONGEST`], and until `stop` says so.
pub(super) fn measure<R: Reading>(clock: &R, asked: Option<u64>, stop: &StopFlag) -> Baseline {
    let started = Instant::now();
    let mut least: Option<u64> = None;
    let mut record = |difference| {
        least = Some(least.map_or(difference, |least| least.min(difference)));
    };
    let (mut done, mut total) = (0_u64, 0_u64);
    let mut block = FIRST_BLOCK;
    let mut quickest = f64::INFINITY;
    let mut from = clock.read();
    while asked.is_none_or(|asked| done < asked) {
        let look = Instant::now();
        let readings = asked.map_or(block, |asked| block.min(asked - done));
        let pass = watch(clock, &mut record, from, readings, u64::MAX >> 1);
        let now = Instant::now();
        // A pass in which the clock was set back does not count.
        if pass.found.is_none() {
            let ticks = pass.last.0.wrapping_sub(from.0);
            done += pass.readings;
            total += ticks;
            if pass.readings >= LEAST_BLOCK || now - look >= LOOK / 2 {
                quickest = quickest.min(ticks as f64 / pass.readings as f64);
            }
        }
        from = pass.last;
        let took = now - started;
        let enough = asked.is_none() && done >= ENOUGH && took >= QUICK;
        if enough || took >= LONGEST || stop.is_raised() {
            break;
        }
        if now - look < LOOK / 2 {
            block *= 2;
        }
    }
    let mean_ticks = total as f64 / done.max(1) as f64;
    Baseline {
        mean_ticks,
        least_ticks: least.unwrap_or(0),
        quickest_ticks: quickest.min(mean_ticks),
        iterations: done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clock::scripted::{Scripted, ScriptedReadings};

    fn measured(differences: &[u64]) -> Baseline {
        let count = Some(differences.len() as u64);
        ScriptedReadings::of_differences(7, differences)
            .play(|| measure(&Scripted, count, &StopFlag::default()))
    }

    #[test]
    fn is_twice_the_mean_of_as_many_as_asked_for() {
        let differences: Vec<u64> = [10, 20].repeat(500);
        let baseline = measured(&differences);
        assert_eq!((baseline.mean_ticks, baseline.least_ticks), (15.0, 10));
        assert_eq!(baseline.iterations, 1000);
        assert_eq!((baseline.ticks(), baseline.block(1500)), (30, 100));
        assert_eq!(baseline.quickest_mean(), 10.0);
        assert_eq!(measured(&[12]).ticks(), 24);
    }

    #[test]
    fn neither_a_busy_machine_nor_a_freak_hides_how_quick_the_clock_is() {
        // After the first blocks nine readings of ten of a block are followed by a stop.
        let differences: Vec<u64> = (0..20_000)
            .map(|n| if n > 2500 && n % 10 > 0 { 5000 } else { 10 })
            .collect();
        let mut baseline = measured(&differences);
        assert!(baseline.mean_ticks > 3000.0, "{baseline:?}");
        for least in [baseline.least_ticks, 1] {
            baseline.least_ticks = least;
            let quickest = baseline.quickest_mean();
            assert!((1.0..=10.0).contains(&quickest), "{baseline:?}");
        }
    }

    #[test]
    fn without_a_number_it_has_enough_readings_and_ends_by_itself() {
        let script = ScriptedReadings::of_differences(7, &[]).then_steps_of(10);
        let baseline = script.play(|| measure(&Scripted, None, &StopFlag::default()));
        assert!(baseline.iterations >= ENOUGH && baseline.mean_ticks == 10.0);
    }
}
