//! The generators' own peak, and the pause with which they draw a share of it.

use std::time::{Duration, Instant};

use super::accesses::Accesses;
use super::crew::{Generators, GeneratorsError};
use super::generator::{LONGEST_PAUSE, LineCounts, Load};
use crate::rig::error::unless_interrupted;

/// How long a load is generated before it is measured, and how long it is measured.
const WARMUP: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_millis(100);
/// A bandwidth that is so near to the one that is wanted will do.
const TOLERANCE: f64 = 0.02;
/// Halvings of the range of pauses, at most: it has 22 doublings, and the last ones matter most.
const MOST_STEPS: usize = 24;
/// And usually.
const USUAL_STEPS: u32 = 10;

/// A load that draws a share of the peak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibratedLoad {
    /// What does.
    pub load: Load,
    /// The lines that it issues in a second, in bytes, when nothing else runs.
    pub bytes_per_s: f64,
}

/// How long [`calibrate`] takes, about.
pub fn time(percents: &[u32]) -> Duration {
    let searches = percents.iter().filter(|percent| **percent < 100).count();
    (WARMUP + WINDOW) * (1 + USUAL_STEPS * searches as u32)
}

/// The bytes of the lines that all generators issue in a second under a load.
///
/// # Errors
/// When a generator does not answer, or a signal has come.
pub fn bandwidth(generators: &Generators, load: Load) -> Result<f64, GeneratorsError> {
    generators.generate(load)?;
    std::thread::sleep(WARMUP);
    let groups = || -> u64 { generators.groups().sum() };
    let (begun, before) = (Instant::now(), groups());
    std::thread::sleep(WINDOW);
    let lines = LineCounts::of_groups(groups() - before, &load.accesses);
    let bandwidth = lines.bytes() as f64 / begun.elapsed().as_secs_f64();
    unless_interrupted()?;
    Ok(bandwidth)
}

/// Loads that draw shares of the generators' peak, in percent; 100 is without pauses. They rest afterwards.
///
/// # Errors
/// Those of [`bandwidth`].
pub fn calibrate(
    generators: &Generators,
    accesses: Accesses,
    percents: &[u32],
) -> Result<Vec<CalibratedLoad>, GeneratorsError> {
    let measure = |pause| bandwidth(generators, Load { accesses, pause });
    let peak = measure(0)?;
    let found = percents.iter().map(|&percent| {
        let wanted = peak * f64::from(percent) / 100.0;
        let (pause, bytes_per_s) = match percent {
            100.. => (0, peak),
            _ => search(wanted, measure)?,
        };
        let load = Load { accesses, pause };
        Ok(CalibratedLoad { load, bytes_per_s })
    });
    let found: Result<Vec<CalibratedLoad>, GeneratorsError> = found.collect();
    generators.rest()?;
    found
}

/// The pause with which a bandwidth comes nearest to what is wanted. It falls with the pause.
fn search<E>(wanted: f64, mut measure: impl FnMut(u64) -> Result<f64, E>) -> Result<(u64, f64), E> {
    let (mut least, mut most) = (0, LONGEST_PAUSE);
    let mut nearest: Option<(u64, f64)> = None;
    for _ in 0..MOST_STEPS {
        // In the middle of the logarithms.
        let pause = ((least + 1) as f64 * (most + 1) as f64).sqrt() as u64 - 1;
        let found = measure(pause)?;
        if nearest.is_none_or(|(_, so_far)| (found - wanted).abs() < (so_far - wanted).abs()) {
            nearest = Some((pause, found));
        }
        if (found - wanted).abs() <= wanted * TOLERANCE || most - least <= 1 {
            break;
        }
        if found > wanted {
            least = pause;
        } else {
            most = pause;
        }
    }
    Ok(nearest.unwrap_or((LONGEST_PAUSE, 0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_found_for_each_share() {
        // A group takes 512 nops' time, and small pauses hide behind it.
        let bandwidth = |pause: u64| 512.0 / (512 + pause.saturating_sub(100)) as f64;
        for percent in [1, 5, 20, 50, 80, 99] {
            let wanted = f64::from(percent) / 100.0;
            let (pause, found) = search(wanted, |pause| Ok::<_, ()>(bandwidth(pause))).unwrap();
            assert_eq!(found, bandwidth(pause));
            let is_close = (found - wanted).abs() <= wanted * TOLERANCE;
            assert!(is_close, "{percent}: {pause} {found}");
        }
    }

    #[test]
    fn noise_ends_the_search_and_a_failure_is_told() {
        let mut turn = 0;
        let noisy = |_| {
            turn += 1;
            Ok::<_, ()>(if turn % 2 == 0 { 2.0 } else { 0.2 })
        };
        assert!(search(1.0, noisy).is_ok());
        assert!(turn <= MOST_STEPS);
        assert_eq!(search(1.0, |_| Err("interrupted")), Err("interrupted"));
    }
}
