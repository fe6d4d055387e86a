//! Until the one driver of all benchmarks is there: all rounds in this process, in the order of the sweep.

use std::time::SystemTime;

use serde_json::json;

use super::QueueArguments;
use crate::cli::UsageError;
use crate::cli::ending::{Ending, close};
use crate::cli::output::{bad_folder, print_json, print_text, terminal_width, warning};
use crate::host::interrupt;
use crate::results::folder::{LEFT_OUT, SETTINGS, SUMMARY};
use crate::results::schema::{self, Over, Schema};
use crate::results::{Record, ResultsFolder, SummaryFile, hgrm, json};
use crate::rig::benchmark::{Benchmark, Failure, Place};
use crate::stats::{LatencyHistogram, MedianInterval, median_of};

fn sort(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Usage(text) => UsageError(text).into(),
        other => anyhow::anyhow!(other.to_string()),
    }
}

fn summary_of(schema: &Schema, settings: &Record, rounds: &[Record]) -> Record {
    let mut row = settings.clone();
    let columns = schema.point.iter().chain(schema.figures);
    for column in columns {
        let found: Vec<f64> = rounds
            .iter()
            .filter_map(|one| one.number(column.name))
            .collect();
        let fold = |with: fn(f64, f64) -> f64| found.iter().copied().reduce(with);
        let figure = match column.over {
            Over::First => {
                if row.get(column.name).is_none() && !rounds.is_empty() {
                    row.set_from(column, &rounds[0]);
                }
                continue;
            }
            Over::Least => fold(f64::min),
            Over::Greatest => fold(f64::max),
            Over::Sum => fold(|a, b| a + b),
            Over::Median | Over::MedianWithBounds => median_of(&found),
        };
        if row.get(column.name).is_some() {
            continue;
        }
        row.set(column, figure);
        if column.over == Over::MedianWithBounds {
            let scaled: Vec<i64> = found
                .iter()
                .map(|one| (one * 1000.0).round() as i64)
                .collect();
            let interval = MedianInterval::of(&scaled);
            let [low, high] = column.bounds();
            row.decimal(low, interval.map(|one| one.low_ns as f64 / 1000.0), 1);
            row.decimal(high, interval.map(|one| one.high_ns as f64 / 1000.0), 1);
        }
    }
    row
}

pub(super) fn run(arguments: &QueueArguments) -> anyhow::Result<u8> {
    let mut benchmark = arguments.benchmark()?;
    interrupt::install()?;
    let rounds = arguments.repeat.unwrap_or(QueueArguments::DEFAULT_ROUNDS);
    let planned = benchmark.plan().map_err(sort)?;
    let started = SystemTime::now();
    let out = arguments.output.folder(started);
    let force = arguments.output.force;
    let needed = planned
        .points
        .iter()
        .map(|point| point.bytes * u64::from(rounds))
        .sum();
    ResultsFolder::check(&out, force, needed).map_err(|error| bad_folder(&out, &error))?;
    let ready = benchmark.prepare(planned).map_err(sort)?;
    let folder =
        ResultsFolder::create(&out, force, needed).map_err(|error| bad_folder(&out, &error))?;
    let mut summary: Vec<Record> = Vec::new();
    let mut runs: Vec<Record> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    let quiet = arguments.output.quiet;
    let schema = benchmark.schema();
    let mut measure_all = || -> Result<(), Ending> {
        let mut summary_file = SummaryFile::create(&folder.file(SUMMARY)?)?;
        let mut runs_file = SummaryFile::create(&folder.file("runs.csv")?)?;
        if !ready.plan.left_out.is_empty() {
            let mut file = SummaryFile::create(&folder.file(LEFT_OUT)?)?;
            for one in &ready.plan.left_out {
                file.append(one)?;
            }
        }
        let mut broken = Vec::new();
        for point in &ready.plan.points {
            let planned = &point.rows[0];
            let place = folder.point(&planned.name)?;
            let path = folder.path().join(&planned.name);
            let mut of_point = Vec::new();
            let mut failure = None;
            let mut histograms: Vec<(String, LatencyHistogram)> = Vec::new();
            let mut obtained = Vec::new();
            for round in 0..rounds {
                let at = Place {
                    round,
                    folders: vec![path.clone()],
                };
                let outcome = match benchmark.measure(point.index, &at, &mut |_| {}) {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        let reason = format!("{}: {error}", planned.name);
                        place.fail(&reason)?;
                        return Err(Ending::Failed(reason));
                    }
                };
                for text in outcome.warnings {
                    if !said.contains(&text) {
                        eprintln!("{}", warning(&text));
                        said.push(text);
                    }
                }
                for note in outcome.notes {
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
                let row = &outcome.rows[0];
                let mut record = planned.settings.clone();
                record.set(&schema::POINT, planned.name.as_str());
                record.set(&schema::ROUND, round);
                for column in schema.point.iter().chain(schema.figures) {
                    if row.figures.get(column.name).is_some() {
                        record.set_from(column, &row.figures);
                    }
                }
                let status = row
                    .failure
                    .as_ref()
                    .map_or(schema::COMPLETE, |_| schema::INCOMPLETE);
                record.set(&schema::STATUS, status);
                record.set(&schema::FAILURE, row.failure.clone());
                let record = record.arranged(&schema.runs());
                runs_file.append(&record)?;
                runs.push(record);
                of_point.push(row.figures.clone());
                obtained.push(row.obtained.clone());
                for (name, histogram) in &row.histograms {
                    match histograms.iter_mut().find(|(known, _)| known == name) {
                        Some((_, all)) => all.merge(histogram),
                        None => histograms.push((name.clone(), histogram.clone())),
                    }
                }
                if row.failure.is_some() {
                    failure.clone_from(&row.failure);
                    if row.ends_sweep {
                        break;
                    }
                }
            }
            for (name, histogram) in &histograms {
                hgrm::write(&place.file(name)?, histogram)?;
            }
            let mut row = summary_of(schema, &planned.settings, &of_point);
            row.set(&schema::POINT, planned.name.as_str());
            row.set(&schema::ROUNDS, of_point.len());
            row.set(
                &schema::STATUS,
                failure
                    .as_ref()
                    .map_or(schema::COMPLETE, |_| schema::INCOMPLETE),
            );
            row.set(&schema::FAILURE, failure.clone());
            let row = row.arranged(&schema.summary());
            let document = json!({ "status": failure.as_ref().map_or("complete", |_| "incomplete"), "obtained": obtained });
            json::write(&place.file(SETTINGS)?, &document)?;
            match &failure {
                None => place.complete()?,
                Some(failure) => {
                    place.fail(failure)?;
                    broken.push(format!("{}: {failure}", planned.name));
                }
            }
            summary_file.append(&row)?;
            summary.push(row);
        }
        broken
            .first()
            .map_or(Ok(()), |first| Err(Ending::Failed(first.clone())))
    };
    let outcome = measure_all();
    close(folder, outcome, quiet, || {
        if arguments.output.json {
            let left_out = &ready.plan.left_out;
            print_json(&json!({ "points": summary, "left_out": left_out }))
        } else if quiet || summary.is_empty() {
            Ok(())
        } else {
            let mut text = super::tables(&summary, &runs, terminal_width());
            for note in &notes {
                let line = format!("note: {note}");
                text += &format!(
                    "{}\n",
                    crate::cli::wrap(&line, crate::cli::TEXT_WIDTH).join("\n  ")
                );
            }
            print_text(&text)
        }
    })
}
