//! `hcabench clock --trust`: the report on the time stamp counter, as text or JSON.

use std::fmt::Write as _;

use anyhow::Context as _;

use super::ClockArguments;
use crate::bench::clock::trust::{
    CpuOffset, Finding, Report, Settings, TrustError, Verdict, examine,
};
use crate::cli::output::{print_json, print_text, warning};
use crate::cli::table::{Column, Table};
use crate::cli::{TEXT_WIDTH, UsageError, label_rows, wrap};
use crate::host::interrupt;
use crate::results::units::fixed;
use crate::time::RateSource;
use crate::time::trust::monotony::Monotony;

/// More CPUs than this are not listed one by one.
const LISTED_CPUS: usize = 16;

pub(super) fn run(arguments: &ClockArguments) -> anyhow::Result<u8> {
    interrupt::install()?;
    let settings = Settings {
        reads: arguments.trust_reads,
        given: arguments.tsc_khz,
    };
    let stop = || interrupt::requested().is_some();
    let report = examine(settings, &stop).map_err(sort)?;
    if let Some(doubt) = report.rate.and_then(|rate| rate.doubt()) {
        eprintln!("{}", warning(&doubt.to_string()));
    }
    if !arguments.output.quiet {
        let written = if arguments.output.json {
            print_json(&report)
        } else {
            print_text(&in_words(&report))
        };
        written.context("cannot write to standard output")?;
    }
    Ok(u8::from(
        report.judgement.verdict == Verdict::NotToBeTrusted,
    ))
}

/// That there is no TSC is the user's to know.
fn sort(error: TrustError) -> anyhow::Error {
    match error {
        TrustError::NoTsc => UsageError(format!("--trust: {error}")).into(),
        other => other.into(),
    }
}

/// The report as text.
fn in_words(report: &Report) -> String {
    let mut text = format!("The TSC of this machine: {}\n", verdict_line(report));
    for weighed in &report.judgement.reasons {
        let lines = wrap(&weighed.text, TEXT_WIDTH - 4);
        let _ = writeln!(text, "  - {}", lines.join("\n    "));
    }
    text += "\n";
    text += &label_rows(&facts(report));
    text += "\n";
    text += &frequencies(report);
    text += "\n";
    text += &offsets(report);
    text += "\n";
    text += &label_rows(&[
        (
            "moved over CPUs",
            match &report.migrations {
                Finding::Found(found) => {
                    let names = match found.wrong_cpu_names {
                        None => "; CPU by pinning, without rdtscp",
                        Some(0) => "; TSC_AUX named the right CPU",
                        Some(_) => "; TSC_AUX named wrong CPUs",
                    };
                    let moves = format!(
                        ", {} over {}{names}",
                        counted(found.migrations, "migration"),
                        counted(found.cpus as u64, "CPU")
                    );
                    steps(&found.monotony, found.asked_reads, &moves)
                }
                Finding::Missing(why) => missing(why),
            },
        ),
        (
            "on all at once",
            match &report.shared {
                Finding::Found(found) => {
                    let threads = format!(
                        ", {} of them against another CPU's; {}",
                        found.monotony.crossings,
                        counted(found.cpus as u64, "thread")
                    );
                    steps(&found.monotony, found.asked_reads, &threads)
                }
                Finding::Missing(why) => missing(why),
            },
        ),
    ]);
    text
}

fn verdict_line(report: &Report) -> String {
    let verdict = report.judgement.verdict.name();
    if report.judgement.reasons.is_empty() {
        format!("{verdict}; nothing speaks against it")
    } else {
        format!("{verdict}, because")
    }
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let clock = &report.clock;
    let flag = |has: Option<bool>| match has {
        Some(true) => "yes",
        Some(false) => "no",
        None => "the kernel does not tell",
    };
    let source = match (&clock.source, &clock.available) {
        (Some(source), Some(all)) => format!("{source} (available: {})", all.join(", ")),
        (Some(source), None) => format!("{source} (the kernel does not tell the others)"),
        (None, _) => missing("the kernel does not tell"),
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
                RateSource::TscKhz => "given by --tsc-khz",
            };
            format!("{:.6} MHz, {by}", rate.hertz / 1e6)
        }
        None => missing("it does not settle, and none is given (--tsc-khz)"),
    };
    vec![
        (
            "invariant",
            format!("{} (CPUID 80000007H)", flag(clock.invariant_tsc)),
        ),
        ("constant_tsc", flag(clock.constant_tsc).to_owned()),
        ("nonstop_tsc", flag(clock.nonstop_tsc).to_owned()),
        ("tsc_known_freq", flag(clock.tsc_known_freq).to_owned()),
        ("tsc_reliable", flag(clock.tsc_reliable).to_owned()),
        ("rdtscp", flag(Some(report.rdtscp)).to_owned()),
        ("clock source", source),
        ("hypervisor", hypervisor.to_owned()),
        ("CPUs examined", report.cpus.to_string()),
        ("rate in use", rate),
    ]
}

fn frequencies(report: &Report) -> String {
    let mut table = Table::new(vec![
        Column::text("rate by"),
        Column::number("rate", "MHz"),
        Column::number("uncertainty", "ppm"),
        Column::number("from calibration", "ppm"),
        Column::text("remark"),
    ]);
    let ppm = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| fixed(it, 1));
    let mut absent = Vec::new();
    for each in &report.frequencies.sources {
        match each.hertz {
            Some(hertz) => {
                table.row([
                    each.source.title().to_owned(),
                    fixed(hertz / 1e6, 6),
                    ppm(each.uncertainty_ppm),
                    ppm(each.from_calibration_ppm),
                    each.note.clone().unwrap_or_default(),
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
    if report.clock.source.as_deref() == Some("tsc") {
        let note = "the kernel's raw clock runs by the TSC here, so the calibration shows the rate that the kernel takes \
                    it to have; only NTP compares it with true time";
        below.push(("note", note.to_owned()));
    }
    table.render(None) + "\n" + &label_rows(&below)
}

fn offsets(report: &Report) -> String {
    let found = match &report.offsets {
        Finding::Found(found) => found,
        Finding::Missing(why) => return label_rows(&[("offset of CPUs", missing(why))]),
    };
    let mut table = Table::new(vec![
        Column::text(format!("against CPU {}", found.against_cpu)),
        Column::number("offset", "ns"),
        Column::number("uncertainty", "ns"),
        Column::number("offset", "counts"),
        Column::number("shortest round trip", "counts"),
        Column::number("contradiction", "counts"),
        Column::number("exchanges", ""),
    ]);
    let mut absent = Vec::new();
    let mut known: Vec<&CpuOffset> = Vec::new();
    for each in &found.cpus {
        match &each.offset {
            Finding::Found(_) => known.push(each),
            Finding::Missing(why) => absent.push((format!("CPU {}", each.cpu), missing(why))),
        }
    }
    let measured = known.len();
    if measured > LISTED_CPUS {
        let size = |it: &CpuOffset| it.offset.found().map_or(0.0, |offset| offset.ticks.abs());
        known.sort_by(|a, b| size(b).total_cmp(&size(a)));
        known.truncate(LISTED_CPUS);
    }
    let ns = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| fixed(it, 1));
    for each in &known {
        if let Finding::Found(offset) = &each.offset {
            table.row([
                format!("CPU {}", each.cpu),
                ns(each.offset_ns),
                ns(each.uncertainty_ns),
                fixed(offset.ticks, 1),
                offset.round_trip_ticks.to_string(),
                offset.contradiction_ticks.to_string(),
                offset.exchanges.to_string(),
            ]);
        }
    }
    let mut text = table.render(None);
    if measured > LISTED_CPUS {
        let _ = writeln!(
            text,
            "the {LISTED_CPUS} largest of {measured}; --json has them all"
        );
    }
    text += &label_rows(&absent);
    text
}

/// What a row of readings showed, and how they were made.
fn steps(found: &Monotony, asked: u64, how: &str) -> String {
    let back = match found.backward_steps {
        0 => "never a step back".to_owned(),
        many => format!(
            "{} back, the largest by {} counts",
            counted(many, "step"),
            found.largest()
        ),
    };
    let reads = if found.reads < asked {
        format!("{} of {asked} reads", found.reads)
    } else {
        counted(found.reads, "read")
    };
    format!("{back} in {reads}{how}")
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn missing(why: &str) -> String {
    format!("missing: {why}")
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
