//! What of a run stands on the page: facts and tables, by columns of its summary and places in its settings.

use serde_json::Value;

use crate::cli::output::heading_of;
use crate::page::{Sheet, SheetColumn};
use crate::results::read::{Benchmark, Point, ReadError, Row, Run};

/// Columns of the summary that the page's table shows behind the settings: name in the file, title.
const HCA: [(&str, &str); 12] = [
    ("messages_sent", "sent"),
    ("messages_lost", "lost"),
    ("messages_corrupted", "bad"),
    ("latency_min_us", "min"),
    ("latency_p50_us", "p50"),
    ("latency_p90_us", "p90"),
    ("latency_p99_us", "p99"),
    ("latency_p999_us", "p99.9"),
    ("latency_max_us", "max"),
    ("completion_latency_p50_us", "comp p50"),
    ("completion_latency_p99_us", "comp p99"),
    ("post_rate_per_s", "posts"),
];
const QUEUE: [(&str, &str); 10] = [
    ("enqueue_p50_ns", "enqueue p50"),
    ("dequeue_p50_ns", "dequeue p50"),
    ("latency_p50_ns", "latency p50"),
    ("latency_p99_ns", "latency p99"),
    ("intended_latency_p50_ns", "intended p50"),
    ("intended_latency_p99_ns", "intended p99"),
    ("throughput_per_s", "throughput"),
    ("depth_mean", "depth"),
    ("missed_enqueues", "late enqueues"),
    ("latency_p50_two_modes", "two modes"),
];
const CLOCK: [(&str, &str); 11] = [
    ("iterations", "iterations"),
    ("mean_ns", "mean"),
    ("min_ns", "min"),
    ("p50_ns", "p50"),
    ("p99_ns", "p99"),
    ("p999_ns", "p99.9"),
    ("p9999_ns", "p99.99"),
    ("max_ns", "max"),
    ("threshold_ns", "jumps above"),
    ("jumps", "jumps"),
    ("jumps_total_ns", "jumps together"),
];

/// Columns with what the instrument itself costs.
const INSTRUMENT: [(&str, &str); 8] = [
    (
        "floor_p50_us",
        "floor, p50: the same loops over shared memory",
    ),
    ("floor_p99_us", "floor, p99"),
    ("stamp_cost_ns", "a time stamp"),
    ("sender_stamp_ns", "a time stamp at the sender"),
    ("receiver_stamp_ns", "a time stamp at the receiver"),
    ("clock_resolution_ns", "resolution of the clock"),
    ("baseline_ns", "baseline: twice the mean difference"),
    (
        "blind_share",
        "share of time in which the clock was not watched",
    ),
];

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
        add(label, port(&document["devices"][end]));
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
    add("In all points", Some(constants(run)));
    facts
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
    let placement = run.document().pointer("/obtained/placement")?;
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
    first.map_or_else(Vec::new, |point| {
        point
            .settings
            .iter()
            .map(|(name, _)| name.as_str())
            .collect()
    })
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
            let (title, unit) = heading_of(name);
            let unit = if unit.is_empty() {
                String::new()
            } else {
                format!(" {unit}")
            };
            Some(format!("{title} {text}{unit}"))
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
    // A point that says the same says nothing more.
    all.extend(of_points.filter(|text| {
        !run.incomplete.as_ref().is_some_and(|reason| {
            text.ends_with(reason.as_str()) && run.benchmark == Benchmark::Clock
        })
    }));
    all
}

/// The table: settings that vary, and the chosen columns that are not empty.
pub fn summary(run: &Run) -> Sheet {
    let chosen: &[(&str, &str)] = match run.benchmark {
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
        .map(|name| {
            let (title, unit) = heading_of(name);
            let texts: Vec<String> = texts(name);
            (column(title, unit, &texts), texts)
        })
        .collect();
    for (name, title) in chosen {
        let texts: Vec<String> = texts(name);
        let told = |text: &String| !text.is_empty();
        let faults = ["messages_lost", "messages_corrupted"].contains(name);
        if texts.iter().any(told)
            && !(faults && texts.iter().all(|text| text == "0") && *title == "bad")
        {
            let (_, unit) = heading_of(name);
            columns.push((column((*title).to_owned(), unit, &texts), texts));
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

fn column(title: String, unit: &str, texts: &[String]) -> SheetColumn {
    let is_number = texts
        .iter()
        .all(|text| text.is_empty() || text.parse::<f64>().is_ok());
    if is_number {
        SheetColumn::number(title, unit)
    } else {
        SheetColumn {
            unit: unit.to_owned(),
            ..SheetColumn::text(title)
        }
    }
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
    for (name, title) in INSTRUMENT {
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
            let (_, unit) = heading_of(name);
            sheet.row(vec![
                title.to_owned(),
                unit.to_owned(),
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
            let (title, unit) = heading_of(name);
            (column(title, unit, &texts), texts)
        });
        // What is empty in all rows tells nothing.
        let told = columns.filter(|(_, texts)| texts.iter().any(|text| !text.is_empty()));
        transposed(told.collect(), table.rows.len())
    };
    let left_out = run.left_out()?;
    Ok(vec![
        (
            format!(
                "All columns of the summary ({} points)",
                run.summary.rows.len()
            ),
            of_table(&run.summary),
        ),
        (
            format!("What was left out, and why ({})", left_out.rows.len()),
            of_table(&left_out),
        ),
        (
            "The machine, as it describes itself".to_owned(),
            machine(run),
        ),
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
