//! The examination from beginning to end.

use std::time::{Duration, Instant};

use super::exchange::{End, Enough, between};
use super::reads::{CountAndAux, across_migrations, shared};
use super::verdict::judge;
use super::{
    CpuOffset, CpuOffsets, Finding, Judgement, Report, Settings, TrustError, hertz, sources,
};
use crate::host::fingerprint::Fingerprint;
use crate::host::{CpuSet, pinning};
use crate::time::trust::frequency::Frequencies;
use crate::time::{
    Calibration, CalibrationError, RdtscpInstruction, TscRate, measure_tsc_rate, read_tsc,
};

/// A busy machine can keep a good counter's rate from settling at the first try.
const CALIBRATIONS: usize = 3;

/// For the offsets of all CPUs together.
const TIME_FOR_OFFSETS: Duration = Duration::from_secs(60);

/// Examines the counter, on the CPUs that the calling thread may use; takes seconds. `stop` is asked all the time.
///
/// # Errors
/// When a thread cannot be started or pinned, or `stop` says so.
pub fn examine(settings: Settings, stop: &(dyn Fn() -> bool + Sync)) -> Result<Report, TrustError> {
    let begun = Instant::now();
    let cpus = pinning::current_affinity()?;
    let machine = Fingerprint::collect();
    let calibration = calibrate(stop)?;
    let others = sources::others(calibration.as_ref().ok());
    let told = calibration.as_ref().copied().map_err(ToString::to_string);
    let frequencies = Frequencies::compare(told, others);
    let rate = TscRate::decide(settings.given, calibration).ok();
    let rdtscp = RdtscpInstruction::find();
    let read = move || -> CountAndAux {
        match rdtscp {
            Some(rdtscp) => {
                let (ticks, aux) = rdtscp.read();
                (ticks.0, Some(aux))
            }
            None => (read_tsc().0, None),
        }
    };
    let offsets = offsets(&cpus, hertz(rate, &frequencies), stop)?;
    let migrations = Finding::Found(across_migrations(&cpus, settings.reads, read, stop)?);
    let shared = if cpus.len() > 1 {
        let read = |_cpu| read_tsc().0;
        Finding::Found(shared(&cpus, settings.reads, &read, true, stop)?)
    } else {
        Finding::Missing(ONE_CPU.to_owned())
    };
    let mut report = Report {
        judgement: Judgement::default(),
        clock: machine.clock,
        rdtscp: rdtscp.is_some(),
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

const ONE_CPU: &str = "this process may use one CPU only (taskset and cpusets decide)";

fn calibrate(
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Result<Calibration, CalibrationError>, TrustError> {
    let mut last = None;
    for _ in 0..CALIBRATIONS {
        let found = measure_tsc_rate();
        if stop() {
            return Err(TrustError::Interrupted);
        }
        if found.is_ok() {
            return Ok(found);
        }
        last = Some(found);
    }
    Ok(last.expect("it was tried at least once"))
}

fn offsets(
    cpus: &CpuSet,
    hertz: Option<f64>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Finding<CpuOffsets>, TrustError> {
    let mut rest = cpus.iter();
    let Some(first) = rest.next().filter(|_| cpus.len() > 1) else {
        return Ok(Finding::Missing(ONE_CPU.to_owned()));
    };
    let end = |cpu| End {
        cpu: Some(cpu),
        read: || read_tsc().0,
    };
    let deadline = Instant::now() + TIME_FOR_OFFSETS;
    let in_ns = |ticks: f64| hertz.map(|hertz| ticks * 1e9 / hertz);
    let mut found = Vec::new();
    for cpu in rest {
        let offset = if Instant::now() > deadline {
            Finding::Missing(format!(
                "its turn did not come within {} s",
                TIME_FOR_OFFSETS.as_secs()
            ))
        } else {
            let enough = Enough::default();
            match between(&end(first), &end(cpu), enough, stop)? {
                Some(offset) => Finding::Found(offset),
                None => Finding::Missing(format!(
                    "no answer came back within {} s",
                    enough.time.as_secs()
                )),
            }
        };
        let known = offset.found();
        found.push(CpuOffset {
            cpu,
            offset_ns: known.and_then(|it| in_ns(it.ticks)),
            uncertainty_ns: known.and_then(|it| in_ns(it.uncertainty_ticks)),
            offset,
        });
    }
    Ok(Finding::Found(CpuOffsets {
        against_cpu: first,
        cpus: found,
    }))
}
