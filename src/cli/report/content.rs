//! What of a run stands on the page: facts and tables, by columns of its summary and places in its settings.

use serde_json::Value;

use crate::page::{Sheet, SheetColumn};
use crate::results::read::{Benchmark, Point, ReadError, Row, Run};
use crate::results::schema::{Column, Schema, clock, hca, queue, split_unit};

/// Columns of the summary that the page's table shows behind the settings.
const HCA: [Column; 12] = [
    hca::SENT,
    hca::LOST,
    hca::CORRUPTED,
    hca::latency::MIN,
    hca::latency::P50,
    hca::latency::P90,
    hca::latency::P99,
    hca::latency::P999,
    hca::latency::MAX,
    hca::completion::P50,
    hca::completion::P99,
    hca::POST_RATE,
];
const QUEUE: [Column; 9] = [
    queue::enqueue::P50,
    queue::dequeue::P50,
    queue::latency::P50,
    queue::latency::P99,
    queue::intended::P50,
    queue::intended::P99,
    queue::THROUGHPUT,
    queue::DEPTH_MEAN,
    queue::MISSED_ENQUEUES,
];
const CLOCK: [Column; 11] = [
    clock::ITERATIONS,
    clock::MEAN,
    clock::MIN,
    clock::P50,
    clock::P99,
    clock::P999,
    clock::P9999,
    clock::MAX,
    clock::THRESHOLD,
    clock::JUMPS,
    clock::JUMPS_TOTAL,
];

/// Columns with what the instrument itself costs.
const INSTRUMENT: [Column; 8] = [
    hca::FLOOR_P50,
    hca::FLOOR_P99,
    hca::STAMP_COST,
    queue::SENDER_STAMP,
    queue::RECEIVER_STAMP,
    hca::RESOLUTION,
    clock::BASELINE,
    clock::BLIND_SHARE,
];

/// What a column of the summary is called, and its unit; of several distributions all but the first say which they are of.
pub fn heading(schema: &Schema, name: &str) -> (String, &'static str) {
    let columns = schema.summary();
    let Some((_, column)) = columns.iter().find(|(found, _)| found == name) else {
        let (stem, unit) = split_unit(name);
        return (stem.replace('_', " "), unit);
    };
    let alone = columns.iter().filter(|(_, it)| it.title == column.title);
    let is_alone = alone.filter(|(found, it)| found == it.name).count() == 1;
    let title = if is_alone && name == column.name && column.title != name {
        column.title.to_owned()
    } else {
        split_unit(name).0.replace('_', " ")
    };
    (title, column.unit())
}

/// `HCA latency, 2026-11-20 12:20 UTC`.
pub fn title(run: &Run) -> String {
    let what = match run.benchmark {
        Benchmark::Hca => "One-way latency between HCAs",
        Benchmark::Queue => "Queues between two threads",
        Benchmark::Clock => "Jumps of the clock",
    };
    match run.started_at() {
        Some(started) => format!("{what}, {}", in_words(started)),
        None => what.to_owned(),
    }
}

/// `2026-11-20T12:20:04Z` for people.
fn in_words(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(day), Some(time)) if rfc3339.ends_with('Z') => format!("{day} {time} UTC"),
        _ => rfc3339.to_owned(),
    }
}

fn text_at(document: &Value, place: &str) -> Option<String> {
    match document.pointer(place)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// What was measured, where and when.
pub fn facts(run: &Run) -> Vec<(String, String)> {
    let document = run.document();
    let mut facts = Vec::new();
    let mut add = |label: &str, text: Option<String>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            facts.push((label.to_owned(), text));
        }
    };
    let machine = [
        text_at(document, "/machine/hostname"),
        text_at(document, "/machine/processor/name"),
        text_at(document, "/machine/kernel_release").map(|release| format!("Linux {release}")),
        text_at(document, "/machine/distribution"),
    ];
    let machine: Vec<String> = machine.into_iter().flatten().collect();
    add("Machine", Some(machine.join(" | ")));
    for (label, end) in [("Sender", "sender"), ("Receiver", "receiver")] {
        add(label, port(&document["obtained"]["devices"][end]));
    }
    add("CPUs", cpus(run));
    add("Measured", run.started_at().map(in_words));
    add(
        "By",
        run.version().map(|version| format!("hcabench {version}")),
    );
    let folder = run.path.canonicalize().unwrap_or_else(|_| run.path.clone());
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    add("Folder", name);
    add("Points", Some(run.points.len().to_string()));
    add("Rounds", rounds(document));
    let words = document["command_line"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    add("Command", Some(words.join(" ")));
    add("In all points", Some(constants(run)));
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
        text += ", each in a process of its own; figures are medians over them";
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
        let layer = port["link_layer"].as_str().unwrap_or("link layer not told");
        text += &format!(
            ", {layer}, MTU {} B, {} Gbit/s",
            port["mtu"], port["gigabits_per_second"]
        );
    }
    if let Some(firmware) = device["firmware"].as_str().filter(|text| !text.is_empty()) {
        text += &format!(", firmware {firmware}");
    }
    Some(text)
}

/// On which CPUs the messages were sent and received.
fn cpus(run: &Run) -> Option<String> {
    let points = run.points.iter().map(|point| &point.document);
    let mut all = std::iter::once(run.document()).chain(points);
    let placement = all.find_map(|document| document.pointer("/obtained/placement"))?;
    let (sender, receiver) = (
        placement["sender"].as_u64()?,
        placement["receiver"].as_u64()?,
    );
    let completions = match placement["completion"].as_u64() {
        Some(cpu) => format!("completions on {cpu}"),
        None => "the sender takes the completions".to_owned(),
    };
    Some(format!("{sender} to {receiver}, {completions}"))
}

fn names_of_settings(run: &Run) -> Vec<&str> {
    let first = run.points.first();
    let settings = first.into_iter().flat_map(|point| &point.settings);
    settings.map(|(name, _)| name.as_str()).collect()
}

fn varies(run: &Run, name: &str) -> bool {
    let mut texts = run.points.iter().map(|point| point.setting(name));
    let first = texts.next();
    texts.any(|text| Some(text) != first)
}

/// Settings that are the same at all points.
fn constants(run: &Run) -> String {
    let Some(first) = run.points.first() else {
        return String::new();
    };
    let same = names_of_settings(run)
        .into_iter()
        .filter(|name| !varies(run, name))
        .filter_map(|name| {
            let text = first.setting(name).filter(|text| !text.is_empty())?;
            let (title, unit) = heading(run.schema, name);
            Some(format!("{title} {text} {unit}").trim_end().to_owned())
        });
    same.collect::<Vec<_>>().join(", ")
}

/// Why it is not whole.
pub fn incomplete(run: &Run) -> Vec<String> {
    let of_points = run.points.iter().filter_map(|point| {
        let reason = point.incomplete.as_ref()?;
        Some(format!("{}: {reason}", point.name))
    });
    let mut all: Vec<String> = run
        .incomplete
        .iter()
        .map(|reason| format!("The run was not measured to its end: {reason}"))
        .collect();
    all.extend(of_points);
    all
}

/// The table: settings that vary, and the chosen columns that are not empty.
pub fn summary(run: &Run) -> Sheet {
    let chosen: &[Column] = match run.benchmark {
        Benchmark::Hca => &HCA,
        Benchmark::Queue => &QUEUE,
        Benchmark::Clock => &CLOCK,
    };
    let varying: Vec<&str> = names_of_settings(run)
        .into_iter()
        .filter(|name| varies(run, name))
        .collect();
    let cell = |point: &Point, name: &str| -> String {
        let of_row = |row: &Row| row.text(name).map(str::to_owned);
        let text = point.row.as_ref().and_then(of_row);
        text.or_else(|| point.setting(name).map(str::to_owned))
            .unwrap_or_default()
    };
    let texts = |name: &str| run.points.iter().map(|point| cell(point, name)).collect();
    let mut columns: Vec<(SheetColumn, Vec<String>)> = varying
        .iter()
        .map(|name| column(run.schema, name, texts(name)))
        .collect();
    for chosen in chosen {
        let texts: Vec<String> = texts(chosen.name);
        let told = |text: &String| !text.is_empty();
        let is_bad = chosen.name == hca::CORRUPTED.name;
        if texts.iter().any(told) && !(is_bad && texts.iter().all(|text| text == "0")) {
            columns.push(column(run.schema, chosen.name, texts));
        }
    }
    if run.points.iter().any(|point| point.incomplete.is_some()) {
        let mark = |point: &Point| match point.incomplete {
            Some(_) => "incomplete".to_owned(),
            None => String::new(),
        };
        columns.push((
            SheetColumn::text("mark"),
            run.points.iter().map(mark).collect(),
        ));
    }
    transposed(columns, run.points.len())
}

/// A column of the summary with its texts.
fn column(schema: &Schema, name: &str, texts: Vec<String>) -> (SheetColumn, Vec<String>) {
    let (title, unit) = heading(schema, name);
    let is_number = |text: &String| text.is_empty() || text.parse::<f64>().is_ok();
    let column = SheetColumn {
        number: texts.iter().all(is_number),
        ..SheetColumn::number(title, unit)
    };
    (column, texts)
}

fn transposed(columns: Vec<(SheetColumn, Vec<String>)>, rows: usize) -> Sheet {
    let (columns, texts): (Vec<SheetColumn>, Vec<Vec<String>>) = columns.into_iter().unzip();
    let mut sheet = Sheet {
        columns,
        rows: Vec::new(),
    };
    for row in 0..rows {
        sheet.row(texts.iter().map(|column| column[row].clone()).collect());
    }
    sheet
}

/// What the instrument itself costs: the least and the most over all points.
pub fn instrument(run: &Run) -> Sheet {
    let mut sheet = Sheet {
        columns: vec![
            SheetColumn::text("what"),
            SheetColumn::text("unit"),
            // Of several units, which stand beside them.
            SheetColumn::number("least", ""),
            SheetColumn::number("most", ""),
        ],
        rows: Vec::new(),
    };
    for figure in INSTRUMENT {
        let name = figure.name;
        let mut found: Vec<(f64, &str)> = run
            .points
            .iter()
            .filter_map(|point| {
                let row = point.row.as_ref()?;
                Some((row.number(name)?, row.text(name)?))
            })
            .collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        if let (Some(least), Some(most)) = (found.first(), found.last()) {
            sheet.row(vec![
                figure.meaning.to_owned(),
                figure.unit().to_owned(),
                least.1.to_owned(),
                most.1.to_owned(),
            ]);
        }
    }
    sheet
}

/// All of the summary, what was left out, and the machine.
pub fn more(run: &Run) -> Result<Vec<(String, Sheet)>, ReadError> {
    let of_table = |table: &crate::results::read::Table| {
        let columns = table.columns.iter().map(|name| {
            let texts: Vec<String> = table
                .rows
                .iter()
                .map(|row| row.text(name).unwrap_or_default().to_owned())
                .collect();
            column(run.schema, name, texts)
        });
        // What is empty in all rows tells nothing.
        let told = columns.filter(|(_, texts)| texts.iter().any(|text| !text.is_empty()));
        transposed(told.collect(), table.rows.len())
    };
    let left_out = run.left_out()?;
    let (points, left) = (run.summary.rows.len(), left_out.rows.len());
    let all = format!("All columns of the summary ({points} points)");
    let why = format!("What was left out, and why ({left})");
    let described = "The machine, as it describes itself".to_owned();
    Ok(vec![
        (all, of_table(&run.summary)),
        (why, of_table(&left_out)),
        (described, machine(run)),
    ])
}

fn machine(run: &Run) -> Sheet {
    let mut sheet = Sheet {
        columns: vec![SheetColumn::text("what"), SheetColumn::text("as told")],
        rows: Vec::new(),
    };
    fn walk(place: &str, value: &Value, sheet: &mut Sheet) {
        let below = |name: &str| {
            if place.is_empty() {
                name.replace('_', " ")
            } else {
                format!("{place}, {}", name.replace('_', " "))
            }
        };
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    walk(&below(name), value, sheet);
                }
            }
            Value::Null => {}
            Value::Array(elements) if elements.iter().any(|element| element.is_object()) => {
                for (number, value) in elements.iter().enumerate() {
                    walk(&below(&number.to_string()), value, sheet);
                }
            }
            Value::Array(elements) => {
                let texts: Vec<String> = elements.iter().map(plain).collect();
                sheet.row(vec![place.to_owned(), texts.join(", ")]);
            }
            other => sheet.row(vec![place.to_owned(), plain(other)]),
        }
    }
    walk("", run.machine(), &mut sheet);
    sheet.rows.retain(|row| !row[1].is_empty());
    sheet
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}
