//! The health of nodes as tables, in words and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::runs::JudgedRuns;
use super::standard::Standard;
use crate::bench::fabric::history::{Count, Course, FactChange, Health, Subject};
use crate::bench::fabric::metrics::Metric;
use crate::bench::fabric::rules::Rule;
use crate::cli::list::date;
use crate::results::units::{digits, fixed};
use crate::sorting::sort_by_key;
use crate::terminal::output::labelled;
use crate::terminal::table::{Column, Table};

/// A share in percent: `+21.4 %` of one that is above a baseline.
fn percent(share: f64, rule: &Rule) -> String {
    match rule.metric.is_time() {
        true => format!(
            "{}{} %",
            if share < 0.0 { "" } else { "+" },
            fixed(100.0 * share, 1)
        ),
        false => format!("{} %", digits(100.0 * share)),
    }
}

/// What a rule found: `rtt/2.p50 +21.4 %, 2 of 3 runs`.
fn found(count: &Count, rule: &Rule) -> String {
    let mut text = rule.metric.name().to_owned();
    if rule.metric == Metric::Verdict {
        text = "named by the run".to_owned();
    }
    if let Some(above) = count.above {
        let _ = write!(text, " {}", percent(above, rule));
    }
    if let Some(direction) = count.direction.filter(|_| rule.metric.is_directional()) {
        let _ = write!(text, " {}", direction.name());
    }
    let runs = if count.of == 1 { "run" } else { "runs" };
    let _ = write!(text, ", {} of {} {runs}", count.out, count.of);
    text
}

/// The rules that a node broke, in a line for a scheduler.
pub(super) fn reason(course: &Course, rules: &[Rule]) -> String {
    let broken = course.counts.iter().filter(|count| count.is_broken);
    let broken: Vec<String> = broken.map(|it| found(it, &rules[it.rule])).collect();
    let since = course.since.as_ref();
    let since = since.map_or(String::new(), |[first, _]| {
        format!(", since {}", date(first))
    });
    format!("hcabench: {}{since}", broken.join("; "))
}

/// What it was out by, broken rules first.
fn all_found(course: &Course, rules: &[Rule]) -> String {
    let mut counts: Vec<&Count> = course.counts.iter().collect();
    sort_by_key(&mut counts, |it| !it.is_broken);
    let texts: Vec<String> = counts
        .into_iter()
        .map(|it| found(it, &rules[it.rule]))
        .collect();
    texts.join("; ")
}

/// A fact, with what it was before: `6.1.0-26 (6.1.0-25 before 2026-11-20 12:20)`.
fn fact(course: &Course, name: &str) -> String {
    let now = course.facts.iter().find(|(fact, _)| *fact == name);
    let Some((_, now)) = now else {
        return String::new();
    };
    let change = course.changes.iter().find(|change| change.fact == name);
    let before = |it: &FactChange| format!(" ({} before {})", it.before, date(&it.since));
    format!("{now}{}", change.map(before).unwrap_or_default())
}

/// The order in which they are shown.
fn ranked(courses: &[Course], all: bool) -> Vec<&Course> {
    let is_shown = |it: &&Course| {
        let is_of_note = it.health != Health::Healthy || !it.is_in_last || it.is_new;
        matches!(it.subject, Subject::Node(_)) && (all || is_of_note)
            || it.health == Health::Failing
    };
    let mut shown: Vec<&Course> = courses.iter().filter(is_shown).collect();
    sort_by_key(&mut shown, |it| {
        let order = [
            Health::Failing,
            Health::Watched,
            Health::NotJudged,
            Health::Healthy,
            Health::Left,
        ];
        let place = order.iter().position(|health| *health == it.health);
        (place, std::cmp::Reverse(it.failed[0]), &it.subject)
    });
    shown
}

fn verdict(course: &Course) -> String {
    let mut verdict = course.health.name().to_owned();
    if course.is_new {
        verdict += ", new";
    }
    let is_broken = course.counts.iter().any(|it| it.is_broken);
    if course.health == Health::Left && is_broken {
        verdict += ", was failing";
    }
    verdict
}

/// The nodes of note, or all; tiers and pairs that break a rule.
pub(super) fn table(courses: &[Course], rules: &[Rule], all: bool) -> Table {
    let mut table = Table::new(vec![
        Column::text("node").first(),
        Column::text("verdict").first(),
        Column::text("failed").first(),
        Column::text("since").first(),
        Column::text("last").first(),
        Column::text("out by").first(),
        Column::text("firmware"),
        Column::text("kernel"),
        Column::text("port"),
    ]);
    for course in ranked(courses, all) {
        let [failed, of] = course.failed;
        let since = course.since.as_ref();
        let since = since.map_or([String::new(), String::new()], |it| {
            it.each_ref().map(|moment| date(moment))
        });
        let [first, last] = since;
        table.row([
            course.subject.in_words(),
            verdict(course),
            format!("{failed} of {of}"),
            first,
            last,
            all_found(course, rules),
            fact(course, "firmware"),
            fact(course, "kernel"),
            fact(course, "port"),
        ]);
    }
    table
}

/// The answer, a line each.
pub(super) fn answer(found: &JudgedRuns, courses: &[Course], standard: &Standard) -> Vec<String> {
    let nodes: Vec<&Course> = courses
        .iter()
        .filter(|it| matches!(it.subject, Subject::Node(_)))
        .collect();
    let count = |health| nodes.iter().filter(|it| it.health == health).count();
    let [failing, watched, not_judged] =
        [Health::Failing, Health::Watched, Health::NotJudged].map(count);
    let runs = &found.runs;
    let days: Vec<String> = [runs.first(), runs.last()]
        .into_iter()
        .flatten()
        .map(|run| date(&run.begun))
        .collect();
    let left = count(Health::Left);
    let left = match left {
        0 => String::new(),
        left => format!("; {left} are not in the last run"),
    };
    let runs_word = if runs.len() == 1 { "run" } else { "runs" };
    let mut lines = vec![format!(
        "{failing} of {} nodes are failing, {watched} were out and break no rule, {not_judged} could not be judged{left}; \
         {} {runs_word}, {}",
        nodes.len(),
        runs.len(),
        days.join(" to ")
    )];
    let others = courses
        .iter()
        .filter(|it| !matches!(it.subject, Subject::Node(_)) && it.health == Health::Failing);
    let others: Vec<String> = others.map(|it| it.subject.in_words()).collect();
    if !others.is_empty() {
        lines.push(format!("also out: {}", others.join(", ")));
    }
    let idle = standard.idle_rules();
    if idle > 0 {
        lines.push(labelled(
            "note",
            &format!(
                "{idle} rules take a baseline and were left out; make one of healthy runs with hcabench baseline, and \
                 use --baseline"
            ),
        ));
    }
    let most = standard
        .rules
        .rules
        .iter()
        .map(|rule| rule.runs.least)
        .max();
    if let Some(most) = most.filter(|most| *most > runs.len()) {
        lines.push(labelled(
            "note",
            &format!(
                "a rule takes {most} runs to be broken, and there are {}",
                runs.len()
            ),
        ));
    }
    lines
}

pub(super) fn json_of(found: &JudgedRuns, courses: &[Course], standard: &Standard) -> Value {
    let rules = &standard.rules.rules;
    let course = |course: &Course| {
        let count = |count: &Count| {
            let rule = &rules[count.rule];
            json!({
                "metric": rule.metric.name(), "scope": rule.scope.name(),
                "out": count.out, "runs": count.of, "broken": count.is_broken,
                "above_percent": count.above.map(|share| 100.0 * share),
                "direction": count.direction.map(|it| it.name()),
            })
        };
        let change =
            |it: &FactChange| json!({ "fact": it.fact, "before": it.before, "since": it.since });
        let facts = course.facts.iter();
        let facts: serde_json::Map<String, Value> = facts
            .map(|(name, text)| ((*name).to_owned(), json!(text)))
            .collect();
        let kind = match &course.subject {
            Subject::Node(_) => "node",
            Subject::Pair(..) => "pair",
            Subject::Tier(_) => "tier",
        };
        json!({
            "kind": kind,
            "name": match &course.subject {
                Subject::Tier(name) => name.clone(),
                subject => subject.in_words(),
            },
            "host": course.hosts[0],
            "kubernetes_node": course.hosts[1],
            "verdict": course.health.name(),
            "failed": course.failed[0],
            "runs": course.failed[1],
            "since": course.since.as_ref().map(|[first, _]| first),
            "last": course.since.as_ref().map(|[_, last]| last),
            "rules": course.counts.iter().map(count).collect::<Vec<_>>(),
            "in_last_run": course.is_in_last,
            "new": course.is_new,
            "facts": facts,
            "changes": course.changes.iter().map(change).collect::<Vec<_>>(),
        })
    };
    let run = |run: &crate::bench::fabric::history::JudgedRun| json!({ "folder": run.folder, "started_at": run.begun, "nodes": run.nodes() });
    let left_out =
        |(folder, reason): &(String, String)| json!({ "folder": folder, "reason": reason });
    let failing = courses.iter().filter(|it| it.health == Health::Failing);
    json!({
        "failing": failing.map(|it| it.subject.in_words()).collect::<Vec<_>>(),
        "courses": courses.iter().map(course).collect::<Vec<_>>(),
        "runs": found.runs.iter().map(run).collect::<Vec<_>>(),
        "incomplete": found.incomplete,
        "left_out": found.left_out.iter().map(left_out).collect::<Vec<_>>(),
        "baseline": standard.baseline.as_ref().map(|it| json!({ "runs": it.runs })),
        "rules": rules,
        "error": standard.rules.error,
    })
}
