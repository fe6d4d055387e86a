//! The history as tables, in words and as JSON.

use serde_json::{Value, json};

use super::causes::Cause;
use super::found::{FoundChange, History, JudgedSeries};
use super::runs::StoredRun;
use crate::cli::list::date;
use crate::history::ERROR;
use crate::results::text::printable_path;
use crate::results::units::{fixed, quantity};
use crate::terminal::output::labelled;
use crate::terminal::table::{Column, Table};

/// The heights of a value in the course.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same where a terminal has no others.
const DIGITS: [char; 8] = ['1', '2', '3', '4', '5', '6', '7', '8'];
/// Between the runs before a change and those after it.
const MARK: char = '|';
/// The last runs that a course shows.
const MOST_RUNS: usize = 40;

/// All of it for a terminal of this many columns.
pub(super) fn text(history: &History, width: Option<usize>) -> String {
    let blocks = match is_unicode() {
        true => BLOCKS,
        false => DIGITS,
    };
    let mut parts = vec![answer(history).join("\n") + "\n"];
    parts.push(series_table(history, &blocks).render(width));
    if history.changes().next().is_some() {
        parts.push(format!(
            "changes:\n{}",
            changes_table(history).render(width)
        ));
        parts.push(format!(
            "what changed then:\n{}",
            causes_table(history).render(width)
        ));
    }
    parts.join("\n")
}

/// Whether the locale has more than ASCII.
fn is_unicode() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = names.iter().filter_map(|name| std::env::var(name).ok());
    let first = set
        .filter(|text| !text.is_empty())
        .map(|text| text.to_ascii_lowercase())
        .next();
    first.is_some_and(|text| text.contains("utf-8") || text.contains("utf8"))
}

/// The answer, a line each.
pub(super) fn answer(history: &History) -> Vec<String> {
    let changed = history
        .series
        .iter()
        .filter(|it| !it.changes.is_empty())
        .count();
    let not_judged = history
        .series
        .iter()
        .filter(|it| it.unseen.is_none())
        .count();
    let dates = [history.runs.first(), history.runs.last()]
        .into_iter()
        .flatten();
    let dates: Vec<String> = dates.map(|run| date(&run.started_at)).collect();
    let runs = history.runs.len();
    let mut lines = vec![format!(
        "{changed} of {} figures changed; {runs} {}, {}",
        history.series.len(),
        if runs == 1 { "run" } else { "runs" },
        dates.join(" to ")
    )];
    for (series, found) in history.changes_in_time().into_iter().take(MOST_NAMED) {
        lines.push(change_in_words(history, series, found));
    }
    let more = history.changes().count().saturating_sub(MOST_NAMED);
    if more > 0 {
        let what = if more == 1 { "change" } else { "changes" };
        lines.push(format!("and {more} more {what}, see below"));
    }
    if not_judged > 0 {
        let text = format!(
            "{not_judged} figures have too few runs to be judged; {} figures together take {} runs",
            history.judged.max(1),
            history.needed
        );
        lines.push(labelled("note", &text));
    }
    let unseen = history.series.iter().filter_map(|it| it.unseen).max();
    if let Some(unseen) = unseen.filter(|unseen| *unseen > 0) {
        let text =
            format!("a change in the first or last {unseen} runs of a figure cannot be shown yet");
        lines.push(labelled("note", &text));
    }
    let of = |is_doubtful: fn(&StoredRun) -> bool| {
        let doubtful = history.runs.iter().filter(|run| is_doubtful(run));
        doubtful.count()
    };
    let doubts = [
        (
            of(|run| !run.is_complete),
            "not measured to the end",
            "their whole rounds count",
        ),
        (
            of(|run| run.is_invalid),
            "not usable by their findings",
            "they count all the same; `hcabench show` lists the findings",
        ),
    ];
    for (doubtful, what, and) in doubts {
        if doubtful > 0 {
            let text = format!("{what}: {doubtful} of {runs} runs; {and}");
            lines.push(labelled("note", &text));
        }
    }
    lines
}

/// Changes that are named in the answer.
const MOST_NAMED: usize = 5;

/// `median latency +5.1 % from runs/17 on (2026-01-17 02:00): kernel 6.1.0-25 -> 6.1.0-26`.
pub(super) fn change_in_words(
    history: &History,
    series: &JudgedSeries,
    found: &FoundChange,
) -> String {
    let run = history.run_at(series, found.change.at);
    let at = found
        .causes
        .iter()
        .filter(|(place, _)| *place == found.change.at);
    let at: Vec<String> = at.map(|(_, cause)| cause_in_words(cause)).collect();
    let cause = match (at.is_empty(), found.causes.is_empty()) {
        (false, _) => at.join("; "),
        (true, true) => without_causes(found).to_owned(),
        (true, false) => "what changed is in runs beside it, see below".to_owned(),
    };
    format!(
        "{} of {} {} from {} on ({}): {cause}",
        series.series.figure_in_words(),
        series.series.in_words(),
        shift(found),
        printable_path(&run.folder),
        date(&run.started_at)
    )
}

/// What is told of a change without causes.
fn without_causes(found: &FoundChange) -> &'static str {
    match found.is_read {
        true => "nothing in settings.json changed",
        false => "a settings.json cannot be read again",
    }
}

fn cause_in_words(
    Cause {
        what,
        before,
        after,
    }: &Cause,
) -> String {
    format!("{what} {} -> {}", known(before), known(after))
}

/// A value, or that there is none.
fn known(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// `+5.1 %`, better or worse.
pub(super) fn shift(found: &FoundChange) -> String {
    match found.shift {
        Some(shift) => signed(shift) + " %",
        None => "changed".to_owned(),
    }
}

fn signed(percent: f64) -> String {
    format!(
        "{}{}",
        if percent < 0.0 { "" } else { "+" },
        fixed(percent, 1)
    )
}

/// `4.6 to 5.6 %`.
pub(super) fn interval(found: &FoundChange) -> String {
    let text = |[low, high]: [f64; 2]| format!("{} to {} %", signed(low), signed(high));
    found.interval.map_or(String::new(), text)
}

/// How certain it is.
pub(super) fn certainty(found: &FoundChange) -> String {
    match found.change.p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p {}", fixed(p, 3)),
    }
}

fn is_in_words(found: &FoundChange) -> &'static str {
    if found.is_better { "better" } else { "worse" }
}

/// A row for each figure.
fn series_table(history: &History, blocks: &[char; 8]) -> Table {
    let mut table = Table::new(vec![
        Column::text("benchmark").setting(),
        Column::text("machine").setting(),
        Column::text("point").setting(),
        Column::text("figure").setting(),
        Column::number("runs", ""),
        Column::number("first", ""),
        Column::number("last", ""),
        Column::text("verdict").first(),
        Column::text("course").first(),
    ]);
    let is_of_one = |pair: &[JudgedSeries]| pair[0].series.settings == pair[1].series.settings;
    let has_several = history.series.windows(2).any(is_of_one);
    let mut last = None;
    for judged in &history.series {
        let series = &judged.series;
        let point = (series.schema.benchmark, &series.machine, &series.point);
        if has_several && last.is_some_and(|last| last != point) {
            table.separator();
        }
        last = Some(point);
        let [first, end] = levels(judged).map(|level| quantity(level, series.figure.unit));
        table.row([
            series.schema.benchmark.to_owned(),
            series.machine.clone(),
            series.point.clone(),
            series.figure.to_string(),
            series.runs.len().to_string(),
            first,
            end,
            verdict(judged),
            course(judged, blocks),
        ]);
    }
    table
}

/// The median of the runs before the first change, and of those after the last.
pub(super) fn levels(judged: &JudgedSeries) -> [f64; 2] {
    let values = judged.series.runs.iter().map(|(_, value)| value.median);
    let values: Vec<f64> = values.collect();
    // Between them there may be changes that --least leaves out.
    let (end, start) = match (judged.changes.first(), judged.changes.last()) {
        (Some(first), Some(last)) => (first.change.at, last.change.at),
        _ => (values.len(), 0),
    };
    let median = |values: &[f64]| crate::stats::median_of(values).unwrap_or_default();
    [median(&values[..end]), median(&values[start..])]
}

pub(super) fn verdict(judged: &JudgedSeries) -> String {
    match (&judged.changes[..], judged.unseen) {
        ([], None) => "too few runs".to_owned(),
        ([], Some(_)) => "no change shown".to_owned(),
        (changes, _) => {
            let texts: Vec<String> = changes.iter().map(shift).collect();
            texts.join(", ")
        }
    }
}

/// The last runs from left to right, the least value the lowest.
fn course(judged: &JudgedSeries, blocks: &[char; 8]) -> String {
    let runs = &judged.series.runs;
    let start = runs.len().saturating_sub(MOST_RUNS);
    let values = || runs[start..].iter().map(|(_, value)| value.median);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(f64::NEG_INFINITY, f64::max),
    );
    let mut text = String::new();
    for (place, value) in (start..).zip(values()) {
        if judged.changes.iter().any(|found| found.change.at == place) && place > start {
            text.push(MARK);
        }
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.0
        };
        text.push(blocks[((share * blocks.len() as f64) as usize).min(blocks.len() - 1)]);
    }
    text
}

/// A row for each change, in the order of time.
fn changes_table(history: &History) -> Table {
    let mut table = Table::new(vec![
        Column::text("from run").first(),
        Column::text("date").first(),
        Column::text("benchmark").setting(),
        Column::text("machine").setting(),
        Column::text("point").setting(),
        Column::text("figure").first(),
        Column::number("change", "%").first(),
        Column::text("interval").first(),
        Column::text("is"),
        Column::text("certainty").first(),
        Column::text("not before").first(),
        Column::text("not after").first(),
    ]);
    for (judged, found) in history.changes_in_time() {
        let run = history.run_at(judged, found.change.at);
        let [from, to] = [found.change.from, found.change.to]
            .map(|place| printable_path(history.folder_at(judged, place)));
        table.row([
            printable_path(&run.folder),
            date(&run.started_at),
            judged.series.schema.benchmark.to_owned(),
            judged.series.machine.clone(),
            judged.series.point.clone(),
            judged.series.figure.to_string(),
            found.shift.map_or("-".to_owned(), signed),
            interval(found),
            is_in_words(found).to_owned(),
            certainty(found),
            from,
            to,
        ]);
    }
    table
}

/// Rows of what changed, each once: run, date, what, before, after.
pub(super) fn causes_rows(history: &History) -> Vec<[String; 5]> {
    let mut rows: Vec<[String; 5]> = Vec::new();
    let mut add = |run: &StoredRun, cause: [String; 3]| {
        let [what, before, after] = cause;
        let row = [
            printable_path(&run.folder),
            date(&run.started_at),
            what,
            before,
            after,
        ];
        if !rows.contains(&row) {
            rows.push(row);
        }
    };
    for (judged, found) in history.changes_in_time() {
        let run = history.run_at(judged, found.change.at);
        if found.causes.is_empty() {
            let told = without_causes(found).to_owned();
            add(run, [told, String::new(), String::new()]);
        }
        for (place, cause) in &found.causes {
            let Cause {
                what,
                before,
                after,
            } = cause;
            let texts = [
                what.clone(),
                known(before).to_owned(),
                known(after).to_owned(),
            ];
            add(history.run_at(judged, *place), texts);
        }
    }
    rows
}

fn causes_table(history: &History) -> Table {
    let columns = ["run", "date", "what", "before", "after"];
    let mut table = Table::new(
        columns
            .into_iter()
            .map(|it| Column::text(it).first())
            .collect(),
    );
    for row in causes_rows(history) {
        table.row(row);
    }
    table
}

pub(super) fn json_of(history: &History) -> Value {
    let run = |run: &StoredRun| {
        json!({
            "folder": run.folder.display().to_string(),
            "started_at": run.started_at,
            "benchmark": run.schema.benchmark,
            "machine": run.machine,
            "label": run.label,
            "is_complete": run.is_complete,
            "is_invalid": run.is_invalid,
        })
    };
    let cause = |history: &History, judged: &JudgedSeries, (place, cause): &(usize, Cause)| {
        json!({
            "run": judged.series.runs[*place].0,
            "folder": history.folder_at(judged, *place).display().to_string(),
            "what": cause.what, "before": cause.before, "after": cause.after,
        })
    };
    let change = |judged: &JudgedSeries, found: &FoundChange| {
        let place = |place: usize| judged.series.runs[place].0;
        let run = history.run_at(judged, found.change.at);
        json!({
            "run": place(found.change.at),
            "folder": run.folder.display().to_string(),
            "started_at": run.started_at,
            "not_before": place(found.change.from),
            "not_after": place(found.change.to),
            "p": found.change.p,
            "before": found.before,
            "after": found.after,
            "change_percent": found.shift,
            "interval_percent": found.interval,
            "is": is_in_words(found),
            "causes": found.causes.iter().map(|it| cause(history, judged, it)).collect::<Vec<_>>(),
        })
    };
    let series = |judged: &JudgedSeries| {
        let series = &judged.series;
        let settings = series.settings.iter();
        let settings: serde_json::Map<String, Value> = settings
            .map(|(name, text)| ((*name).to_owned(), json!(text)))
            .collect();
        json!({
            "benchmark": series.schema.benchmark,
            "machine": series.machine,
            "point": series.point,
            "settings": settings,
            "figure": series.figure.to_string(),
            "unit": series.figure.unit,
            "judged": judged.unseen.is_some(),
            "unseen_at_ends": judged.unseen,
            "runs": series.runs.iter().map(|(number, value)| json!({
                "run": number, "value": value.median, "least": value.least, "greatest": value.greatest,
                "rounds": value.rounds,
            })).collect::<Vec<_>>(),
            "changes": judged.changes.iter().map(|found| change(judged, found)).collect::<Vec<_>>(),
        })
    };
    json!({
        "answer": answer(history),
        "changed": history.changes().count(),
        "judged_together": history.judged,
        "error": ERROR,
        "runs_needed": history.needed,
        "runs": history.runs.iter().map(run).collect::<Vec<_>>(),
        "series": history.series.iter().map(series).collect::<Vec<_>>(),
        "left_out": history.left_out,
        "unreadable": history.unreadable,
        "damaged": history.damaged.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
