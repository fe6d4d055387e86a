//! The rate of the counter by each source that there is, and how far they disagree.

use serde::Serialize;

use crate::time::Calibration;

/// A source of the counter's rate. Some of them are to be found on one architecture only.
#[allow(dead_code)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrequencySource {
    /// The calibration against `CLOCK_MONOTONIC_RAW`.
    Calibration,
    /// The same, with the kernel's raw second corrected by what NTP has found of it.
    Ntp,
    /// Arm's register CNTFRQ_EL0, which firmware writes.
    Cntfrq,
    /// CPUID 15H: the crystal's frequency and the counter's ratio to it.
    CpuidCrystal,
    /// CPUID 16H: the processor's base frequency in MHz, nominal only.
    CpuidNominal,
    /// The hypervisor's leaf 4000_0010H, in kHz.
    Hypervisor,
    /// The kernel's file `tsc_freq_khz`, which some kernels have.
    KernelFile,
    /// The kernel's conversion of counts to nanoseconds, from the page of a perf event.
    KernelPerf,
    /// What the kernel logged when it started.
    KernelLog,
}

impl FrequencySource {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Ntp => "calibration, by NTP",
            Self::Cntfrq => "CNTFRQ_EL0, firmware",
            Self::CpuidCrystal => "CPUID 15H, crystal",
            Self::CpuidNominal => "CPUID 16H, nominal",
            Self::Hypervisor => "hypervisor's CPUID",
            Self::KernelFile => "kernel, tsc_freq_khz",
            Self::KernelPerf => "kernel, perf page",
            Self::KernelLog => "kernel, log",
        }
    }

    const fn note(self) -> Option<&'static str> {
        match self {
            Self::CpuidNominal => Some("in whole MHz, nominal only"),
            Self::KernelLog => Some("as found at boot"),
            _ => None,
        }
    }
}

/// The rate by one source, or why that source has none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Frequency {
    pub source: FrequencySource,
    pub hertz: Option<f64>,
    /// Half width of the interval the source leaves open, in parts per million, as far as it is known.
    pub uncertainty_ppm: Option<f64>,
    /// The distance from the calibration, in parts per million of that.
    pub from_calibration_ppm: Option<f64>,
    pub missing: Option<String>,
    pub note: Option<&'static str>,
}

impl Frequency {
    /// A rate, or the reason why there is none.
    fn of(source: FrequencySource, found: SourceResult<f64>, calibration: Option<f64>) -> Self {
        let (hertz, missing) = match found {
            Ok(hertz) if hertz.is_finite() && hertz > 0.0 => (Some(hertz), None),
            Ok(hertz) => (None, Some(format!("{hertz} Hz is not a rate"))),
            Err(reason) => (None, Some(reason)),
        };
        Self {
            source,
            hertz,
            uncertainty_ppm: None,
            from_calibration_ppm: hertz
                .zip(calibration)
                .map(|(it, by)| parts_per_million(it, by)),
            missing,
            note: source.note(),
        }
    }
}

/// The rate by a source, or the reason why it has none.
pub type SourceResult<T> = Result<T, String>;

/// The two sources that lie farthest apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Disagreement {
    pub lowest: FrequencySource,
    pub highest: FrequencySource,
    /// The distance, in parts per million of the lowest.
    pub ppm: f64,
}

/// The rate by every source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Frequencies {
    /// One entry a source, those that are missing too.
    pub sources: Vec<Frequency>,
    /// How far those with a figure lie apart, the nominal ones left out; `None` with fewer than two.
    pub disagreement: Option<Disagreement>,
}

impl Frequencies {
    /// Puts the calibration before other sources, and compares.
    pub fn compare(
        calibration: SourceResult<Calibration>,
        others: impl IntoIterator<Item = (FrequencySource, SourceResult<f64>)>,
    ) -> Self {
        let measured = calibration.as_ref().ok().map(|found| found.hertz);
        let uncertainty =
            |found: &Calibration| found.uncertainty_ppm.max(found.disagreement_ppm / 2.0);
        let mut sources = vec![Frequency {
            uncertainty_ppm: calibration.as_ref().ok().map(uncertainty),
            ..Frequency::of(
                FrequencySource::Calibration,
                calibration.map(|it| it.hertz),
                None,
            )
        }];
        let others = others.into_iter();
        sources.extend(others.map(|(source, found)| Frequency::of(source, found, measured)));
        Self {
            disagreement: disagreement(&sources),
            sources,
        }
    }

    pub fn by(&self, source: FrequencySource) -> Option<&Frequency> {
        self.sources.iter().find(|it| it.source == source)
    }
}

/// How far `value` lies from `from`, in parts per million of that.
fn parts_per_million(value: f64, from: f64) -> f64 {
    (value - from) / from * 1e6
}

fn disagreement(sources: &[Frequency]) -> Option<Disagreement> {
    let told: Vec<(f64, FrequencySource)> = sources
        .iter()
        // The nominal one is what the processor is sold by, and not the rate of its counter.
        .filter(|it| it.source != FrequencySource::CpuidNominal)
        .filter_map(|it| Some((it.hertz?, it.source)))
        .collect();
    let by_rate = |a: &&(f64, _), b: &&(f64, _)| a.0.total_cmp(&b.0);
    let (lowest, highest) = (told.iter().min_by(by_rate)?, told.iter().max_by(by_rate)?);
    (told.len() > 1).then(|| Disagreement {
        lowest: lowest.1,
        highest: highest.1,
        ppm: parts_per_million(highest.0, lowest.0),
    })
}

/// The rate by a kernel's conversion: nanoseconds are counts times `multiplier`, shifted right by `shift`.
///
/// Source: `perf_event_open(2)`, `time_mult` and `time_shift`.
pub fn hertz_by_conversion(multiplier: u32, shift: u16) -> SourceResult<f64> {
    if multiplier == 0 || shift >= 64 {
        return Err(format!("the conversion is {multiplier} and {shift} bits"));
    }
    Ok(1e9 * (1u64 << shift) as f64 / f64::from(multiplier))
}

/// The rate with the calibration's second corrected: `speed` is in steered seconds per raw one.
pub fn hertz_by_ntp(calibration: Option<&Calibration>, speed: f64) -> SourceResult<f64> {
    // Counts per raw second, over steered seconds per raw one, are counts per steered second.
    let corrected = calibration.map(|found| found.hertz / speed);
    corrected.ok_or_else(|| "there is no calibration to correct".to_owned())
}

/// The rate a kernel logged, in Hz: a refined calibration before a detected one, the last of several.
pub fn hertz_by_log<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> SourceResult<f64> {
    let megahertz = |line: &str, behind: &str| -> Option<f64> {
        let rest = line.split_once(behind)?.1;
        let (number, unit) = rest.trim_start().split_once(' ')?;
        let number: f64 = number.parse().ok()?;
        (unit.starts_with("MHz") && number > 0.0).then_some(number)
    };
    let (mut refined, mut detected) = (None, None);
    for line in lines {
        // On Arm: "arch_timer: cp15 timer(s) running at 62.50MHz (virt)."
        if let Some((_, told)) = line.as_ref().split_once("arch_timer: ") {
            let number = told.split_once("running at ").map(|(_, rest)| rest);
            let number = number.and_then(|rest| rest.split_once("MHz")?.0.trim().parse().ok());
            detected = number.filter(|number: &f64| *number > 0.0).or(detected);
            continue;
        }
        let Some((_, told)) = line.as_ref().split_once("tsc: ") else {
            continue;
        };
        refined = megahertz(told, "Refined TSC clocksource calibration:").or(refined);
        // A kernel that prints the frequencies of core and counter prints the counter's last.
        detected = megahertz(told, "Detected ").or(detected);
    }
    let found = refined.or(detected).map(|megahertz| megahertz * 1e6);
    found.ok_or_else(|| "what is left of the log does not hold it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::FrequencySource::*;
    use super::*;

    #[test]
    fn distances_are_exact_and_the_nominal_does_not_count() {
        let measured = crate::time::Calibration {
            disagreement_ppm: 4.0,
            ..crate::time::Calibration::of(2e9)
        };
        let others = [
            (CpuidCrystal, Ok(2_000_200_000.0)),
            (CpuidNominal, Ok(2_100_000_000.0)),
            (KernelLog, Ok(1_999_800_000.0)),
            (KernelPerf, Err("refused".to_owned())),
            (Hypervisor, Ok(0.0)),
        ];
        let found = Frequencies::compare(Ok(measured), others.clone());
        let ppm: Vec<_> = found
            .sources
            .iter()
            .map(|it| it.from_calibration_ppm)
            .collect();
        assert_eq!(
            ppm,
            [None, Some(100.0), Some(50_000.0), Some(-100.0), None, None]
        );
        let farthest = found.disagreement.unwrap();
        assert_eq!(farthest.lowest, KernelLog);
        assert_eq!(farthest.highest, CpuidCrystal);
        assert!((farthest.ppm - 400_000.0 / 1999.8).abs() < 1e-9);
        // The wider of the two: half of 4 ppm.
        assert_eq!(found.sources[0].uncertainty_ppm, Some(2.0));
        let expected = Some("0 Hz is not a rate");
        assert_eq!(found.by(Hypervisor).unwrap().missing.as_deref(), expected);
        // Without a calibration only the others are compared.
        let found = Frequencies::compare(Err("did not settle".to_owned()), others);
        assert_eq!(found.sources[0].missing.as_deref(), Some("did not settle"));
        assert!(
            found
                .sources
                .iter()
                .all(|it| it.from_calibration_ppm.is_none())
        );
        assert_eq!(found.disagreement, Some(farthest));
    }

    #[test]
    fn conversion_and_ntp_give_the_rate_or_say_why_not() {
        // 2 GHz: half a nanosecond a count.
        assert_eq!(hertz_by_conversion(1 << 30, 31), Ok(2e9));
        let hertz = hertz_by_conversion(1_867_377_085, 32).unwrap();
        assert!((hertz - 2.3e9).abs() < 10.0, "{hertz}");
        for (multiplier, shift) in [(0, 31), (1, 64)] {
            assert!(hertz_by_conversion(multiplier, shift).is_err());
        }
        let measured = crate::time::Calibration::of(2e9);
        assert_eq!(hertz_by_ntp(Some(&measured), 1.000_05), Ok(2e9 / 1.000_05));
        assert!(hertz_by_ntp(None, 1.0).is_err());
    }

    #[test]
    fn the_log_is_read_for_the_best_figure() {
        let detected = "[    0.000059] tsc: Detected 2300.000 MHz processor";
        let refined = "6,400,1,-;tsc: Refined TSC clocksource calibration: 2299.998 MHz";
        let other = "clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x212735223b2";
        assert_eq!(hertz_by_log([detected, other]), Ok(2.3e9));
        assert_eq!(hertz_by_log([refined, detected]), Ok(2_299_998_000.0));
        let arm = "arch_timer: cp15 and mmio timer(s) running at 62.50MHz (virt/phys).";
        assert_eq!(hertz_by_log([arm, other]), Ok(62_500_000.0));
        assert!(hertz_by_log(["arch_timer: CPU0: Trapping CNTVCT access"]).is_err());
        assert!(hertz_by_log([other, "tsc: Detected no MHz", "Detected 5 MHz"]).is_err());
    }
}
