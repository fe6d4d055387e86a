//! What a run tells of itself that makes its figures doubtful.

use serde_json::Value;

use crate::results::read::{Benchmark, Point, Run};

/// All warnings, each once.
pub fn of(run: &Run) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !found.contains(&text) {
            found.push(text);
        }
    };
    let document = run.document();
    let software = |end: &str| document["devices"][end]["device"]["software"] == Value::Bool(true);
    if software("sender") || software("receiver") {
        add("The devices are software (SoftRoCE): the figures test the tool and say nothing about an HCA.".to_owned());
    }
    if run.machine().pointer("/virtualisation/emulated") == Some(&Value::Bool(true)) {
        add("The processor is emulated in software: the figures test the tool and say nothing about a machine.".to_owned());
    }
    for point in &run.points {
        let of_point = ["/obtained/placement/warnings", "/placement_warnings"]
            .into_iter()
            .filter_map(|place| point.document.pointer(place)?.as_array())
            .flatten();
        for warning in of_point {
            if let Some(message) = warning["message"].as_str() {
                let advice = warning["advice"].as_str().unwrap_or_default();
                add(sentence(&[message, advice]));
            }
        }
    }
    // Of the clock: what the readiness of the machine says, and what was noted in the run.
    for advice in document["advice"].as_array().into_iter().flatten() {
        let text = |name: &str| advice[name].as_str().unwrap_or_default();
        add(sentence(&[text("title"), text("found"), text("advice")]));
    }
    let notes = document.pointer("/result/notes").and_then(Value::as_array);
    for note in notes.into_iter().flatten().filter_map(Value::as_str) {
        add(sentence(&[note]));
    }
    counted(run, &mut add);
    found
}

/// Of counts over the points.
fn counted(run: &Run, add: &mut impl FnMut(String)) {
    let sum = |column: &str| -> (u64, usize) {
        let counts = run
            .points
            .iter()
            .filter_map(|point| point.row.as_ref()?.count(column))
            .filter(|count| *count > 0);
        counts.fold((0, 0), |(sum, points), count| (sum + count, points + 1))
    };
    let all = run.points.len();
    for (column, words) in [
        ("messages_lost", "messages were lost"),
        ("messages_corrupted", "messages arrived damaged"),
        (
            "latency_negative",
            "latencies are negative: the clocks of the two CPUs disagree",
        ),
        (
            "loop_page_faults",
            "page faults fell into the loops: the latencies hold theirs",
        ),
        (
            "sender_page_faults",
            "page faults fell into the sender's loop: its times hold theirs",
        ),
        (
            "receiver_page_faults",
            "page faults fell into the receiver's loop: its times hold theirs",
        ),
        ("elements_lost", "elements were lost: the queue is broken"),
        ("steps_backwards", "steps of the clock backwards were seen"),
    ] {
        let (count, points) = sum(column);
        if count > 0 {
            add(format!("{count} {words} ({points} of {all} points)."));
        }
    }
    if run.benchmark == Benchmark::Queue {
        let has_two = |point: &&Point| {
            let cells = point.row.iter().flat_map(|row| row.cells());
            let mut modes =
                cells.filter(|(name, text)| name.ends_with("_two_modes") && !text.is_empty());
            modes.next().is_some()
        };
        let points = run.points.iter().filter(has_two).count();
        if points > 0 {
            add(format!(
                "At {points} of {all} points the runs fall into two groups (two modes): look at runs.csv before you believe \
                 a median."
            ));
        }
    }
}

/// Parts with colons between them, begun and ended as a sentence is.
fn sentence(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    let text = parts.join(": ");
    let mut characters = text.chars();
    let begun: String = characters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + characters.as_str())
        .unwrap_or_default();
    if begun.ends_with('.') {
        begun
    } else {
        begun + "."
    }
}
