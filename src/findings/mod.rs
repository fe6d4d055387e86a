//! The findings of a run: read from its folder, or made of what an older hcabench recorded.

mod recorded;

use crate::results::finding::{Findings, Severity};
use crate::results::read::{ReadError, Run};
use crate::terminal::{text_width, wrap};

/// All findings of a run.
///
/// # Errors
/// When its file of findings is damaged.
pub fn of(run: &Run) -> Result<Findings, ReadError> {
    let written = Findings::read(&run.path)?;
    Ok(written.unwrap_or_else(|| recorded::of(run)))
}

/// The verdict, and a line for each finding that is not mere advice; with `all`, for each.
pub fn text(findings: &Findings, points: usize, all: bool) -> String {
    let mut text = format!("{}\n", findings.verdict());
    let is_shown = |severity| all || severity > Severity::Advice;
    for found in findings.all() {
        if is_shown(found.severity) {
            let lines = wrap(&found.line(points), text_width().saturating_sub(2));
            text += &format!("- {}\n", lines.join("\n  "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sample(benchmark: &str) -> (Findings, usize) {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample");
        let run = Run::open(&samples.join(benchmark)).unwrap();
        (of(&run).unwrap(), run.points.len())
    }

    #[test]
    fn what_an_older_run_recorded_is_grouped_by_kind() {
        let (found, points) = sample("hca");
        let verdict = "not a measurement of hardware: software device, emulated processor";
        assert_eq!(found.verdict(), verdict);
        let text = text(&found, points, false);
        // Of 52 sentences.
        assert!(
            text.lines().filter(|line| line.starts_with("- ")).count() <= 9,
            "{text}"
        );
        let joined = text.replace("\n  ", " ");
        for line in [
            "\n- software devices (rxe0, rxe1): latencies are not those of an adapter\n",
            "\n- 18 of 34 points: 82 of 2336 messages were lost\n",
            "\n- 8 of 34 points: 37 retransmissions: packets were lost or late",
            " points: the path carries about 0 % to 53 % of what is offered: messages in flight grow",
        ] {
            assert!(joined.contains(line), "{line}: {joined}");
        }
    }

    #[test]
    fn a_sentence_of_no_known_kind_is_kept_as_it_is() {
        let (found, points) = sample("clock");
        let text = text(&found, points, true);
        assert!(text.contains("all CPUs are watched"), "{text}");
        assert!(found.verdict().contains("recorded"), "{}", found.verdict());
    }

    #[test]
    fn no_sample_is_without_a_finding_of_its_own_kind() {
        for (benchmark, kind) in [
            ("queue", "load-missed"),
            ("node", "node-steps-missed"),
            ("memory", "unstable"),
        ] {
            let (found, _) = sample(benchmark);
            assert!(found.all().iter().any(|it| it.kind == kind), "{benchmark}");
        }
    }
}
