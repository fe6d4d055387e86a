//! The commands that take nodes out of a scheduler. They are printed and never run.
//!
//! Sources: scontrol(1) of Slurm, `kubectl cordon`, `taint` and `annotate` of Kubernetes, pbsnodes(8) of PBS
//! Professional, flux-resource(1), badmin(8) of LSF.

use crate::rig::named::named;

named! {
    /// Which scheduler.
    Scheduler {
        /// Slurm.
        Slurm = "slurm",
        /// Kubernetes.
        Kubernetes = "kubernetes",
        /// PBS Professional and OpenPBS.
        Pbs = "pbs",
        /// Flux.
        Flux = "flux",
        /// IBM Spectrum LSF.
        Lsf = "lsf",
    }
}

/// Whether a name is that of a host, and nothing else: schedulers take lists such as `n[1-9]` and `all`, and results may
/// come from elsewhere.
fn is_host_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let letters = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        !part.is_empty() && !part.starts_with('-') && part.chars().all(letters)
    };
    name.len() <= 253 && !name.eq_ignore_ascii_case("all") && name.split('.').all(is_part)
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    // There is no NUL in it: see `commands`.
    shlex::try_quote(word).map_or_else(|_| "''".to_owned(), |word| word.into_owned())
}

/// The commands for a node, each a line for a shell; the error: why there are none.
pub(super) fn commands(
    scheduler: Scheduler,
    node: &str,
    reason: &str,
) -> Result<Vec<String>, String> {
    if !is_host_name(node) {
        return Err(format!(
            "{node:?} is not the name of a host: it is not drained"
        ));
    }
    // A reason is one line; schedulers keep it in files with a line each.
    let reason = reason.replace(|letter: char| letter.is_control(), " ");
    let (node, reason) = (node.to_owned(), quoted(&reason));
    Ok(match scheduler {
        Scheduler::Slurm => vec![format!(
            "scontrol update nodename={node} state=drain reason={reason}"
        )],
        Scheduler::Kubernetes => vec![
            format!("kubectl cordon {node}"),
            format!("kubectl taint nodes --overwrite {node} hcabench/failing=true:NoSchedule"),
            format!("kubectl annotate nodes --overwrite {node} hcabench/reason={reason}"),
        ],
        Scheduler::Pbs => vec![format!("pbsnodes -o -C {reason} {node}")],
        Scheduler::Flux => vec![format!("flux resource drain {node} {reason}")],
        Scheduler::Lsf => vec![format!("badmin hclose -C {reason} {node}")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    const REASON: &str = "hcabench: rtt/2.p50 +21 % in 2 of 3 runs";

    #[test]
    fn commands_are_as_the_schedulers_take_them() {
        for (scheduler, expected) in [
            (
                Scheduler::Slurm,
                &[
                    "scontrol update nodename=n7 state=drain reason='hcabench: rtt/2.p50 +21 % in 2 of 3 runs'",
                ][..],
            ),
            (
                Scheduler::Kubernetes,
                &[
                    "kubectl cordon n7",
                    "kubectl taint nodes --overwrite n7 hcabench/failing=true:NoSchedule",
                    "kubectl annotate nodes --overwrite n7 \
                     hcabench/reason='hcabench: rtt/2.p50 +21 % in 2 of 3 runs'",
                ],
            ),
            (
                Scheduler::Pbs,
                &["pbsnodes -o -C 'hcabench: rtt/2.p50 +21 % in 2 of 3 runs' n7"],
            ),
            (
                Scheduler::Flux,
                &["flux resource drain n7 'hcabench: rtt/2.p50 +21 % in 2 of 3 runs'"],
            ),
            (
                Scheduler::Lsf,
                &["badmin hclose -C 'hcabench: rtt/2.p50 +21 % in 2 of 3 runs' n7"],
            ),
        ] {
            assert_eq!(commands(scheduler, "n7", REASON).unwrap(), expected);
        }
    }

    #[test]
    fn whatever_a_reason_has_in_it_a_shell_passes_it_on_as_one_word() {
        for reason in [
            "$(reboot)",
            "`reboot`",
            "a'b\"c",
            "a\\b",
            "!x",
            "a;b&c|d>e",
            "tab\tnew\nline\r",
            "€",
            "",
        ] {
            for scheduler in Scheduler::ALL {
                for line in commands(*scheduler, "n1.example.org", reason).unwrap() {
                    assert_eq!(line.lines().count(), 1, "{line:?}");
                    let shown = std::process::Command::new("sh")
                        .args([
                            "-c",
                            &format!("for word in {line}; do printf '%s\\n' \"$word\"; done"),
                        ])
                        .output()
                        .unwrap();
                    let words = String::from_utf8(shown.stdout).unwrap();
                    let clean = reason.replace(char::is_control, " ");
                    let is_reason =
                        |word: &str| word == clean || word.ends_with(&format!("reason={clean}"));
                    let has_none = line.contains("cordon") || line.contains("taint");
                    assert!(has_none || words.lines().any(is_reason), "{line}: {words}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_host_is_not_drained() {
        for name in [
            "",
            "-n7",
            "n[1-9]",
            "n1,n2",
            "all",
            "ALL",
            "n7 n8",
            "n7;reboot",
            "a..b",
            "$x",
            "n\n7",
        ] {
            commands(Scheduler::Slurm, name, REASON).refused(&["not the name of a host"]);
        }
    }
}
