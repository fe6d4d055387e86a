//! Findings of a folder without findings.json, of hcabench up to 0.2: made of its columns, settings and sentences.

use serde_json::Value;

use crate::bench::presentation_of;
use crate::results::finding::kinds;
use crate::results::finding::{Finding, FindingKind, Findings};
use crate::results::read::{Point, Run};
use crate::results::schema::{Column, POINT, ROUNDS, clock, hca, memory, node, queue};
use crate::rig::findings::of_percentiles;

/// Counts of a row of a benchmark that are findings where they are not zero, and the column that they are a part of.
const COUNTS: [(&str, Column, FindingKind, Option<Column>); 14] = [
    ("hca", hca::LOST, kinds::MESSAGES_LOST, Some(hca::SENT)),
    ("hca", hca::CORRUPTED, kinds::MESSAGES_CORRUPTED, None),
    ("hca", hca::FOREIGN, kinds::MESSAGES_FOREIGN, None),
    (
        "hca",
        hca::latency::NEGATIVE,
        kinds::NEGATIVE_LATENCIES,
        None,
    ),
    ("hca", hca::PAGE_FAULTS, kinds::PAGE_FAULTS, None),
    ("queue", queue::SENDER_PAGE_FAULTS, kinds::PAGE_FAULTS, None),
    (
        "queue",
        queue::RECEIVER_PAGE_FAULTS,
        kinds::PAGE_FAULTS,
        None,
    ),
    ("queue", queue::LOST, kinds::ELEMENTS_LOST, None),
    ("memory", memory::STALLED, kinds::STALLED, None),
    ("memory", memory::UNSETTLED, kinds::UNSTABLE, None),
    ("memory", memory::REMOVED, kinds::WINDOWS_REMOVED, None),
    ("clock", clock::STEPS_BACKWARDS, kinds::CLOCK_SET_BACK, None),
    (
        "hca",
        hca::NOT_RESTAMPED,
        kinds::NOT_RESTAMPED,
        Some(hca::RECEIVED),
    ),
    ("node", node::LOST, kinds::COPIES_LOST, Some(node::COPIES)),
];

/// Flags of a row that are findings where they are set.
const FLAGS: [(Column, FindingKind); 3] = [
    (memory::IN_CACHE, kinds::IN_CACHE),
    (memory::CORE_LIMITED, kinds::CORE_LIMITED),
    (memory::CORE_SHARED, kinds::CORE_SHARED),
];

/// Sentences of hcabench up to 0.2 by a part that no other has, their kind, and what their numbers are, in order.
const SENTENCES: [(&str, FindingKind, &[&str]); 58] = [
    ("messages were lost", kinds::MESSAGES_LOST, &["count", "of"]),
    (
        "have a t_send before their t_subm",
        kinds::STAMPS_OUT_OF_ORDER,
        &["count"],
    ),
    (
        "arrived with other bytes than were sent",
        kinds::MESSAGES_CORRUPTED,
        &["count"],
    ),
    (
        "brought back other bytes",
        kinds::ANSWERS_CORRUPTED,
        &["count"],
    ),
    (
        "messages were not of this run",
        kinds::MESSAGES_FOREIGN,
        &["count"],
    ),
    (
        "requests did not complete",
        kinds::REQUESTS_INCOMPLETE,
        &["count", "of"],
    ),
    (
        "retransmissions: packets",
        kinds::RETRANSMISSIONS,
        &["count"],
    ),
    (
        "congestion notifications: packets",
        kinds::CONGESTION,
        &["count"],
    ),
    ("flow control held it back", kinds::PORT_WAITED, &["count"]),
    (
        "errors at the sender's port",
        kinds::SENDER_PORT_ERRORS,
        &["count"],
    ),
    (
        "errors at the receiver's port",
        kinds::RECEIVER_PORT_ERRORS,
        &["count"],
    ),
    (
        "page fault(s) in the hot loops",
        kinds::PAGE_FAULTS,
        &["count"],
    ),
    ("page faults in the loops of", kinds::PAGE_FAULTS, &[]),
    (
        "messages arrived twice",
        kinds::MESSAGES_DUPLICATED,
        &["count"],
    ),
    (
        "after their burst was over",
        kinds::MESSAGES_LATE,
        &["count"],
    ),
    (
        "posted more than a step late",
        kinds::STEPS_MISSED,
        &["count", "of"],
    ),
    (
        "before their stamp was rewritten",
        kinds::NOT_RESTAMPED,
        &["count", "of"],
    ),
    (
        "more is offered than the path takes",
        kinds::OFFERED_TOO_MUCH,
        &["taken_percent", "from", "in_flight"],
    ),
    ("no core is left for a", kinds::NO_CORE_LEFT, &[]),
    ("no CPU is left for the rest", kinds::SUPERVISOR_SHARES, &[]),
    (
        "is little else than the maximum",
        kinds::PERCENTILES_UNRESOLVED,
        &[],
    ),
    ("reserve 2 MiB pages", kinds::SMALL_PAGES, &[]),
    ("of a round started late", kinds::LOAD_MISSED, &[]),
    ("the bandwidth was not stable", kinds::UNSTABLE, &[]),
    (
        "steps were missed: publishers",
        kinds::NODE_STEPS_MISSED,
        &["count", "of"],
    ),
    ("copies were lost", kinds::COPIES_LOST, &["count", "of"]),
    ("four times the last level of cache", kinds::IN_CACHE, &[]),
    ("its places is used fewer", kinds::FEW_LAPS, &[]),
    ("is touched but not locked", kinds::QUEUE_NOT_LOCKED, &[]),
    (
        "a round ends before --duration",
        kinds::ROUND_CUT_SHORT,
        &[],
    ),
    (
        "the clocks of the two CPUs differ",
        kinds::RECEIVER_CLOCK,
        &[],
    ),
    (
        "latencies are negative",
        kinds::NEGATIVE_LATENCIES,
        &["count"],
    ),
    ("hands over in batches", kinds::BATCHES, &[]),
    ("threads of one core", kinds::CORE_SHARED, &[]),
    ("ppm off the measured", kinds::TSC_RATE, &[]),
    ("subscribers made connections", kinds::FELL_BACK, &[]),
    ("samples were refused", kinds::SAMPLES_REFUSED, &["count"]),
    (
        "clocks of sender and receiver may differ",
        kinds::CLOCKS_MAY_DIFFER,
        &[],
    ),
    ("do not believe it", kinds::FLOOR_NEAR_LATENCY, &[]),
    ("do not believe these figures", kinds::FLOOR_TOO_HIGH, &[]),
    (
        "--memory-load: the generators' buffers",
        kinds::GENERATORS_IN_CACHE,
        &[],
    ),
    ("offers was delivered", kinds::BACKGROUND_NOT_TAKEN, &[]),
    ("both ends are on one host", kinds::ONE_HOST, &[]),
    ("change that of CLOCK_MONOTONIC", kinds::STEERED_CLOCK, &[]),
    (
        "half a round trip is one way only",
        kinds::HALF_ROUND_TRIP,
        &[],
    ),
    ("are in different subnets", kinds::SUBNETS_DIFFER, &[]),
    (
        "packets left the sender's port",
        kinds::PACKETS_NOT_SENT,
        &["packets", "count"],
    ),
    (
        "packets came to the receiver's port",
        kinds::PACKETS_NOT_RECEIVED,
        &["packets", "count"],
    ),
    ("since it was connected", kinds::PORT_CHANGED, &[]),
    ("the only one there is", kinds::SINGLE_CPU, &[]),
    (" share CPU ", kinds::SHARED_CPU, &[]),
    ("share a physical core", kinds::SMT_SIBLINGS, &[]),
    ("its device is on node", kinds::NUMA_REMOTE, &[]),
    ("an efficiency core", kinds::EFFICIENCY_CORE, &[]),
    ("rounds were measured", kinds::ROUNDS_MISSING, &[]),
    ("a generator stood still", kinds::STALLED, &[]),
    ("core-limited: one generator", kinds::CORE_LIMITED, &[]),
    (
        "last level of cache is not known",
        kinds::CACHE_UNKNOWN,
        &[],
    ),
];

/// Sentences that only repeat what else is recorded, by their beginning.
const REPEATED: [&str; 4] = [
    "this device is software",
    "this machine is not ready to measure",
    "of this machine could be better",
    "instrument: ",
];

/// All that can be made of the folder.
pub(super) fn of(run: &Run) -> Findings {
    let mut all = Findings::default();
    for found in super::of_machine(run.document(), run.machine()) {
        all.add(found, None, None);
    }
    counts(run, &mut all);
    unresolved(run, &mut all);
    let by_columns: Vec<String> = all.all().iter().map(|found| found.kind.clone()).collect();
    // A folder of one point has sentences about the others, too.
    let rows = run
        .summary
        .rows
        .iter()
        .filter_map(|row| row.text(POINT.name));
    let mut names: Vec<&str> = rows
        .chain(run.points.iter().map(|point| point.name.as_str()))
        .collect();
    // One's name may be the beginning of another's.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for recorded in ["warnings", "notes"] {
        let texts = super::list(&run.document()["details"][recorded]);
        for text in texts.filter_map(Value::as_str) {
            let point = names.iter().find(|name| text.contains(**name)).copied();
            let is_shown = |name| run.points.iter().any(|point| point.name == name);
            let found = stated(text, recorded == "notes", point);
            let found = found.filter(|found| !by_columns.contains(&found.kind));
            if let (Some(found), true) = (found, point.is_none_or(is_shown)) {
                all.add(found, point, None);
            }
        }
    }
    all
}

/// What a sentence of a benchmark states, a note or a warning, of a point if that is named; `None` where it only repeats
/// what else is recorded.
fn stated(text: &str, is_note: bool, point: Option<&str>) -> Option<Finding> {
    if REPEATED.iter().any(|begins| text.starts_with(begins)) {
        return None;
    }
    let rest = match point {
        Some(name) => text.replacen(name, "", 1),
        None => text.to_owned(),
    };
    let found = sentence(rest.trim_start_matches(": "));
    match is_note && found.is_recorded() {
        true => Some(Finding::note(&found.problem)),
        false => Some(found),
    }
}

/// What the columns of each point say.
fn counts(run: &Run, all: &mut Findings) {
    // Between two hosts, the columns are those of one.
    let is_of = |benchmark: &str| run.schema.benchmark.split('-').next() == Some(benchmark);
    for (_, column, kind, of) in COUNTS.iter().filter(|(benchmark, ..)| is_of(benchmark)) {
        for point in &run.points {
            let count = point.count(column).unwrap_or(0);
            let of = of.as_ref().map(|of| point.count(of).unwrap_or(count));
            // What is lost or corrupted of a read or an atomic is its answer.
            let is_answered = presentation_of(run.schema).only;
            let kind = match kind {
                kind if !is_answered.is_some_and(|(_, _, is_one)| is_one(point)) => kind,
                kind if kind.id == kinds::MESSAGES_LOST.id => &kinds::REQUESTS_INCOMPLETE,
                kind if kind.id == kinds::MESSAGES_CORRUPTED.id => &kinds::ANSWERS_CORRUPTED,
                kind => kind,
            };
            if let Some(found) = Finding::counted(kind, count, of) {
                all.add(found, Some(&point.name), None);
            }
        }
    }
    for (column, kind) in &FLAGS {
        let is_set = |point: &&Point| point.text(column.name) == Some("true");
        for point in run.points.iter().filter(is_set) {
            let text = |column: &Column| point.setting(column.name).unwrap_or_default();
            let size = text(&memory::SIZE).parse().unwrap_or(0.0);
            let found = Finding::of(kind)
                .measure("size_bytes", size)
                .name("cpu", text(&memory::CHASE_CPU));
            all.add(found, Some(&point.name), None);
        }
    }
}

/// Percentiles that the samples of a point cannot tell from the maximum, of the HCA benchmark.
fn unresolved(run: &Run, all: &mut Findings) {
    if run.schema.benchmark != hca::SCHEMA.benchmark {
        return;
    }
    let samples = |point: &Point| {
        let without = point.number(&hca::NOT_RESTAMPED).unwrap_or(0.0);
        // Over rounds, counts are sums and percentiles are medians of those of each round.
        let rounds = point.number(&ROUNDS).unwrap_or(1.0).max(1.0);
        let received = point.number(&hca::RECEIVED);
        let completed = || point.number(&hca::COMPLETIONS);
        Some(((received.or_else(completed)? - without) / rounds) as u64)
    };
    for point in &run.points {
        let Some(count) = samples(point).filter(|count| *count > 0) else {
            continue;
        };
        let percentiles = [99.0, 99.9, 99.99];
        let found = of_percentiles(percentiles, count, "--repeat or --burst");
        if let Some(found) = found {
            all.add(found, Some(&point.name), None);
        }
    }
}

/// What a sentence states, without the name of a point.
fn sentence(rest: &str) -> Finding {
    let known = SENTENCES.iter().find(|(part, ..)| rest.contains(part));
    let Some((part, kind, names)) = known else {
        return Finding::recorded(rest);
    };
    let texts = [kind.problem, kind.cause, kind.fix];
    if names.is_empty() && texts.iter().any(|text| text.contains('{')) {
        // Its figures are not told apart in the sentence.
        let split = rest
            .split_once(": ")
            .filter(|(first, _)| first.contains(part));
        let (problem, cause) = split.unwrap_or((rest, ""));
        return Finding {
            cause: cause.to_owned(),
            ..Finding::in_words(kind, problem)
        };
    }
    let figures = names.iter().zip(numbers(rest));
    figures.fold(Finding::of(kind), |found, (name, number)| match *name {
        "count" | "of" | "packets" => found.count(name, number as u64),
        name => found.measure(name, number),
    })
}

/// The numbers in a text.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    let words = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    words.filter_map(|word| word.trim_matches('.').parse().ok())
}
