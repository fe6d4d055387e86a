//! What is shown of a watch: a row for each CPU, and of a single round a table for each report, the causes, the
//! pattern, and what happened on several CPUs at once.

use serde_json::Value;

use crate::bench::clock::config::Report;
use crate::bench::clock::pattern::PERIODIC;
use crate::driver::{Shown, View};
use crate::results::schema::{ROUNDS, clock as schema};
use crate::results::{Record, units};
use crate::terminal::output::labelled;
use crate::terminal::table::{Column, Table};
use crate::terminal::{text_width_of, wrap};

/// How the results are shown.
pub(crate) const VIEW: View = View {
    tables,
    columns: || {
        OVERVIEW
            .map(|(column, ..)| (column.title.to_owned(), column))
            .into()
    },
    json: document,
};

fn tables(shown: &Shown<'_>) -> String {
    let mut parts = vec![verdict(shown), overview(shown)];
    let rounds = |row: &Record| row.number(ROUNDS.name).unwrap_or(1.0);
    if !shown.brief && shown.summary.iter().all(|row| rounds(row) <= 1.0) {
        let all = details(shown);
        let mut groups: Vec<&[&Value]> = all.chunk_by(|a, b| a["clock"] == b["clock"]).collect();
        groups.retain(|cpus| cpus[0]["verdict"].is_string());
        for cpus in &groups {
            if groups.len() > 1 {
                parts.push(format!("=== {}\n", text(&cpus[0]["clock"])));
            }
            parts.extend(of_one_round(cpus, shown.width));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Threads that ran instead are shown so far.
const SHOWN_THREADS: usize = 5;

/// What it comes to, of the last round, and who ran instead.
fn verdict(shown: &Shown<'_>) -> String {
    let details = details(shown);
    let watched = || details.iter().filter(|cpu| cpu["verdict"].is_string());
    let several = !watched().all(|cpu| cpu["clock"] == details[0]["clock"]);
    let by = |cpu: &Value| match several {
        true => format!("{}: ", text(&cpu["clock"])),
        false => String::new(),
    };
    let told = watched().map(|cpu| by(cpu) + &text(&cpu["verdict"]));
    let mut told: Vec<String> = told.collect();
    told.dedup();
    for row in shown
        .summary
        .iter()
        .filter(|row| !row.text(&schema::TIMER).is_empty())
    {
        let length = |column: &crate::results::schema::Column| {
            let nanos = row.number(column.name);
            nanos.map_or_else(String::new, units::duration)
        };
        told.push(format!(
            "{} wakes a thread on CPU {} late by {} at the median, {} at p99.9 and {} at the worst.",
            row.text(&schema::TIMER),
            row.text(&schema::CPU),
            length(&schema::P50),
            length(&schema::P999),
            length(&schema::MAX),
        ));
    }
    let mut lines: Vec<String> = told
        .iter()
        .flat_map(|told| wrap(told, text_width_of(shown.width)))
        .collect();
    for cpu in watched().filter(|_| !shown.brief) {
        let mut parts = Vec::new();
        let throttled = &cpu["throttled"];
        let stopped = throttled["thread_ns"].as_f64().unwrap_or(0.0);
        if stopped > 0.0 {
            let group = &throttled["group"];
            let of_group = group["throttled_ns"].as_f64().unwrap_or(0.0);
            lines.push(labelled(
                &format!("{}throttled on CPU {}", by(cpu), cpu["cpu"]),
                &format!(
                    "at most {}; the group for {} over all CPUs, in {} of {} periods",
                    units::duration(stopped),
                    units::duration(of_group),
                    group["throttled"],
                    group["periods"]
                ),
            ));
        }
        // The scheduler counts that as waiting.
        if let Some(waited) = cpu["waited_for_cpu_ns"]
            .as_f64()
            .map(|waited| waited - stopped)
            .filter(|waited| *waited > 0.0)
        {
            parts.push(format!(
                "the thread waited {} for it",
                units::duration(waited)
            ));
        }
        for ran in list(&cpu["ran_instead"]).iter().take(SHOWN_THREADS) {
            let likely = if ran["only_here"] == true {
                ""
            } else {
                "likely "
            };
            let (name, id) = (text(&ran["name"]), &ran["thread"]);
            parts.push(format!(
                "{likely}{name} ({id}) {}",
                duration(&ran["ran_ns"])
            ));
        }
        if !parts.is_empty() {
            lines.push(labelled(
                &format!("{}ran instead on CPU {}", by(cpu), cpu["cpu"]),
                &parts.join(", "),
            ));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The last round of each CPU.
fn document(shown: &Shown<'_>) -> Value {
    serde_json::json!({ "cpus": details(shown) })
}

/// What `bench::clock::details` has of each CPU.
fn details<'a>(shown: &Shown<'a>) -> Vec<&'a Value> {
    shown.details.iter().map(|(_, details)| details).collect()
}

fn wants(cpu: &Value, report: Report) -> bool {
    list(&cpu["reports"]).iter().any(|it| it == report.name())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn of_one_round(cpus: &[&Value], width: Option<usize>) -> Vec<String> {
    let Some(first) = cpus.first() else {
        return Vec::new();
    };
    let windows = format!(
        "highest sum of what jumps have above the baseline, in windows of {} that slide; from rank 2 on, others beside it",
        duration(&first["window_ns"])
    );
    let highest = "largest differences, and when they began";
    vec![
        percentile_table(cpus, width),
        titled(highest, width, highest_table(cpus, width)),
        titled(&windows, width, window_table(cpus, width)),
        titled("causes of the jumps", width, cause_table(cpus, width)),
        titled(
            "who had the CPU in the jumps, exactly, by the trace",
            width,
            trace_table(cpus, width),
        ),
        titled("pattern of the jumps", width, pattern_table(cpus, width)),
        closing(cpus),
    ]
}

/// A title above a table, if there is a table.
fn titled(title: &str, width: Option<usize>, table: String) -> String {
    if table.is_empty() {
        table
    } else {
        format!(
            "{}\n\n{table}",
            wrap(title, text_width_of(width)).join("\n")
        )
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(String::new, |value| units::fixed(value, decimals))
}

/// A column of the overview: that of the schema, its unit here, what its numbers are divided by, and decimals.
type OverviewColumn = (crate::results::schema::Column, &'static str, f64, usize);

const OVERVIEW: [OverviewColumn; 15] = [
    (schema::CLOCK, "", 1.0, 0),
    (schema::TIMER, "", 1.0, 0),
    (schema::CPU, "", 1.0, 0),
    (schema::ELAPSED, "s", 1e9, 3),
    (schema::ITERATIONS, "", 1.0, 0),
    (schema::MEAN, "ns", 1.0, 1),
    (schema::MIN, "ns", 1.0, 1),
    (schema::P50, "ns", 1.0, 1),
    (schema::P999, "ns", 1.0, 1),
    (schema::MAX, "us", 1e3, 1),
    (schema::JUMPS, "", 1.0, 0),
    (schema::THRESHOLD, "ns", 1.0, 1),
    (schema::JUMP_RATE, "1/s", 1.0, 1),
    (schema::JUMP_TIME, "% of time", 1.0, 3),
    (schema::BLIND_SHARE, "% of time", 0.01, 3),
];

/// Those with words.
const WORDS: [crate::results::schema::Column; 2] = [schema::CLOCK, schema::TIMER];

/// The figures of the overview that people ask for first.
const FIRST: [crate::results::schema::Column; 3] = [schema::P999, schema::MAX, schema::JUMP_RATE];

fn overview(shown: &Shown<'_>) -> String {
    // Wake-ups have no jumps, and watches no timer.
    let has = |column: &OverviewColumn| {
        shown
            .summary
            .iter()
            .any(|row| !row.text(&column.0).is_empty())
    };
    let used: Vec<OverviewColumn> = OVERVIEW.into_iter().filter(has).collect();
    let columns = used.iter().map(|(column, unit, ..)| {
        let heading = Column::number(column.title, *unit);
        match column {
            column if WORDS.contains(column) => Column::text(column.title).setting(),
            column if *column == schema::CPU => heading.setting(),
            column if FIRST.contains(column) => heading.first(),
            _ => heading,
        }
    });
    let mut table = Table::new(columns.collect());
    for row in shown.summary {
        table.row(used.iter().map(|(column, _, by, decimals)| match column {
            column if WORDS.contains(column) => row.text(column),
            _ => number(row.number(column.name).map(|it| it / by), *decimals),
        }));
    }
    table.brief(shown.brief).render(shown.width)
}

/// A table with columns of each CPU.
fn per_cpu(cpus: &[&Value], first: Column, of_cpu: &[&'static str]) -> Table {
    let mut columns = vec![first.setting()];
    for cpu in cpus {
        let of_cpu = of_cpu.iter();
        columns.extend(of_cpu.map(|unit| Column::number(format!("CPU {}", cpu["cpu"]), *unit)));
    }
    Table::new(columns)
}

fn percentile_table(cpus: &[&Value], width: Option<usize>) -> String {
    let Some(first) = cpus.iter().find(|cpu| !cpu["percentiles"].is_null()) else {
        return String::new();
    };
    if !wants(first, Report::Percentiles) && !wants(first, Report::Histogram) {
        return String::new();
    }
    let cycles = first["ticks_are_cycles"] == true;
    let units: &[&str] = if cycles { &["cycles", "ns"] } else { &["ns"] };
    let mut table = per_cpu(cpus, Column::text("difference"), units);
    let mut row = |name: String, path: &str| {
        let mut cells = vec![name];
        for cpu in cpus {
            let ticks = cpu.pointer(path).and_then(Value::as_f64);
            let nanos_per_tick = cpu["nanos_per_tick"].as_f64().unwrap_or(1.0);
            if cycles {
                cells.push(number(ticks, 0));
            }
            cells.push(number(ticks.map(|ticks| ticks * nanos_per_tick), 1));
        }
        table.row(cells);
    };
    if wants(first, Report::Percentiles) {
        const NAMES: [&str; 3] = ["1st", "2nd", "3rd"];
        let lengths = cpus.iter().map(|cpu| list(&cpu["first_ten_ticks"]).len());
        for at in 0..lengths.max().unwrap_or(0) {
            let name = NAMES.get(at).map(|name| (*name).to_owned());
            let name = name.unwrap_or_else(|| format!("{}th", at + 1));
            row(name, &format!("/first_ten_ticks/{at}"));
        }
    }
    row("min".to_owned(), "/percentiles/min_ticks");
    for (at, (percent, _)) in schema::PERCENTILES.iter().enumerate() {
        row(format!("p{percent}"), &format!("/percentiles/ticks/{at}/1"));
    }
    row("max".to_owned(), "/percentiles/max_ticks");
    table.render(width)
}

/// A table of ranks: of what `key` has of each CPU, `cells` shows each.
fn ranks<const N: usize>(
    cpus: &[&Value],
    key: &str,
    units: [&'static str; N],
    cells: impl Fn(&Value) -> [String; N],
    width: Option<usize>,
) -> String {
    let mut table = per_cpu(cpus, Column::number("rank", ""), &units);
    let lengths = cpus.iter().map(|cpu| list(&cpu[key]).len());
    for place in 0..lengths.max().unwrap_or(0) {
        let found = cpus.iter().flat_map(|cpu| match cpu[key].get(place) {
            Some(found) => cells(found),
            None => [const { String::new() }; N],
        });
        table.row(std::iter::once((place + 1).to_string()).chain(found));
    }
    table.render(width)
}

/// A value in nanoseconds, divided.
fn scaled(nanos: &Value, by: f64, decimals: usize) -> String {
    number(nanos.as_f64().map(|nanos| nanos / by), decimals)
}

fn seconds(nanos: &Value) -> String {
    scaled(nanos, 1e9, 6)
}

fn micros(nanos: &Value, decimals: usize) -> String {
    scaled(nanos, 1e3, decimals)
}

fn duration(nanos: &Value) -> String {
    units::duration(nanos.as_f64().unwrap_or(0.0))
}

fn highest_table(cpus: &[&Value], width: Option<usize>) -> String {
    let cells = |peak: &Value| [seconds(&peak["t_ns"]), micros(&peak["jump_ns"], 3)];
    ranks(cpus, "highest", ["at s", "us"], cells, width)
}

fn window_table(cpus: &[&Value], width: Option<usize>) -> String {
    let cells = |sum: &Value| {
        let above = micros(&sum["above_baseline_ns"], 3);
        [seconds(&sum["t_ns"]), text(&sum["jumps"]), above]
    };
    ranks(cpus, "cumulative", ["at s", "jumps", "us"], cells, width)
}

fn cause_table(cpus: &[&Value], width: Option<usize>) -> String {
    let mut table = Table::new(vec![
        Column::number("CPU", "").setting(),
        Column::text("cause").setting(),
        Column::number("jumps", ""),
        Column::number("alone", ""),
        Column::number("total", "us"),
        Column::number("largest", "us"),
    ]);
    for cpu in cpus {
        table.separator();
        let mut show = |cause: String, row: &Value| {
            table.row([
                text(&cpu["cpu"]),
                cause,
                text(&row["count"]),
                text(&row["alone"]),
                micros(&row["total_ns"], 1),
                micros(&row["largest_ns"], 1),
            ]);
        };
        for row in list(&cpu["causes"]) {
            show(text(&row["cause"]), row);
            let several = &cpu["unexplained_at_once"];
            if row["cause"] == several["cause"] {
                show("  of these at once on others".to_owned(), several);
            }
        }
    }
    table.render(width)
}

/// Rows of the trace are shown so far.
const SHOWN_TIMES: usize = 20;

fn trace_table(cpus: &[&Value], width: Option<usize>) -> String {
    if cpus.iter().all(|cpu| cpu["trace"].is_null()) {
        return String::new();
    }
    let mut table = Table::new(vec![
        Column::number("CPU", "").setting(),
        Column::text("who").setting(),
        Column::number("jumps", ""),
        Column::number("total", "us"),
        Column::number("largest", "us"),
        Column::number("in and out", "us"),
    ]);
    for cpu in cpus {
        table.separator();
        for time in list(&cpu["trace"]["times"]).iter().take(SHOWN_TIMES) {
            table.row([
                text(&cpu["cpu"]),
                text(&time["what"]),
                text(&time["jumps"]),
                micros(&time["total_ns"], 1),
                micros(&time["largest_ns"], 1),
                micros(&time["entering_ns"], 1),
            ]);
        }
    }
    table.render(width)
}

fn pattern_table(cpus: &[&Value], width: Option<usize>) -> String {
    let mut table = Table::new(vec![
        Column::number("CPU", "").setting(),
        Column::text("length").setting(),
        Column::number("jumps", ""),
        Column::number("jumps", "1/s"),
        Column::text("period"),
        Column::number("same spacing", "%"),
        Column::number("in clusters", "%"),
        Column::number("at random", "%"),
        Column::number("dispersion", ""),
    ]);
    for cpu in cpus {
        table.separator();
        for pattern in list(&cpu["patterns"]) {
            let mode = &pattern["mode"];
            let period = match mode["share"].as_f64() {
                Some(share) if share >= PERIODIC => duration(&mode["nanos"]),
                Some(_) => "none".to_owned(),
                None => "too few".to_owned(),
            };
            table.row([
                text(&cpu["cpu"]),
                text(&pattern["lengths"]),
                text(&pattern["count"]),
                scaled(&pattern["per_second"], 1.0, 1),
                period,
                scaled(&mode["share"], 0.01, 1),
                scaled(&pattern["following"], 0.01, 1),
                scaled(&pattern["following_at_random"], 0.01, 1),
                scaled(&pattern["dispersion"], 1.0, 2),
            ]);
        }
    }
    table.render(width)
}

/// The lines below the tables.
fn closing(cpus: &[&Value]) -> String {
    let mut lines = Vec::new();
    if let Some(first) = cpus.first().filter(|cpu| !cpu["coincidences"].is_null()) {
        let found = &first["coincidences"];
        lines.push(labelled(
            "at once",
            &format!(
                "{} jumps began within {} of one on another CPU, {} of them of one on every other; {} would do so by chance",
                found["jumps"],
                duration(&first["coincidence_ns"]),
                found["on_all_cpus"],
                scaled(&found["by_chance"], 1.0, 1),
            ),
        ));
        let starts = cpus.iter().map(|cpu| &cpu["start_ns"]);
        let latest = starts.max_by_key(|start| start.as_u64());
        lines.push(labelled(
            "start",
            &format!(
                "the first reading of the last CPU came {} after that of the first",
                duration(latest.unwrap_or(&Value::Null))
            ),
        ));
    }
    for judgement in cpus.iter().flat_map(|cpu| list(&cpu["limits"])) {
        lines.push(format!(
            "limit {} on CPU {}: {} ({})",
            text(&judgement["limit"]),
            judgement["cpu"],
            if judgement["broken"] == true {
                "BROKEN"
            } else {
                "kept"
            },
            duration(&judgement["found_ns"]),
        ));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
