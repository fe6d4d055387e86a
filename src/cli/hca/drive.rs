//! From arguments to files and a table: the run itself, as the user sees it.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::HcaArguments;
use super::present::{self, Finished, Warnings};
use super::settings::{MessageRow, RunFacts, left_out_record, settings_document};
use crate::bench::hca::choice::{ChosenPort, Pair};
use crate::bench::hca::config::{Config, UcRouteRequest};
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::PointResult;
use crate::bench::hca::run::Runner;
use crate::cli::UsageError;
use crate::cli::ending::{Ending, close};
use crate::cli::output::{bad_folder, print_json, print_text, terminal_width, warning};
use crate::cli::progress::{LastPoint, Progress};
use crate::host::fingerprint::Fingerprint;
use crate::host::interrupt;
use crate::rdma::cm::UcRoute;
use crate::results::folder::{HISTOGRAM, LEFT_OUT, MESSAGES, SETTINGS, SUMMARY};
use crate::results::{
    CsvFile, PointFolder, Record, ReportError, ResultsFolder, SummaryFile, hgrm, json,
};
use crate::rig::benchmark::Failure;

/// An upper estimate of a row of `messages.csv`, and of the other files of a point, in bytes.
const BYTES_PER_MESSAGE: u64 = 160;
const BYTES_PER_POINT: u64 = 64 << 10;

pub(super) fn run(arguments: &HcaArguments, config: Config, plan: Plan) -> anyhow::Result<u8> {
    // Asked for by name, so there are UC points.
    if config.uc_route == UcRouteRequest::Patched {
        UcRoute::Patched
            .check()
            .map_err(|error| UsageError(format!("--uc-route patched: {error}")))?;
    }
    interrupt::install()?;
    let started_at = SystemTime::now();
    let out = arguments.output.folder(started_at);
    let needed = bytes_on_disk(&plan, &config);
    ResultsFolder::check(&out, arguments.output.force, needed)
        .map_err(|error| bad_folder(&out, &error))?;

    let mut runner = Runner::new(config.clone()).map_err(sort)?;
    let plan = runner.within_devices(plan).map_err(sort)?;
    plan.check()
        .map_err(|error| UsageError(error.to_string()))?;
    runner.prepare(&plan).map_err(sort)?;

    let folder = ResultsFolder::create(&out, arguments.output.force, needed)
        .map_err(|error| bad_folder(&out, &error))?;
    let machine = Fingerprint::collect();
    let facts = RunFacts {
        started_at: humantime::format_rfc3339_seconds(started_at).to_string(),
        devices: devices_document(runner.pair()),
        machine: serde_json::to_value(&machine)?,
        libraries: serde_json::to_value(crate::rdma::verbs::library_versions())?,
        uc_route: runner.uc_route().map(UcRoute::name),
    };
    let mut sweep = Sweep {
        arguments,
        config,
        plan,
        runner,
        facts,
        finished: Vec::new(),
        warnings: Warnings::default(),
        instrument: Vec::new(),
    };
    sweep.announce(&machine)?;
    let outcome = sweep.measure_all(&folder);
    close(folder, outcome, arguments.output.quiet, || sweep.print())
}

struct Sweep<'a> {
    arguments: &'a HcaArguments,
    config: Config,
    plan: Plan,
    runner: Runner,
    facts: RunFacts,
    finished: Vec<Finished>,
    warnings: Warnings,
    instrument: Vec<String>,
}

impl Sweep<'_> {
    /// The devices and the machine in three lines, and how many points there are, on stderr.
    fn announce(&mut self, machine: &Fingerprint) -> anyhow::Result<()> {
        let pair = self.runner.pair();
        let mut lines = vec![
            format!("sender:   {}", describe_end(&pair.sender)),
            format!("receiver: {}", describe_end(&pair.receiver)),
            format!("machine:  {}", describe_machine(machine)),
        ];
        let (points, left_out) = (self.plan.points.len(), self.plan.left_out.len());
        if points + left_out > 1 {
            let reasons = if left_out > 0 {
                format!(", {left_out} impossible (see {LEFT_OUT})")
            } else {
                String::new()
            };
            lines.push(format!("sweep:    {points} points to measure{reasons}"));
        }
        if !self.arguments.output.quiet {
            for line in lines {
                eprintln!("{line}");
            }
        }
        for end in [&pair.sender, &pair.receiver] {
            if end.device.software {
                let text = "this device is software (SoftRoCE): its figures test the tool and say nothing about an HCA";
                if self.warnings.add(text.to_owned()) {
                    eprintln!("{}", warning(text));
                }
            }
        }
        Ok(())
    }

    fn measure_all(&mut self, folder: &ResultsFolder) -> Result<(), Ending> {
        if !self.plan.left_out.is_empty() {
            let mut file = SummaryFile::create(&folder.file(LEFT_OUT)?)?;
            for left_out in &self.plan.left_out {
                file.append(&left_out_record(left_out))?;
            }
        }
        let mut summary = SummaryFile::create(&folder.file(SUMMARY)?)?;
        let progress = Progress::new(self.plan.points.len());
        for point in std::mem::take(&mut self.plan.points) {
            if let Some(signal) = interrupt::requested() {
                return Err(Ending::Failed(format!("interrupted by {signal}")));
            }
            let name = point.to_string();
            progress.start_point(&name);
            let place = folder.point(&name)?;
            json::write(
                &place.file(SETTINGS)?,
                &settings_document(&point, &self.config, &self.facts, None),
            )?;
            let measured = self.runner.measure(&point, &mut |so_far| {
                progress.messages(&name, so_far.done, so_far.of);
            });
            let result = match measured {
                Ok(result) => result,
                Err(error) => {
                    let reason = format!("{point}: {error}");
                    place.fail(&reason)?;
                    return Err(Ending::Failed(reason));
                }
            };
            let finished = self.keep(&result, place, &mut summary)?;
            for text in self.warnings.of(&result, &self.config) {
                progress.warn(&warning(&text));
            }
            let line = present::instrument_line(&result);
            if !self.instrument.contains(&line) {
                self.instrument.push(line);
            }
            progress.finish_point(LastPoint {
                messages: result.counts.received,
                p50_ns: result.latency.as_ref().map(|latency| latency.p50_ns),
                p99_ns: result.latency.as_ref().map(|latency| latency.p99_ns),
            });
            self.finished.push(finished);
            if let Some(failure) = result.failure {
                return Err(Ending::Failed(format!("{point}: {failure}")));
            }
        }
        Ok(())
    }

    /// Writes all files of a point.
    fn keep(
        &self,
        result: &PointResult,
        place: PointFolder,
        summary: &mut SummaryFile,
    ) -> Result<Finished, ReportError> {
        let mut messages = CsvFile::create(&place.file(MESSAGES)?)?;
        for message in &result.messages {
            messages.append(&MessageRow::from(message))?;
        }
        messages.finish()?;
        hgrm::write(&place.file(HISTOGRAM)?, &result.histogram)?;
        json::write(
            &place.file(SETTINGS)?,
            &settings_document(&result.point, &self.config, &self.facts, Some(result)),
        )?;
        let finished = Finished::new(result, &self.config);
        match &result.failure {
            None => place.complete()?,
            Some(failure) => place.fail(failure)?,
        }
        summary.append(&finished.record)?;
        Ok(finished)
    }

    /// The table, or the summary as JSON, on standard output.
    fn print(&self) -> std::io::Result<()> {
        let savings = present::inline_savings(&self.finished);
        if self.arguments.output.json {
            let records: Vec<&Record> = self.finished.iter().map(|one| &one.record).collect();
            let left_out: Vec<Record> = self.plan.left_out.iter().map(left_out_record).collect();
            let document = json!({
                "points": records,
                "left_out": left_out,
                "inline_savings": savings,
                "devices": self.facts.devices,
            });
            print_json(&document)
        } else if self.arguments.output.quiet || self.finished.is_empty() {
            Ok(())
        } else {
            let mut text = present::table(&self.finished, terminal_width());
            if !savings.is_empty() {
                text += "\n";
                text += &present::savings_table(&savings, terminal_width());
                if let Some(doubt) = present::doubt_about_savings(&self.finished) {
                    text += &format!("note: {doubt}\n");
                }
            }
            text += "\n";
            for line in &self.instrument {
                text += &format!("{line}\n");
            }
            if let Some(note) = present::unresolved(&self.finished) {
                text += &format!("note: {note}\n");
            }
            print_text(&text)
        }
    }
}

/// Bad input and what only looks like it: an error that another value of an option would avoid is the user's.
fn sort(error: RunError) -> anyhow::Error {
    match Failure::from(error) {
        Failure::Usage(text) => UsageError(text).into(),
        other => anyhow::Error::from(other),
    }
}

fn bytes_on_disk(plan: &Plan, config: &Config) -> u64 {
    let of_point = |point: &Point| {
        u64::from(point.burst) * u64::from(config.repeat) * BYTES_PER_MESSAGE + BYTES_PER_POINT
    };
    plan.points.iter().map(of_point).sum()
}

fn describe_end(end: &ChosenPort) -> String {
    let firmware = if end.device.firmware.is_empty() {
        "none"
    } else {
        &end.device.firmware
    };
    format!(
        "{} port {} at {}, {}, MTU {} B, {} Gbit/s, firmware {firmware}",
        end.device.name,
        end.port.number,
        end.address,
        end.port.link_layer.name(),
        end.port.mtu,
        end.port.gigabits_per_second,
    )
}

fn describe_machine(machine: &Fingerprint) -> String {
    crate::cli::host::machine_in_words(machine)
}

fn devices_document(pair: &Pair) -> Value {
    let end = |end: &ChosenPort| json!({ "port": end.port.number, "address": end.address, "device": end.device });
    json!({ "sender": end(&pair.sender), "receiver": end(&pair.receiver) })
}
