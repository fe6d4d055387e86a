//! `hcabench host`: whether this machine is ready to measure, and what to change.

use crate::arguments::values::one;
use crate::host::fingerprint::Fingerprint;
use crate::host::idle_states::{IdleState, IdleStates};
use crate::host::readiness::{Check, Needs, Readiness, Verdict};
use crate::rig::named::named;
use crate::terminal::output::print_as;
use crate::terminal::table_options::BriefOption;
use crate::terminal::{label_rows, text_width, wrap};
use anyhow::Context;

/// Arguments of `hcabench host`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HostArguments {
    /// Check for this measurement: hca, queue (between two threads), clock
    #[arg(long = "for", value_name = "BENCHMARK", default_value = "hca", value_parser = one::<Purpose>)]
    pub purpose: Purpose,

    /// Print every check and the machine as JSON
    #[arg(long)]
    pub json: bool,

    /// How much is shown.
    #[command(flatten)]
    pub brief: BriefOption,
}

named! {
    /// What a machine is to be ready for.
    Purpose {
        Hca = "hca",
        Queue = "queue",
        Clock = "clock",
    }
}

impl Purpose {
    fn needs(self) -> Needs {
        match self {
            Purpose::Hca => Needs::between_devices(),
            Purpose::Queue => Needs::between_threads(),
            // Where memory is short it counts differences, instead of keeping them.
            Purpose::Clock => Needs::of_a_watch(0),
        }
    }
}

/// Prints whether this machine is ready to measure. Returns the exit code: 0, or 1 if something would spoil a
/// measurement.
pub(crate) fn run(arguments: &HostArguments) -> anyhow::Result<u8> {
    let purpose = arguments.purpose;
    let readiness =
        Readiness::assess_in_part(purpose.needs()).context("cannot assess this machine")?;
    print_as(arguments.json, &readiness, || {
        table(&readiness, purpose, arguments.brief.brief)
    })?;
    Ok(u8::from(!readiness.ready))
}

/// How the machine is set up, a line a check, what to change below it, and what it comes to; briefly, only the checks
/// that found something to change.
fn table(readiness: &Readiness, purpose: Purpose, brief: bool) -> String {
    let width = text_width();
    let mut lines = wrap(&readiness.machine.in_words(), width);
    lines.push(String::new());
    if !brief {
        let setup = label_rows(&setup(&readiness.machine));
        lines.extend(setup.lines().map(str::to_owned));
        lines.push(String::new());
    }
    let titles = readiness.checks.iter().map(|check| check.title);
    let title_width = titles.map(|title| title.chars().count()).max().unwrap_or(0);
    let indent = VERDICT_WIDTH + GAP + title_width + GAP;
    let is_shown = |check: &&Check| !brief || check.verdict > Verdict::Good;
    for check in readiness.checks.iter().filter(is_shown) {
        let (verdict, title) = (verdict_in_words(check.verdict), check.title);
        let head = format!(
            "{verdict:VERDICT_WIDTH$}{:GAP$}{title:title_width$}{:GAP$}",
            "", ""
        );
        lines.extend(hanging(
            &head,
            wrap(&check.found, width.saturating_sub(indent)),
        ));
        if let Some(advice) = &check.advice {
            let head = format!("{:indent$}{ARROW}", "");
            lines.extend(hanging(
                &head,
                wrap_advice(advice, width.saturating_sub(head.len())),
            ));
        }
    }
    lines.push(String::new());
    lines.extend(wrap(&summary(readiness, purpose), width));
    lines.join("\n") + "\n"
}

/// Lines behind a head, the later ones indented by its width.
fn hanging(head: &str, lines: Vec<String>) -> Vec<String> {
    let indent = head.chars().count();
    let heads = std::iter::once(head.to_owned()).chain(std::iter::repeat(" ".repeat(indent)));
    let lines = heads.zip(lines);
    lines.map(|(head, line)| head + &line).collect()
}

const VERDICT_WIDTH: usize = 6;
const GAP: usize = 2;
const ARROW: &str = "-> ";

fn verdict_in_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "ok",
        Verdict::Advice => "advice",
        Verdict::Spoils => "SPOILS",
    }
}

/// How the machine is set up, a row each; what it does not report is listed too.
fn setup(machine: &Fingerprint) -> Vec<(&'static str, String)> {
    let or_not = |told: &Option<String>, otherwise: &str| {
        told.clone().unwrap_or_else(|| otherwise.to_owned())
    };
    let mut rows = vec![
        ("kernel build", or_not(&machine.kernel_version, "unknown")),
        (
            "command line",
            or_not(&machine.kernel_command_line, "cannot be read"),
        ),
    ];
    if let Some(boot) = &machine.boot {
        rows.extend(boot.named().map(|(name, parameter)| {
            let told = match parameter {
                None => "not given",
                Some("") => "given without a value",
                Some(value) => value,
            };
            (name, told.to_owned())
        }));
    }
    let firmware = &machine.firmware;
    let told = [&firmware.vendor, &firmware.version, &firmware.date];
    let told: Vec<&str> = told.into_iter().flatten().map(String::as_str).collect();
    let bios = match told.as_slice() {
        [] => "unknown: no DMI, or it may not be read".to_owned(),
        told => told.join(", "),
    };
    let clock = &machine.clock;
    let source = match (&clock.source, &clock.available) {
        (Some(source), Some(all)) => format!("{source} (available: {})", all.join(", ")),
        (source, _) => or_not(source, "unknown"),
    };
    let virtual_machines = match &machine.virtual_machines {
        None => "unknown: no process is visible".to_owned(),
        Some(running) if running.is_empty() => "none visible".to_owned(),
        Some(running) => {
            let kinds = running
                .iter()
                .map(|(name, number)| format!("{number} {name}"));
            kinds.collect::<Vec<_>>().join(", ")
        }
    };
    rows.extend([
        ("BIOS", bios),
        ("microcode", or_not(&machine.processor.microcode, "unknown")),
        ("clock source", source),
        ("C-states", idle_in_words(&machine.idle)),
        ("virtual machines", virtual_machines),
    ]);
    if machine.processor.cpus.is_none() {
        // Without /sys, of which the checks report that they are unknown.
        rows.retain(|(label, _)| !["clock source", "C-states"].contains(label));
    }
    rows
}

fn idle_in_words(idle: &IdleStates) -> String {
    let Some(states) = &idle.states else {
        return match &idle.driver {
            Some(driver) => format!("none (driver {driver})"),
            None => "none known to the kernel".to_owned(),
        };
    };
    let kind = |state: &IdleState| {
        let latency = state.latency_us.map(|us| format!("{us} us"));
        let latency = latency.unwrap_or_else(|| "latency unknown".to_owned());
        let disabled = match &state.disabled_on {
            none if none.is_empty() => String::new(),
            all if *all == state.cpus => ", disabled".to_owned(),
            some => format!(", disabled on {some}"),
        };
        format!("{} ({latency}{disabled})", state.name)
    };
    let kinds = states.iter().map(kind).collect::<Vec<_>>().join(", ");
    let driver = idle.driver.as_deref().unwrap_or("unknown");
    let governor = idle.governor.as_deref().unwrap_or("unknown");
    format!("{kinds}; driver {driver}, governor {governor}")
}

fn summary(readiness: &Readiness, purpose: Purpose) -> String {
    let purpose = purpose.name();
    let spoils = readiness.with(Verdict::Spoils);
    let spoils: Vec<&str> = spoils.map(|check| check.title).collect();
    let advice = readiness.with(Verdict::Advice).count();
    let better = match advice {
        0 => "nothing else to improve".to_owned(),
        1 => "1 thing could be better".to_owned(),
        more => format!("{more} things could be better"),
    };
    if spoils.is_empty() {
        format!(
            "Ready to measure (--for {purpose}); {}.",
            better.replace("else ", "")
        )
    } else {
        format!(
            "Not ready to measure (--for {purpose}): {} would spoil it; {better}.",
            spoils.join(", ")
        )
    }
}

/// Wraps, and keeps the text behind the last colon, the command to type, on one line where it fits.
fn wrap_advice(text: &str, width: usize) -> Vec<String> {
    match text.rsplit_once(": ") {
        Some((why, what)) if what.chars().count() <= width => {
            let mut lines = wrap(&format!("{why}:"), width);
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + what.chars().count() <= width => {
                    line.push(' ');
                    line.push_str(what);
                }
                _ => lines.push(what.to_owned()),
            }
            lines
        }
        _ => wrap(text, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(title: &'static str, verdict: Verdict, advice: Option<&str>) -> Check {
        Check {
            id: title,
            title,
            found: "as it is".to_owned(),
            verdict,
            advice: advice.map(str::to_owned),
        }
    }

    fn readiness(checks: Vec<Check>) -> Readiness {
        let ready = checks.iter().all(|check| check.verdict != Verdict::Spoils);
        Readiness {
            ready,
            checks,
            needs: Needs::between_devices(),
            machine: Fingerprint::collect(),
        }
    }

    #[test]
    fn the_columns_align_and_advice_stands_below() {
        let long = "change this and that ".repeat(12);
        let text = table(
            &readiness(vec![
                check("short", Verdict::Good, None),
                check("a longer title", Verdict::Spoils, Some(&long)),
            ]),
            Purpose::Hca,
            false,
        );
        let lines = text.lines().skip_while(|line| !line.starts_with("ok"));
        let begins = [
            "ok      short           as it is",
            "SPOILS  a longer title  as it is",
            "                        -> change this",
            "                           ",
        ];
        for (line, begin) in lines.zip(begins) {
            assert!(line.starts_with(begin), "{text}");
        }
        let is_narrow = |line: &str| line.chars().count() <= crate::terminal::TEXT_WIDTH;
        assert!(text.lines().all(is_narrow), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let last = "Not ready to measure (--for hca): a longer title would spoil it; nothing else to improve.";
        assert!(words.ends_with(last), "{text}");
    }

    #[test]
    fn the_set_up_is_shown_by_name_and_what_is_not_told_is_said() {
        use crate::host::boot::BootParameters;
        let state = |name: &str, latency_us, disabled: &str| IdleState {
            name: name.to_owned(),
            latency_us,
            residency_us: None,
            cpus: "0-3".parse().unwrap(),
            disabled_on: disabled.parse().unwrap(),
        };
        let mut machine = Fingerprint::collect();
        machine.boot = Some(BootParameters::from_command_line("isolcpus=2-3 rcu_nocbs"));
        machine.firmware = Default::default();
        machine.idle = IdleStates {
            driver: Some("intel_idle".to_owned()),
            governor: None,
            states: Some(vec![
                state("C1", Some(2), ""),
                state("C6", Some(133), "2-3"),
                state("C8", None, "0-3"),
            ]),
        };
        machine.virtual_machines = Some([("firecracker".to_owned(), 2)].into());
        let rows = setup(&machine);
        let row = |name: &str| &rows.iter().find(|(label, _)| *label == name).unwrap().1;
        for (name, told) in [
            ("isolcpus", "2-3"),
            ("rcu_nocbs", "given without a value"),
            ("nohz_full", "not given"),
            ("BIOS", "unknown: no DMI, or it may not be read"),
            (
                "C-states",
                "C1 (2 us), C6 (133 us, disabled on 2-3), C8 (latency unknown, disabled); \
                 driver intel_idle, governor unknown",
            ),
            ("virtual machines", "2 firecracker"),
        ] {
            assert_eq!(row(name), told, "{name}");
        }
    }

    #[test]
    fn a_command_is_not_broken() {
        for (text, width, lines) in [
            ("a b c d e f: sysctl x.y=8", 14, "a b c d e f:|sysctl x.y=8"),
            ("why: sysctl x.y=8", 17, "why: sysctl x.y=8"),
            ("why: a longer way to go", 9, "why: a|longer|way to go"),
        ] {
            assert_eq!(wrap_advice(text, width).join("|"), lines);
        }
    }

    #[test]
    fn the_last_line_counts() {
        let good = || check("a", Verdict::Good, None);
        let advised = || check("b", Verdict::Advice, Some("do"));
        for (checks, told) in [
            (vec![good()], "nothing to improve."),
            (vec![advised()], "1 thing could be better."),
            (
                vec![advised(), good(), advised()],
                "2 things could be better.",
            ),
        ] {
            let text = summary(&readiness(checks), Purpose::Queue);
            assert_eq!(text, format!("Ready to measure (--for queue); {told}"));
        }
    }

    #[test]
    fn json_holds_every_check_and_the_machine() {
        let readiness = readiness(vec![check("b", Verdict::Advice, Some("do"))]);
        let json = serde_json::to_value(&readiness).unwrap();
        assert_eq!(json["ready"], true);
        assert_eq!(json["needs"]["devices"], true);
        assert_eq!(json["checks"][0]["verdict"], "advice");
        let kernel = readiness.machine.kernel_release.as_deref();
        assert_eq!(json["machine"]["kernel_release"].as_str(), kernel);
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word(text in "[a-z ]{0,200}", width in 1usize..60) {
            let lines = wrap(&text, width);
            prop_assert_eq!(lines.join(" "), text.split_whitespace().collect::<Vec<_>>().join(" "));
            let advice = wrap_advice(&text, width);
            prop_assert_eq!(advice.join(" "), lines.join(" "));
            prop_assert!(lines.iter().all(|line| line.len() <= width || !line.contains(' ')));
        }
    }
}
