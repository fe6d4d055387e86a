//! The measurement of a point: a wait until the bandwidth is stable, then one window after another.

use std::time::{Duration, Instant};

use super::config::Config;
use super::error::RunError;
use crate::generators::chase::Stretch;
use crate::generators::{Chase, Generators, Load};
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
    pub chase: Stretch,
    /// Groups of each generator.
    pub groups: Vec<u64>,
    /// Bytes that the memory controllers counted, where they can be read.
    pub controllers_bytes: Option<u64>,
}

/// What was measured of a point in a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// In their order.
    pub windows: Vec<Window>,
    /// How long was waited for a stable bandwidth.
    pub settle_time: Duration,
    /// Whether it was.
    pub settled: bool,
}

/// The chase, the generators, and the counters of memory controllers.
#[derive(Debug)]
pub struct Bench {
    /// On the calling thread.
    pub chase: Chase,
    /// On CPUs of their own.
    pub generators: Generators,
    /// Where they can be read.
    pub controllers: Option<Uncore>,
}

impl Bench {
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
    ) -> Result<(Measured, Option<RigError>), RunError> {
        match load {
            Some(load) => self.generators.generate(load)?,
            None => self.generators.rest()?,
        }
        let mut measured = Measured::default();
        let ended = self
            .windows(load.is_some(), config, &mut measured, &mut look)
            .err();
        self.generators.rest()?;
        Ok((measured, ended))
    }

    fn windows(
        &mut self,
        is_loaded: bool,
        config: &Config,
        measured: &mut Measured,
        look: &mut impl FnMut(usize) -> Result<(), RigError>,
    ) -> Result<(), RigError> {
        let begun = Instant::now();
        let mut latest = Vec::new();
        measured.settled = !is_loaded;
        while !measured.settled && begun.elapsed() < config.settle {
            look(0)?;
            let window = self.window(begun, config.window);
            latest.push(rate(&window));
            measured.settled = agree(&latest);
        }
        measured.settle_time = begun.elapsed();
        let begun = Instant::now();
        for done in 0..config.windows as usize {
            look(done)?;
            let window = self.window(begun, config.window);
            measured.windows.push(window);
        }
        Ok(())
    }

    fn window(&mut self, begun: Instant, time: Duration) -> Window {
        let start = begun.elapsed();
        let controllers = self.controllers_bytes();
        let before: Vec<u64> = self.generators.groups().collect();
        let chase = self.chase.run(time);
        let groups = self
            .generators
            .groups()
            .zip(before)
            .map(|(after, before)| after - before);
        Window {
            start,
            chase,
            groups: groups.collect(),
            controllers_bytes: (self.controllers_bytes().zip(controllers))
                .map(|(after, before)| after.saturating_sub(before)),
        }
    }
}

impl Bench {
    /// What the controllers have counted. Who cannot be read once is not asked again.
    fn controllers_bytes(&mut self) -> Option<u64> {
        let read = self.controllers.as_mut()?.read();
        if read.is_err() {
            self.controllers = None;
        }
        read.ok().map(|moved| moved.all())
    }
}

/// Groups of all generators a second.
fn rate(window: &Window) -> f64 {
    window.groups.iter().sum::<u64>() as f64 / window.chase.time.as_secs_f64()
}

/// Whether the latest rates are about the same.
fn agree(rates: &[f64]) -> bool {
    let Some(latest) = rates.last_chunk::<AGREEING>() else {
        return false;
    };
    let most = latest.iter().copied().fold(f64::MIN, f64::max);
    let least = latest.iter().copied().fold(f64::MAX, f64::min);
    least > 0.0 && most - least <= APART * most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_stable_when_the_latest_windows_agree() {
        assert!(!agree(&[1.0; AGREEING - 1]));
        assert!(agree(&[9.0, 1.0, 1.0, 1.0, 0.95, 0.91]));
        assert!(!agree(&[1.0, 1.0, 0.89, 1.0, 1.0]));
        assert!(!agree(&[0.0; AGREEING]));
    }
}
