//! The measurement of a point: a wait until the bandwidth is stable, then one window after another.

use std::time::{Duration, Instant};

use super::config::Config;
use super::error::RunError;
use crate::generators::chase::ChaseTiming;
use crate::generators::{Chase, Generators, Load};
use crate::host::throttling::{ThrottleCounters, ThrottlingRecord};
use crate::host::tlb::{TlbCounters, TlbCounts};
use crate::host::uncore::Uncore;
use crate::rig::error::RigError;

/// Windows that must agree before the first that is measured.
pub(super) const AGREEING: usize = 5;
/// How far the groups of the least and the most of them may be apart, as a share of the most.
const APART: f64 = 0.1;

/// A stretch of the chase, and what happened meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Since the first window.
    pub start: Duration,
    /// Steps and time of the chase.
    pub chase: ChaseTiming,
    /// Groups of each generator.
    pub groups: Vec<u64>,
    /// Bytes that the memory controllers counted, where they can be read.
    pub controllers_bytes: Option<u64>,
    /// What translations of the chase's addresses took, where it can be counted.
    pub tlb: Option<TlbCounts>,
}

/// What was measured of a point in a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredWindows {
    /// In their order.
    pub windows: Vec<Window>,
    /// How long was waited for a stable bandwidth.
    pub settle_time: Duration,
    /// Whether it was.
    pub settled: bool,
    /// What CPU quotas did during the windows.
    pub throttled: ThrottlingRecord,
}

/// The chase, the generators, and the counters of memory controllers.
#[derive(Debug)]
pub struct MemoryInstruments {
    /// On the calling thread.
    pub chase: Chase,
    /// On CPUs of their own.
    pub generators: Generators,
    /// Where they can be read.
    pub controllers: Option<Uncore>,
    /// Of the calling thread, where they can be read.
    pub tlb: Option<TlbCounters>,
}

impl MemoryInstruments {
    /// Measures the windows of a point. `look` is asked between two of them; with a signal what was measured until then
    /// comes beside it.
    ///
    /// # Errors
    /// When generators do not do as they are told.
    pub fn measure(
        &mut self,
        load: Option<Load>,
        config: &Config,
        mut look: impl FnMut(usize) -> Result<(), RigError>,
    ) -> Result<(MeasuredWindows, Option<RigError>), RunError> {
        match load {
            Some(load) => self.generators.generate(load)?,
            None => self.generators.rest()?,
        }
        let mut measured = MeasuredWindows::default();
        let mut throttling = ThrottleCounters::open();
        let ended = self.windows(load, config, &mut measured, &mut throttling, &mut look);
        measured.throttled = throttling.record();
        self.generators.rest()?;
        match ended {
            Ok(()) => Ok((measured, None)),
            Err(RunError::Rig(interrupted @ RigError::Interrupted(_))) => {
                Ok((measured, Some(interrupted)))
            }
            Err(error) => Err(error),
        }
    }

    fn windows(
        &mut self,
        load: Option<Load>,
        config: &Config,
        measured: &mut MeasuredWindows,
        throttling: &mut ThrottleCounters,
        look: &mut impl FnMut(usize) -> Result<(), RigError>,
    ) -> Result<(), RunError> {
        let begun = Instant::now();
        let mut latest = Vec::new();
        let of_one = load.map_or(0, |load| load.late_groups());
        let late = (of_one * self.generators.cpus().len() as u64) as f64;
        measured.settled = load.is_none();
        while !measured.settled && begun.elapsed() < config.settle {
            look(0)?;
            let window = self.window(begun, config.window)?;
            latest.push(rate(&window));
            measured.settled = agree(&latest, late / window.chase.time.as_secs_f64());
        }
        measured.settle_time = begun.elapsed();
        throttling.begin();
        let begun = Instant::now();
        for done in 0..config.windows as usize {
            look(done)?;
            let window = self.window(begun, config.window)?;
            measured.windows.push(window);
        }
        Ok(())
    }

    fn window(&mut self, begun: Instant, time: Duration) -> Result<Window, RunError> {
        let start = begun.elapsed();
        let before = self.count()?;
        let tlb_before = self.tlb.as_mut().and_then(TlbCounters::read);
        let groups_before: Vec<u64> = self.generators.groups().collect();
        let chase = self.chase.run(time);
        let groups = self.generators.groups().zip(groups_before);
        let groups = groups.map(|(after, before)| after - before).collect();
        let tlb = self.tlb.as_mut().and_then(TlbCounters::read);
        let after = self.count()?;
        // Reading them takes time, in which they count as well.
        let part = |before: ControllerReading, after: ControllerReading| {
            let share = chase.time.as_secs_f64() / (after.at - before.at).as_secs_f64();
            (after.bytes.saturating_sub(before.bytes) as f64 * share).round() as u64
        };
        Ok(Window {
            start,
            chase,
            groups,
            controllers_bytes: before.zip(after).map(|(before, after)| part(before, after)),
            tlb: tlb
                .zip(tlb_before)
                .and_then(|(after, before)| after.since(&before)),
        })
    }

    /// What the controllers have counted. One that cannot be read any more ends the run: bandwidths of two kinds in one
    /// curve are no curve.
    fn count(&mut self) -> Result<Option<ControllerReading>, RunError> {
        let at = Instant::now();
        let Some(controllers) = &mut self.controllers else {
            return Ok(None);
        };
        let moved = controllers.read().map_err(RunError::Controllers)?;
        let bytes = moved.all();
        Ok(Some(ControllerReading { at, bytes }))
    }
}

/// A reading of the memory controllers' counters.
#[derive(Debug, Clone, Copy)]
struct ControllerReading {
    /// When it began: each counter is read as long after that as the time before.
    at: Instant,
    bytes: u64,
}

/// Groups of all generators a second, of a window that begins and ends at any place of a group: as many as intervals.
fn rate(window: &Window) -> f64 {
    window.groups.iter().sum::<u64>() as f64 / window.chase.time.as_secs_f64()
}

/// Whether the latest rates are about the same, or no farther apart than that.
fn agree(rates: &[f64], slack: f64) -> bool {
    let Some(latest) = rates.last_chunk::<AGREEING>() else {
        return false;
    };
    let most = latest.iter().copied().fold(f64::MIN, f64::max);
    let least = latest.iter().copied().fold(f64::MAX, f64::min);
    least > 0.0 && most - least <= (APART * most).max(slack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_stable_when_the_latest_windows_agree() {
        assert!(!agree(&[1.0; AGREEING - 1], 0.0));
        assert!(agree(&[9.0, 1.0, 1.0, 1.0, 0.95, 0.91], 0.0));
        let apart = [1.0, 1.0, 0.89, 1.0, 1.0];
        assert!(!agree(&apart, 0.1) && agree(&apart, 0.12));
        assert!(!agree(&[0.0; AGREEING], 1.0));
    }
}
