//! What the findings come to: trusted, usable with care, or not to be trusted, each reason a type of its own.

use serde::Serialize;

use super::reads::{Crossed, Shared};
use super::{CpuOffsets, Finding};
use crate::host::fingerprint::{Clock, Virtualisation};
use crate::time::trust::frequency::{Frequencies, FrequencySource};
use crate::time::trust::monotony::Monotony;
use crate::time::{RateDoubt, TscRate};

/// A proven offset beyond this spoils latencies between CPUs, in nanoseconds.
pub const SPOILING_OFFSET_NS: f64 = 100.0;
/// An uncertainty of an offset beyond this tells too little, in nanoseconds.
pub const UNCERTAIN_OFFSET_NS: f64 = 1000.0;
/// Sources of the rate that disagree by more are to be looked at, in parts per million.
pub const DISAGREEING_PPM: f64 = 500.0;
/// Sources of the rate that disagree by more do not speak of the same counter, in parts per million.
pub const CONTRADICTING_PPM: f64 = 10_000.0;
/// An uncertainty of the calibration beyond this tells too little, in parts per million.
pub const UNCERTAIN_RATE_PPM: f64 = 100.0;

/// Fewer readings that follow another CPU's compare the CPUs too seldom.
pub const LEAST_CROSSINGS: u64 = 1000;

/// Whether to trust the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing speaks against it.
    Trusted,
    /// It can be used by someone who knows the reasons against it.
    UsableWithCare,
    /// Figures taken with it would be wrong.
    NotToBeTrusted,
}

impl Verdict {
    /// The verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Trusted => "trusted",
            Verdict::UsableWithCare => "usable with care",
            Verdict::NotToBeTrusted => "not to be trusted",
        }
    }
}

/// Where the counter was watched for steps back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watch {
    /// By a thread that was moved from CPU to CPU.
    Migrations,
    /// Between threads on all CPUs.
    Shared,
}

impl std::fmt::Display for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Watch::Migrations => "in a thread moved from CPU to CPU",
            Watch::Shared => "between threads on all CPUs",
        })
    }
}

/// Something that speaks against the counter.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// Time went backwards.
    #[error(
        "it went backwards {watch}: {steps} times in {reads} reads, by up to {largest_ticks} counts"
    )]
    Backwards {
        /// Where.
        watch: Watch,
        /// How often.
        steps: u64,
        /// In how many readings.
        reads: u64,
        /// The largest step, in counts.
        largest_ticks: u64,
    },
    /// An answer came back before it had been asked for.
    #[error(
        "on CPU {cpu} it went backwards in {steps} of {exchanges} exchanges with CPU {other_cpu}"
    )]
    BackwardsInExchange {
        /// The CPU that asked.
        cpu: usize,
        /// The CPU that answered.
        other_cpu: usize,
        /// How often.
        steps: u64,
        /// In how many exchanges.
        exchanges: u64,
    },
    /// Each reading was the same.
    #[error("it stands still: {reads} reads gave the same value")]
    StandsStill {
        /// Readings.
        reads: u64,
    },
    /// The kernel gave it up.
    #[error("the kernel has dropped it from its clock sources ({available}); its log says why")]
    Dropped {
        /// Those that are left.
        available: String,
    },
    /// Neither processor nor kernel vouch for it.
    #[error(
        "the processor does not call it invariant, and the kernel does not keep its time by it"
    )]
    NobodyVouches,
    /// Only the kernel does.
    #[error("the processor does not call it invariant; only the kernel keeps its time by it")]
    NotInvariant,
    /// A flag of the kernel is missing although the processor calls the counter invariant.
    #[error("the kernel does not find it {flag}, though the processor calls it invariant")]
    FlagMissing {
        /// The flag.
        flag: &'static str,
    },
    /// The rate could not be measured.
    #[error("its rate does not settle: {why}")]
    RateUnsettled {
        /// What the calibration said.
        why: String,
    },
    /// The calibration is not exact.
    #[error("its rate was measured to {ppm:.0} ppm only: the machine is busy")]
    RateUncertain {
        /// How exact it is.
        ppm: f64,
    },
    /// Sources give different rates.
    #[error("its rate is {ppm:.0} ppm higher by one source ({highest}) than by another ({lowest})",
            highest = highest.title(), lowest = lowest.title())]
    RatesDiffer {
        /// The source with the lowest.
        lowest: FrequencySource,
        /// The source with the highest.
        highest: FrequencySource,
        /// The distance.
        ppm: f64,
    },
    /// The given rate is not the measured one.
    #[error("{text}")]
    GivenRate {
        /// What is wrong with it.
        text: String,
    },
    /// The counters of two CPUs differ for certain.
    #[error(
        "CPU {cpu} is {offset_ns:+.0} ns off CPU {against_cpu}, with an uncertainty of {uncertainty_ns:.0} ns"
    )]
    CpusDiffer {
        /// The one CPU.
        cpu: usize,
        /// The other.
        against_cpu: usize,
        /// How far the one is ahead.
        offset_ns: f64,
        /// On either side.
        uncertainty_ns: f64,
    },
    /// The distance of two counters changes.
    #[error("the offset of CPU {cpu} changed by {ns:.0} ns or more while it was measured")]
    OffsetChanges {
        /// The CPU.
        cpu: usize,
        /// By how much at least.
        ns: f64,
    },
    /// The offset is known too coarsely.
    #[error(
        "the offset of CPU {cpu} is known to {uncertainty_ns:.0} ns only: the machine is busy, or the CPUs are far apart"
    )]
    OffsetUncertain {
        /// The CPU.
        cpu: usize,
        /// On either side.
        uncertainty_ns: f64,
    },
    /// The offset could not be measured.
    #[error("the offset of CPU {cpu} is not known: {why}")]
    OffsetMissing {
        /// The CPU.
        cpu: usize,
        /// Why not.
        why: String,
    },
    /// Fewer readings than asked for.
    #[error("{done} of {asked} reads were made {watch} before the time was up")]
    Incomplete {
        /// Of which.
        watch: Watch,
        /// How many there are.
        done: u64,
        /// How many were asked for.
        asked: u64,
    },
    /// The CPUs were hardly compared.
    #[error(
        "only {crossings} of {reads} reads between threads followed another CPU's: the machine is busy, or --trust-reads too \
         few"
    )]
    FewCrossings {
        /// Readings that followed another CPU's.
        crossings: u64,
        /// All.
        reads: u64,
    },
    /// TSC_AUX is not filled as Linux does.
    #[error("TSC_AUX named another CPU in {stays} stays: rdtscp does not tell where it was read")]
    WrongCpuNames {
        /// In how many.
        stays: u64,
    },
    /// The kernel uses another clock.
    #[error("the kernel keeps its time by {clock_source}, not by the TSC")]
    OtherClockSource {
        /// Which.
        clock_source: String,
    },
    /// The kernel does not tell what it uses.
    #[error("the kernel does not tell its clock source")]
    ClockSourceUnknown,
    /// A hypervisor may change it.
    #[error(
        "a hypervisor ({name}) stands in between: it may offset or scale the counter, and a migration to another host changes both"
    )]
    Guest {
        /// Its name.
        name: String,
    },
    /// Software pretends to be the processor.
    #[error(
        "the processor is emulated in software, and its counter with it: figures test the tool only"
    )]
    Emulated,
}

impl Reason {
    /// How heavy it weighs.
    pub fn weighs(&self) -> Verdict {
        let heavy = match self {
            Reason::Backwards { .. }
            | Reason::BackwardsInExchange { .. }
            | Reason::StandsStill { .. }
            | Reason::Dropped { .. }
            | Reason::NobodyVouches
            | Reason::RateUnsettled { .. }
            | Reason::OffsetChanges { .. } => true,
            Reason::RatesDiffer { ppm, .. } => *ppm > CONTRADICTING_PPM,
            Reason::CpusDiffer {
                offset_ns,
                uncertainty_ns,
                ..
            } => offset_ns.abs() - uncertainty_ns > SPOILING_OFFSET_NS,
            _ => false,
        };
        if heavy {
            Verdict::NotToBeTrusted
        } else {
            Verdict::UsableWithCare
        }
    }
}

/// A reason, with its weight and its words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weighed {
    /// The verdict that it alone would lead to.
    pub weighs: Verdict,
    /// The reason.
    #[serde(flatten)]
    pub reason: Reason,
    /// In words.
    pub text: String,
}

/// The verdict, with what speaks against the counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The heaviest of the reasons.
    pub verdict: Verdict,
    /// All of them, the heaviest first.
    pub reasons: Vec<Weighed>,
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'a> {
    /// The kernel's clock and the flags.
    pub clock: &'a Clock,
    /// What stands below the kernel.
    pub virtualisation: &'a Virtualisation,
    /// The rate by each source.
    pub frequencies: &'a Frequencies,
    /// The rate in use.
    pub rate: Option<&'a TscRate>,
    /// Counts per second by which counts become nanoseconds here.
    pub hertz: Option<f64>,
    /// The offsets.
    pub offsets: &'a Finding<CpuOffsets>,
    /// Readings across migrations.
    pub migrations: &'a Finding<Crossed>,
    /// Readings on all CPUs.
    pub shared: &'a Finding<Shared>,
}

/// Weighs the findings.
pub fn judge(findings: Findings<'_>) -> Judgement {
    let mut reasons = Vec::new();
    watched(&findings, &mut reasons);
    vouched_for(findings.clock, &mut reasons);
    rated(&findings, &mut reasons);
    apart(&findings, &mut reasons);
    below(findings.virtualisation, &mut reasons);
    let mut reasons: Vec<Weighed> = reasons
        .into_iter()
        .map(|reason| Weighed {
            weighs: reason.weighs(),
            text: reason.to_string(),
            reason,
        })
        .collect();
    // Stable: within a weight they stay in the order of the report.
    reasons.sort_by_key(|it| std::cmp::Reverse(it.weighs));
    Judgement {
        verdict: reasons.first().map_or(Verdict::Trusted, |it| it.weighs),
        reasons,
    }
}

fn watched(findings: &Findings<'_>, reasons: &mut Vec<Reason>) {
    let mut watch = |watch: Watch, asked: u64, found: &Monotony| {
        if found.backward_steps > 0 {
            reasons.push(Reason::Backwards {
                watch,
                steps: found.backward_steps,
                reads: found.reads,
                largest_ticks: found.largest(),
            });
        }
        if found.stood_still() {
            reasons.push(Reason::StandsStill { reads: found.reads });
        }
        if found.reads < asked {
            reasons.push(Reason::Incomplete {
                watch,
                done: found.reads,
                asked,
            });
        }
    };
    if let Some(found) = findings.migrations.found() {
        watch(Watch::Migrations, found.asked_reads, &found.monotony);
    }
    if let Some(found) = findings.shared.found() {
        watch(Watch::Shared, found.asked_reads, &found.monotony);
        if found.monotony.crossings < LEAST_CROSSINGS {
            reasons.push(Reason::FewCrossings {
                crossings: found.monotony.crossings,
                reads: found.monotony.reads,
            });
        }
    }
    if let Some(stays @ 1..) = findings
        .migrations
        .found()
        .and_then(|it| it.wrong_cpu_names)
    {
        reasons.push(Reason::WrongCpuNames { stays });
    }
}

fn vouched_for(clock: &Clock, reasons: &mut Vec<Reason>) {
    const TSC: &str = "tsc";
    let used = clock.source.as_deref() == Some(TSC);
    if let Some(available) = &clock.available
        && !available.iter().any(|source| source == TSC)
    {
        reasons.push(Reason::Dropped {
            available: available.join(", "),
        });
    } else {
        match &clock.source {
            None => reasons.push(Reason::ClockSourceUnknown),
            Some(source) if source != TSC => reasons.push(Reason::OtherClockSource {
                clock_source: source.clone(),
            }),
            Some(_) => {}
        }
    }
    if clock.invariant_tsc == Some(true) {
        let flags = [
            ("constant", clock.constant_tsc),
            ("nonstop", clock.nonstop_tsc),
        ];
        for (flag, _) in flags.into_iter().filter(|(_, has)| *has == Some(false)) {
            reasons.push(Reason::FlagMissing { flag });
        }
    } else if used {
        reasons.push(Reason::NotInvariant);
    } else {
        reasons.push(Reason::NobodyVouches);
    }
}

fn rated(findings: &Findings<'_>, reasons: &mut Vec<Reason>) {
    let measured = findings.frequencies.by(FrequencySource::Calibration);
    if let Some(why) = measured.and_then(|it| it.missing.clone()) {
        reasons.push(Reason::RateUnsettled { why });
    }
    if let Some(ppm) = measured.and_then(|it| it.uncertainty_ppm)
        && ppm > UNCERTAIN_RATE_PPM
    {
        reasons.push(Reason::RateUncertain { ppm });
    }
    if let Some(farthest) = findings.frequencies.disagreement
        && farthest.ppm > DISAGREEING_PPM
    {
        reasons.push(Reason::RatesDiffer {
            lowest: farthest.lowest,
            highest: farthest.highest,
            ppm: farthest.ppm,
        });
    }
    // That nothing settled is told above.
    if let Some(doubt @ RateDoubt::Off { .. }) = findings.rate.and_then(TscRate::doubt) {
        reasons.push(Reason::GivenRate {
            text: doubt.to_string(),
        });
    }
}

fn apart(findings: &Findings<'_>, reasons: &mut Vec<Reason>) {
    let Some(offsets) = findings.offsets.found() else {
        return;
    };
    for each in &offsets.cpus {
        let cpu = each.cpu;
        let found = match &each.offset {
            Finding::Found(found) => found,
            Finding::Missing(why) => {
                reasons.push(Reason::OffsetMissing {
                    cpu,
                    why: why.clone(),
                });
                continue;
            }
        };
        if found.backward_steps > 0 {
            reasons.push(Reason::BackwardsInExchange {
                cpu: offsets.against_cpu,
                other_cpu: cpu,
                steps: found.backward_steps,
                exchanges: found.exchanges,
            });
        }
        let (Some(offset_ns), Some(uncertainty_ns), Some(hertz)) =
            (each.offset_ns, each.uncertainty_ns, findings.hertz)
        else {
            // Without a rate; that is a reason by itself.
            continue;
        };
        if found.changes() {
            reasons.push(Reason::OffsetChanges {
                cpu,
                ns: found.contradiction_ticks as f64 * 1e9 / hertz,
            });
        } else if found.proven_ticks() > 0.0 {
            reasons.push(Reason::CpusDiffer {
                cpu,
                against_cpu: offsets.against_cpu,
                offset_ns,
                uncertainty_ns,
            });
        }
        if uncertainty_ns > UNCERTAIN_OFFSET_NS {
            reasons.push(Reason::OffsetUncertain {
                cpu,
                uncertainty_ns,
            });
        }
    }
}

fn below(found: &Virtualisation, reasons: &mut Vec<Reason>) {
    if found.emulated == Some(true) {
        reasons.push(Reason::Emulated);
    } else if found.guest == Some(true) {
        reasons.push(Reason::Guest {
            name: found
                .hypervisor
                .clone()
                .unwrap_or_else(|| "of unknown make".to_owned()),
        });
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
