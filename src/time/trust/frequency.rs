//! The rate of the counter by each source that there is, and how far they disagree.

use serde::Serialize;

use crate::time::Calibration;

/// Who says how fast the counter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrequencySource {
    /// The calibration against `CLOCK_MONOTONIC_RAW`.
    Calibration,
    /// The same, with the kernel's raw second corrected by what NTP has found of it.
    Ntp,
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
    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Ntp => "calibration, by NTP",
            Self::CpuidCrystal => "CPUID 15H, crystal",
            Self::CpuidNominal => "CPUID 16H, nominal",
            Self::Hypervisor => "hypervisor's CPUID",
            Self::KernelFile => "kernel, tsc_freq_khz",
            Self::KernelPerf => "kernel, perf page",
            Self::KernelLog => "kernel, log",
        }
    }

    /// Whether the figure is the one the processor is sold by, and not the rate of its counter.
    pub const fn is_nominal(self) -> bool {
        matches!(self, Self::CpuidNominal)
    }
}

/// The rate by one source, or why that source has none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Frequency {
    /// Who says so.
    pub source: FrequencySource,
    /// Counts per second.
    pub hertz: Option<f64>,
    /// Half width of the interval the source leaves open, in parts per million, as far as it is known.
    pub uncertainty_ppm: Option<f64>,
    /// The distance from the calibration, in parts per million of that.
    pub from_calibration_ppm: Option<f64>,
    /// Why there is no figure.
    pub missing: Option<String>,
    /// What to know of the figure.
    pub note: Option<String>,
}

impl Frequency {
    /// A rate, or the reason why there is none.
    pub fn of(source: FrequencySource, found: Result<f64, String>) -> Self {
        let (hertz, missing) = match found {
            Ok(hertz) if hertz.is_finite() && hertz > 0.0 => (Some(hertz), None),
            Ok(hertz) => (None, Some(format!("{hertz} Hz is no rate"))),
            Err(reason) => (None, Some(reason)),
        };
        Self {
            source,
            hertz,
            uncertainty_ppm: None,
            from_calibration_ppm: None,
            missing,
            note: None,
        }
    }

    /// With something to know of it.
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The two sources that lie farthest apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Disagreement {
    /// The one with the lowest rate.
    pub lowest: FrequencySource,
    /// The one with the highest.
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
    /// Puts the calibration before what others say, and compares.
    pub fn compare(calibration: Result<Calibration, String>, others: Vec<Frequency>) -> Self {
        let measured = calibration.as_ref().ok().map(|found| found.hertz);
        let mut first = Frequency::of(
            FrequencySource::Calibration,
            calibration.clone().map(|it| it.hertz),
        );
        first.uncertainty_ppm = calibration
            .ok()
            .map(|found| found.uncertainty_ppm.max(found.disagreement_ppm / 2.0));
        let mut sources = vec![first];
        sources.extend(others);
        for frequency in sources.iter_mut().skip(1) {
            frequency.from_calibration_ppm = frequency
                .hertz
                .zip(measured)
                .map(|(hertz, measured)| parts_per_million(hertz, measured));
        }
        let disagreement = disagreement(&sources);
        Self {
            sources,
            disagreement,
        }
    }

    /// What a source says.
    pub fn by(&self, source: FrequencySource) -> Option<&Frequency> {
        self.sources.iter().find(|it| it.source == source)
    }
}

/// How far `value` lies from `from`, in parts per million of that.
pub fn parts_per_million(value: f64, from: f64) -> f64 {
    (value - from) / from * 1e6
}

fn disagreement(sources: &[Frequency]) -> Option<Disagreement> {
    let told: Vec<(f64, FrequencySource)> = sources
        .iter()
        .filter(|it| !it.source.is_nominal())
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
pub fn hertz_by_conversion(multiplier: u32, shift: u16) -> Option<f64> {
    (multiplier > 0 && shift < 64).then(|| 1e9 * (1u64 << shift) as f64 / f64::from(multiplier))
}

/// The rate a kernel logged, in Hz: a refined calibration before a detected one, the last of several.
pub fn hertz_by_log<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<f64> {
    const REFINED: &str = "Refined TSC clocksource calibration:";
    const DETECTED: &str = "Detected ";
    let megahertz = |line: &str, behind: &str| -> Option<f64> {
        let rest = line.split_once(behind)?.1;
        let (number, unit) = rest.trim_start().split_once(' ')?;
        let number: f64 = number.parse().ok()?;
        (unit.starts_with("MHz") && number > 0.0).then_some(number)
    };
    let (mut refined, mut detected) = (None, None);
    for line in lines {
        let Some((_, told)) = line.split_once("tsc: ") else {
            continue;
        };
        refined = megahertz(told, REFINED).or(refined);
        // A kernel that tells the core's frequency and the counter's apart tells the counter's last.
        detected = megahertz(told, DETECTED).or(detected);
    }
    refined.or(detected).map(|megahertz| megahertz * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(hertz: f64) -> Calibration {
        Calibration {
            disagreement_ppm: 4.0,
            ..Calibration::of(hertz)
        }
    }

    fn told(source: FrequencySource, hertz: f64) -> Frequency {
        Frequency::of(source, Ok(hertz))
    }

    #[test]
    fn distances_are_exact_and_the_nominal_does_not_count() {
        use FrequencySource::*;
        let found = Frequencies::compare(
            Ok(calibration(2_000_000_000.0)),
            vec![
                told(CpuidCrystal, 2_000_200_000.0),
                told(CpuidNominal, 2_100_000_000.0),
                told(KernelLog, 1_999_800_000.0),
                Frequency::of(KernelPerf, Err("refused".to_owned())),
            ],
        );
        let ppm = |source| found.by(source).unwrap().from_calibration_ppm;
        assert_eq!(ppm(Calibration), None);
        assert_eq!(ppm(CpuidCrystal), Some(100.0));
        assert_eq!(ppm(CpuidNominal), Some(50_000.0));
        assert_eq!(ppm(KernelLog), Some(-100.0));
        assert_eq!(ppm(KernelPerf), None);
        let farthest = found.disagreement.unwrap();
        assert_eq!(
            (farthest.lowest, farthest.highest),
            (KernelLog, CpuidCrystal)
        );
        assert!((farthest.ppm - 400_000.0 / 1999.8).abs() < 1e-9);
        // The wider of the two: half of 4 ppm.
        assert_eq!(found.sources[0].uncertainty_ppm, Some(2.0));
    }

    #[test]
    fn what_is_missing_says_why_and_nothing_is_compared() {
        let found = Frequencies::compare(
            Err("did not settle".to_owned()),
            vec![
                told(FrequencySource::KernelLog, 2e9),
                Frequency::of(FrequencySource::Hypervisor, Ok(0.0)),
            ],
        );
        assert_eq!(found.disagreement, None);
        let reasons: Vec<_> = found.sources.iter().map(|it| it.missing.clone()).collect();
        assert_eq!(
            reasons,
            [
                Some("did not settle".to_owned()),
                None,
                Some("0 Hz is no rate".to_owned())
            ]
        );
        assert!(
            found
                .sources
                .iter()
                .all(|it| it.from_calibration_ppm.is_none())
        );
    }

    #[test]
    fn a_conversion_gives_the_rate() {
        // 2 GHz: half a nanosecond a count.
        assert_eq!(hertz_by_conversion(1 << 30, 31), Some(2e9));
        let hertz = hertz_by_conversion(1_867_377_085, 32).unwrap();
        assert!((hertz - 2.3e9).abs() < 10.0, "{hertz}");
        assert_eq!(hertz_by_conversion(0, 31), None);
        assert_eq!(hertz_by_conversion(1, 64), None);
    }

    #[test]
    fn the_log_is_read_for_the_best_figure() {
        let detected = "[    0.000059] tsc: Detected 2300.000 MHz processor";
        let refined = "6,400,1,-;tsc: Refined TSC clocksource calibration: 2299.998 MHz";
        let other = "clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x212735223b2";
        assert_eq!(hertz_by_log([detected, other]), Some(2.3e9));
        assert_eq!(hertz_by_log([refined, detected]), Some(2_299_998_000.0));
        assert_eq!(
            hertz_by_log([other, "tsc: Detected no MHz", "Detected 5 MHz"]),
            None
        );
    }
}
