//! `hcabench clock`: the clock-jump benchmark, and with `--trust` whether the time stamp counter can be trusted.

mod present;
mod trust;
mod values;

pub(super) use self::present::VIEW;
use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use crate::arguments::UsageError;
use crate::arguments::values as common;
use crate::arguments::values::{List, duration, named, one};
use crate::bench::Assignment;
use crate::bench::clock::benchmark::{Sweep, WatchedCpus};
use crate::bench::clock::config::{Causes, Config, Length, Report};
use crate::bench::clock::wakeup;
use crate::buffer::HugePagePolicy;
use crate::cli::intervals::IntervalArguments;
use crate::cli::schedule::ScheduleArguments;
use crate::driver;
use crate::driver::Request;
use crate::driver::arguments::SweepArguments;
use crate::host::cpu_set::CpuSet;
use crate::host::readiness::Needs;
use crate::results::Record;
use crate::results::schema::clock as columns;
use crate::rig::limit::Limit;
use crate::rig::trust::DEFAULT_READS;
use crate::terminal::output::OutputArguments;
use crate::terminal::progress;
use crate::time::{COUNTER_IN_WORDS, Nanos, ReadingKind, TscKilohertz};

#[cfg(target_arch = "x86_64")]
const DEFAULT_CLOCK: &str = "rdtsc";
#[cfg(target_arch = "aarch64")]
const DEFAULT_CLOCK: &str = "counter";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DEFAULT_CLOCK: &str = "monotonic-raw";

/// The most readings or jumps that can be asked for.
const MOST: u64 = 9_000_000_000_000_000_000;
/// The time of a watch, unless something else is asked for.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// The same of each of all clocks and timers.
const DURATION_OF_EACH: Duration = Duration::from_secs(2);

/// Arguments of `hcabench clock`. LIST: one value, or several with commas between them.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClockArguments {
    /// Watch for this time, in ms, s, min or h [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Watch these CPUs, with a thread pinned to each: 3, or 0-3,8 [default: one CPU, an isolated one if there is one]
    #[arg(long, value_name = "LIST", conflicts_with = "all_cpus", value_parser = values::cpus)]
    pub cpu: Option<CpuSet>,

    /// Watch all CPUs that this process may use
    #[arg(long)]
    pub all_cpus: bool,

    /// Read this clock: realtime, monotonic, monotonic-raw, rdtsc (lfence; rdtsc), rdtscp (cpuid; rdtscp),
    /// rdtscp-lfence; on aarch64 counter (isb; mrs cntvct_el0) and counter-ss (mrs cntvctss_el0) instead of the last
    /// three
    #[arg(long, value_name = "LIST", default_value = DEFAULT_CLOCK, value_parser = named::<ReadingKind>)]
    pub clock: List<ReadingKind>,

    /// Watch by each readable clock in turn, with all reports including wakeup; percentiles, which takes much memory,
    /// only with --report percentiles
    #[arg(long, conflicts_with_all = ["clock", "until"])]
    pub everything: bool,

    /// Exit with code 3 if a difference, or a percentile of all, exceeds a time, as in 50us or 2us@p99.99
    #[arg(long, value_name = "LIST", value_parser = common::limits)]
    pub fail_above: Option<List<Limit>>,

    /// Check instead whether the processor's counter can be trusted: flags, rate by each source, offsets between CPUs,
    /// steps back; exit code 1 if not
    #[arg(long, conflicts_with_all = ["clock", "report", "iterations", "duration", "cpu", "all_cpus",
          "hugepages", "threshold", "baseline_iterations", "window", "coincidence", "keep_jumps", "fail_above", "out", "force",
          "rounds", "order_seed", "budget", "dry_run", "resume", "brief", "sort", "everything", "until", "causes", "interval",
          "priority", "allow_idle_states"])]
    pub trust: bool,

    /// Report these: highest, cumulative, histogram (constant memory), percentiles (4 bytes for each difference), all
    /// (the four before); wakeup (lateness of clock_nanosleep and timerfd)
    #[arg(long, value_name = "LIST", default_value = "highest,cumulative,histogram", value_parser = values::reports, help_heading = "Jumps")]
    pub report: BTreeSet<Report>,

    /// Read the clock this many times on each CPU, with k, M or G for 10^3, 10^6 or 10^9
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = |text: &str| common::count::<u64>(text, 1..=MOST), help_heading = "Sweep")]
    pub iterations: Option<u64>,

    /// End when each CPU has this many jumps, with k, M or G
    #[arg(long, value_name = "JUMPS", conflicts_with_all = ["duration", "iterations"],
          value_parser = |text: &str| common::count::<u64>(text, 1..=MOST), help_heading = "Sweep")]
    pub until: Option<u64>,

    /// Read this to find the causes of jumps: counters (of the kernel), trace (its tracepoints, with the thread that
    /// had the CPU and its exact time; needs root), off (almost all of the time is watched)
    #[arg(long, value_name = "WHAT", default_value = "counters", help_heading = "Jumps", value_parser = one::<Causes>)]
    pub causes: Causes,

    /// Wait this long between two wake-ups of --report wakeup, 10us to 10s
    #[arg(long, value_name = "TIME", default_value = "1ms", help_heading = "Jumps", value_parser = values::interval)]
    pub interval: Nanos,

    /// How the kernel treats the threads that watch.
    #[command(flatten)]
    pub schedule: ScheduleArguments,

    /// Use huge pages for the differences of percentiles: required, try, off
    #[arg(long, value_name = "POLICY", default_value = "try", help_heading = "Machine", value_parser = one::<HugePagePolicy>)]
    pub hugepages: HugePagePolicy,

    /// Treat longer differences as jumps and find their causes, in ns, us, ms or s [default: the baseline]
    #[arg(long, value_name = "TIME", help_heading = "Jumps", value_parser = common::length)]
    pub threshold: Option<Nanos>,

    /// Read the clock this many times for the baseline, which is twice their mean difference; at most 10 s [default:
    /// half a second of readings]
    #[arg(long, value_name = "N", help_heading = "Jumps",
          value_parser = |text: &str| common::count::<u64>(text, 1..=MOST))]
    pub baseline_iterations: Option<u64>,

    /// Set the length of the sliding windows of cumulative and of clusters, in us, ms or s
    #[arg(long, value_name = "TIME", default_value = "1ms", help_heading = "Jumps", value_parser = common::length)]
    pub window: Nanos,

    /// Count jumps of several CPUs as one event if they begin within this time of each other, in ns, us or ms
    #[arg(long, value_name = "TIME", default_value = "10us", help_heading = "Jumps", value_parser = common::length)]
    pub coincidence: Nanos,

    /// Keep this many jumps of each CPU for jumps.csv, the longest if there are more; 2 to 100M [default: 32 MiB for
    /// all CPUs, at most 262144]
    #[arg(long, value_name = "N", help_heading = "Jumps",
          value_parser = |text: &str| common::count::<usize>(text, 2..=100_000_000))]
    pub keep_jumps: Option<usize>,

    /// Read the counter this many times for steps back in --trust, 10000 to 10000000000
    #[arg(long, value_name = "N", default_value_t = DEFAULT_READS, requires = "trust", help_heading = "TSC",
          value_parser = |text: &str| common::count::<u64>(text, 10_000..=10_000_000_000))]
    pub trust_reads: u64,

    /// Set the rate of the processor's counter in kHz, 100000 to 10000000 (on aarch64 from 1000) [default: measured
    /// against CLOCK_MONOTONIC_RAW; on aarch64 CNTFRQ_EL0]
    #[arg(long, value_name = "KHZ", help_heading = "TSC")]
    pub tsc_khz: Option<TscKilohertz>,

    /// How runs are divided.
    #[command(flatten)]
    pub intervals: IntervalArguments,

    /// Where results go, and how they are shown.
    #[command(flatten)]
    pub output: OutputArguments,

    /// How often, how long and from where the sweep is run.
    #[command(flatten)]
    pub sweep: SweepArguments,
}

impl ClockArguments {
    /// What is to be watched.
    pub(crate) fn assignment(&self) -> Assignment {
        let cpus = match &self.cpu {
            _ if self.all_cpus => WatchedCpus::All,
            Some(cpus) => WatchedCpus::These(cpus.clone()),
            None => WatchedCpus::Chosen,
        };
        let sweep = Sweep {
            clocks: match self.everything {
                true => ReadingKind::ALL.to_vec(),
                false => self.clock.0.clone(),
            },
            lenient: self.everything,
            cpus,
            // Each time that the progress is shown, the supervisor wakes up: only where anybody sees it.
            look: progress::is_shown().then_some(Duration::from_secs(1)),
        };
        Assignment::Clock(self.config(), sweep)
    }

    /// How many CPUs are watched, at the most.
    fn watched(&self) -> usize {
        match &self.cpu {
            _ if self.all_cpus => usize::MAX,
            Some(cpus) => cpus.len(),
            None => 1,
        }
    }

    /// The settings that are no point's.
    fn settings(&self) -> Record {
        let config = self.config();
        let reports: Vec<&str> = config.reports.iter().map(|report| report.name()).collect();
        let limits: Vec<String> = config.limits.iter().map(Limit::describe).collect();
        let [mut duration, mut readings, mut jumps] = [None; 3];
        match config.length {
            Length::Duration(length) => duration = Some(length.as_nanos() as u64),
            Length::Iterations(number) => readings = Some(number),
            Length::Jumps(number) => jumps = Some(number),
        }
        let mut settings = Record::new();
        self.intervals.record(&mut settings);
        settings
            .set(&columns::DURATION, duration)
            .set(&columns::READINGS, readings)
            .set(&columns::UNTIL, jumps)
            .set(&columns::CAUSES, config.causes.name())
            .set(&columns::INTERVAL, config.interval.0)
            .set(&columns::PRIORITY, config.priority.map(u32::from))
            .set(&columns::ALLOW_IDLE_STATES, config.allow_idle_states)
            .set(&columns::REPORTS, reports.join(","))
            .set(&columns::KEEP, config.keep)
            .set(&columns::WINDOW, config.window.0)
            .set(
                &columns::ASKED_THRESHOLD,
                config.threshold.map(|length| length.0),
            )
            .set(&columns::COINCIDENCE, config.coincidence.0)
            .set(&columns::BASELINE_READINGS, config.baseline_iterations)
            .set(&columns::HUGE_PAGES, config.huge_pages.name())
            .set(&columns::LIMITS, limits.join(","))
            .set(
                &columns::TSC_RATE,
                config.tsc_khz.map(TscKilohertz::kilohertz),
            );
        settings
    }

    fn config(&self) -> Config {
        Config {
            clock: self.clock.0[0],
            tsc_khz: self.tsc_khz,
            reports: match self.everything {
                true => {
                    let all = Report::ALL.iter().copied();
                    let small = all.filter(|report| *report != Report::Percentiles);
                    small.chain(self.report.iter().copied()).collect()
                }
                false => self.report.clone(),
            },
            length: match (self.iterations, self.until) {
                (Some(iterations), _) => Length::Iterations(iterations),
                (None, Some(jumps)) => Length::Jumps(jumps),
                (None, None) => Length::Duration(self.duration.unwrap_or(match self.everything {
                    true => DURATION_OF_EACH,
                    false => DEFAULT_DURATION,
                })),
            },
            causes: self.causes,
            interval: self.interval,
            priority: self.schedule.priority,
            allow_idle_states: self.schedule.allow_idle_states,
            hlog_interval: self.intervals.hlog_interval,
            cpus: Vec::new(),
            window: self.window,
            baseline_iterations: self.baseline_iterations,
            threshold: self.threshold,
            coincidence: self.coincidence,
            keep: self.keep_jumps,
            huge_pages: self.hugepages,
            limits: self
                .fail_above
                .as_ref()
                .map_or_else(Vec::new, |limits| limits.0.clone()),
        }
    }
}

/// Watches the clock, or examines the TSC. Returns the exit code.
///
/// # Errors
/// [`UsageError`] for bad input, others when the watch cannot be held.
pub(crate) fn run(arguments: &ClockArguments) -> anyhow::Result<u8> {
    if arguments.trust {
        return trust::run(arguments);
    }
    check(arguments)?;
    driver::run(Request {
        find_rate: None,
        sweep: &arguments.sweep,
        output: &arguments.output,
        default_rounds: 1,
        run: arguments.settings(),
        needs: Needs::of_a_watch(arguments.config().kept_bytes())
            .with_busy(arguments.watched())
            .with_priority(arguments.schedule.priority),
        view: present::VIEW,
        assignment: arguments.assignment(),
    })
}

/// Refuses what contradicts itself.
fn check(arguments: &ClockArguments) -> Result<(), UsageError> {
    let config = arguments.config();
    let least = Duration::from_nanos(config.interval.0) * (wakeup::FOR_NOTHING as u32 + 2);
    if let Length::Duration(duration) = config.length
        && config.reports.contains(&Report::Wakeup)
        && duration < least
    {
        return Err(UsageError(format!(
            "--duration {} is too short for --report wakeup with --interval {}, as the first {} wake-ups do not count: use {} \
             at least",
            humantime::format_duration(duration),
            humantime::format_duration(Duration::from_nanos(config.interval.0)),
            wakeup::FOR_NOTHING,
            humantime::format_duration(least),
        )));
    }
    let clocks = || arguments.clock.0.iter();
    if let Some(rate) = arguments.tsc_khz
        && !arguments.everything
        && !clocks().any(|clock| clock.is_counter())
    {
        let counters = ReadingKind::ALL.iter().filter(|clock| clock.is_counter());
        let counters: Vec<&str> = counters.map(|clock| clock.name()).collect();
        let names: Vec<&str> = clocks().map(|clock| clock.name()).collect();
        return Err(UsageError(format!(
            "--tsc-khz {rate}: --clock {} is not read from the {COUNTER_IN_WORDS}: choose {}, or leave it out",
            names.join(","),
            counters.join(" or ")
        )));
    }
    let unbounded = [Report::Percentiles, Report::Wakeup];
    let unbounded = unbounded
        .iter()
        .find(|report| arguments.report.contains(report));
    if let (Some(jumps), Some(report)) = (arguments.until, unbounded) {
        return Err(UsageError(format!(
            "--until {jumps}: --report {} must know when it ends: choose highest, cumulative or histogram, or end by \
             --duration or --iterations",
            report.name()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
