//! The watch as the user sees it, until the one driver of all benchmarks runs it.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{ClockArguments, present};
use crate::bench::clock::benchmark::ClockBenchmark;
use crate::cli::UsageError;
use crate::cli::ending::{self, Ending};
use crate::cli::output::{bad_folder, labelled, print_json, print_text, terminal_width, warning};
use crate::host::interrupt;
use crate::results::schema::{COMPLETE, FAILURE, INCOMPLETE, POINT, ROUNDS, STATUS};
use crate::results::{ResultsFolder, SummaryFile, hgrm, json as json_file};
use crate::rig::benchmark::{Benchmark as _, Failure, Place};

const LIMIT_BROKEN: u8 = 3;

pub(super) fn run(arguments: &ClockArguments, mut benchmark: ClockBenchmark) -> anyhow::Result<u8> {
    interrupt::install()?;
    let sort = |failure: Failure| match failure {
        Failure::Usage(text) => UsageError(text).into(),
        other => anyhow::anyhow!(other),
    };
    let plan = benchmark.plan().map_err(sort)?;
    let out = arguments.output.folder(SystemTime::now());
    let (needed, force) = (plan.points[0].bytes, arguments.output.force);
    ResultsFolder::check(&out, force, needed).map_err(|error| bad_folder(&out, &error))?;
    let ready = benchmark.prepare(plan).map_err(sort)?;
    if !arguments.output.quiet {
        ready
            .announcements
            .iter()
            .for_each(|line| eprintln!("{line}"));
        ready
            .warnings
            .iter()
            .for_each(|text| eprintln!("{}", warning(text)));
    }
    let folder =
        ResultsFolder::create(&out, force, needed).map_err(|error| bad_folder(&out, &error))?;
    let rows = &ready.plan.points[0].rows;
    let points: Result<Vec<_>, _> = rows.iter().map(|row| folder.point(&row.name)).collect();
    let points = points?;
    let settings = |details: Value| json!({"benchmark": "clock", "obtained": ready.obtained, "details": details});
    json_file::write(&folder.file("settings.json")?, &settings(Value::Null))?;
    let place = Place {
        round: 0,
        folders: points.iter().map(|point| point.path().to_owned()).collect(),
    };
    let outcome = match benchmark.measure(0, &place, &mut |_| ()) {
        Ok(outcome) => outcome,
        Err(failure) => {
            folder.fail(&failure.to_string())?;
            return Err(sort(failure));
        }
    };
    let mut summary = SummaryFile::create(&folder.file("summary.csv")?)?;
    let (mut records, mut details) = (Vec::new(), Vec::new());
    let mut failure = None;
    for ((row, planned), point) in outcome.rows.into_iter().zip(rows).zip(points) {
        let mut record = planned.settings.clone();
        record
            .set(&POINT, planned.name.as_str())
            .set(&ROUNDS, 1_u32);
        record.set(
            &STATUS,
            if row.failure.is_none() {
                COMPLETE
            } else {
                INCOMPLETE
            },
        );
        record.set(&FAILURE, row.failure.clone());
        for column in benchmark.schema().figures {
            record.set_from(column, &row.figures);
        }
        let record = record.arranged(&benchmark.schema().summary());
        summary.append(&record)?;
        records.push(record);
        for (name, histogram) in &row.histograms {
            hgrm::write(&point.file(name)?, histogram)?;
        }
        json_file::write(
            &point.file("settings.json")?,
            &settings(row.details.clone()),
        )?;
        details.push((planned.name.clone(), row.details));
        failure = failure.or(row.failure);
        point.complete()?;
    }
    let ended = failure.map_or(Ok(()), |reason| Err(Ending::Failed(reason)));
    let output = &arguments.output;
    let code = ending::close(folder, ended, output.quiet, || {
        if output.json {
            let mut document = present::document(&details);
            document["points"] = json!(records);
            document["notes"] = json!(outcome.notes);
            return print_json(&document);
        } else if output.quiet {
            return Ok(());
        }
        let mut text = present::tables(&records, &details, terminal_width());
        for note in &outcome.notes {
            text += &format!("{}\n", labelled("note", note));
        }
        print_text(&text)
    });
    for line in &outcome.broken_limits {
        eprintln!("hcabench: {line}");
    }
    let _ = Duration::ZERO;
    Ok(if outcome.broken_limits.is_empty() {
        code?
    } else {
        LIMIT_BROKEN
    })
}
