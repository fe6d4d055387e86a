//! What is shown of a watch: a table for each report, the causes, the pattern, and what must be known to read them.

use super::document::{causes, in_nanos};
use crate::bench::clock::config::{Config, Report};
use crate::bench::clock::distribution::percentiles;
use crate::bench::clock::highest::PLACES;
use crate::bench::clock::pattern::{Pattern, patterns};
use crate::bench::clock::result::{ClockResult, CpuResult};
use crate::cli::output::labelled;
use crate::cli::table::{Column, Table};
use crate::results::units;
use crate::stats::resolvable;

/// All that is shown of a result, for a terminal of so many columns.
pub fn text(result: &ClockResult, config: &Config, width: Option<usize>) -> String {
    let mut parts = vec![overview(result, width)];
    if config.wants(Report::Percentiles) || config.wants(Report::Histogram) {
        parts.push(percentile_table(result, config, width));
    }
    if config.wants(Report::Highest) {
        parts.push(titled(
            "largest differences, and when they began",
            highest_table(result, width),
        ));
    }
    if config.wants(Report::Cumulative) {
        let title = format!(
            "highest sum of what jumps have above the baseline, in windows of {} that slide; from rank 2 on, others beside it",
            units::duration(config.window.0 as f64)
        );
        parts.push(titled(&title, window_table(result, width)));
    }
    parts.push(titled("causes of the jumps", cause_table(result, width)));
    parts.push(titled(
        "pattern of the jumps",
        pattern_table(result, config, width),
    ));
    parts.push(closing(result, config));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
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

fn overview(result: &ClockResult, width: Option<usize>) -> String {
    let mut table = Table::new(vec![
        Column::number("CPU", "").setting(),
        Column::number("time", "s"),
        Column::number("iterations", ""),
        Column::number("mean", "ns"),
        Column::number("min", "ns"),
        Column::number("p50", "ns"),
        Column::number("p99.9", "ns"),
        Column::number("max", "us"),
        Column::number("jumps", ""),
        Column::number("above", "ns"),
        Column::number("jumps", "1/s"),
        Column::number("jumps", "% of time"),
        Column::number("not watched", "% of time"),
    ]);
    for cpu in &result.cpus {
        let nanos = |ticks: Option<u64>| ticks.map(|ticks| result.nanos_f64(ticks as f64));
        let distribution = cpu.distribution.as_ref();
        let seconds = result.nanos(cpu.elapsed()).0 as f64 / 1e9;
        let jumped = cpu.jumped();
        let share = |ticks: u64| ticks as f64 / cpu.elapsed().max(1) as f64 * 100.0;
        let at = |percent| nanos(distribution.and_then(|it| it.percentile(percent)));
        table.row([
            cpu.cpu.to_string(),
            units::fixed(seconds, 3),
            cpu.readings.to_string(),
            number(cpu.mean().map(|mean| result.nanos_f64(mean)), 1),
            number(nanos(distribution.and_then(|it| it.min())), 1),
            number(at(50.0), 1),
            number(at(99.9), 1),
            number(Some(result.nanos_f64(cpu.largest as f64) / 1e3), 1),
            jumped.count.to_string(),
            number(nanos(Some(cpu.threshold)), 1),
            number((seconds > 0.0).then(|| jumped.count as f64 / seconds), 1),
            units::fixed(share(jumped.total), 3),
            units::fixed(share(cpu.blind), 3),
        ]);
    }
    table.render(width)
}

fn per_cpu_columns(result: &ClockResult, first: Column, of_cpu: &[(&str, bool)]) -> Vec<Column> {
    let mut columns = vec![first.setting()];
    for cpu in &result.cpus {
        for (unit, _) in of_cpu {
            columns.push(Column::number(format!("CPU {}", cpu.cpu), *unit));
        }
    }
    columns
}

fn percentile_table(result: &ClockResult, config: &Config, width: Option<usize>) -> String {
    let counted: Vec<&CpuResult> = result
        .cpus
        .iter()
        .filter(|cpu| cpu.distribution.is_some())
        .collect();
    if counted.is_empty() {
        return String::new();
    }
    let cycles = result.clock.is_tsc();
    let units: &[(&str, bool)] = if cycles {
        &[("cycles", true), ("ns", false)]
    } else {
        &[("ns", false)]
    };
    let mut table = Table::new(per_cpu_columns(result, Column::text("difference"), units));
    let mut row = |name: String, value: &dyn Fn(&CpuResult) -> Option<u64>| {
        let mut cells = vec![name];
        for cpu in &counted {
            let ticks = value(cpu);
            if cycles {
                cells.push(ticks.map_or_else(String::new, |ticks| ticks.to_string()));
            }
            cells.push(number(ticks.map(|ticks| result.nanos_f64(ticks as f64)), 1));
        }
        table.row(cells);
    };
    if config.wants(Report::Percentiles) {
        let most = counted.iter().map(|cpu| cpu.first.len()).max().unwrap_or(0);
        for at in 0..most {
            const NAMES: [&str; 3] = ["1st", "2nd", "3rd"];
            let name = NAMES
                .get(at)
                .map_or_else(|| format!("{}th", at + 1), |name| (*name).to_owned());
            row(name, &|cpu| cpu.first.get(at).copied());
        }
    }
    row("min".to_owned(), &|cpu| cpu.distribution.as_ref()?.min());
    for percent in percentiles() {
        row(format!("p{percent}"), &|cpu| {
            cpu.distribution.as_ref()?.percentile(percent)
        });
    }
    row("max".to_owned(), &|cpu| cpu.distribution.as_ref()?.max());
    table.render(width)
}

fn highest_table(result: &ClockResult, width: Option<usize>) -> String {
    let columns = [("at s", true), ("us", false)];
    let mut table = Table::new(per_cpu_columns(
        result,
        Column::number("rank", ""),
        &columns,
    ));
    for place in 0..PLACES {
        if result.cpus.iter().all(|cpu| cpu.highest.len() <= place) {
            break;
        }
        let mut cells = vec![(place + 1).to_string()];
        for cpu in &result.cpus {
            let peak = cpu.highest.get(place);
            let at = peak.map(|peak| result.nanos(peak.begin).0 as f64 / 1e9);
            let length = peak.map(|peak| result.nanos_f64(peak.length as f64) / 1e3);
            cells.extend([number(at, 6), number(length, 3)]);
        }
        table.row(cells);
    }
    table.render(width)
}

fn window_table(result: &ClockResult, width: Option<usize>) -> String {
    let columns = [("at s", true), ("jumps", false), ("us", false)];
    let mut table = Table::new(per_cpu_columns(
        result,
        Column::number("rank", ""),
        &columns,
    ));
    for place in 0..PLACES {
        if result.cpus.iter().all(|cpu| cpu.windows.len() <= place) {
            break;
        }
        let mut cells = vec![(place + 1).to_string()];
        for cpu in &result.cpus {
            let sum = cpu.windows.get(place);
            cells.extend([
                number(sum.map(|sum| result.nanos(sum.begin).0 as f64 / 1e9), 6),
                sum.map_or_else(String::new, |sum| sum.jumps.to_string()),
                number(sum.map(|sum| result.nanos_f64(sum.extra as f64) / 1e3), 3),
            ]);
        }
        table.row(cells);
    }
    table.render(width)
}

fn cause_table(result: &ClockResult, width: Option<usize>) -> String {
    let mut table = Table::new(vec![
        Column::number("CPU", "").setting(),
        Column::text("cause").setting(),
        Column::number("jumps", ""),
        Column::number("alone", ""),
        Column::number("total", "us"),
        Column::number("largest", "us"),
    ]);
    for cpu in &result.cpus {
        table.separator();
        for row in causes(result, cpu) {
            table.row([
                cpu.cpu.to_string(),
                row.cause.clone(),
                row.count.to_string(),
                row.alone.to_string(),
                units::fixed(row.total_ns as f64 / 1e3, 1),
                units::fixed(row.largest_ns as f64 / 1e3, 1),
            ]);
            if row.cause == "unexplained" && result.cpus.len() > 1 {
                let several = cpu.unexplained_on_several();
                let us = |ticks| units::fixed(result.nanos(ticks).0 as f64 / 1e3, 1);
                table.row([
                    cpu.cpu.to_string(),
                    "  of these at once on others".to_owned(),
                    several.count.to_string(),
                    several.alone.to_string(),
                    us(several.total),
                    us(several.largest),
                ]);
            }
        }
    }
    table.render(width)
}

fn pattern_table(result: &ClockResult, config: &Config, width: Option<usize>) -> String {
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
    for cpu in &result.cpus {
        table.separator();
        for pattern in of_cpu(result, cpu, config) {
            let percent = |share: Option<f64>| number(share.map(|share| share * 100.0), 1);
            let period = match pattern.mode {
                Some(mode) if mode.is_period() => units::duration(mode.nanos),
                Some(_) => "none".to_owned(),
                None => "too few".to_owned(),
            };
            table.row([
                cpu.cpu.to_string(),
                pattern.lengths.to_owned(),
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

fn of_cpu(result: &ClockResult, cpu: &CpuResult, config: &Config) -> Vec<Pattern> {
    let elapsed = result.nanos(cpu.end).0;
    patterns(in_nanos(result, cpu), elapsed, config.window.0)
}

/// The lines below the tables.
fn closing(result: &ClockResult, config: &Config) -> String {
    let mut lines = Vec::new();
    if let Some(found) = result.coincidences {
        lines.push(labelled(
            "at once",
            &format!(
                "{} jumps began within {} of one on another CPU, {} of them of one on every other; {} would do so by chance",
                found.jumps,
                units::duration(config.coincidence.0 as f64),
                found.on_all_cpus,
                units::fixed(found.by_chance, 1),
            ),
        ));
    }
    if result.cpus.len() > 1 {
        let latest = result.cpus.iter().map(|cpu| cpu.start).max().unwrap_or(0);
        lines.push(labelled(
            "start",
            &format!(
                "the first reading of the last CPU came {} after that of the first",
                units::duration(result.nanos_f64(latest as f64))
            ),
        ));
    }
    for judgement in &result.judgements {
        lines.push(format!(
            "limit {} on CPU {}: {} ({})",
            judgement.limit,
            judgement.cpu,
            if judgement.broken { "BROKEN" } else { "kept" },
            units::duration(judgement.found_ns),
        ));
    }
    for note in notes(result) {
        lines.push(labelled("note", &note));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn notes(result: &ClockResult) -> Vec<String> {
    let mut notes = result.notes.clone();
    let mut missing: Vec<String> = Vec::new();
    for cpu in &result.cpus {
        for (name, reason) in cpu.available.missing() {
            let text = format!("{name} ({reason})");
            // On bare metal there is no steal time to miss.
            if name != "steal time" && !missing.contains(&text) && missing.len() < 3 {
                missing.push(text);
            }
        }
    }
    if !missing.is_empty() {
        notes.push(format!(
            "not readable here, so no cause can be found in them: {}",
            missing.join("; ")
        ));
    }
    let not_sampled: u64 = result.cpus.iter().map(|cpu| cpu.not_sampled).sum();
    if not_sampled > 0 {
        notes.push(format!(
            "{not_sampled} jumps are not sampled: reading counters may take a tenth of the time, of that a hundredth for \
             jumps below 1 us"
        ));
    }
    for cpu in &result.cpus {
        if cpu.windows_merged {
            notes.push(format!(
                "CPU {}: there were more jumps in a window than there is room for: the sums over windows are lower bounds \
                 (a shorter --window has room for all)",
                cpu.cpu
            ));
        }
        if cpu.jumps.samples_given_up() > 0 {
            notes.push(format!(
                "CPU {}: {} jumps up to {} have their cause in jumps.csv, but not its counters, which are kept for the longest",
                cpu.cpu,
                cpu.jumps.samples_given_up(),
                units::duration(result.nanos_f64(cpu.jumps.samples_kept_above() as f64)),
            ));
        }
        if cpu.jumps.given_up() > 0 {
            notes.push(format!(
                "CPU {}: jumps.csv, the pattern and what happened at once have all jumps above {}; {} others are only counted \
                 (--keep-jumps)",
                cpu.cpu,
                units::duration(result.nanos_f64(cpu.jumps.kept_above() as f64)),
                cpu.jumps.given_up()
            ));
        }
        if cpu.backward.steps > 0 {
            notes.push(format!(
                "CPU {}: the clock was set back {} times, by {} at the most; these are no jumps, and are taken out of the times",
                cpu.cpu,
                cpu.backward.steps,
                units::duration(result.nanos_f64(cpu.backward.largest as f64))
            ));
        }
    }
    let fewest = result
        .cpus
        .iter()
        .map(|cpu| cpu.readings)
        .min()
        .unwrap_or(0);
    if let Some(percent) = percentiles().find(|&percent| !resolvable(percent, fewest)) {
        notes.push(format!(
            "with {fewest} iterations p{percent} is little else than the maximum"
        ));
    }
    notes
}

/// A line for each limit that is broken.
pub fn broken_limits(result: &ClockResult) -> Vec<String> {
    let broken = result
        .judgements
        .iter()
        .filter(|judgement| judgement.broken);
    broken
        .map(|judgement| {
            format!(
                "--fail-above {} is broken on CPU {}: {}",
                judgement.limit,
                judgement.cpu,
                units::duration(judgement.found_ns)
            )
        })
        .collect()
}
