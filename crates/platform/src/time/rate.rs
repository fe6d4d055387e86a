//! Which rate the time stamp counter is taken to have: the measured one, or one that the user gives.
//!
//! Every time stamp by TSC goes through the one [`TscRate`] of its run. A given rate is used as it is, and compared
//! with the measured one all the same.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Calibration, CalibrationError};

/// From here on a given rate is called into doubt, in parts per million of the measured one.
pub(super) const DOUBTFUL_PPM: f64 = 1000.0;

/// A rate of a time stamp counter as a user gives it, in whole kilohertz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TscKilohertz(u32);

impl TscKilohertz {
    /// The lowest rate taken: 100 MHz of a TSC, 1 MHz of other counters.
    pub const LOWEST: u32 = if cfg!(target_arch = "x86_64") {
        100_000
    } else {
        1_000
    };
    /// The highest rate taken, 10 GHz.
    pub const HIGHEST: u32 = 10_000_000;

    /// A rate in kilohertz; none if it is outside of what a counter can have.
    pub fn new(kilohertz: u32) -> Option<Self> {
        (Self::LOWEST..=Self::HIGHEST)
            .contains(&kilohertz)
            .then_some(Self(kilohertz))
    }

    /// Thousands of counts per second.
    pub fn kilohertz(self) -> u32 {
        self.0
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

impl FromStr for TscKilohertz {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().parse().ok();
        number.and_then(Self::new).ok_or_else(|| {
            let (lowest, highest) = (Self::LOWEST, Self::HIGHEST);
            format!("not a rate in whole kHz from {lowest} to {highest}")
        })
    }
}

/// Where a rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// The calibration against `CLOCK_MONOTONIC_RAW`.
    Measured,
    /// The processor's register CNTFRQ_EL0, which firmware writes.
    Cntfrq,
    /// The option `--tsc-khz`.
    TscKhz,
}

/// Why a rate is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateDoubt {
    /// The one of `--tsc-khz` is far from the measured one.
    Given,
    /// The one that firmware wrote is.
    Firmware,
    /// The measured rate did not settle, so that the given one was not compared.
    NotCompared,
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
    /// How far the given rate, or the one that the processor reports, lies from the measured one, in parts per million;
    /// `None` if either is missing.
    pub given_off_ppm: Option<f64>,
}

impl TscRate {
    /// The rate to use: the given one if there is one, else the one that the processor reports, else the measured one.
    pub fn decide(
        given: Option<TscKilohertz>,
        told: Option<f64>,
        measured: Result<Calibration, CalibrationError>,
    ) -> Result<Self, CalibrationError> {
        let given = given.map(|given| (given.hertz(), RateSource::TscKhz));
        let Some((hertz, source)) = given.or(told.map(|told| (told, RateSource::Cntfrq))) else {
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
            hertz,
            source,
            measured,
            given_off_ppm: measured.map(|of| (hertz - of.hertz) / of.hertz * 1e6),
        })
    }

    /// Why a given rate is in doubt; a measured one never is.
    pub fn doubt(&self) -> Option<RateDoubt> {
        let is_far = |ppm: f64| ppm.abs() > DOUBTFUL_PPM;
        match (self.source, self.given_off_ppm) {
            (RateSource::Measured, _) | (RateSource::Cntfrq, None) => None,
            (RateSource::TscKhz, None) => Some(RateDoubt::NotCompared),
            (RateSource::Cntfrq, Some(ppm)) => is_far(ppm).then_some(RateDoubt::Firmware),
            (RateSource::TscKhz, Some(ppm)) => is_far(ppm).then_some(RateDoubt::Given),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(measured: Option<f64>) -> TscRate {
        let measured = measured.map(Calibration::of).ok_or(CalibrationError {
            seconds: 1.0,
            disagreement_ppm: 50.0,
        });
        TscRate::decide(TscKilohertz::new(2_000_000), None, measured).unwrap()
    }

    #[test]
    fn only_what_a_counter_can_have_is_a_rate() {
        for good in ["100000", "2300000", " 10000000 "] {
            good.parse::<TscKilohertz>().unwrap();
        }
        let below = (TscKilohertz::LOWEST - 1).to_string();
        for bad in [below.as_str(), "10000001", "-5", "2.3e6", "", "2300 MHz"] {
            let error = bad.parse::<TscKilohertz>().unwrap_err();
            let lowest = TscKilohertz::LOWEST;
            assert_eq!(
                error,
                format!("not a rate in whole kHz from {lowest} to 10000000")
            );
        }
    }

    #[test]
    fn a_given_rate_is_used_and_doubted_from_a_thousandth_on() {
        for (measured, doubted) in [
            (Some(2e9), None),
            (Some(2e9 / 1.000_999), None),
            (Some(1.99e9), Some(RateDoubt::Given)),
            (Some(2e9 / 1.001_001), Some(RateDoubt::Given)),
            (Some(2e9 / 0.998_999), Some(RateDoubt::Given)),
            (None, Some(RateDoubt::NotCompared)),
        ] {
            let rate = given(measured);
            assert_eq!((rate.hertz, rate.source), (2e9, RateSource::TscKhz));
            let off = measured.map(|of| (2e9 - of) / of * 1e6);
            assert_eq!(rate.measured.map(|it| it.hertz), measured);
            assert_eq!(rate.given_off_ppm, off);
            assert_eq!(rate.doubt(), doubted);
        }
        let json = serde_json::to_value(given(Some(1.99e9))).unwrap();
        assert_eq!(json["source"], "tsc-khz");
        assert_eq!(json["hertz"], 2e9);
    }

    #[test]
    fn what_firmware_tells_is_used_unless_a_rate_is_given_and_doubted_if_it_is_wrong() {
        let decide = |given, told, measured| {
            let given = TscKilohertz::new(given);
            TscRate::decide(given, Some(told), Ok(Calibration::of(measured))).unwrap()
        };
        let rate = decide(0, 62.5e6, 62.5e6);
        assert_eq!((rate.hertz, rate.source), (62.5e6, RateSource::Cntfrq));
        assert_eq!((rate.given_off_ppm, rate.doubt()), (Some(0.0), None));
        let rate = decide(0, 50e6, 62.5e6);
        let off = (rate.given_off_ppm, rate.doubt());
        assert_eq!(off, (Some(-200_000.0), Some(RateDoubt::Firmware)));
        let rate = decide(2_000_000, 50e6, 2e9);
        assert_eq!((rate.hertz, rate.source), (2e9, RateSource::TscKhz));
        // Without a calibration the processor's word stands.
        let unsettled = CalibrationError {
            seconds: 1.0,
            disagreement_ppm: 50.0,
        };
        let rate = TscRate::decide(None, Some(1e9), Err(unsettled)).unwrap();
        assert_eq!((rate.hertz, rate.measured, rate.doubt()), (1e9, None, None));
    }

    #[test]
    fn a_measured_rate_is_not_in_doubt_and_must_have_settled() {
        let rate = TscRate::decide(None, None, Ok(Calibration::of(2.5e9))).unwrap();
        assert_eq!((rate.hertz, rate.source), (2.5e9, RateSource::Measured));
        assert_eq!((rate.given_off_ppm, rate.doubt()), (None, None));
    }
}
