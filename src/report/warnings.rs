//! What a run tells of itself that makes its figures doubtful.

use serde_json::Value;

use crate::figures::capital;
use crate::results::read::{Point, Run};
use crate::results::schema::{clock, hca, memory, queue};

/// All warnings, each once.
pub(crate) fn of(run: &Run) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !found.contains(&text) {
            found.push(text);
        }
    };
    let document = run.document();
    if is_software(run) {
        add("The devices are software (SoftRoCE): the figures test the tool and say nothing about an HCA.".to_owned());
    }
    if is_emulated(run) {
        add("The processor is emulated in software: the figures test the tool and say nothing about a machine.".to_owned());
    }
    let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let of = |value: &Value, keys: &[&str]| {
        let parts: Vec<&str> = keys.iter().filter_map(|key| value[key].as_str()).collect();
        sentence(&parts)
    };
    // What was told while it was measured, and what the machine says of its readiness.
    for told in ["warnings", "notes"] {
        let texts = each(&document["details"][told]);
        for text in texts.iter().filter_map(Value::as_str) {
            add(sentence(&[text]));
        }
    }
    for check in each(&document["readiness"]["checks"]) {
        add(of(&check, &["title", "found", "advice"]));
    }
    for point in &run.points {
        for warning in each(&point.document["obtained"]["placement"]["warnings"]) {
            add(of(&warning, &["message", "advice"]));
        }
    }
    counted(run, &mut add);
    found
}

/// Whether a device is no hardware.
pub(crate) fn is_software(run: &Run) -> bool {
    let devices = &run.document()["obtained"]["devices"];
    let mut ends = ["sender", "receiver"].into_iter();
    ends.any(|end| devices[end]["device"]["software"] == true)
}

/// Whether the processor is none.
pub(crate) fn is_emulated(run: &Run) -> bool {
    run.machine()["virtualisation"]["emulated"] == true
}

/// Of counts over the points.
fn counted(run: &Run, add: &mut impl FnMut(String)) {
    let all = run.points.len();
    in_flags(run, add);
    for (column, words) in [
        (hca::LOST, "messages were lost"),
        (hca::CORRUPTED, "messages arrived damaged"),
        (
            hca::FOREIGN,
            "messages arrived that this run did not send: another program sends to its queue pairs",
        ),
        (
            hca::latency::NEGATIVE,
            "latencies are negative: the clocks of the two CPUs disagree",
        ),
        (
            hca::PAGE_FAULTS,
            "page faults fell into the loops: the latencies hold theirs",
        ),
        (
            queue::SENDER_PAGE_FAULTS,
            "page faults fell into the sender's loop: its times hold theirs",
        ),
        (
            queue::RECEIVER_PAGE_FAULTS,
            "page faults fell into the receiver's loop: its times hold theirs",
        ),
        (queue::LOST, "elements were lost: the queue is broken"),
        (
            memory::STALLED,
            "windows have a generator that did nothing for half of their time or longer",
        ),
        (
            memory::UNSETTLED,
            "rounds began to measure before the bandwidth was stable",
        ),
        (
            memory::REMOVED,
            "windows were left out of all figures but the greatest latency",
        ),
        (
            clock::STEPS_BACKWARDS,
            "steps of the clock backwards were seen",
        ),
    ] {
        let counts = run.counts(&column).filter(|count| *count > 0);
        let (count, points) = counts.fold((0, 0), |(sum, points), one| (sum + one, points + 1));
        if points > 0 {
            add(format!("{count} {words} ({points} of {all} points)."));
        }
    }
}

/// Of a memory: points of which a flag says that they tell little of it.
fn in_flags(run: &Run, add: &mut impl FnMut(String)) {
    let all = run.points.len();
    for (column, words) in [
        (
            memory::IN_CACHE,
            "may lie in the last level of cache: the buffers are smaller than four times that",
        ),
        (
            memory::CORE_LIMITED,
            "have one generator, whose bandwidth is its core's and says nothing of the memory's",
        ),
        (
            memory::CORE_SHARED,
            "have a generator on the core of the chase, which shares its caches",
        ),
    ] {
        let is_set = |point: &&Point| point.text(column.name) == Some("true");
        let points = run.points.iter().filter(is_set).count();
        if points > 0 {
            add(format!("{points} of {all} points {words}."));
        }
    }
}

/// Parts with colons between them, begun and ended as a sentence is.
fn sentence(parts: &[&str]) -> String {
    let told = parts.iter().copied().filter(|part| !part.is_empty());
    let told = told.collect::<Vec<_>>().join(": ");
    // A point's name stands as its folder is called.
    let first = told.split([' ', ':']).next().unwrap_or_default();
    let begun = match first.contains('-') {
        true => told.clone(),
        false => capital(&told),
    };
    match begun.ends_with('.') {
        true => begun,
        false => begun + ".",
    }
}
