//! The findings of a run: read from its folder, or made of what an older hcabench recorded.

mod recorded;

use std::path::Path;

use serde_json::Value;

use crate::bench::presentation_of;
use crate::results::finding::kinds::{
    self, FILES_DAMAGED, INCOMPLETE, NOTHING_MEASURED, POINT_FAILED,
};
use crate::results::finding::{FINDINGS, Finding, FindingKind, Findings, Severity};
use crate::results::folder::NOT_ENDED;
use crate::results::read::{ReadError, Run};
use crate::results::schema::Schema;
use crate::results::text::{printable, printable_path};
use crate::results::{ReportError, ResultsFolder};
use crate::terminal::output::{say, warning};
use crate::terminal::{text_width, wrap};

/// All findings of a run, with that files of it are damaged; of a folder of one point, those about it.
pub(crate) fn of(run: &Run) -> Findings {
    let mut all = match &run.findings {
        Some(written) => written.clone(),
        None => recorded::of(run),
    };
    add_damaged(&mut all, &run.path, run.damaged.iter().map(AsRef::as_ref));
    let is_incomplete = |kind: &FindingKind| all.all().iter().any(|it| it.kind == kind.id);
    let (is_known, are_known) = (is_incomplete(&INCOMPLETE), is_incomplete(&POINT_FAILED));
    if let (Some(reason), false) = (&run.incomplete, is_known) {
        all.add(Finding::of(&INCOMPLETE).name("reason", reason), None, None);
    }
    for point in run.points.iter().filter(|_| !are_known) {
        // Of a run that is incomplete each point that was begun is.
        let known = |reason: &&String| {
            let of_run = run.incomplete.as_deref();
            of_run.is_some_and(|of_run| *reason == NOT_ENDED || of_run.ends_with(reason.as_str()))
        };
        if let Some(reason) = point.incomplete.as_ref().filter(|reason| !known(reason)) {
            let found = Finding::of(&POINT_FAILED).listed("reason", reason);
            all.add(found, Some(&point.name), None);
        }
    }
    if run.points.iter().all(|point| point.row.is_none()) {
        all.add(Finding::of(&NOTHING_MEASURED), None, None);
    }
    if let [point] = &run.points[..] {
        all.keep_point(&point.name);
    }
    all
}

/// Adds files of a folder that could not be read, or not all of them.
pub(crate) fn add_damaged<'a>(
    all: &mut Findings,
    folder: &Path,
    damaged: impl IntoIterator<Item = &'a ReadError>,
) {
    for error in damaged {
        let name = error.path.strip_prefix(folder).unwrap_or(&error.path);
        let name = printable_path(name);
        let found = Finding::of(&FILES_DAMAGED)
            .listed("reasons", format!("{name} {}", error.wrong))
            .listed("files", name);
        all.add(found, None, None);
    }
}

/// Prints which files are damaged. Returns the exit code: 1 where one is.
pub(crate) fn print_damaged<'a>(damaged: impl IntoIterator<Item = &'a ReadError>) -> u8 {
    let mut code = 0;
    for error in damaged {
        say(warning(&format!("left out: {error}")));
        code = 1;
    }
    code
}

/// What the machine and the devices are.
pub(crate) fn of_machine(document: &Value, machine: &Value) -> Vec<Finding> {
    let mut all = Vec::new();
    let devices = &document["obtained"]["devices"];
    let software: Vec<&str> = (["sender", "receiver"].iter())
        .map(|end| &devices[*end]["device"])
        .filter(|device| device["software"] == true)
        .filter_map(|device| device["name"].as_str())
        .collect();
    if !software.is_empty() {
        let start = Finding::of(&kinds::SOFTWARE_DEVICE);
        all.push(
            software
                .iter()
                .fold(start, |found, name| found.listed("devices", *name)),
        );
    }
    let virtualisation = &machine["virtualisation"];
    let is_emulated = virtualisation["emulated"] == true;
    if is_emulated {
        let hypervisor = virtualisation["hypervisor"].as_str().unwrap_or("unknown");
        all.push(Finding::of(&kinds::EMULATED_PROCESSOR).name("hypervisor", hypervisor));
    }
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let schema = document["benchmark"].as_str().and_then(Schema::of);
    let subject = schema.map_or(&[][..], |schema| presentation_of(schema).subject);
    let is_subject = |check: &Value| subject.iter().any(|id| check["id"] == *id);
    let mut tunable = Vec::new();
    for check in list(&document["readiness"]["checks"]) {
        if check["verdict"] == "advice" || is_subject(check) {
            tunable.push(text(check, "title"));
        } else if !(is_emulated && check["id"] == "virtualisation") {
            let found = Finding::of(&kinds::MACHINE_NOT_READY)
                .name("check", text(check, "title"))
                .listed("found", text(check, "found"))
                .listed("advice", text(check, "advice"));
            all.push(found);
        }
    }
    if !tunable.is_empty() {
        let start = Finding::of(&kinds::MACHINE_COULD_BE_TUNED);
        let listed = tunable.into_iter();
        all.push(listed.fold(start, |found, check| found.listed("checks", check)));
    }
    all
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Adds why a run or a point of it is not whole, and writes all into its folder.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn finish<'a>(
    found: &mut Findings,
    folder: &ResultsFolder,
    failure: Option<&str>,
    failed: impl Iterator<Item = (&'a str, &'a str)>,
    has_rows: bool,
) -> Result<(), ReportError> {
    if !has_rows {
        found.add(Finding::of(&NOTHING_MEASURED), None, None);
    }
    if let Some(reason) = failure {
        found.add(Finding::of(&INCOMPLETE).name("reason", reason), None, None);
    }
    for (point, reason) in failed {
        let of_point = Finding::of(&POINT_FAILED).listed("reason", reason);
        found.add(of_point, Some(point), None);
    }
    write(found, folder)
}

/// Writes them into the folder of a run.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(found: &Findings, folder: &ResultsFolder) -> Result<(), ReportError> {
    folder.file(FINDINGS)?;
    found.write(folder.path())
}

/// How much of findings is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The verdict, and a line for each reservation.
    Short,
    /// All of them, with cause and fix.
    All,
}

/// The verdict, and a line for each finding.
pub(crate) fn text(findings: &Findings, points: usize, detail: Detail) -> String {
    let width = text_width().saturating_sub(2);
    let verdict = format!("verdict: {}", printable(&findings.verdict()));
    let mut text = wrap(&verdict, width).join("\n  ") + "\n";
    for found in findings.all() {
        let line = match detail {
            Detail::All => found.line(points),
            // The verdict names those.
            Detail::Short if found.severity == Severity::Advice || found.is_of_no_hardware() => {
                continue;
            }
            Detail::Short => {
                let whole = found.line(points);
                match whole.chars().count() <= width {
                    true => whole,
                    false => found.short(points),
                }
            }
        };
        text += &format!("- {}\n", wrap(&printable(&line), width).join("\n  "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(benchmark: &str) -> (Findings, usize) {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample");
        let run = Run::open(&samples.join(benchmark)).unwrap();
        (of(&run), run.points.len())
    }

    #[test]
    fn what_takes_a_cpu_makes_the_figures_of_others_useless_and_is_the_subject_of_a_clock() {
        let check = serde_json::json!({"id": "load", "title": "load", "found": "4.8", "verdict": "spoils", "advice": "end it"});
        let of = |benchmark: &str| {
            let document =
                serde_json::json!({"benchmark": benchmark, "readiness": {"checks": [check]}});
            of_machine(&document, &Value::Null)[0].severity
        };
        assert_eq!(of("queue"), Severity::Invalid);
        assert_eq!(of("clock"), Severity::Advice);
    }

    #[test]
    fn what_an_older_run_recorded_is_grouped_by_kind() {
        let (found, points) = sample("hca");
        let verdict = "not a measurement of hardware: software device, emulated processor";
        assert_eq!(found.verdict(), verdict);
        let text = text(&found, points, Detail::All);
        // Of 52 sentences.
        assert!(
            text.lines().filter(|line| line.starts_with("- ")).count() <= 12,
            "{text}"
        );
        let short = super::text(&found, points, Detail::Short);
        assert!(short.lines().count() <= 7, "{short}");
        assert!(
            short.contains("\n- 1 of 34 points: page faults in the hot loops: 1"),
            "{short}"
        );
        let joined = text.replace("\n  ", " ");
        for line in [
            "\n- software devices (rxe0, rxe1): latencies are not those of an adapter; measure between two ports",
            "\n- 18 of 34 points: 82 of 2336 messages were lost\n",
            "\n- 8 of 34 points: 37 retransmissions: packets were lost or late",
            " points: p99, p99.9 and higher percentiles are essentially the maximum: a round has 26 to ",
            " points: the path delivers 0 % to 53 % of the rate at which messages are posted: messages in flight reached ",
        ] {
            assert!(joined.contains(line), "{line}: {joined}");
        }
    }

    #[test]
    fn a_note_of_no_known_kind_is_advice_in_its_own_words() {
        let (found, points) = sample("clock");
        let all = text(&found, points, Detail::All);
        assert!(all.contains("- all CPUs are watched"), "{all}");
        assert_eq!(found.verdict(), "usable");
        assert_eq!(text(&found, points, Detail::Short), "verdict: usable\n");
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
