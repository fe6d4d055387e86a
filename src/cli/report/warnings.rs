//! What a run tells of itself that makes its figures doubtful.

use serde_json::Value;

use crate::results::read::Run;
use crate::results::schema::{Column, clock, hca, queue};

/// All warnings, each once.
pub fn of(run: &Run) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !found.contains(&text) {
            found.push(text);
        }
    };
    let document = run.document();
    let software =
        |end: &str| document["obtained"]["devices"][end]["device"]["software"] == Value::Bool(true);
    if software("sender") || software("receiver") {
        add("The devices are software (SoftRoCE): the figures test the tool and say nothing about an HCA.".to_owned());
    }
    if run.machine().pointer("/virtualisation/emulated") == Some(&Value::Bool(true)) {
        add("The processor is emulated in software: the figures test the tool and say nothing about a machine.".to_owned());
    }
    // What was told while it was measured, and what the machine says of its readiness.
    for told in ["warnings", "notes"] {
        let texts = document["details"][told].as_array().into_iter().flatten();
        for text in texts.filter_map(Value::as_str) {
            add(sentence(&[text]));
        }
    }
    let checks = document["readiness"]["checks"].as_array();
    for check in checks.into_iter().flatten() {
        let text = |name: &str| check[name].as_str().unwrap_or_default();
        add(sentence(&[text("title"), text("found"), text("advice")]));
    }
    for point in &run.points {
        let of_point = point.document.pointer("/obtained/placement/warnings");
        let of_point = of_point.and_then(Value::as_array).into_iter().flatten();
        for warning in of_point {
            if let Some(message) = warning["message"].as_str() {
                let advice = warning["advice"].as_str().unwrap_or_default();
                add(sentence(&[message, advice]));
            }
        }
    }
    counted(run, &mut add);
    found
}

/// Of counts over the points.
fn counted(run: &Run, add: &mut impl FnMut(String)) {
    let sum = |column: &Column| -> (u64, usize) {
        let counts = run
            .points
            .iter()
            .filter_map(|point| point.row.as_ref()?.count(column.name))
            .filter(|count| *count > 0);
        counts.fold((0, 0), |(sum, points), count| (sum + count, points + 1))
    };
    let all = run.points.len();
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
            clock::STEPS_BACKWARDS,
            "steps of the clock backwards were seen",
        ),
    ] {
        let (count, points) = sum(&column);
        if count > 0 {
            add(format!("{count} {words} ({points} of {all} points)."));
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
