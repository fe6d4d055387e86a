//! What a CPU's watch tells beside its row of the summary: the tables of one round, as data. They stand in `details` of the
//! point's `settings.json`, cross from process to process, and are what is shown.
//!
//! What belongs to all CPUs (what happened at once, the notes) stands in the details of each, so that each point's folder
//! can be read by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::host::counters::ThreadUsage;

use super::baseline::Baseline;
use super::cause::Cause;
use super::coincidence::Coincidences;
use super::config::{Config, Report};
use super::distribution::{Distribution, percentiles};
use super::limit::Judgement;
use super::pattern::{Pattern, patterns};
use super::recorder::DIRECT;
use super::result::{ClockResult, CpuResult, KeptIn};

/// The tables of a CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The CPU.
    pub cpu: usize,
    /// The length of a tick.
    pub nanos_per_tick: f64,
    /// Whether ticks are cycles of the TSC; else they are nanoseconds.
    pub ticks_are_cycles: bool,
    /// What was to be reported.
    pub reports: BTreeSet<Report>,
    /// Length of the windows that slide, and of those by which clusters are told.
    pub window_ns: u64,
    /// Jumps of several CPUs that begin within this of each other coincide.
    pub coincidence_ns: u64,
    /// The usual difference.
    pub baseline: Baseline,
    /// The first ten differences.
    pub first_ten_ticks: Vec<u64>,
    /// Percentiles of all differences, if they were counted or kept.
    pub percentiles: Option<Percentiles>,
    /// Where all differences were kept, if they were.
    pub differences_kept_in: Option<KeptIn>,
    /// Differences that there was no memory for; `None` where no memory was reserved.
    pub differences_not_kept: Option<u64>,
    /// The ten largest, if asked for.
    pub highest: Vec<Highest>,
    /// The first reading, since that of the first CPU.
    pub start_ns: u64,
    /// How exact the sums over windows are.
    pub cumulative_are: String,
    /// The highest sums over windows, if asked for.
    pub cumulative: Vec<Window>,
    /// The causes of the jumps, the most time first.
    pub causes: Vec<CauseRow>,
    /// Of the unexplained ones, those at once with a jump of another CPU; `None` for a single CPU.
    pub unexplained_at_once: Option<CauseRow>,
    /// The pattern of the jumps.
    pub patterns: Vec<Pattern>,
    /// The time in which the clock was not watched.
    pub not_watched: NotWatched,
    /// Counters that cannot be read, with the reason.
    pub counters_not_readable: BTreeMap<String, String>,
    /// All longer jumps are in the file; `None` if all are.
    pub jumps_longer_than_this_are_in_the_file_ns: Option<u64>,
    /// Jumps whose counters were not kept.
    pub samples_with_cause_only: u64,
    /// All longer jumps have their counters; `None` if all have.
    pub jumps_longer_than_this_have_their_samples_ns: Option<u64>,
    /// Context switches and page faults of the thread.
    pub thread: ThreadUsage,
    /// The limits, and what was found.
    pub limits: Vec<Judgement>,
    /// Of all CPUs: jumps at once.
    pub coincidences: Option<Coincidences>,
    /// Of all CPUs: what must be known to read the figures.
    pub notes: Vec<String>,
}

impl Details {
    /// Whether a report was wanted.
    pub fn wants(&self, report: Report) -> bool {
        self.reports.contains(&report)
    }
}

/// Percentiles of all differences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// How exact they are.
    pub are: String,
    /// The least difference.
    pub min_ticks: Option<u64>,
    /// Each percentile with its difference.
    pub ticks: Vec<(f64, Option<u64>)>,
    /// The greatest.
    pub max_ticks: Option<u64>,
}

impl Percentiles {
    fn of(distribution: &Distribution) -> Self {
        let are = match (distribution.exact, distribution.step) {
            (true, _) => "exact".to_owned(),
            (false, 1) => format!("exact below {DIRECT} ticks, to 0.1 % above"),
            (false, step) => format!(
                "in steps of {step} ticks, rounded down; to 0.1 % from {} ticks up",
                DIRECT as u64 * step
            ),
        };
        let at = |percent| (percent, distribution.percentile(percent));
        Percentiles {
            are,
            min_ticks: distribution.min(),
            ticks: percentiles().map(at).collect(),
            max_ticks: distribution.max(),
        }
    }
}

/// One of the largest differences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Highest {
    /// When it began.
    pub t_ns: u64,
    /// Its length.
    pub jump_ticks: u64,
    /// The same in nanoseconds.
    pub jump_ns: u64,
}

/// A window with one of the highest sums.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// When its first jump began.
    pub t_ns: u64,
    /// When its last one began.
    pub last_jump_t_ns: u64,
    /// Its jumps.
    pub jumps: u64,
    /// What they have above the baseline.
    pub above_baseline_ns: u64,
}

/// A cause, with its jumps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseRow {
    /// The cause.
    pub cause: String,
    /// Jumps.
    pub count: u64,
    /// Of these, those whose counters are theirs alone.
    pub alone: u64,
    /// Their time together.
    pub total_ns: u64,
    /// The longest.
    pub largest_ns: u64,
}

/// The time between two passes of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NotWatched {
    /// All of it.
    pub total_ns: u64,
    /// Its share of the watch, of 1.
    pub share: f64,
    /// The longest.
    pub longest_ns: u64,
    /// What of it counters were read in.
    pub reading_counters_ns: u64,
    /// How often they were.
    pub counters_read: u64,
}

impl Details {
    /// Those of a CPU.
    pub fn of(result: &ClockResult, cpu: &CpuResult, config: &Config) -> Self {
        let (watched, stored) = (&cpu.watched, &cpu.stored);
        let jumps = &watched.jumps;
        let nanos = |ticks: u64| result.nanos(ticks).0;
        let row = |cause: &str, tally: super::cause::Tally| CauseRow {
            cause: cause.to_owned(),
            count: tally.count,
            alone: tally.alone,
            total_ns: nanos(tally.total),
            largest_ns: nanos(tally.largest),
        };
        let causes = jumps.causes().iter();
        let mut causes: Vec<CauseRow> = causes
            .map(|(cause, tally)| row(&cause.describe(&cpu.names), *tally))
            .collect();
        causes.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        let stops = jumps.jumps().iter();
        let stops = stops.filter(|jump| jump.cause != Cause::Backward);
        let in_nanos = stops.map(|jump| (nanos(jump.begin), nanos(jump.length)));
        let missing = cpu.available.missing().into_iter();
        let reserved = stored.kept_in.is_some() || stored.not_kept > 0;
        Details {
            cpu: cpu.cpu,
            nanos_per_tick: result.scale.nanos_per_tick(),
            ticks_are_cycles: result.clock.is_tsc(),
            reports: config.reports.clone(),
            window_ns: config.window.0,
            coincidence_ns: config.coincidence.0,
            baseline: cpu.baseline,
            first_ten_ticks: watched.first.clone(),
            percentiles: stored.distribution.as_ref().map(Percentiles::of),
            differences_kept_in: stored.kept_in,
            differences_not_kept: reserved.then_some(stored.not_kept),
            highest: watched
                .highest
                .iter()
                .map(|peak| Highest {
                    t_ns: nanos(peak.begin),
                    jump_ticks: peak.length,
                    jump_ns: nanos(peak.length),
                })
                .collect(),
            start_ns: nanos(watched.start),
            cumulative_are: if watched.windows_merged {
                "lower bounds"
            } else {
                "the first exact, the others found beside it"
            }
            .to_owned(),
            cumulative: watched
                .windows
                .iter()
                .map(|sum| Window {
                    t_ns: nanos(sum.begin),
                    last_jump_t_ns: nanos(sum.last),
                    jumps: sum.jumps,
                    above_baseline_ns: nanos(sum.extra),
                })
                .collect(),
            causes,
            unexplained_at_once: (result.cpus.len() > 1)
                .then(|| row("unexplained", cpu.unexplained_on_several())),
            patterns: patterns(in_nanos, nanos(watched.end), config.window.0),
            not_watched: NotWatched {
                total_ns: nanos(watched.blind),
                share: watched.blind_share(),
                longest_ns: nanos(watched.longest_blind),
                reading_counters_ns: nanos(watched.sampling),
                counters_read: watched.samples,
            },
            counters_not_readable: missing
                .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
                .collect(),
            jumps_longer_than_this_are_in_the_file_ns: (jumps.given_up() > 0)
                .then(|| nanos(jumps.kept_above())),
            samples_with_cause_only: jumps.samples_given_up(),
            jumps_longer_than_this_have_their_samples_ns: (jumps.samples_given_up() > 0)
                .then(|| nanos(jumps.samples_kept_above())),
            thread: cpu.usage,
            limits: cpu.judgements.clone(),
            coincidences: result.coincidences,
            notes: result.notes.clone(),
        }
    }
}
