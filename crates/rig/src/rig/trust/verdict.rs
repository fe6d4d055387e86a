//! What the findings come to: trusted, usable with care, or not to be trusted, with the reasons.

use serde::Serialize;

use super::reads::Monotony;
use super::{CpuOffset, Finding, Report, hertz};
use crate::host::fingerprint::{ClockFacts, Virtualisation};
use crate::rig::findings;
use crate::rig::trust::frequency::FrequencySource;
use crate::sorting::sort_by_key;

/// A proven offset beyond this spoils latencies between CPUs, in nanoseconds.
pub(super) const SPOILING_OFFSET_NS: f64 = 100.0;
/// An uncertainty of an offset beyond this is too large, in nanoseconds.
pub(super) const UNCERTAIN_OFFSET_NS: f64 = 1000.0;
/// Sources of the rate that disagree by more are to be looked at, in parts per million.
pub(super) const DISAGREEING_PPM: f64 = 500.0;
/// Sources of the rate that disagree by more are not about the same counter, in parts per million.
pub(super) const CONTRADICTING_PPM: f64 = 10_000.0;
/// An uncertainty of the calibration beyond this is too large, in parts per million.
pub(super) const UNCERTAIN_RATE_PPM: f64 = 100.0;

/// Fewer readings that follow another CPU's compare the CPUs too seldom.
pub(super) const LEAST_CROSSINGS: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No finding contradicts it.
    #[default]
    Trusted,
    /// It can be used by someone who knows the reasons against it.
    UsableWithCare,
    /// Figures taken with it would be wrong.
    NotToBeTrusted,
}

use Verdict::{NotToBeTrusted, UsableWithCare};

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Trusted => "trusted",
            UsableWithCare => "usable with care",
            NotToBeTrusted => "not to be trusted",
        }
    }
}

/// A finding against the counter. The figures behind it are in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The verdict that it alone would lead to.
    pub weighs: Verdict,
    /// Which reason it is, for programs.
    pub reason: &'static str,
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Judgement {
    /// The heaviest of the reasons.
    pub verdict: Verdict,
    /// All of them, the heaviest first.
    pub reasons: Vec<Reason>,
}

/// Weighs what was found out; the judgement that is in the report does not count.
pub(super) fn judge(report: &Report) -> Judgement {
    let mut found = Reasons::default();
    found.watched(report);
    found.vouched_for(&report.clock);
    found.rated(report);
    if let Some(offsets) = report.offsets.found() {
        let hertz = hertz(report.rate, &report.frequencies);
        let cpus = offsets.cpus.iter();
        cpus.for_each(|each| found.apart(each, offsets.against_cpu, hertz));
    }
    found.below(&report.virtualisation);
    let mut reasons = found.0;
    // Stable: within a weight they stay in the order of the report.
    sort_by_key(&mut reasons, |it| std::cmp::Reverse(it.weighs));
    Judgement {
        verdict: reasons.first().map_or(Verdict::Trusted, |it| it.weighs),
        reasons,
    }
}

#[derive(Default)]
struct Reasons(Vec<Reason>);

impl Reasons {
    fn add(&mut self, weighs: Verdict, reason: &'static str, text: impl Into<String>) {
        self.0.push(Reason {
            weighs,
            reason,
            text: text.into(),
        });
    }

    fn spoils(&mut self, reason: &'static str, text: impl Into<String>) {
        self.add(NotToBeTrusted, reason, text);
    }

    fn warns(&mut self, reason: &'static str, text: impl Into<String>) {
        self.add(UsableWithCare, reason, text);
    }

    fn watched(&mut self, report: &Report) {
        let (crossed, shared) = (report.migrations.found(), report.shared.found());
        if let Some(found) = crossed {
            self.monotonous("in a thread moved from CPU to CPU", &found.monotony);
        }
        if let Some(found) = shared {
            self.monotonous("between threads on all CPUs", found);
            let (crossings, reads) = (found.crossings, found.reads);
            if crossings < LEAST_CROSSINGS {
                let text = format!(
                    "only {crossings} of {reads} reads between threads followed another CPU's: the machine is busy, or \
                     --trust-reads too few"
                );
                self.warns("few-crossings", text);
            }
        }
        if let Some(stays @ 1..) = crossed.and_then(|it| it.wrong_cpu_names) {
            let text = format!(
                "TSC_AUX named another CPU in {stays} stays: rdtscp does not report where it was read"
            );
            self.warns("wrong-cpu-names", text);
        }
    }

    fn monotonous(&mut self, place: &str, found: &Monotony) {
        let (reads, asked, steps) = (found.reads, found.asked_reads, found.backward_steps);
        if steps > 0 {
            let largest = found.largest();
            let text = format!(
                "it went backwards {place}: {steps} times in {reads} reads, by up to {largest} counts"
            );
            self.spoils("backwards", text);
        }
        if found.stood_still() {
            let text = format!("it stands still: {reads} reads gave the same value");
            self.spoils("stands-still", text);
        }
        if reads < asked {
            let text = format!("{reads} of {asked} reads were made {place} before the time was up");
            self.warns("incomplete", text);
        }
    }

    fn vouched_for(&mut self, clock: &ClockFacts) {
        let name = match clock.generic_timer {
            Some(_) => "arch_sys_counter",
            None => "tsc",
        };
        let available = clock.available.as_deref().unwrap_or_default();
        let dropped = clock.available.is_some() && !available.iter().any(|source| source == name);
        match clock.source.as_deref() {
            _ if dropped => {
                let left = available.join(", ");
                let text = format!(
                    "the kernel has dropped it from its clock sources ({left}); its log has the reason"
                );
                self.spoils("dropped", text);
            }
            None => self.warns(
                "clock-source-unknown",
                "the kernel does not report its clock source",
            ),
            Some(source) if source == name => {}
            Some(other) => {
                let text = format!("the kernel keeps its time by {other}, not by {name}");
                self.warns("other-clock-source", text);
            }
        }
        if clock.generic_timer.is_some() {
            // The architecture has it constant, always on, and the same for all processors.
        } else if clock.invariant_tsc == Some(true) {
            let flags = [
                ("constant", clock.constant_tsc),
                ("nonstop", clock.nonstop_tsc),
            ];
            for (flag, _) in flags.into_iter().filter(|(_, has)| *has == Some(false)) {
                let text = format!(
                    "the kernel does not find it {flag}, though the processor calls it invariant"
                );
                self.warns("flag-missing", text);
            }
        } else if clock.source.as_deref() == Some(name) {
            let text =
                "the processor does not call it invariant; only the kernel keeps its time by it";
            self.warns("not-invariant", text);
        } else {
            let text = "the processor does not call it invariant, and the kernel does not keep its time by it";
            self.spoils("nobody-vouches", text);
        }
    }

    fn rated(&mut self, report: &Report) {
        let measured = report.frequencies.by(FrequencySource::Calibration);
        if let Some(why) = measured.and_then(|it| it.missing.as_ref()) {
            self.spoils("rate-unsettled", format!("its rate does not settle: {why}"));
        }
        let uncertainty = measured.and_then(|it| it.uncertainty_ppm);
        if let Some(ppm) = uncertainty.filter(|ppm| *ppm > UNCERTAIN_RATE_PPM) {
            let text = format!("its rate was measured to {ppm:.0} ppm only: the machine is busy");
            self.warns("rate-uncertain", text);
        }
        let disagreement = report.frequencies.disagreement;
        if let Some(farthest) = disagreement.filter(|it| it.ppm > DISAGREEING_PPM) {
            let text = format!(
                "its rate is {:.0} ppm higher by one source ({}) than by another ({})",
                farthest.ppm,
                farthest.highest.title(),
                farthest.lowest.title()
            );
            let weighs = heavy_if(farthest.ppm > CONTRADICTING_PPM);
            self.add(weighs, "rates-differ", text);
        }
        // Where nothing settled to compare it with, that is reported above.
        let compared = report.rate.filter(|rate| rate.given_off_ppm.is_some());
        if let Some(doubt) = compared.and_then(|rate| findings::of_rate(&rate)) {
            self.warns("given-rate", doubt.line(1));
        }
    }

    fn apart(&mut self, each: &CpuOffset, other: usize, hertz: Option<f64>) {
        let cpu = each.cpu;
        let found = match &each.offset {
            Finding::Found(found) => found,
            Finding::Missing(why) => {
                let text = format!("the offset of CPU {cpu} is not known: {why}");
                return self.warns("offset-missing", text);
            }
        };
        if found.backward_steps > 0 {
            let text = format!(
                "on CPU {other} it went backwards in {} of {} exchanges with CPU {cpu}",
                found.backward_steps, found.exchanges
            );
            self.spoils("backwards-in-exchange", text);
        }
        let (Some(offset), Some(uncertainty), Some(hertz)) =
            (each.offset_ns, each.uncertainty_ns, hertz)
        else {
            // Without a rate; that is a reason by itself.
            return;
        };
        if found.changes() {
            let ns = found.contradiction_ticks as f64 * 1e9 / hertz;
            let text = format!(
                "the offset of CPU {cpu} changed by {ns:.0} ns or more while it was measured"
            );
            self.spoils("offset-changes", text);
        } else if found.proven_ticks() > 0.0 {
            let text = format!(
                "CPU {cpu} is {offset:+.0} ns off CPU {other}, with an uncertainty of {uncertainty:.0} ns"
            );
            let weighs = heavy_if(offset.abs() - uncertainty > SPOILING_OFFSET_NS);
            self.add(weighs, "cpus-differ", text);
        }
        if uncertainty > UNCERTAIN_OFFSET_NS {
            let text = format!(
                "the offset of CPU {cpu} is known to {uncertainty:.0} ns only: the machine is busy, or the CPUs are far apart"
            );
            self.warns("offset-uncertain", text);
        }
    }

    fn below(&mut self, found: &Virtualisation) {
        if found.emulated == Some(true) {
            let text = "the processor is emulated in software, and its counter with it: figures test the tool only";
            self.warns("emulated", text);
        } else if found.guest == Some(true) {
            let name = found.hypervisor.as_deref().unwrap_or("of unknown make");
            let text = format!(
                "a hypervisor ({name}) is in between: it may offset or scale the counter, and a migration to another \
                 host changes both"
            );
            self.warns("guest", text);
        }
    }
}

fn heavy_if(heavy: bool) -> Verdict {
    if heavy {
        NotToBeTrusted
    } else {
        UsableWithCare
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
