//! `hcabench host`: whether this machine is ready to measure, and what to change.

use super::{label_rows, wrap};
use crate::host::fingerprint::Fingerprint;
use crate::host::idle_states::IdleStates;
use crate::host::readiness::{Needs, Readiness, Verdict};
use anyhow::Context;
use std::io::{self, Write};

const WIDTH: usize = super::TEXT_WIDTH;

/// Arguments of `hcabench host`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct HostArguments {
    /// Print every check and the machine as JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints whether this machine is ready to measure. Returns the exit code: 0, or 1 if something would spoil a
/// measurement.
///
/// # Errors
/// If the machine cannot be read, or standard output not be written.
pub fn run(arguments: &HostArguments) -> anyhow::Result<u8> {
    let readiness =
        Readiness::assess(Needs::of_a_default_run()).context("cannot assess this machine")?;
    let mut out = io::stdout().lock();
    let written = if arguments.json {
        write_json(&readiness, &mut out)
    } else {
        write_table(&readiness, &mut out)
    };
    match written {
        // A reader that has seen enough (head, a pager) is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot write to standard output")?,
    }
    Ok(u8::from(!readiness.ready))
}

/// Writes all that was found as JSON: `ready`, `checks`, `machine`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_json(readiness: &Readiness, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, readiness)?;
    writeln!(out)?;
    out.flush()
}

/// Writes how the machine is set up, a line a check, what to change below it, and what it comes to.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_table(readiness: &Readiness, out: &mut impl Write) -> io::Result<()> {
    for line in wrap(&machine_in_words(&readiness.machine), WIDTH) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    write!(out, "{}", label_rows(&setup(&readiness.machine)))?;
    writeln!(out)?;
    let title_width = readiness
        .checks
        .iter()
        .map(|check| check.title.chars().count())
        .max()
        .unwrap_or(0);
    let indent = VERDICT_WIDTH + GAP + title_width + GAP;
    for check in &readiness.checks {
        let mut found = wrap(&check.found, WIDTH - indent).into_iter();
        writeln!(
            out,
            "{:VERDICT_WIDTH$}{:GAP$}{:title_width$}{:GAP$}{}",
            verdict_in_words(check.verdict),
            "",
            check.title,
            "",
            found.next().unwrap_or_default()
        )?;
        for line in found {
            writeln!(out, "{:indent$}{line}", "")?;
        }
        let advice = check
            .advice
            .as_deref()
            .map(|advice| wrap_advice(advice, WIDTH - indent - ARROW.len()));
        for (number, line) in advice.into_iter().flatten().enumerate() {
            let arrow = if number == 0 { ARROW } else { "" };
            writeln!(
                out,
                "{:indent$}{arrow:arrow_width$}{line}",
                "",
                arrow_width = ARROW.len()
            )?;
        }
    }
    writeln!(out)?;
    for line in wrap(&summary(readiness), WIDTH) {
        writeln!(out, "{line}")?;
    }
    out.flush()
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

/// The machine in a line.
pub fn machine_in_words(machine: &Fingerprint) -> String {
    let parts = [
        machine.hostname.clone(),
        machine.processor.name.clone(),
        machine
            .kernel_release
            .as_ref()
            .map(|release| format!("Linux {release}")),
        machine.distribution.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" | ")
}

/// How the machine is set up, a row each; what it does not say is said too.
fn setup(machine: &Fingerprint) -> Vec<(&'static str, String)> {
    let or_not = |told: &Option<String>, otherwise: &str| {
        told.clone().unwrap_or_else(|| otherwise.to_owned())
    };
    let mut rows = vec![
        ("kernel build", or_not(&machine.kernel_version, "not told")),
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
    let told: Vec<&str> = [&firmware.vendor, &firmware.version, &firmware.date]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let bios = if told.is_empty() {
        "not told: no DMI, or it may not be read".to_owned()
    } else {
        told.join(", ")
    };
    let clock = &machine.clock;
    let source = match (&clock.source, &clock.available) {
        (Some(source), Some(all)) => format!("{source} (available: {})", all.join(", ")),
        (source, _) => or_not(source, "not told"),
    };
    let virtual_machines = match &machine.virtual_machines {
        None => "not told: no process shows".to_owned(),
        Some(running) if running.is_empty() => "none that shows".to_owned(),
        Some(running) => running
            .iter()
            .map(|(name, number)| format!("{number} {name}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    rows.extend([
        ("BIOS", bios),
        (
            "microcode",
            or_not(&machine.processor.microcode, "not told"),
        ),
        ("clock source", source),
        ("C-states", idle_in_words(&machine.idle)),
        ("virtual machines", virtual_machines),
    ]);
    rows
}

fn idle_in_words(idle: &IdleStates) -> String {
    let Some(states) = &idle.states else {
        return match &idle.driver {
            Some(driver) => format!("none (driver {driver})"),
            None => "none known to the kernel".to_owned(),
        };
    };
    let kinds = states
        .iter()
        .map(|state| {
            let latency = state
                .latency_us
                .map_or_else(|| "latency not told".to_owned(), |us| format!("{us} us"));
            let disabled = match (
                state.disabled_on.is_empty(),
                state.disabled_on == state.cpus,
            ) {
                (true, _) => String::new(),
                (false, true) => ", disabled".to_owned(),
                (false, false) => format!(", disabled on {}", state.disabled_on),
            };
            format!("{} ({latency}{disabled})", state.name)
        })
        .collect::<Vec<_>>()
        .join(", ");
    let driver = idle.driver.as_deref().unwrap_or("not told");
    let governor = idle.governor.as_deref().unwrap_or("not told");
    format!("{kinds}; driver {driver}, governor {governor}")
}

fn summary(readiness: &Readiness) -> String {
    let spoils: Vec<&str> = readiness
        .with(Verdict::Spoils)
        .map(|check| check.title)
        .collect();
    let advice = readiness.with(Verdict::Advice).count();
    let better = match advice {
        0 => "nothing else to improve".to_owned(),
        1 => "1 point could be better".to_owned(),
        more => format!("{more} points could be better"),
    };
    if spoils.is_empty() {
        format!("Ready to measure; {}.", better.replace("else ", ""))
    } else {
        format!(
            "Not ready to measure: {} would spoil it; {better}.",
            spoils.join(", ")
        )
    }
}

/// Wraps, and keeps what stands behind the last colon, the command to type, on one line where it fits.
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
    use crate::host::readiness::Check;
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
            machine: Fingerprint::collect(),
        }
    }

    fn table(readiness: &Readiness) -> String {
        let mut out = Vec::new();
        write_table(readiness, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_columns_align_and_advice_stands_below() {
        let long = "change this and that ".repeat(12);
        let text = table(&readiness(vec![
            check("short", Verdict::Good, None),
            check("a longer title", Verdict::Spoils, Some(&long)),
        ]));
        let lines: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("ok"))
            .collect();
        assert_eq!(lines[0], "ok      short           as it is");
        assert_eq!(lines[1], "SPOILS  a longer title  as it is");
        assert!(
            lines[2].starts_with("                        -> change this"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("                           "),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert!(text.ends_with(
            "Not ready to measure: a longer title would spoil it; nothing else to improve.\n"
        ));
    }

    #[test]
    fn the_set_up_is_shown_by_name_and_what_is_not_told_is_said() {
        use crate::host::boot::BootParameters;
        use crate::host::idle_states::IdleState;
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
        assert_eq!(row("isolcpus"), "2-3");
        assert_eq!(row("rcu_nocbs"), "given without a value");
        assert_eq!(row("nohz_full"), "not given");
        assert!(row("BIOS").starts_with("not told"));
        assert_eq!(
            row("C-states"),
            "C1 (2 us), C6 (133 us, disabled on 2-3), C8 (latency not told, disabled); driver intel_idle, governor not told"
        );
        assert_eq!(row("virtual machines"), "2 firecracker");
    }

    #[test]
    fn a_command_is_not_broken() {
        assert_eq!(
            wrap_advice("a b c d e f: sysctl x.y=8", 14),
            ["a b c d e f:", "sysctl x.y=8"]
        );
        assert_eq!(wrap_advice("why: sysctl x.y=8", 17), ["why: sysctl x.y=8"]);
        assert_eq!(
            wrap_advice("why: a longer way to go", 9),
            ["why: a", "longer", "way to go"]
        );
    }

    #[test]
    fn the_last_line_counts() {
        let good = || check("a", Verdict::Good, None);
        let advised = || check("b", Verdict::Advice, Some("do"));
        assert_eq!(
            summary(&readiness(vec![good()])),
            "Ready to measure; nothing to improve."
        );
        assert_eq!(
            summary(&readiness(vec![advised()])),
            "Ready to measure; 1 point could be better."
        );
        assert_eq!(
            summary(&readiness(vec![advised(), good(), advised()])),
            "Ready to measure; 2 points could be better."
        );
    }

    #[test]
    fn json_holds_every_check_and_the_machine() {
        let readiness = readiness(vec![check("b", Verdict::Advice, Some("do"))]);
        let mut out = Vec::new();
        write_json(&readiness, &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["ready"], true);
        assert_eq!(json["checks"][0]["verdict"], "advice");
        assert_eq!(
            json["machine"]["kernel_release"].as_str(),
            readiness.machine.kernel_release.as_deref()
        );
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
