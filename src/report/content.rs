//! What of a run stands on the page: facts and tables, by columns of its summary and places in its settings.

use serde_json::Value;

use super::varying;
use crate::bench::presentation_of;
use crate::page::Sheet;
use crate::results::curves::{self, SHARES_OF_PEAK};
use crate::results::read::{Point, Row, Run, Table};
use crate::results::schema::{
    Column, ColumnKind, CrossRowFigure, Schema, clock, hca, memory, queue,
};
use crate::results::units;
use crate::sorting::sort_by;
use crate::terminal::output::heading_of;

/// Columns with what the instrument itself costs.
const INSTRUMENT: [Column; 11] = [
    hca::FLOOR_P50,
    hca::FLOOR_P99,
    hca::FLOOR_BACK_P50,
    hca::CLOCK_OFFSET,
    hca::CLOCK_OFFSET_BOUND,
    hca::STAMP_COST,
    queue::SENDER_STAMP,
    queue::RECEIVER_STAMP,
    hca::RESOLUTION,
    clock::BASELINE,
    clock::BLIND_SHARE,
];

/// What a column of the summary is called, and its unit; of several distributions all but the first say which they are
/// of.
fn heading(schema: &Schema, name: &str) -> (String, &'static str) {
    let (words, unit) = heading_of(name);
    let mut columns = schema.summary();
    // Bounds have the title of what they bound.
    columns.retain(|(found, column)| found == column.name);
    let titled = |title: &str| columns.iter().filter(|(_, it)| it.title == title).count();
    let column = columns.iter().find(|(found, _)| found == name);
    let title = column.map(|(_, column)| column.title);
    let title = title.filter(|title| titled(title) == 1 && *title != name);
    (title.map_or(words, str::to_owned), unit)
}

/// `HCA latency, 2026-11-20 12:20 UTC`.
pub(crate) fn title(run: &Run) -> String {
    let what = presentation_of(run.schema).title;
    match run.started_at() {
        Some(started) => format!("{what}, {}", in_words(started)),
        None => what.to_owned(),
    }
}

/// `2026-11-20T12:20:04Z` for people.
pub(super) fn in_words(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(day), Some(time)) if rfc3339.ends_with('Z') => format!("{day} {time} UTC"),
        _ => rfc3339.to_owned(),
    }
}

/// What was measured, where and when.
pub(crate) fn facts(run: &Run) -> Vec<(String, String)> {
    let document = run.document();
    let mut facts = Vec::new();
    let mut add = |label: &str, text: Option<String>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            facts.push((label.to_owned(), text));
        }
    };
    let machine = &document["machine"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let machine = [
        text(&machine["hostname"]),
        text(&machine["processor"]["name"]),
        text(&machine["kernel_release"]).map(|release| format!("Linux {release}")),
        text(&machine["distribution"]),
    ];
    let machine: Vec<String> = machine.into_iter().flatten().collect();
    add("Machine", Some(machine.join(" | ")));
    for (label, end) in [("Sender", "sender"), ("Receiver", "receiver")] {
        add(label, port(&document["obtained"]["devices"][end]));
    }
    add("CPUs", cpus(run));
    let lags = [&hca::recv_lag::ALL, &hca::comp_lag::ALL];
    for (label, columns) in ADAPTER_TO_OURS.into_iter().zip(lags) {
        add(label, lag(run, columns));
    }
    add("Measured", run.started_at().map(in_words));
    let version = run.version();
    add("By", version.map(|version| format!("hcabench {version}")));
    let folder = run.path.canonicalize().unwrap_or_else(|_| run.path.clone());
    let name = folder.file_name().map(|name| name.to_string_lossy());
    add("Folder", name.map(String::from));
    add("Rounds", rounds(document));
    let words = document["command_line"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    add("Command", Some(words.join(" ")));
    facts
}

/// How many rounds there are, and how their order can be had again.
fn rounds(document: &Value) -> Option<String> {
    let number = |name: &str| document["rounds"][name].as_u64();
    let (planned, done) = (number("planned")?, number("done")?);
    let mut text = match done == planned {
        true => planned.to_string(),
        false => format!("{done} of {planned}"),
    };
    if planned > 1 {
        text += ", each in a separate process; figures are medians over them";
    }
    if let Some(seed) = number("seed") {
        text += &format!("; points in an order shuffled from the seed {seed}");
    }
    Some(text)
}

/// `rxe0 port 1 at 10.77.0.1, Ethernet, MTU 1024 B, 10 Gbit/s, firmware 0.0.0`.
fn port(end: &Value) -> Option<String> {
    let device = &end["device"];
    let number = &end["port"];
    let mut text = format!("{} port {number}", device["name"].as_str()?);
    if let Some(address) = end["address"].as_str() {
        text += &format!(" at {address}");
    }
    let ports = device["ports"].as_array();
    if let Some(port) = ports.and_then(|ports| ports.iter().find(|port| port["number"] == *number))
    {
        let layer = port["link_layer"].as_str().unwrap_or("link layer unknown");
        text += &format!(
            ", {layer}, MTU {} B, {} Gbit/s",
            port["mtu"], port["gigabits_per_second"]
        );
    }
    if let Some(firmware) = device["firmware"].as_str().filter(|text| !text.is_empty()) {
        text += &format!(", firmware {firmware}");
    }
    if let Some(module) = device["driver"]["module"].as_str() {
        text += &format!(", driver of its slot {module}");
        if let Some(version) = device["driver"]["version"].as_str() {
            text += &format!(" {version}");
        }
    }
    Some(text)
}

/// On which CPUs the messages were sent and received.
fn cpus(run: &Run) -> Option<String> {
    let points = run.points.iter().map(|point| &point.document);
    let mut all = std::iter::once(run.document()).chain(points);
    let placement = all.find_map(|document| document.pointer("/obtained/placement"))?;
    let (sender, receiver) = (&placement["sender"], &placement["receiver"]);
    let completions = match placement["completion"].as_u64() {
        Some(cpu) => format!("completions on {cpu}"),
        None => "the sender takes the completions".to_owned(),
    };
    let known = sender.is_u64() && receiver.is_u64();
    known.then(|| format!("{sender} to {receiver}, {completions}"))
}

/// What lies between the adapters' stamps of completions and ours.
pub(crate) const ADAPTER_TO_OURS: [&str; 2] = ["Adapter to t_recv", "Adapter to t_comp"];

/// That in words, with the least and the greatest of several points; `None` without such stamps. The columns begin with
/// least, p50, p90, p99, p99.9, greatest, error.
fn lag(run: &Run, columns: &[Column]) -> Option<String> {
    let figure = |at: usize| {
        let all = run
            .points
            .iter()
            .filter_map(|point| point.number(&columns[at]));
        let [least, most] = [
            all.clone().min_by(f64::total_cmp)?,
            all.max_by(f64::total_cmp)?,
        ];
        Some(match least == most {
            true => units::duration(least),
            false => format!("{} to {}", units::duration(least), units::duration(most)),
        })
    };
    let points = run.points.iter();
    let points = points.filter(|point| point.number(&columns[1]).is_some());
    let of = match points.count() {
        1 => String::new(),
        several => format!(", in {several} points"),
    };
    Some(format!(
        "p50 {}, p99 {}, p99.9 {}, at most {}, by stamps that may be off by {}{of}",
        figure(1)?,
        figure(3)?,
        figure(4)?,
        figure(5)?,
        figure(6)?,
    ))
}

/// All points: settings that vary, and the chosen columns that are not empty. With its title.
pub(crate) fn points(run: &Run) -> (String, Sheet) {
    let title = match run.points.len() {
        1 => "The point in full".to_owned(),
        points => format!("All {points} points in full"),
    };
    fn cell<'a>(point: &'a Point, name: &str) -> &'a str {
        (point.text(name).or_else(|| point.setting(name))).unwrap_or_default()
    }
    let is_told = |name: &&str| {
        let mut texts = run.points.iter().map(|point| cell(point, name));
        texts.any(|text| !text.is_empty() && (*name != hca::CORRUPTED.name || text != "0"))
    };
    let mut names: Vec<&str> = varying(run).into_iter().map(|(name, _)| name).collect();
    let mut chosen = presentation_of(run.schema).columns.concat();
    if chosen.is_empty() {
        chosen = run.schema.headline.to_vec();
    }
    names.extend(chosen.iter().map(|column| column.name).filter(is_told));
    let mut sheet = sheet(run.schema, &names, &run.points, cell);
    if run.points.iter().any(|point| point.incomplete.is_some()) {
        sheet.columns.push(("mark".to_owned(), ""));
        for (row, point) in sheet.rows.iter_mut().zip(&run.points) {
            let mark = point.incomplete.as_ref().map_or("", |_| "incomplete");
            row.push(mark.to_owned());
        }
    }
    (title, sheet)
}

/// The curves of a memory, a row each: latency without load, the largest bandwidth, the latencies before it, and what
/// to know before they are believed. `None` where points make no curves.
pub(super) fn curves(run: &Run) -> Option<Sheet> {
    if run.schema.across != Some(CrossRowFigure::Curves) {
        return None;
    }
    let all = run.curves();
    // Along a curve the pause varies, and without generators there are none of their CPUs.
    let along = [memory::PAUSE, memory::GENERATORS, memory::GENERATOR_COUNT];
    let is_along = |name: &str| along.iter().any(|column| column.name == name);
    let setting = |curve: &curves::Curve, name: &str| {
        // The point of the most load has all settings.
        let last = curve.loads.last().map(|load| &run.points[load.row]);
        let text = last.and_then(|point| point.setting(name));
        text.unwrap_or_default().to_owned()
    };
    let varying = super::settings_of(run).into_iter().filter_map(|(name, _)| {
        let mut texts = all.iter().map(|curve| setting(curve, name));
        let first = texts.next()?;
        let varies = texts.any(|text| text != first);
        (varies && (!is_along(name) || name == memory::GENERATORS.name)).then_some(name)
    });
    let mut names: Vec<&str> = varying.collect();
    if !names.contains(&memory::READ_SHARE.name) {
        names.insert(0, memory::READ_SHARE.name);
    }
    let mut columns: Vec<(String, &'static str)> = (names.iter())
        .map(|name| heading(run.schema, name))
        .collect();
    let per_cent = SHARES_OF_PEAK.map(|percent| format!("at {percent} % of it"));
    let figures = |curve: &curves::Curve| {
        let (bandwidth, latency) = curve.peak().unzip();
        let at_shares = SHARES_OF_PEAK.map(|percent| curve.latency_at(percent / 100.0));
        let mut figures = vec![Some(curve.unloaded().latency_ns), bandwidth];
        figures.extend(at_shares);
        figures.push(latency);
        figures
    };
    let mut titles = vec!["unloaded", "largest bandwidth"];
    titles.extend(per_cent.iter().map(String::as_str));
    titles.push("at it");
    let mut rows: Vec<Vec<String>> = all
        .iter()
        .map(|curve| names.iter().map(|name| setting(curve, name)).collect())
        .collect();
    for (place, title) in titles.into_iter().enumerate() {
        let unit = if place == 1 { "MB/s" } else { "ns" };
        let numbers = all.iter().map(|curve| figures(curve)[place]);
        let numbers: Vec<Option<f64>> = numbers.collect();
        let told: Vec<f64> = numbers.iter().copied().flatten().collect();
        let (unit, size) = units::fitting(unit, &told);
        columns.push((title.to_owned(), unit));
        for (row, number) in rows.iter_mut().zip(&numbers) {
            row.push(number.map_or_else(String::new, |number| digits(number / size)));
        }
    }
    columns.extend([without_unit("points"), without_unit("marks")]);
    for (row, curve) in rows.iter_mut().zip(&all) {
        row.extend([curve.loads.len().to_string(), marks_of(curve)]);
    }
    Some(Sheet { columns, rows })
}

/// Four significant digits.
pub(super) fn digits(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        number => units::significant(number),
    }
}

/// What speaks against points of a curve, and how many of them have it.
fn marks_of(curve: &curves::Curve) -> String {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for mark in curve
        .loads
        .iter()
        .flat_map(|load| load.marks.split_whitespace())
    {
        match found.iter_mut().find(|(known, _)| *known == mark) {
            Some((_, count)) => *count += 1,
            None => found.push((mark, 1)),
        }
    }
    let all = curve.loads.len();
    let words = found.into_iter().map(|(mark, count)| match count == all {
        true => mark.to_owned(),
        false => format!("{mark} ({count} of {all})"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Columns of the summary, and a row for each of `of`: figures with four digits in the unit that fits the column.
fn sheet<T>(
    schema: &Schema,
    names: &[&str],
    of: &[T],
    cell: for<'a> fn(&'a T, &str) -> &'a str,
) -> Sheet {
    let row = |of: &T| names.iter().map(|name| cell(of, name).to_owned()).collect();
    let mut sheet = Sheet {
        columns: names.iter().map(|name| heading(schema, name)).collect(),
        rows: of.iter().map(row).collect(),
    };
    let summary = schema.summary();
    let kind = |name: &str| {
        let column = summary.iter().find(|(found, _)| found == name);
        column.map(|(_, column)| column.kind)
    };
    let kinds: Vec<Option<ColumnKind>> = names.iter().map(|name| kind(name)).collect();
    let numbers = |sheet: &Sheet, place: usize| -> Vec<f64> {
        let cells = sheet.rows.iter().map(|row| &row[place]);
        cells.filter_map(|cell| cell.parse().ok()).collect()
    };
    // Times that were measured have one unit, so that they can be compared along a row.
    let is_time = |place: &usize| {
        kinds[*place] == Some(ColumnKind::Measured) && sheet.columns[*place].1 == "ns"
    };
    let times = (0..names.len()).filter(is_time);
    let times: Vec<f64> = times.flat_map(|place| numbers(&sheet, place)).collect();
    let of_times = units::fitting("ns", &times);
    for (place, kind) in kinds.iter().enumerate() {
        let (unit, own) = (sheet.columns[place].1, numbers(&sheet, place));
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        let (unit, size) = match kind {
            Some(ColumnKind::Measured) if unit == "ns" && least < 1e3 * of_times.1 => of_times,
            Some(ColumnKind::Measured | ColumnKind::Setting) => units::fitting(unit, &own),
            _ => continue,
        };
        sheet.columns[place].1 = unit;
        for row in &mut sheet.rows {
            if let Ok(number) = row[place].parse::<f64>() {
                row[place] = match kind {
                    // Values that differ stay different.
                    Some(ColumnKind::Setting) => (number / size).to_string(),
                    _ => digits(number / size),
                };
            }
        }
    }
    sheet
}

pub(super) fn without_unit(title: &str) -> (String, &'static str) {
    (title.to_owned(), "")
}

/// What the instrument itself costs: the least and the most over all points.
pub(crate) fn instrument(run: &Run) -> Sheet {
    let mut sheet = Sheet {
        columns: ["what", "unit", "least", "most"].map(without_unit).into(),
        rows: Vec::new(),
    };
    for figure in INSTRUMENT {
        let points = run.points.iter();
        let mut found: Vec<f64> = points.filter_map(|point| point.number(&figure)).collect();
        sort_by(&mut found, f64::total_cmp);
        if let (Some(least), Some(most)) = (found.first(), found.last()) {
            let [least, most] = [digits(*least), digits(*most)];
            let row = [figure.meaning, figure.unit(), &least, &most];
            sheet.rows.push(row.map(str::to_owned).to_vec());
        }
    }
    sheet
}

/// All of the summary, what was left out, and the machine.
pub(crate) fn more(run: &Run) -> Vec<(String, Sheet)> {
    fn cell<'a>(row: &'a Row, name: &str) -> &'a str {
        row.text(name).unwrap_or_default()
    }
    let of_table = |table: &Table| {
        // What is empty in all rows tells nothing.
        let is_told = |name: &&str| table.rows.iter().any(|row| !cell(row, name).is_empty());
        let names = table.columns.iter().map(String::as_str).filter(is_told);
        let names: Vec<&str> = names.collect();
        sheet(run.schema, &names, &table.rows, cell)
    };
    let left_out = &run.left_out;
    let (points, left) = (run.summary.rows.len(), left_out.rows.len());
    let all = format!("All columns of the summary ({points} points)");
    let why = format!("Points that were left out, and why ({left})");
    let described = "The machine, as it describes itself".to_owned();
    vec![
        (all, of_table(&run.summary)),
        (why, of_table(left_out)),
        (described, machine(run)),
    ]
}

fn machine(run: &Run) -> Sheet {
    fn walk(place: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
        let below = |name: &str| match (place, name.replace('_', " ")) {
            ("", name) => name,
            (place, name) => format!("{place}, {name}"),
        };
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    walk(&below(name), value, rows);
                }
            }
            Value::Null => {}
            Value::Array(elements) if elements.iter().any(|element| element.is_object()) => {
                for (number, value) in elements.iter().enumerate() {
                    walk(&below(&number.to_string()), value, rows);
                }
            }
            Value::Array(elements) => {
                let texts: Vec<String> = elements.iter().map(plain).collect();
                rows.push(vec![place.to_owned(), texts.join(", ")]);
            }
            other => rows.push(vec![place.to_owned(), plain(other)]),
        }
    }
    let mut rows = Vec::new();
    walk("", run.machine(), &mut rows);
    rows.retain(|row| !row[1].is_empty());
    Sheet {
        columns: ["fact", "value"].map(without_unit).into(),
        rows,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}
