//! From arguments to files and tables: the watch itself, as the user sees it.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::document::{
    self, HistogramDocument, JumpRow, RunFacts, settings_document, summary_record,
};
use super::{ClockArguments, present};
use crate::bench::clock::config::{Config, Length, Report};
use crate::bench::clock::result::{ClockResult, Ended};
use crate::bench::clock::run::{Observer, RunError, Session, SoFar};
use crate::cli::UsageError;
use crate::cli::ending::{self, Ending};
use crate::cli::output::{bad_folder, labelled, print_json, print_text, terminal_width, warning};
use crate::cli::progress::{Progress, ProgressMode};
use crate::host::placement::{Placement, RoleSpec};
use crate::host::readiness::{Needs, Readiness, Verdict};
use crate::host::topology::Topology;
use crate::host::{HostError, interrupt};
use crate::results::folder::{SETTINGS, SUMMARY};
use crate::results::{CsvFile, ReportError, ResultsFolder, SummaryFile, hgrm, json, units};
use crate::time::AnyReading;

/// The file of the jumps.
const JUMPS: &str = "jumps.csv";
/// An upper estimate of a row of it, and of the other files of a CPU, in bytes.
const BYTES_PER_JUMP: u64 = 160;
const BYTES_PER_CPU: u64 = 512 << 10;
/// Room for jumps, of all CPUs together, beyond which none is asked for before the run.
const MOST_BYTES_OF_JUMPS: u64 = 256 << 20;
/// How often the progress is shown: each time, the supervisor wakes up.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The bar's parts.
const PARTS: u64 = 100;

/// A limit is broken.
const LIMIT_BROKEN: u8 = 3;

pub(super) fn run(arguments: &ClockArguments) -> anyhow::Result<u8> {
    interrupt::install()?;
    let started_at = SystemTime::now();
    let topology = Topology::read()?;
    let cpus = choose_cpus(arguments, &topology).map_err(|error| sort(error.into()))?;
    let config = arguments.config(cpus);
    let out = arguments.output.folder(started_at);
    let needed = disk_needed(&config);
    ResultsFolder::check(&out, arguments.output.force, needed)
        .map_err(|error| bad_folder(&out, &error))?;

    // Before any thread is pinned.
    let readiness = Readiness::assess(Needs::of_a_watch(bytes_asked_for(&config)))?;
    let machine = &readiness.machine;
    let guest = machine.virtualisation.guest == Some(true);
    let session = Session::prepare(config.clone(), &topology.allowed(), guest).map_err(sort)?;
    let reading = *session.reading();
    let announce = |text: &str| {
        if !arguments.output.quiet {
            eprintln!("{text}");
        }
    };
    announce(&format!(
        "machine:  {}",
        crate::cli::host::machine_in_words(machine)
    ));
    announce(&describe_watch(&config, &reading));
    for text in shared_cores(&topology, &config.cpus) {
        announce(&warning(&text));
    }
    let doubt = reading
        .tsc_facts()
        .and_then(|facts| facts.rate.doubt())
        .map(|doubt| doubt.to_string());
    if let Some(doubt) = &doubt {
        announce(&warning(doubt));
    }
    // Also below the table; but who would rather take another clock should not have to wait for that.
    for note in session.notes() {
        announce(&labelled("note", note));
    }

    let observed = ProgressMode::from_environment().0 != ProgressMode::Hidden;
    let progress = observed.then(|| Progress::new(PARTS as usize));
    if let Some(progress) = &progress {
        progress.so_far(0, "measuring the baseline");
    }
    let ready = session.baselines().map_err(sort)?;
    let folder = ResultsFolder::create(&out, arguments.output.force, needed)
        .map_err(|error| bad_folder(&out, &error))?;
    let facts = RunFacts {
        started_at: humantime::format_rfc3339_seconds(started_at).to_string(),
        machine: serde_json::to_value(machine)?,
        advice: advice(&readiness),
    };
    let keeper = Keeper {
        config: &config,
        reading,
        facts,
    };
    let before = keeper.settings(&folder, None);
    let outcome = match before {
        Err(error) => Err(error.into()),
        Ok(()) => {
            let mut show = |so_far: SoFar| {
                if let Some(progress) = &progress {
                    progress.so_far(parts_done(&config, so_far), &in_words(so_far));
                }
            };
            let observer: Observer<'_> = observed.then_some((PROGRESS_INTERVAL, &mut show));
            ready.watch(observer).map_err(anyhow::Error::from)
        }
    };
    drop(progress);
    let result = match outcome {
        Ok(mut result) => {
            // Who reads the result must know it as well.
            result.notes.extend(doubt);
            result
        }
        Err(error) => {
            // The disk may be full: the mark from the beginning is still there.
            let _ = folder.fail(&format!("{error:#}"));
            return Err(error);
        }
    };
    close(arguments, &keeper, folder, &result)
}

/// What the files of a usual run may take. That all CPUs keep all the jumps they may is no usual run: where the disk
/// cannot take them, the run ends with that error and what was written is marked incomplete.
fn disk_needed(config: &Config) -> u64 {
    let most = match config.length {
        Length::Iterations(readings) => readings.min(config.keep as u64),
        Length::Duration(_) => config.keep as u64,
    };
    let cpus = config.cpus.len() as u64;
    let jumps = (most * BYTES_PER_JUMP).saturating_mul(cpus);
    jumps.min(MOST_BYTES_OF_JUMPS) + BYTES_PER_CPU * cpus
}

/// The CPUs asked for, or the one that placement would choose for a thread that must not be disturbed.
fn choose_cpus(arguments: &ClockArguments, topology: &Topology) -> Result<Vec<usize>, HostError> {
    let allowed = topology.allowed();
    if arguments.all_cpus {
        return Ok(allowed.iter().collect());
    }
    let Some(wanted) = &arguments.cpu else {
        let placement = Placement::plan(topology, &[RoleSpec::new("watcher", "--cpu", None)])?;
        return Ok(vec![placement.cpu(0)]);
    };
    for cpu in wanted.iter() {
        let reason = match topology.cpu(cpu) {
            Some(found) if found.allowed => continue,
            Some(_) => "is not allowed for this process (see taskset -p and its cpuset)",
            None if topology.offline.contains(cpu) => "is offline",
            None => "does not exist",
        };
        return Err(HostError::CpuUnavailable {
            option: "--cpu",
            cpu,
            reason,
            allowed,
        });
    }
    Ok(wanted.iter().collect())
}

/// Watched CPUs that slow each other down.
fn shared_cores(topology: &Topology, cpus: &[usize]) -> Vec<String> {
    let mut texts = Vec::new();
    for &cpu in cpus {
        let siblings = topology
            .cpu(cpu)
            .into_iter()
            .flat_map(|it| it.siblings.iter());
        let watched: Vec<String> = siblings
            .filter(|sibling| *sibling > cpu && cpus.contains(sibling))
            .map(|sibling| sibling.to_string())
            .collect();
        if !watched.is_empty() {
            texts.push(format!(
                "CPU {cpu} shares a physical core with CPU {}: their loops slow each other down",
                watched.join(", ")
            ));
        }
    }
    texts
}

fn describe_watch(config: &Config, reading: &AnyReading) -> String {
    let cpus: crate::host::cpu_set::CpuSet = config.cpus.iter().copied().collect();
    let length = match config.length {
        Length::Iterations(iterations) => format!("{iterations} iterations"),
        Length::Duration(duration) => humantime::format_duration(duration).to_string(),
    };
    let rate = reading.tsc_facts().map_or_else(String::new, |facts| {
        format!(", {:.3} MHz", facts.rate.hertz / 1e6)
    });
    format!(
        "watch:    {} ({}){rate}, CPU {cpus}, {length}",
        config.clock.name(),
        config.clock.sequence()
    )
}

/// What is kept of every difference, if that is asked for; of a time it is not known yet how many differences it has.
fn bytes_asked_for(config: &Config) -> u64 {
    match config.length {
        Length::Iterations(readings) if config.keep_all && config.wants(Report::Percentiles) => {
            readings.saturating_mul(4 * config.cpus.len() as u64)
        }
        _ => 0,
    }
}

/// The check that only matters where messages are sent.
const OF_MESSAGES: &str = "rdma_devices";

fn advice(readiness: &Readiness) -> Value {
    let checks = readiness
        .checks
        .iter()
        .filter(|check| check.verdict > Verdict::Good && check.id != OF_MESSAGES);
    json!(checks.collect::<Vec<_>>())
}

fn parts_done(config: &Config, so_far: SoFar) -> u64 {
    let share = match config.length {
        Length::Iterations(iterations) => so_far.readings as f64 / iterations as f64,
        Length::Duration(duration) => so_far.elapsed.as_secs_f64() / duration.as_secs_f64(),
    };
    (share * PARTS as f64) as u64
}

fn in_words(so_far: SoFar) -> String {
    let (largest, cpu) = so_far.largest;
    format!(
        "largest jump {} on CPU {cpu}",
        units::duration(largest.0 as f64)
    )
}

/// Bad input and what only looks like it: an error that another value of an option would avoid is the user's.
fn sort(error: RunError) -> anyhow::Error {
    let usage = matches!(
        error,
        RunError::Reading(_)
            | RunError::Memory { .. }
            | RunError::Lock(_)
            | RunError::Host(HostError::CpuUnavailable { .. })
    );
    if usage {
        UsageError(error.to_string()).into()
    } else {
        error.into()
    }
}

/// Writes the files.
struct Keeper<'a> {
    config: &'a Config,
    reading: AnyReading,
    facts: RunFacts,
}

impl Keeper<'_> {
    fn settings(
        &self,
        folder: &ResultsFolder,
        result: Option<&ClockResult>,
    ) -> Result<(), ReportError> {
        let document = settings_document(self.config, &self.reading, &self.facts, result);
        json::write(&folder.file(SETTINGS)?, &document)
    }

    fn keep(&self, folder: &ResultsFolder, result: &ClockResult) -> Result<(), ReportError> {
        let mut jumps = CsvFile::create(&folder.file(JUMPS)?)?;
        let mut summary = SummaryFile::create(&folder.file(SUMMARY)?)?;
        for cpu in &result.cpus {
            for (jump, &others) in cpu.jumps.jumps().iter().zip(&cpu.coincident) {
                jumps.append(&JumpRow::new(result, cpu, jump, others))?;
            }
            if self.config.wants(Report::Histogram)
                && let Some(document) = HistogramDocument::new(result, cpu)
            {
                let name = format!("histogram-cpu{}", cpu.cpu);
                json::write(&folder.file(&format!("{name}.json"))?, &document)?;
                let histogram = cpu.distribution.as_ref().map(|it| it.histogram());
                let ticks_per_microsecond = 1000.0 / result.scale.nanos_per_tick();
                hgrm::write_scaled(
                    &folder.file(&format!("{name}.hgrm"))?,
                    &histogram.unwrap_or_default(),
                    ticks_per_microsecond,
                )?;
            }
            summary.append(&summary_record(result, cpu))?;
        }
        jumps.finish()?;
        self.settings(folder, Some(result))
    }
}

/// Writes what was found, and ends as sweeps do; a broken limit has an exit code of its own.
fn close(
    arguments: &ClockArguments,
    keeper: &Keeper<'_>,
    folder: ResultsFolder,
    result: &ClockResult,
) -> anyhow::Result<u8> {
    let outcome = match (keeper.keep(&folder, result), &result.ended) {
        (Ok(()), Ended::Complete) => Ok(()),
        (Ok(()), Ended::Early(reason)) => Err(Ending::Failed(reason.clone())),
        (Err(error), _) => Err(Ending::NotWritten(error)),
    };
    let code = ending::close(folder, outcome, arguments.output.quiet, || {
        print(arguments, keeper.config, result)
    })?;
    if !result.limit_broken() {
        return Ok(code);
    }
    for line in present::broken_limits(result) {
        eprintln!("hcabench: {line}");
    }
    Ok(LIMIT_BROKEN)
}

fn print(arguments: &ClockArguments, config: &Config, result: &ClockResult) -> std::io::Result<()> {
    if arguments.output.json {
        print_json(&document::result_document(result, config))
    } else if arguments.output.quiet {
        Ok(())
    } else {
        print_text(&present::text(result, config, terminal_width()))
    }
}
