//! Which rate the time stamp counter is taken to have: the measured one, or one that the user gives.
//!
//! Every time stamp by TSC goes through the one [`TscRate`] of its run. A given rate is used as it is, and compared with
//! the measured one all the same.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::{Calibration, CalibrationError};

/// From here on a given rate is called into doubt, in parts per million of the measured one.
pub const DOUBTFUL_PPM: f64 = 1000.0;

/// A rate of a time stamp counter as a user gives it, in whole kilohertz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct TscKilohertz(u32);

impl TscKilohertz {
    /// The lowest rate taken, 100 MHz.
    pub const LOWEST: u32 = 100_000;
    /// The highest rate taken, 10 GHz.
    pub const HIGHEST: u32 = 10_000_000;

    /// A rate in kilohertz; none if it is outside of what a counter can have.
    pub fn new(kilohertz: u32) -> Option<Self> {
        (Self::LOWEST..=Self::HIGHEST)
            .contains(&kilohertz)
            .then_some(Self(kilohertz))
    }

    /// Counts per second.
    pub fn hertz(self) -> f64 {
        f64::from(self.0) * 1e3
    }
}

impl fmt::Display for TscKilohertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text is no rate of a time stamp counter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a rate in whole kHz from {} to {}",
    TscKilohertz::LOWEST,
    TscKilohertz::HIGHEST
)]
pub struct TscKilohertzError;

impl FromStr for TscKilohertz {
    type Err = TscKilohertzError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().parse().ok();
        number.and_then(Self::new).ok_or(TscKilohertzError)
    }
}

/// Where a rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// The calibration against `CLOCK_MONOTONIC_RAW`.
    Measured,
    /// The option `--tsc-khz`.
    TscKhz,
}

/// The rate that time stamps by TSC are converted with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TscRate {
    /// Counts per second.
    pub hertz: f64,
    /// Where it comes from.
    pub source: RateSource,
    /// What was measured, whether it is used or not; `None` if that did not settle.
    pub measured: Option<Calibration>,
    /// How far the given rate lies from the measured one, in parts per million; `None` if either is missing.
    pub given_off_ppm: Option<f64>,
}

/// Why a given rate is doubtful.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RateDoubt {
    /// It is not what was measured.
    #[error(
        "--tsc-khz {given_khz:.0} is {ppm:+.0} ppm off the measured {measured_khz:.0} kHz, and every length of time with it: \
         leave it out to use the measured rate"
    )]
    Off {
        /// The given rate in kHz.
        given_khz: f64,
        /// The measured rate in kHz.
        measured_khz: f64,
        /// The distance, in parts per million of the measured rate.
        ppm: f64,
    },
    /// There is nothing to compare it with.
    #[error("--tsc-khz {given_khz:.0} could not be compared: the measured rate did not settle")]
    NotCompared {
        /// The given rate in kHz.
        given_khz: f64,
    },
}

impl TscRate {
    /// The rate to use: the given one if there is one, else the measured one.
    ///
    /// # Errors
    /// When there is neither.
    pub fn decide(
        given: Option<TscKilohertz>,
        measured: Result<Calibration, CalibrationError>,
    ) -> Result<Self, CalibrationError> {
        let Some(given) = given else {
            let measured = measured?;
            return Ok(TscRate {
                hertz: measured.hertz,
                source: RateSource::Measured,
                measured: Some(measured),
                given_off_ppm: None,
            });
        };
        let measured = measured.ok();
        Ok(TscRate {
            hertz: given.hertz(),
            source: RateSource::TscKhz,
            measured,
            given_off_ppm: measured.map(|of| (given.hertz() - of.hertz) / of.hertz * 1e6),
        })
    }

    /// What speaks against a given rate; nothing against a measured one.
    pub fn doubt(&self) -> Option<RateDoubt> {
        let given_khz = self.hertz / 1e3;
        match (self.source, self.measured, self.given_off_ppm) {
            (RateSource::Measured, _, _) => None,
            (RateSource::TscKhz, Some(measured), Some(ppm)) => (ppm.abs() > DOUBTFUL_PPM)
                .then_some(RateDoubt::Off {
                    given_khz,
                    measured_khz: measured.hertz / 1e3,
                    ppm,
                }),
            (RateSource::TscKhz, _, _) => Some(RateDoubt::NotCompared { given_khz }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(hertz: f64) -> Result<Calibration, CalibrationError> {
        Ok(Calibration::of(hertz))
    }

    fn unsettled() -> Result<Calibration, CalibrationError> {
        Err(CalibrationError {
            seconds: 1.0,
            disagreement_ppm: 50.0,
        })
    }

    fn given(kilohertz: u32) -> Option<TscKilohertz> {
        Some(TscKilohertz::new(kilohertz).unwrap())
    }

    #[test]
    fn only_what_a_counter_can_have_is_a_rate() {
        for good in ["100000", "2300000", " 10000000 "] {
            good.parse::<TscKilohertz>().unwrap();
        }
        for bad in [
            "99999",
            "10000001",
            "0",
            "-5",
            "2.3e6",
            "",
            "2300 MHz",
            "5000000000",
        ] {
            assert_eq!(bad.parse::<TscKilohertz>(), Err(TscKilohertzError), "{bad}");
        }
        assert_eq!(
            TscKilohertzError.to_string(),
            "not a rate in whole kHz from 100000 to 10000000"
        );
    }

    #[test]
    fn a_given_rate_is_used_and_compared() {
        let rate = TscRate::decide(given(2_000_000), measured(1.99e9)).unwrap();
        assert_eq!((rate.hertz, rate.source), (2e9, RateSource::TscKhz));
        assert!((rate.given_off_ppm.unwrap() - 1e7 / 1990.0).abs() < 1e-6);
        let json = serde_json::to_value(rate).unwrap();
        assert_eq!(
            (&json["source"], &json["hertz"]),
            (&"tsc-khz".into(), &2e9.into())
        );
        assert_eq!(json["measured"]["hertz"], 1.99e9);
        let doubt = rate.doubt().unwrap().to_string();
        assert!(
            doubt.contains("--tsc-khz 2000000 is +5025 ppm off the measured 1990000 kHz"),
            "{doubt}"
        );
    }

    #[test]
    fn a_thousandth_is_the_limit_of_doubt() {
        let doubt = |hertz| {
            TscRate::decide(given(2_000_000), measured(hertz))
                .unwrap()
                .doubt()
        };
        assert_eq!(doubt(2e9), None);
        assert_eq!(doubt(2e9 / 1.000_999), None);
        assert!(matches!(doubt(2e9 / 1.001_001), Some(RateDoubt::Off { ppm, .. }) if ppm > 0.0));
        assert!(matches!(doubt(2e9 / 0.998_999), Some(RateDoubt::Off { ppm, .. }) if ppm < 0.0));
    }

    #[test]
    fn where_nothing_settles_only_a_given_rate_can_be_used() {
        assert!(TscRate::decide(None, unsettled()).is_err());
        let rate = TscRate::decide(given(2_000_000), unsettled()).unwrap();
        assert_eq!((rate.measured, rate.given_off_ppm), (None, None));
        assert!(matches!(rate.doubt(), Some(RateDoubt::NotCompared { .. })));
    }

    #[test]
    fn a_measured_rate_is_not_in_doubt() {
        let rate = TscRate::decide(None, measured(2.5e9)).unwrap();
        assert_eq!((rate.hertz, rate.source), (2.5e9, RateSource::Measured));
        assert_eq!((rate.given_off_ppm, rate.doubt()), (None, None));
    }
}
