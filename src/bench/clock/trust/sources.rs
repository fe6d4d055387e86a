//! The rate by everyone but the calibration.

use raw_cpuid::{CpuId, CpuIdReader};

use crate::host::kernel_tsc::{self, Untold};
use crate::time::Calibration;
use crate::time::trust::cpuid;
use crate::time::trust::frequency::{
    Frequency, FrequencySource, hertz_by_conversion, hertz_by_log,
};

/// The rate by cpuid, by the kernel and by NTP, each with a figure or with the reason why it has none.
pub fn others(calibration: Option<&Calibration>) -> Vec<Frequency> {
    gather(
        &CpuId::new(),
        kernel_tsc::from_file(),
        kernel_tsc::from_perf().map(|it| (it.multiplier, it.shift)),
        kernel_tsc::log(),
        kernel_tsc::ntp_speed(),
        calibration,
    )
}

fn gather<R: CpuIdReader>(
    cpuid: &CpuId<R>,
    file_khz: Result<f64, Untold>,
    conversion: Result<(u32, u16), Untold>,
    log: Result<Vec<String>, Untold>,
    ntp_speed: Result<f64, Untold>,
    calibration: Option<&Calibration>,
) -> Vec<Frequency> {
    let because = |untold: Untold| untold.to_string();
    let by_perf = conversion.map_err(because).and_then(|(multiplier, shift)| {
        hertz_by_conversion(multiplier, shift)
            .ok_or_else(|| format!("the conversion is {multiplier} and {shift} bits"))
    });
    let by_log = log.map_err(because).and_then(|lines| {
        hertz_by_log(lines.iter().map(String::as_str))
            .ok_or_else(|| "what is left of the log does not hold it".to_owned())
    });
    // Counts per raw second, over steered seconds per raw one, are counts per steered second.
    let by_ntp = ntp_speed.map_err(because).and_then(|speed| {
        calibration
            .map(|found| found.hertz / speed)
            .ok_or_else(|| "there is no calibration to correct".to_owned())
    });
    let mut all = cpuid::frequencies(cpuid).to_vec();
    all.extend([
        Frequency::of(
            FrequencySource::KernelFile,
            file_khz.map(|khz| khz * 1e3).map_err(because),
        ),
        Frequency::of(FrequencySource::KernelPerf, by_perf),
        Frequency::of(FrequencySource::KernelLog, by_log).noted("as found at boot"),
        Frequency::of(FrequencySource::Ntp, by_ntp),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use raw_cpuid::CpuIdResult;

    use super::*;

    fn silent() -> CpuId<impl Fn(u32, u32) -> CpuIdResult + Clone> {
        CpuId::with_cpuid_fn(|_, _| CpuIdResult {
            eax: 0,
            ebx: 0,
            ecx: 0,
            edx: 0,
        })
    }

    fn by(all: &[Frequency], source: FrequencySource) -> &Frequency {
        all.iter().find(|it| it.source == source).unwrap()
    }

    #[test]
    fn each_source_has_its_figure() {
        let line = "6,400,1,-;tsc: Refined TSC clocksource calibration: 1999.998 MHz";
        let all = gather(
            &silent(),
            Ok(2_000_001.0),
            Ok((1 << 30, 31)),
            Ok(vec![line.to_owned()]),
            Ok(1.000_05),
            Some(&Calibration::of(2e9)),
        );
        assert_eq!(all.len(), 7);
        let hertz = |source| by(&all, source).hertz.unwrap();
        assert_eq!(hertz(FrequencySource::KernelFile), 2_000_001_000.0);
        assert_eq!(hertz(FrequencySource::KernelPerf), 2e9);
        assert_eq!(hertz(FrequencySource::KernelLog), 1_999_998_000.0);
        assert_eq!(hertz(FrequencySource::Ntp), 2e9 / 1.000_05);
    }

    #[test]
    fn each_that_is_missing_says_why() {
        let no = || Untold::LeftOut("not today");
        let all = gather(&silent(), Err(no()), Err(no()), Err(no()), Err(no()), None);
        assert_eq!(all.len(), 7);
        for source in &all {
            assert_eq!(source.hertz, None, "{source:?}");
            assert!(!source.missing.as_ref().unwrap().is_empty(), "{source:?}");
        }
        let empty = gather(&silent(), Err(no()), Ok((0, 0)), Ok(vec![]), Ok(1.0), None);
        let why = |source| by(&empty, source).missing.clone().unwrap();
        assert!(why(FrequencySource::KernelPerf).contains("the conversion is 0"));
        assert!(why(FrequencySource::KernelLog).contains("log does not hold it"));
        assert!(why(FrequencySource::Ntp).contains("no calibration"));
    }
}
