//! What is shown of a watch: a row for each CPU, and of a single round a table for each report, the causes, the pattern, and
//! what happened on several CPUs at once.

use serde_json::Value;

use crate::bench::clock::config::Report;
use crate::bench::clock::details::{CauseRow, Details};
use crate::bench::clock::highest::PLACES;
use crate::cli::driver::{Shown, View};
use crate::cli::output::labelled;
use crate::cli::table::{Column, Table};
use crate::results::schema::{ROUNDS, clock as schema};
use crate::results::{Record, units};

/// How the results are shown.
pub const VIEW: View = View {
    tables,
    json: document,
};

fn tables(shown: &Shown<'_>) -> String {
    let mut parts = vec![overview(shown.summary, shown.width)];
    let rounds = |row: &Record| row.number(ROUNDS.name).unwrap_or(1.0);
    if shown.summary.iter().all(|row| rounds(row) <= 1.0) {
        parts.extend(of_one_round(&read(shown.details), shown.width));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Of each CPU what its last round told.
fn document(shown: &Shown<'_>) -> Value {
    let cpus: Vec<&Value> = shown.details.iter().map(|(_, details)| details).collect();
    serde_json::json!({ "cpus": cpus })
}

fn read(details: &[(String, Value)]) -> Vec<Details> {
    let details = details.iter();
    let read = details.filter_map(|(_, one)| serde_json::from_value(one.clone()).ok());
    read.collect()
}

fn of_one_round(cpus: &[Details], width: Option<usize>) -> Vec<String> {
    let Some(first) = cpus.first() else {
        return Vec::new();
    };
    let mut parts = vec![percentile_table(cpus, width)];
    if first.wants(Report::Highest) {
        parts.push(titled(
            "largest differences, and when they began",
            highest_table(cpus, width),
        ));
    }
    if first.wants(Report::Cumulative) {
        let title = format!(
            "highest sum of what jumps have above the baseline, in windows of {} that slide; from rank 2 on, others beside it",
            units::duration(first.window_ns as f64)
        );
        parts.push(titled(&title, window_table(cpus, width)));
    }
    parts.push(titled("causes of the jumps", cause_table(cpus, width)));
    parts.push(titled("pattern of the jumps", pattern_table(cpus, width)));
    parts.push(closing(cpus));
    parts
}

/// A title above a table, if there is a table.
fn titled(title: &str, table: String) -> String {
    if table.is_empty() {
        table
    } else {
        format!("{title}\n\n{table}")
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(String::new, |value| units::fixed(value, decimals))
}

/// A column of the overview: that of the schema, its unit here, what its numbers are divided by, and decimals.
type OverviewColumn = (crate::results::schema::Column, &'static str, f64, usize);

const OVERVIEW: [OverviewColumn; 13] = [
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

fn overview(summary: &[Record], width: Option<usize>) -> String {
    let columns = OVERVIEW.iter().enumerate().map(|(at, (column, unit, ..))| {
        let shown = Column::number(column.title, *unit);
        if at == 0 { shown.setting() } else { shown }
    });
    let mut table = Table::new(columns.collect());
    for row in summary {
        table.row(OVERVIEW.map(|(column, _, by, decimals)| {
            number(row.number(column.name).map(|it| it / by), decimals)
        }));
    }
    table.render(width)
}

/// A table with columns of each CPU.
fn per_cpu(cpus: &[Details], first: Column, of_cpu: &[&'static str]) -> Table {
    let mut columns = vec![first.setting()];
    for cpu in cpus {
        let of_cpu = of_cpu.iter();
        columns.extend(of_cpu.map(|unit| Column::number(format!("CPU {}", cpu.cpu), *unit)));
    }
    Table::new(columns)
}

fn percentile_table(cpus: &[Details], width: Option<usize>) -> String {
    let counted: Vec<&Details> = cpus
        .iter()
        .filter(|cpu| cpu.percentiles.is_some())
        .collect();
    let Some(first) = counted.first() else {
        return String::new();
    };
    let wanted = |report| first.wants(report);
    if !wanted(Report::Percentiles) && !wanted(Report::Histogram) {
        return String::new();
    }
    let cycles = first.ticks_are_cycles;
    let units: &[&str] = if cycles { &["cycles", "ns"] } else { &["ns"] };
    let mut table = per_cpu(cpus, Column::text("difference"), units);
    let mut row = |name: String, value: &dyn Fn(&Details) -> Option<u64>| {
        let mut cells = vec![name];
        for cpu in &counted {
            let ticks = value(cpu);
            if cycles {
                cells.push(ticks.map_or_else(String::new, |ticks| ticks.to_string()));
            }
            cells.push(number(
                ticks.map(|ticks| ticks as f64 * cpu.nanos_per_tick),
                1,
            ));
        }
        table.row(cells);
    };
    if wanted(Report::Percentiles) {
        let lengths = counted.iter().map(|cpu| cpu.first_ten_ticks.len());
        for at in 0..lengths.max().unwrap_or(0) {
            const NAMES: [&str; 3] = ["1st", "2nd", "3rd"];
            let name = NAMES.get(at).map(|name| (*name).to_owned());
            let name = name.unwrap_or_else(|| format!("{}th", at + 1));
            row(name, &|cpu| cpu.first_ten_ticks.get(at).copied());
        }
    }
    row("min".to_owned(), &|cpu| cpu.percentiles.as_ref()?.min_ticks);
    for (at, (percent, _)) in schema::PERCENTILES.iter().enumerate() {
        row(format!("p{percent}"), &|cpu| {
            cpu.percentiles.as_ref()?.ticks.get(at)?.1
        });
    }
    row("max".to_owned(), &|cpu| cpu.percentiles.as_ref()?.max_ticks);
    table.render(width)
}

/// A table of ranks: `cells` gives those of a CPU at a place, or nothing from its end on.
fn ranks<const N: usize>(
    cpus: &[Details],
    units: [&'static str; N],
    cells: impl Fn(&Details, usize) -> Option<[String; N]>,
    width: Option<usize>,
) -> String {
    let mut table = per_cpu(cpus, Column::number("rank", ""), &units);
    for place in 0..PLACES {
        let found: Vec<_> = cpus.iter().map(|cpu| cells(cpu, place)).collect();
        if found.iter().all(Option::is_none) {
            break;
        }
        let none = || [const { String::new() }; N];
        let found = found
            .into_iter()
            .flat_map(|cells| cells.unwrap_or_else(none));
        table.row(std::iter::once((place + 1).to_string()).chain(found));
    }
    table.render(width)
}

fn seconds(nanos: u64) -> String {
    units::fixed(nanos as f64 / 1e9, 6)
}

fn micros(nanos: u64, decimals: usize) -> String {
    units::fixed(nanos as f64 / 1e3, decimals)
}

fn highest_table(cpus: &[Details], width: Option<usize>) -> String {
    let cells = |cpu: &Details, place: usize| {
        let peak = cpu.highest.get(place)?;
        Some([seconds(peak.t_ns), micros(peak.jump_ns, 3)])
    };
    ranks(cpus, ["at s", "us"], cells, width)
}

fn window_table(cpus: &[Details], width: Option<usize>) -> String {
    let cells = |cpu: &Details, place: usize| {
        let sum = cpu.cumulative.get(place)?;
        let above = micros(sum.above_baseline_ns, 3);
        Some([seconds(sum.t_ns), sum.jumps.to_string(), above])
    };
    ranks(cpus, ["at s", "jumps", "us"], cells, width)
}

fn cause_table(cpus: &[Details], width: Option<usize>) -> String {
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
        let mut show = |cause: &str, row: &CauseRow| {
            table.row([
                cpu.cpu.to_string(),
                cause.to_owned(),
                row.count.to_string(),
                row.alone.to_string(),
                micros(row.total_ns, 1),
                micros(row.largest_ns, 1),
            ]);
        };
        for row in &cpu.causes {
            show(&row.cause, row);
            if let Some(several) = &cpu.unexplained_at_once
                && row.cause == several.cause
            {
                show("  of these at once on others", several);
            }
        }
    }
    table.render(width)
}

fn pattern_table(cpus: &[Details], width: Option<usize>) -> String {
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
        for pattern in &cpu.patterns {
            let percent = |share: Option<f64>| number(share.map(|share| share * 100.0), 1);
            let period = match pattern.mode {
                Some(mode) if mode.is_period() => units::duration(mode.nanos),
                Some(_) => "none".to_owned(),
                None => "too few".to_owned(),
            };
            table.row([
                cpu.cpu.to_string(),
                pattern.lengths.clone(),
                pattern.count.to_string(),
                units::fixed(pattern.per_second, 1),
                period,
                percent(pattern.mode.map(|mode| mode.share)),
                percent(pattern.following),
                percent(pattern.following_at_random),
                number(pattern.dispersion, 2),
            ]);
        }
    }
    table.render(width)
}

/// The lines below the tables.
fn closing(cpus: &[Details]) -> String {
    let mut lines = Vec::new();
    if let Some((first, found)) = cpus.first().and_then(|cpu| Some((cpu, cpu.coincidences?))) {
        lines.push(labelled(
            "at once",
            &format!(
                "{} jumps began within {} of one on another CPU, {} of them of one on every other; {} would do so by chance",
                found.jumps,
                units::duration(first.coincidence_ns as f64),
                found.on_all_cpus,
                units::fixed(found.by_chance, 1),
            ),
        ));
        let latest = cpus.iter().map(|cpu| cpu.start_ns).max().unwrap_or(0);
        lines.push(labelled(
            "start",
            &format!(
                "the first reading of the last CPU came {} after that of the first",
                units::duration(latest as f64)
            ),
        ));
    }
    for judgement in cpus.iter().flat_map(|cpu| &cpu.limits) {
        lines.push(format!(
            "limit {} on CPU {}: {} ({})",
            judgement.limit,
            judgement.cpu,
            if judgement.broken { "BROKEN" } else { "kept" },
            units::duration(judgement.found_ns),
        ));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
