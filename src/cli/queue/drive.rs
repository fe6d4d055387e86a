//! From arguments to files and tables: the run itself, as the user sees it.

use std::collections::VecDeque;
use std::time::SystemTime;

use serde_json::json;

use super::QueueArguments;
use super::present::{self, Finished, Warnings};
use super::settings::{RunFacts, left_out_record, run_record, settings_document};
use crate::bench::queue::config::{Config, Measure};
use crate::bench::queue::counters::CounterError;
use crate::bench::queue::memory;
use crate::bench::queue::plan::{Cpus, LeftOut, Plan, Point, Sweep};
use crate::bench::queue::result::PointResult;
use crate::bench::queue::run::{Bench, RunError};
use crate::cli::UsageError;
use crate::cli::ending::{Ending, close};
use crate::cli::output::{bad_folder, print_json, print_text, terminal_width, warning};
use crate::cli::progress::{LastPoint, Progress};
use crate::host::core_pairs::core_pairs;
use crate::host::fingerprint::Fingerprint;
use crate::host::{CoreRelation, HostError, Placement, Topology, interrupt};
use crate::results::folder::{HISTOGRAM, LEFT_OUT, SETTINGS, SUMMARY};
use crate::results::{
    CsvFile, PointFolder, Record, ReportError, ResultsFolder, SummaryFile, hgrm, json,
};

/// A point's runs, one row each.
const RUNS: &str = "runs.csv";
/// A point's elements, one row each.
const ELEMENTS: &str = "elements.csv";

/// An upper estimate of a row of `elements.csv`, and of the other files of a point, in bytes.
const BYTES_PER_ELEMENT: u64 = 160;
const BYTES_PER_POINT: u64 = 256 << 10;
/// Rows that are written between two looks for a signal.
const ROWS_PER_LOOK: usize = 4096;

pub(super) fn run(arguments: &QueueArguments) -> anyhow::Result<u8> {
    let config = arguments.config()?;
    let (senders, receiver) = (arguments.senders()?, arguments.receiver()?);
    interrupt::install()?;
    let most = |list: &[usize]| list.iter().copied().max().unwrap_or(0);
    let (capacity, payload) = (most(&arguments.capacity.0), most(&arguments.payload.0));
    memory::check(&config, capacity, payload).map_err(sort)?;

    let topology = Topology::read()?;
    let (cpus, absent) = if arguments.topology {
        pairs(&topology)?
    } else {
        (vec![chosen(&topology, arguments)?], Vec::new())
    };
    let sweep = Sweep {
        queues: arguments.queue.0.clone(),
        capacities: arguments.capacity.0.clone(),
        payloads: arguments.payload.0.clone(),
        curve: arguments.load_curve.then(|| senders[0]),
        senders,
        receiver,
        cpus,
    };
    // Large queues take a while to be made.
    let mut plan = interrupt::unless_requested(move || Plan::new(&sweep))
        .map_err(|signal| sort(RunError::Interrupted(signal)))?;
    if let Some(reason) = plan.why_empty() {
        return Err(UsageError(format!("--capacity: {reason}")).into());
    }
    plan.left_out.extend(absent);

    let started_at = SystemTime::now();
    let out = arguments.output.folder(started_at);
    let needed = bytes_on_disk(&plan, &config);
    ResultsFolder::check(&out, arguments.output.force, needed)
        .map_err(|error| bad_folder(&out, &error))?;
    let mut bench = Bench::new(config.clone(), topology).map_err(sort)?;
    bench.prepare(&plan).map_err(sort)?;
    let folder = ResultsFolder::create(&out, arguments.output.force, needed)
        .map_err(|error| bad_folder(&out, &error))?;

    let machine = Fingerprint::collect();
    let facts = RunFacts {
        started_at: humantime::format_rfc3339_seconds(started_at).to_string(),
        machine: serde_json::to_value(&machine)?,
        clock: RunFacts::of_clock(bench.clock()),
    };
    let mut course = Course {
        arguments,
        config,
        plan,
        bench,
        facts,
        finished: Vec::new(),
        warnings: Warnings::default(),
        broken: Vec::new(),
    };
    course.announce(&machine);
    let outcome = course.measure_all(&folder);
    close(folder, outcome, arguments.output.quiet, || course.print())
}

/// The CPUs for both ends, as asked for or chosen.
fn chosen(topology: &Topology, arguments: &QueueArguments) -> anyhow::Result<Cpus> {
    let asked = (arguments.sender_cpu, arguments.receiver_cpu);
    let ([sender, receiver], _) =
        Placement::of_pair(topology, asked.0, asked.1).map_err(|error| sort(error.into()))?;
    let both = topology.cpu(sender).zip(topology.cpu(receiver));
    Ok(Cpus {
        sender,
        receiver,
        cores: both.and_then(|(first, second)| CoreRelation::between(first, second)),
    })
}

/// A pair of CPUs of each kind that there is, and the kinds that there are not.
pub(super) fn pairs(topology: &Topology) -> Result<(Vec<Cpus>, Vec<LeftOut>), UsageError> {
    let found = core_pairs(topology);
    if found.is_empty() {
        return Err(UsageError(
            "--topology: no two CPUs of this process have a known relation; it may use one only, or the kernel does not \
             tell: name two by --sender-cpu and --receiver-cpu"
                .to_owned(),
        ));
    }
    let absent = CoreRelation::ALL
        .into_iter()
        .filter(|relation| found.iter().all(|pair| pair.relation != *relation))
        .map(|relation| LeftOut {
            queue: None,
            capacity: None,
            cores: Some(relation),
            reason: format!(
                "--topology: this machine has no pair of cores of the kind {} that this process may use",
                relation.name()
            ),
        });
    let cpus = found.iter().map(|pair| Cpus {
        sender: pair.first,
        receiver: pair.second,
        cores: Some(pair.relation),
    });
    Ok((cpus.collect(), absent.collect()))
}

/// Takes the other points of a load curve out of the sweep when there is no saturation to take per cents of.
fn without_saturation(result: &PointResult, points: &mut VecDeque<Point>) -> Option<LeftOut> {
    let point = &result.point;
    let failure = result.failure.as_ref()?;
    if point.percent_of_saturation.is_none() || result.saturation_per_s.is_some() {
        return None;
    }
    let before = points.len();
    let fastest = point.at_saturation();
    points
        .retain(|other| other.percent_of_saturation.is_none() || other.at_saturation() != fastest);
    let taken = before - points.len();
    (taken > 0).then(|| LeftOut {
        queue: Some(point.queue.clone()),
        capacity: Some(point.capacity),
        cores: point.cpus.cores,
        reason: format!("the other {taken} points of the load curve of {fastest}: {failure}"),
    })
}

/// The list of what is left out, which is there only if something is.
struct LeftOutFile<'a> {
    folder: &'a ResultsFolder,
    file: Option<SummaryFile>,
}

impl LeftOutFile<'_> {
    fn append(&mut self, left_out: &LeftOut) -> Result<(), ReportError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(SummaryFile::create(&self.folder.file(LEFT_OUT)?)?),
        };
        file.append(&left_out_record(left_out))
    }
}

struct Course<'a> {
    arguments: &'a QueueArguments,
    config: Config,
    plan: Plan,
    bench: Bench,
    facts: RunFacts,
    finished: Vec<Finished>,
    warnings: Warnings,
    /// Points whose queue did not give out what was put in.
    broken: Vec<String>,
}

impl Course<'_> {
    /// The machine, how many points there are, and what there is not, on stderr.
    fn announce(&self, machine: &Fingerprint) {
        if self.arguments.output.quiet {
            return;
        }
        let (points, left_out) = (self.plan.points.len(), &self.plan.left_out);
        eprintln!("machine:  {}", crate::cli::host::machine_in_words(machine));
        eprintln!(
            "points:   {points} of {} runs with {} elements",
            self.config.repeat, self.config.count
        );
        for left_out in left_out {
            let text = format!("left out: {}", left_out.reason);
            eprintln!(
                "{}",
                crate::cli::wrap(&text, crate::cli::TEXT_WIDTH - 10).join("\n          ")
            );
        }
    }

    fn measure_all(&mut self, folder: &ResultsFolder) -> Result<(), Ending> {
        let mut left_out = LeftOutFile { folder, file: None };
        for one in &self.plan.left_out {
            left_out.append(one)?;
        }
        let mut summary = SummaryFile::create(&folder.file(SUMMARY)?)?;
        let progress = Progress::new(self.plan.points.len());
        let mut points = VecDeque::from(std::mem::take(&mut self.plan.points));
        while let Some(point) = points.pop_front() {
            let name = point.to_string();
            let place = folder.point(&name)?;
            let settings = settings_document(&point, &self.config, &self.facts, None);
            json::write(&place.file(SETTINGS)?, &settings)?;
            let repeat = self.config.repeat;
            let measured = self.bench.measure(&point, &mut |run| {
                progress.start_point(&format!("{name} (run {} of {repeat})", run + 1));
            });
            let result = match measured {
                Ok(result) => result,
                Err(error) => {
                    let reason = format!("{point}: {error}");
                    place.fail(&reason)?;
                    return Err(Ending::Failed(reason));
                }
            };
            if let Some(one) = without_saturation(&result, &mut points) {
                progress.warn(&warning(&one.reason));
                left_out.append(&one)?;
                self.plan.left_out.push(one);
            }
            let finished = self.keep(&result, place, &mut summary)?;
            for text in self.warnings.of(&result, &self.config) {
                progress.warn(&warning(&text));
            }
            progress.finish_point(last_point(&result));
            self.finished.push(finished);
            if let Some(failure) = &result.failure {
                self.broken.push(format!("{}: {failure}", result.point));
            }
        }
        // One queue that is broken does not keep the others from being measured.
        match self.broken.as_slice() {
            [] => Ok(()),
            [one] => Err(Ending::Failed(one.clone())),
            [first, others @ ..] => Err(Ending::Failed(format!(
                "{first} (and {} more points)",
                others.len()
            ))),
        }
    }

    /// Writes all files of a point.
    fn keep(
        &self,
        result: &PointResult,
        place: PointFolder,
        summary: &mut SummaryFile,
    ) -> Result<Finished, Ending> {
        let mut runs = SummaryFile::create(&place.file(RUNS)?)?;
        for (number, run) in result.runs.iter().enumerate() {
            runs.append(&run_record(number, run))?;
        }
        if self.config.measure == Measure::Time {
            let histograms = &result.histograms;
            hgrm::write(&place.file(HISTOGRAM)?, &histograms.latency)?;
            hgrm::write(&place.file("enqueue.hgrm")?, &histograms.enqueue)?;
            hgrm::write(&place.file("dequeue.hgrm")?, &histograms.dequeue)?;
            if histograms.intended.count() > 0 {
                hgrm::write(&place.file("intended_latency.hgrm")?, &histograms.intended)?;
            }
        }
        if self.config.keep_elements {
            let mut elements = CsvFile::create(&place.file(ELEMENTS)?)?;
            for some in result.elements.chunks(ROWS_PER_LOOK) {
                if let Some(signal) = interrupt::requested() {
                    let reason = format!("{}: {}", result.point, RunError::Interrupted(signal));
                    place.fail(&reason)?;
                    return Err(Ending::Failed(reason));
                }
                for element in some {
                    elements.append(element)?;
                }
            }
            elements.finish()?;
        }
        let settings = settings_document(&result.point, &self.config, &self.facts, Some(result));
        json::write(&place.file(SETTINGS)?, &settings)?;
        let finished = Finished::new(result, &self.config);
        match &result.failure {
            None => place.complete()?,
            Some(failure) => place.fail(failure)?,
        }
        summary.append(&finished.record)?;
        Ok(finished)
    }

    /// The tables, or the summary as JSON, on standard output.
    fn print(&self) -> std::io::Result<()> {
        if self.arguments.output.json {
            let records: Vec<&Record> = self.finished.iter().map(|one| &one.record).collect();
            let left_out: Vec<Record> = self.plan.left_out.iter().map(left_out_record).collect();
            print_json(&json!({ "points": records, "left_out": left_out }))
        } else if self.arguments.output.quiet || self.finished.is_empty() {
            Ok(())
        } else {
            print_text(&self.tables())
        }
    }

    fn tables(&self) -> String {
        let width = terminal_width();
        let mut text = if self.arguments.load_curve {
            String::new()
        } else {
            present::details(&self.finished, width)
        };
        if !text.is_empty() {
            text += "\n";
        }
        text += &present::overview(&self.finished, self.config.measure, width);
        text += "\n";
        if self.config.measure == Measure::Time
            && let Some(line) = present::instrument_line(&self.finished, &self.config)
        {
            text += &format!(
                "{}\n",
                crate::cli::wrap(&line, crate::cli::TEXT_WIDTH).join("\n  ")
            );
        }
        let notes = present::notes_on_modes(&self.finished)
            .into_iter()
            .chain(present::note_on_hand_overs(&self.finished))
            .chain(present::note_on_details(
                &self.finished,
                self.config.measure,
                self.arguments.load_curve,
            ))
            .chain(present::unresolved(&self.config));
        for note in notes {
            let line = format!("note: {note}");
            text += &format!(
                "{}\n",
                crate::cli::wrap(&line, crate::cli::TEXT_WIDTH).join("\n  ")
            );
        }
        text
    }
}

fn last_point(result: &PointResult) -> LastPoint {
    let histogram = &result.histograms.latency;
    let at = |percent| histogram.value_at(percent).map(|ns| ns as f64);
    LastPoint {
        messages: result.runs.iter().map(|run| run.verdict.received).sum(),
        p50_ns: at(50.0),
        p99_ns: at(99.0),
    }
}

/// Bad input and what only looks like it: an error that another value of an option would avoid is the user's.
fn sort(error: RunError) -> anyhow::Error {
    let usage = matches!(
        error,
        RunError::Clock(_)
            | RunError::TooLarge { .. }
            | RunError::TooFewHugePages { .. }
            | RunError::Counters(CounterError::None(_) | CounterError::Forbidden(_))
            | RunError::Host(
                HostError::CpuUnavailable { .. }
                    | HostError::SameCpu { .. }
                    | HostError::MemoryLockLimit { .. }
            )
    );
    if usage {
        UsageError(error.to_string()).into()
    } else {
        error.into()
    }
}

fn bytes_on_disk(plan: &Plan, config: &Config) -> u64 {
    let rows = if config.keep_elements {
        config.count * u64::from(config.repeat) * BYTES_PER_ELEMENT
    } else {
        0
    };
    plan.points.len() as u64 * (rows + BYTES_PER_POINT)
}

#[cfg(test)]
mod tests;
