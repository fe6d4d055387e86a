//! The examination from beginning to end.

use std::time::{Duration, Instant};

use super::reads::{CountAndAux, across_migrations, shared};
use super::verdict::judge;
use super::{CpuOffset, CpuOffsets, Finding, Judgement, Report, TrustError, hertz};
use crate::host::fingerprint::Fingerprint;
use crate::host::kernel_tsc::{self, TscRateError};
use crate::host::{CpuSet, pinning};
use crate::rig::exchange::{ENOUGH, ExchangeEnd, between};
use crate::rig::in_threads::SignalCheck;
use crate::rig::trust::frequency::{
    Frequencies, FrequencySource, SourceResult, hertz_by_conversion, hertz_by_log, hertz_by_ntp,
};
#[cfg(target_arch = "x86_64")]
use crate::time::RdtscpInstruction;
use crate::time::{
    Calibration, CalibrationError, CounterReader, TscKilohertz, TscRate, measure_tsc_rate,
    reported_counter_rate,
};

/// A busy machine can keep a good counter's rate from settling at the first try.
const CALIBRATIONS: usize = 3;

/// For the offsets of all CPUs together.
const TIME_FOR_OFFSETS: Duration = Duration::from_secs(60);

const ONE_CPU: &str = "this process may use one CPU only (taskset and cpusets decide)";

/// Examines the counter, on the CPUs that the calling thread may use; takes seconds.
///
/// `reads` are made for the monotony, both with migrations and between CPUs; `given`: the rate that the user gives.
pub fn examine(
    reads: u64,
    given: Option<TscKilohertz>,
    stop: SignalCheck<'_>,
) -> Result<Report, TrustError> {
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(TrustError::NoCounter);
    }
    let begun = Instant::now();
    let cpus = pinning::current_affinity()?;
    let machine = Fingerprint::collect();
    let calibration = calibrate(stop);
    let frequencies = frequencies(&calibration);
    let rate = TscRate::decide(given, reported_counter_rate(), calibration).ok();
    let counter = CounterReader::find();
    #[cfg(target_arch = "x86_64")]
    let (rdtscp, read) = {
        let rdtscp = RdtscpInstruction::find();
        let read = move || -> CountAndAux {
            match rdtscp {
                Some(rdtscp) => {
                    let (ticks, aux) = rdtscp.read();
                    (ticks.0, Some(aux))
                }
                None => (counter.read().0, None),
            }
        };
        (rdtscp.is_some(), read)
    };
    // No other counter returns the CPU with its reading.
    #[cfg(not(target_arch = "x86_64"))]
    let (rdtscp, read) = (false, move || -> CountAndAux { (counter.read().0, None) });
    let offsets = offsets(&cpus, hertz(rate, &frequencies), stop)?;
    let migrations = Finding::Found(across_migrations(&cpus, reads, read, stop)?);
    let shared = if cpus.len() > 1 {
        let read = |_cpu| counter.read().0;
        Finding::Found(shared(&cpus, reads, &read, true, stop)?)
    } else {
        Finding::Missing(ONE_CPU.to_owned())
    };
    let mut report = Report {
        judgement: Judgement::default(),
        clock: machine.clock,
        rdtscp,
        virtualisation: machine.virtualisation,
        frequencies,
        rate,
        cpus,
        offsets,
        migrations,
        shared,
        seconds: begun.elapsed().as_secs_f64(),
    };
    report.judgement = judge(&report);
    Ok(report)
}

fn calibrate(stop: SignalCheck<'_>) -> Result<Calibration, CalibrationError> {
    let mut found = measure_tsc_rate();
    for _ in 1..CALIBRATIONS {
        if found.is_ok() || stop() {
            break;
        }
        found = measure_tsc_rate();
    }
    found
}

/// The rate by everyone, each with a figure or with the reason why there is none.
fn frequencies(calibration: &Result<Calibration, CalibrationError>) -> Frequencies {
    fn told<T>(found: Result<T, TscRateError>) -> SourceResult<T> {
        found.map_err(|untold| untold.to_string())
    }
    let by_perf =
        told(kernel_tsc::from_perf()).and_then(|it| hertz_by_conversion(it.multiplier, it.shift));
    let by_log = told(kernel_tsc::log()).and_then(hertz_by_log);
    let by_ntp = told(kernel_tsc::ntp_speed())
        .and_then(|speed| hertz_by_ntp(calibration.as_ref().ok(), speed));
    let by_kernel = [
        (FrequencySource::KernelPerf, by_perf),
        (FrequencySource::KernelLog, by_log),
        (FrequencySource::Ntp, by_ntp),
    ];
    #[cfg(target_arch = "x86_64")]
    let by_processor = {
        use crate::rig::trust::cpuid;
        let cpuid = raw_cpuid::CpuId::new();
        let by_file = told(kernel_tsc::from_file()).map(|khz| khz * 1e3);
        [
            (FrequencySource::CpuidCrystal, cpuid::crystal(&cpuid)),
            (FrequencySource::CpuidNominal, cpuid::nominal(&cpuid)),
            (FrequencySource::Hypervisor, cpuid::by_hypervisor(&cpuid)),
            (FrequencySource::KernelFile, by_file),
        ]
    };
    #[cfg(not(target_arch = "x86_64"))]
    let by_processor = [(
        FrequencySource::Cntfrq,
        reported_counter_rate().ok_or_else(|| "the register is 0".to_owned()),
    )];
    Frequencies::compare(
        calibration.as_ref().copied().map_err(ToString::to_string),
        by_processor.into_iter().chain(by_kernel),
    )
}

fn offsets(
    cpus: &CpuSet,
    hertz: Option<f64>,
    stop: SignalCheck<'_>,
) -> Result<Finding<CpuOffsets>, TrustError> {
    let mut rest = cpus.iter();
    let Some(first) = rest.next().filter(|_| cpus.len() > 1) else {
        return Ok(Finding::Missing(ONE_CPU.to_owned()));
    };
    let counter = CounterReader::find();
    let end = |cpu| ExchangeEnd {
        cpu: Some(cpu),
        read: move || counter.read().0,
    };
    let deadline = Instant::now() + TIME_FOR_OFFSETS;
    let late = |what: &str, limit: Duration| {
        Finding::Missing(format!("{what} within {} s", limit.as_secs()))
    };
    let mut found = Vec::new();
    for cpu in rest {
        let offset = if Instant::now() > deadline {
            late("its turn did not come", TIME_FOR_OFFSETS)
        } else {
            match between(&end(first), &end(cpu), ENOUGH, stop)? {
                Some(offset) => Finding::Found(offset),
                None => late("no answer came back", ENOUGH.time),
            }
        };
        found.push(CpuOffset::new(cpu, offset, hertz));
    }
    Ok(Finding::Found(CpuOffsets {
        against_cpu: first,
        cpus: found,
    }))
}
