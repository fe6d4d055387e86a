//! What stands in the files: rows of the summary and of the jumps, histograms, and the document of settings.

use serde::Serialize;
use serde_json::{Value, json};

use crate::bench::clock::cause::Cause;
use crate::bench::clock::config::Config;
use crate::bench::clock::distribution::{Distribution, percentiles};
use crate::bench::clock::jump::Jump;
use crate::bench::clock::pattern::patterns;
use crate::bench::clock::recorder::DIRECT;
use crate::bench::clock::result::{ClockResult, CpuResult, Ended};
use crate::host::counters::Risen;
use crate::results::Record;
use crate::time::AnyReading;

/// A row of `jumps.csv`. What was not measured is empty.
#[derive(Debug, Default, Serialize)]
pub struct JumpRow {
    cpu: usize,
    t_ns: u64,
    jump_cycles: Option<i64>,
    jump_ns: i64,
    cause: String,
    other_cpus: u32,
    window_ns: Option<u64>,
    window_other_jumps: Option<u64>,
    smis: Option<u32>,
    involuntary_switches: Option<u32>,
    voluntary_switches: Option<u32>,
    major_faults: Option<u32>,
    minor_faults: Option<u32>,
    steal_ms: Option<u32>,
    interrupts: Option<String>,
    softirqs: Option<String>,
}

impl JumpRow {
    /// The row of a jump. A step of the clock backwards has negative lengths.
    pub fn new(result: &ClockResult, cpu: &CpuResult, jump: &Jump, other_cpus: u32) -> Self {
        let sign = if jump.cause == Cause::Backward { -1 } else { 1 };
        let available = &cpu.available;
        let sample = cpu.jumps.sample(jump);
        let if_read = |missing: &Option<String>, value: u32| missing.is_none().then_some(value);
        let deltas = sample.map(|sample| &sample.deltas);
        JumpRow {
            cpu: cpu.cpu,
            t_ns: result.nanos(jump.begin).0,
            jump_cycles: result.clock.is_tsc().then_some(sign * jump.length as i64),
            jump_ns: sign * result.nanos(jump.length).0 as i64,
            cause: jump.cause.describe(&cpu.names),
            other_cpus,
            window_ns: sample.map(|sample| result.nanos(sample.window).0),
            window_other_jumps: sample.map(|sample| sample.others),
            smis: deltas.and_then(|it| if_read(&available.smis, it.smis)),
            involuntary_switches: deltas.map(|it| it.involuntary_switches),
            voluntary_switches: deltas.map(|it| it.voluntary_switches),
            major_faults: deltas.map(|it| it.major_faults),
            minor_faults: deltas.map(|it| it.minor_faults),
            steal_ms: deltas.and_then(|it| if_read(&available.steal, it.steal_ticks * 10)),
            interrupts: deltas
                .filter(|_| available.interrupts.is_none())
                .map(|it| list(&it.interrupts, &cpu.names.interrupts)),
            softirqs: deltas
                .filter(|_| available.softirqs.is_none())
                .map(|it| list(&it.softirqs, &cpu.names.softirqs)),
        }
    }
}

/// `LOC:2;RES:1`.
fn list(risen: &Risen, names: &[String]) -> String {
    let mut parts: Vec<String> = risen
        .rows()
        .iter()
        .map(|&(row, by)| {
            let name = names.get(usize::from(row)).map_or("?", String::as_str);
            format!("{}:{by}", name.split(' ').next().unwrap_or(name))
        })
        .collect();
    if risen.left_out > 0 {
        parts.push(format!("and {} more", risen.left_out));
    }
    parts.join(";")
}

/// The name of a percentile in a column: 99.99 is `p9999`, 50 is `p50`.
fn column_of(percent: f64) -> String {
    format!("p{}", percent.to_string().replace('.', ""))
}

/// A row of `summary.csv`.
pub fn summary_record(result: &ClockResult, cpu: &CpuResult) -> Record {
    let mut record = Record::new();
    let nanos = |ticks: Option<u64>| ticks.map(|ticks| result.nanos_f64(ticks as f64));
    let jumped = cpu.jumped();
    let distribution = cpu.distribution.as_ref();
    record
        .text("clock", result.clock.name())
        .count("cpu", cpu.cpu as u64)
        .text(
            "status",
            match result.ended {
                Ended::Complete => "complete",
                Ended::Early(_) => "incomplete",
            },
        )
        .count("iterations", cpu.readings)
        .nanos("elapsed_ns", result.nanos(cpu.elapsed()).0 as i64)
        .decimal("nanos_per_tick", result.scale.nanos_per_tick(), 9)
        .decimal("mean_ns", cpu.mean().map(|mean| result.nanos_f64(mean)), 3)
        .decimal("min_ns", nanos(distribution.and_then(|it| it.min())), 3);
    for percent in percentiles() {
        let found = distribution.and_then(|it| it.percentile(percent));
        record.count(format!("{}_ticks", column_of(percent)), found);
        record.decimal(format!("{}_ns", column_of(percent)), nanos(found), 3);
    }
    record
        .decimal(
            "max_ns",
            nanos((cpu.readings > 0).then_some(cpu.largest)),
            3,
        )
        .decimal(
            "baseline_ns",
            result.nanos_f64(cpu.baseline.ticks() as f64),
            3,
        )
        .count("baseline_iterations", cpu.baseline.iterations)
        .decimal("threshold_ns", nanos(Some(cpu.threshold)), 3)
        .count("jumps", jumped.count)
        .nanos("jumps_total_ns", result.nanos(jumped.total).0 as i64)
        .count("jumps_in_file", cpu.jumps.jumps().len() as u64)
        .count("jumps_not_sampled", cpu.not_sampled)
        .decimal(
            "highest_window_ns",
            nanos(cpu.windows.first().map(|sum| sum.extra)),
            0,
        )
        .count("steps_backwards", cpu.backward.steps)
        .nanos(
            "largest_step_backwards_ns",
            result.nanos(cpu.backward.largest).0 as i64,
        )
        .decimal("blind_share", cpu.blind_share(), 6)
        .count("involuntary_switches", cpu.usage.involuntary_switches)
        .count("voluntary_switches", cpu.usage.voluntary_switches)
        .count(
            "page_faults",
            cpu.usage.minor_faults + cpu.usage.major_faults,
        );
    record
}

/// The causes of a CPU's jumps, the most time first.
pub fn causes(result: &ClockResult, cpu: &CpuResult) -> Vec<CauseRow> {
    let mut rows: Vec<CauseRow> = Vec::new();
    for (cause, tally) in cpu.jumps.causes() {
        rows.push(CauseRow {
            cpu: cpu.cpu,
            cause: cause.describe(&cpu.names),
            count: tally.count,
            alone: tally.alone,
            total_ns: result.nanos(tally.total).0,
            largest_ns: result.nanos(tally.largest).0,
        });
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

/// A row of the table of causes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CauseRow {
    /// The CPU.
    pub cpu: usize,
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

/// Jumps as beginning and length in nanoseconds, steps backwards left out.
pub fn in_nanos<'a>(
    result: &'a ClockResult,
    cpu: &'a CpuResult,
) -> impl Iterator<Item = (u64, u64)> + Clone + 'a {
    cpu.jumps
        .jumps()
        .iter()
        .filter(|jump| jump.cause != Cause::Backward)
        .map(|jump| (result.nanos(jump.begin).0, result.nanos(jump.length).0))
}

/// All that was found on a CPU but for its jumps and its histogram.
pub fn cpu_document(result: &ClockResult, cpu: &CpuResult, config: &Config) -> Value {
    let elapsed = result.nanos(cpu.end).0;
    let kept_above = (cpu.jumps.given_up() > 0).then(|| result.nanos(cpu.jumps.kept_above()).0);
    let samples_above =
        (cpu.jumps.samples_given_up() > 0).then(|| result.nanos(cpu.jumps.samples_kept_above()).0);
    let distribution = cpu.distribution.as_ref();
    let missing: Value = cpu
        .available
        .missing()
        .into_iter()
        .map(|(name, reason)| (name.to_owned(), json!(reason)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({
        "summary": summary_record(result, cpu),
        "baseline": cpu.baseline,
        "first_ten_ticks": cpu.first,
        "percentiles_are": distribution.map(precision),
        "differences_kept_in": cpu.kept_in,
        // Null where no memory was reserved.
        "differences_not_kept": (cpu.kept_in.is_some() || cpu.not_kept > 0).then_some(cpu.not_kept),
        "highest": cpu.highest.iter().map(|peak| json!({
            "t_ns": result.nanos(peak.begin).0, "jump_ticks": peak.length, "jump_ns": result.nanos(peak.length).0,
        })).collect::<Vec<_>>(),
        "start_ns": result.nanos(cpu.start).0,
        "cumulative_are": if cpu.windows_merged { "lower bounds" } else { "the first exact, the others found beside it" },
        "cumulative": cpu.windows.iter().map(|sum| json!({
            "t_ns": result.nanos(sum.begin).0, "last_jump_t_ns": result.nanos(sum.last).0, "jumps": sum.jumps,
            "above_baseline_ns": result.nanos(sum.extra).0,
        })).collect::<Vec<_>>(),
        "causes": causes(result, cpu),
        "patterns": patterns(in_nanos(result, cpu), elapsed, config.window.0),
        "not_watched": {
            "total_ns": result.nanos(cpu.blind).0, "share": cpu.blind_share(), "longest_ns": result.nanos(cpu.longest_blind).0,
            "reading_counters_ns": result.nanos(cpu.sampling).0, "counters_read": cpu.samples,
        },
        "counters_not_readable": missing,
        "jumps_longer_than_this_are_in_the_file_ns": kept_above,
        "samples_with_cause_only": cpu.jumps.samples_given_up(),
        "jumps_longer_than_this_have_their_samples_ns": samples_above,
        "thread": cpu.usage,
    })
}

/// How exact the percentiles are.
fn precision(distribution: &Distribution) -> String {
    match (distribution.exact, distribution.step) {
        (true, _) => "exact".to_owned(),
        (false, 1) => format!("exact below {DIRECT} ticks, to 0.1 % above"),
        (false, step) => format!(
            "in steps of {step} ticks, rounded down; to 0.1 % from {} ticks up",
            DIRECT as u64 * step
        ),
    }
}

/// What was found, for `--json`.
pub fn result_document(result: &ClockResult, config: &Config) -> Value {
    json!({
        "status": match &result.ended { Ended::Complete => "complete".to_owned(), Ended::Early(reason) => format!("incomplete: {reason}") },
        "cpus": result.cpus.iter().map(|cpu| cpu_document(result, cpu, config)).collect::<Vec<_>>(),
        "coincidences": result.coincidences,
        "limits": result.judgements,
        "notes": result.notes,
    })
}

/// The circumstances of a run.
#[derive(Debug)]
pub struct RunFacts {
    /// When it was started, as RFC 3339.
    pub started_at: String,
    /// The machine.
    pub machine: Value,
    /// What is not as it should be for a measurement.
    pub advice: Value,
}

/// The document of `settings.json`; without a result while the watch goes on.
pub fn settings_document(
    config: &Config,
    reading: &AnyReading,
    facts: &RunFacts,
    result: Option<&ClockResult>,
) -> Value {
    json!({
        "command": "clock",
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": facts.started_at,
        "settings": config,
        "clock": {
            "name": config.clock.name(),
            "sequence": config.clock.sequence(),
            "nanos_per_tick": reading.scale().nanos_per_tick(),
            "tsc": reading.tsc_facts(),
        },
        "result": result.map(|result| result_document(result, config)),
        "machine": facts.machine,
        "advice": facts.advice,
    })
}

/// The document of a CPU's histogram: values in ticks with their counts.
#[derive(Debug, Serialize)]
pub struct HistogramDocument {
    cpu: usize,
    unit: &'static str,
    nanos_per_tick: f64,
    exact: bool,
    total: u64,
    counts: Vec<(u64, u64)>,
}

impl HistogramDocument {
    /// That of a CPU, if its differences were counted.
    pub fn new(result: &ClockResult, cpu: &CpuResult) -> Option<Self> {
        let distribution = cpu.distribution.as_ref()?;
        Some(HistogramDocument {
            cpu: cpu.cpu,
            unit: "ticks",
            nanos_per_tick: result.scale.nanos_per_tick(),
            exact: distribution.exact,
            total: distribution.count(),
            counts: distribution.counts().collect(),
        })
    }
}
