//! The rate of a counter, measured against a clock that knows nanoseconds.
//!
//! A pair (counter, reference) is taken by reading the reference between two readings of the counter and keeping the
//! tightest of many tries: its width bounds the error of the pair. The rate over growing intervals is accepted when
//! three in a row agree; else the attempt fails and reports how far apart they were.

use std::time::Duration;

use serde::Serialize;

use super::{Clock, Ticks};

/// A counter's rate, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// Counts per second.
    pub hertz: f64,
    /// Half width of the interval the true rate lies in, as far as the readings themselves allow, in parts per million.
    pub uncertainty_ppm: f64,
    /// How far the accepted estimates lay apart, in parts per million.
    pub disagreement_ppm: f64,
    /// Seconds between the first and the last pair of readings.
    pub seconds: f64,
}

#[cfg(any(test, feature = "testing"))]
impl Calibration {
    /// One that settled at this rate, to 1 ppm.
    pub fn of(hertz: f64) -> Self {
        Calibration {
            hertz,
            uncertainty_ppm: 1.0,
            disagreement_ppm: 1.0,
            seconds: 0.06,
        }
    }
}

/// The estimates did not come to agree.
#[derive(Debug, thiserror::Error)]
#[error(
    "the counter's rate does not settle: after {seconds:.2} s the last estimates still differ by {disagreement_ppm:.1} ppm \
     ({AGREEMENT_PPM} are allowed); the machine is too busy or the counter is not constant: use --clock monotonic"
)]
pub struct CalibrationError {
    /// Seconds that were spent.
    pub seconds: f64,
    /// The spread of the last estimates, in parts per million.
    pub disagreement_ppm: f64,
}

const AGREEMENT_PPM: f64 = 20.0;
const ESTIMATES_THAT_MUST_AGREE: usize = 3;
const STEP: Duration = Duration::from_millis(20);
const MOST_STEPS: usize = 50;
const TRIES_PER_PAIR: usize = 64;

#[derive(Debug, Clone, Copy)]
struct ClockPair {
    /// The middle of the two counter readings.
    counter: f64,
    reference: Ticks,
    /// The distance between them.
    width: u64,
}

fn read_pair(counter: &mut impl FnMut() -> u64, reference: &impl Clock) -> ClockPair {
    let mut best: Option<ClockPair> = None;
    for _ in 0..TRIES_PER_PAIR {
        let before = counter();
        let now = reference.now();
        let after = counter();
        let width = after.saturating_sub(before);
        if best.is_none_or(|pair| width < pair.width) {
            best = Some(ClockPair {
                counter: before as f64 + width as f64 / 2.0,
                reference: now,
                width,
            });
        }
    }
    best.expect("at least one pair was read")
}

/// Measures the rate of `counter` against `reference`, waiting with `wait` between readings. Takes 60 ms as a rule and
/// about a second at the most.
pub fn calibrate_against<C: Clock>(
    mut counter: impl FnMut() -> u64,
    reference: &C,
    mut wait: impl FnMut(Duration),
) -> Result<Calibration, CalibrationError> {
    let first = read_pair(&mut counter, reference);
    let mut estimates: Vec<f64> = Vec::with_capacity(MOST_STEPS);
    let mut seconds = 0.0;
    let mut disagreement_ppm = f64::INFINITY;
    for _ in 0..MOST_STEPS {
        wait(STEP);
        let pair = read_pair(&mut counter, reference);
        let nanos = reference.to_nanos(pair.reference).0 - reference.to_nanos(first.reference).0;
        seconds = nanos as f64 / 1e9;
        let counts = pair.counter - first.counter;
        estimates.push(counts / seconds);
        let Some(start) = estimates.len().checked_sub(ESTIMATES_THAT_MUST_AGREE) else {
            continue;
        };
        let recent = &estimates[start..];
        let lowest = recent.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = recent.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        disagreement_ppm = (highest - lowest) / lowest * 1e6;
        if disagreement_ppm <= AGREEMENT_PPM && lowest > 0.0 {
            let widths = (first.width + pair.width) as f64 / 2.0;
            return Ok(Calibration {
                hertz: *recent.last().expect("three estimates"),
                uncertainty_ppm: widths / counts * 1e6,
                disagreement_ppm,
                seconds,
            });
        }
    }
    Err(CalibrationError {
        seconds,
        disagreement_ppm,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// A clock that moves only when it is told to, and by a step at each reading.
    #[derive(Clone, Copy)]
    struct Scripted;

    impl Clock for Scripted {
        fn now(&self) -> Ticks {
            NOW.set(NOW.get() + 20);
            Ticks(NOW.get())
        }
    }

    fn advance(length: Duration) {
        NOW.set(NOW.get() + length.as_nanos() as u64);
    }

    #[test]
    fn a_steady_counter_gets_its_rate() {
        let counter = || (NOW.get() as f64 * 2.345_678) as u64;
        let result = calibrate_against(counter, &Scripted, advance).unwrap();
        let is_close = (result.hertz / 2.345_678e9 - 1.0).abs() < 1e-6;
        assert!(is_close, "{result:?}");
        assert!(result.uncertainty_ppm < 2.0, "{result:?}");
        assert!(result.seconds < 0.1);
    }

    #[test]
    fn a_counter_that_changes_its_rate_or_stands_still_is_refused() {
        // Quadratic in time: no two estimates agree.
        let faster_and_faster = || {
            let seconds = NOW.get() as f64 / 1e9;
            (2e9 * seconds * (1.0 + seconds)) as u64
        };
        let error = calibrate_against(faster_and_faster, &Scripted, advance).unwrap_err();
        assert!(error.disagreement_ppm > AGREEMENT_PPM);
        assert!(calibrate_against(|| 7, &Scripted, advance).is_err());
    }
}
