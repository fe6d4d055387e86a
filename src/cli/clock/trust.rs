//! `hcabench clock --trust`: the report on the time stamp counter, as text or JSON.

use std::fmt::Write as _;

use super::ClockArguments;
use crate::arguments::UsageError;
use crate::host::{interrupt, resources};
use crate::results::units::fixed;
use crate::rig::findings;
use crate::rig::trust::{
    Finding, Judgement, Report, TrustError, Verdict, examine, reads::Monotony,
};
use crate::sorting::sort_by;
use crate::terminal::output::{print_as, say, terminal_width, warning};
use crate::terminal::table::{Column, Table};
use crate::terminal::{label_rows, text_width, wrap};
use crate::time::{COUNTER_IN_WORDS, RateSource};

/// More CPUs than this are not listed one by one.
const LISTED_CPUS: usize = 16;

pub(super) fn run(arguments: &ClockArguments) -> anyhow::Result<u8> {
    resources::require_memory(resources::LEAST_TO_MEASURE)?;
    interrupt::install()?;
    let stop = || interrupt::requested().is_some();
    let report = examine(arguments.trust_reads, arguments.tsc_khz, &stop).map_err(sort)?;
    if let Some(doubt) = report.rate.and_then(|rate| findings::of_rate(&rate)) {
        say(warning(&doubt.line(1)));
    }
    if !arguments.output.quiet {
        print_as(arguments.output.json, &report, || in_words(&report))?;
    }
    Ok(u8::from(
        report.judgement.verdict == Verdict::NotToBeTrusted,
    ))
}

/// That there is no counter is the user's to know.
fn sort(error: TrustError) -> anyhow::Error {
    match error {
        TrustError::NoCounter => UsageError(format!("--trust: {error}")).into(),
        other => other.into(),
    }
}

/// The report as text.
fn in_words(report: &Report) -> String {
    let Judgement { verdict, reasons } = &report.judgement;
    let why = if reasons.is_empty() {
        "; no finding contradicts it"
    } else {
        ", because"
    };
    let mut text = format!(
        "The {COUNTER_IN_WORDS} of this machine: {}{why}\n",
        verdict.name()
    );
    for weighed in reasons {
        let lines = wrap(&weighed.text, text_width() - 4);
        let _ = writeln!(text, "  - {}", lines.join("\n    "));
    }
    let moved = or_missing(&report.migrations, |found| {
        let names = match found.wrong_cpu_names {
            None if report.clock.generic_timer.is_some() => "; CPU by pinning",
            None => "; CPU by pinning, without rdtscp",
            Some(0) => "; TSC_AUX named the right CPU",
            Some(_) => "; TSC_AUX named wrong CPUs",
        };
        let migrations = counted(found.migrations, "migration");
        let cpus = counted(found.monotony.cpus as u64, "CPU");
        let steps = steps(&found.monotony);
        format!("{steps}, {migrations} over {cpus}{names}")
    });
    let at_once = or_missing(&report.shared, |found| {
        let (steps, threads) = (steps(found), counted(found.cpus as u64, "thread"));
        let crossings = found.crossings;
        format!("{steps}, {crossings} of them against another CPU's; {threads}")
    });
    let parts = [
        text,
        label_rows(&facts(report)),
        frequencies(report),
        offsets(report),
        label_rows(&[("moved over CPUs", moved), ("on all at once", at_once)]),
    ];
    parts.join("\n")
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let clock = &report.clock;
    let flag = |has: Option<bool>| match has {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not reported by the kernel",
    };
    let source = match (&clock.source, &clock.available) {
        (Some(source), Some(all)) => format!("{source} (available: {})", all.join(", ")),
        (Some(source), None) => format!("{source} (the kernel does not report the others)"),
        (None, _) => missing("not reported by the kernel"),
    };
    let below = &report.virtualisation;
    let hypervisor = match below.guest {
        Some(true) => below.hypervisor.as_deref().unwrap_or("of unknown make"),
        Some(false) => "none",
        None => "none that shows",
    };
    let rate = match &report.rate {
        Some(rate) => {
            let by = match rate.source {
                RateSource::Measured => "measured",
                RateSource::Cntfrq => "reported by CNTFRQ_EL0",
                RateSource::TscKhz => "given by --tsc-khz",
            };
            format!("{:.6} MHz, {by}", rate.hertz / 1e6)
        }
        None => missing("it does not settle, and none is given (--tsc-khz)"),
    };
    let mut facts = match &clock.generic_timer {
        Some(timer) => vec![
            (
                "counter",
                "generic timer (CNTVCT_EL0), constant by architecture".to_owned(),
            ),
            (
                "a count",
                timer.count_ns().map_or_else(
                    || missing("CNTFRQ_EL0 is 0"),
                    |ns| format!("{} ns: no stamp is finer", fixed(ns, 3)),
                ),
            ),
            (
                "CNTVCTSS_EL0",
                flag(Some(timer.self_synchronised)).to_owned(),
            ),
            (
                "WFE event stream",
                flag(Some(timer.event_stream)).to_owned(),
            ),
        ],
        None => vec![
            (
                "invariant",
                format!("{} (CPUID 80000007H)", flag(clock.invariant_tsc)),
            ),
            ("constant_tsc", flag(clock.constant_tsc).to_owned()),
            ("nonstop_tsc", flag(clock.nonstop_tsc).to_owned()),
            ("tsc_known_freq", flag(clock.tsc_known_freq).to_owned()),
            ("tsc_reliable", flag(clock.tsc_reliable).to_owned()),
            ("rdtscp", flag(Some(report.rdtscp)).to_owned()),
        ],
    };
    facts.extend([
        ("clock source", source),
        ("hypervisor", hypervisor.to_owned()),
        ("CPUs examined", report.cpus.to_string()),
        ("rate in use", rate),
    ]);
    facts
}

fn frequencies(report: &Report) -> String {
    let mut table = Table::new(vec![
        Column::text("rate by").setting(),
        Column::number("rate", "MHz"),
        Column::number("uncertainty", "ppm"),
        Column::number("from calibration", "ppm"),
        Column::text("remark"),
    ]);
    let mut absent = Vec::new();
    for each in &report.frequencies.sources {
        match each.hertz {
            Some(hertz) => {
                table.row([
                    each.source.title().to_owned(),
                    fixed(hertz / 1e6, 6),
                    in_number(each.uncertainty_ppm),
                    in_number(each.from_calibration_ppm),
                    each.note.unwrap_or_default().to_owned(),
                ]);
            }
            None => absent.push((
                each.source.title(),
                missing(each.missing.as_deref().unwrap_or("no reason is known")),
            )),
        }
    }
    let told = match &report.frequencies.disagreement {
        Some(farthest) => format!(
            "{} ppm ({} against {})",
            fixed(farthest.ppm, 1),
            farthest.highest.title(),
            farthest.lowest.title()
        ),
        None => missing("there are no two sources to compare, nominal ones left out"),
    };
    let mut below = absent;
    below.push(("largest distance", told));
    if matches!(
        report.clock.source.as_deref(),
        Some("tsc" | "arch_sys_counter")
    ) {
        let note = format!(
            "the kernel's raw clock runs by the {COUNTER_IN_WORDS} here, so the calibration shows the rate that the kernel \
             takes it to have; only NTP compares it with true time"
        );
        below.push(("note", note));
    }
    table.render(terminal_width()) + "\n" + &label_rows(&below)
}

fn offsets(report: &Report) -> String {
    let found = match &report.offsets {
        Finding::Found(found) => found,
        Finding::Missing(why) => return label_rows(&[("offset of CPUs", missing(why))]),
    };
    let mut table = Table::new(vec![
        Column::text("CPUs").setting(),
        Column::number("offset", "ns"),
        Column::number("uncertainty", "ns"),
        Column::number("offset", "counts"),
        Column::number("shortest round trip", "counts"),
        Column::number("contradiction", "counts"),
        Column::number("exchanges", ""),
    ]);
    let mut absent = Vec::new();
    let mut known = Vec::new();
    for each in &found.cpus {
        match &each.offset {
            Finding::Found(offset) => known.push((each, offset)),
            Finding::Missing(why) => absent.push((format!("CPU {}", each.cpu), missing(why))),
        }
    }
    let measured = known.len();
    if measured > LISTED_CPUS {
        sort_by(&mut known, |(_, a), (_, b)| {
            b.ticks.abs().total_cmp(&a.ticks.abs())
        });
        known.truncate(LISTED_CPUS);
    }
    for (each, offset) in known {
        table.row([
            format!("{} against {}", each.cpu, found.against_cpu),
            in_number(each.offset_ns),
            in_number(each.uncertainty_ns),
            fixed(offset.ticks, 1),
            offset.round_trip_ticks.to_string(),
            offset.contradiction_ticks.to_string(),
            offset.exchanges.to_string(),
        ]);
    }
    let mut text = table.render(terminal_width());
    if measured > LISTED_CPUS {
        let _ = writeln!(
            text,
            "the {LISTED_CPUS} largest of {measured}; --json has them all"
        );
    }
    text += &label_rows(&absent);
    text
}

/// What a row of readings showed.
fn steps(found: &Monotony) -> String {
    let back = match found.backward_steps {
        0 => "never a step back".to_owned(),
        many => {
            let largest = found.largest();
            let many = counted(many, "step");
            format!("{many} back, the largest by {largest} counts")
        }
    };
    let (reads, asked) = (found.reads, found.asked_reads);
    if reads < asked {
        format!("{back} in {reads} of {asked} reads")
    } else {
        format!("{back} in {}", counted(reads, "read"))
    }
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn missing(why: &str) -> String {
    format!("missing: {why}")
}

fn or_missing<T>(finding: &Finding<T>, words: impl Fn(&T) -> String) -> String {
    match finding {
        Finding::Found(found) => words(found),
        Finding::Missing(why) => missing(why),
    }
}

fn in_number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |it| fixed(it, 1))
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
