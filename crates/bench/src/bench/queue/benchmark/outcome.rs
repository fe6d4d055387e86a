//! What a run leaves: its row, its elements, and what is to be said of it.

use std::path::Path;

use serde_json::{Value, json};

use super::QueueBenchmark;
use crate::bench::queue::config::RoundLength;
use crate::bench::queue::error::RunError;
use crate::bench::queue::plan::Point;
use crate::bench::queue::result::{ElementRow, PerEnd, RunResult, Times};
use crate::bench::queue::seats::Seats;
use crate::bench::queue::{ends, findings, judge, rows, several};
use crate::generators::RunGenerators;
use crate::host::Compromise;
use crate::queues::registry;
use crate::results::SampleWriter;
use crate::results::schema::queue as columns;
use crate::rig::benchmark::{Outcome, RowOutcome};
use crate::rig::clock_offset::ClockOffset;
use crate::rig::error::unless_interrupted;
use crate::rig::findings::of_placement;

/// Rows that are written between two looks for a signal.
const ROWS_PER_LOOK: usize = 4096;

impl QueueBenchmark {
    /// The row of a run, and what is to be said of it.
    pub(super) fn outcome(
        &self,
        point: &Point,
        run: &RunResult,
        seats: &Seats,
        count: u64,
        saturation: Option<f64>,
        offset: Option<ClockOffset>,
    ) -> Outcome {
        let (config, most) = (&self.config, self.most_elements);
        let beside = self.beside.as_ref().filter(|_| point.memory_load.is_on());
        let failure = run.failure(config);
        let mut figures = rows::figures(point, run, saturation);
        let mut obtained = obtained(point, run, &seats.placement.warnings, beside);
        let mut instrument = json!({
            "stamp": run.ends.map(|end| end.stamp),
            "floors": run.floors,
        });
        let mut details = json!({ "verdict": run.verdict });
        let mut all = findings::of(point, run, config);
        if let (Some(shares), Some(machine)) = (&run.shares, &self.machine) {
            let [producers, consumers] = &seats.cpus;
            obtained["cpus"] = json!({ "producers": producers, "consumers": consumers });
            details["shares"] = json!(shares);
            all.extend(seats.findings(machine.topology.allowed().len()));
            if failure.is_none() {
                shares.set(&mut figures);
                let starved = several::starved(run, seats, &machine.clock);
                figures.set(&columns::STARVED, starved.as_ref().map(Vec::len));
                let starved = starved.into_iter().flatten();
                all.extend(starved.map(|end| several::of_starved(point, end)));
            }
            all.extend(several::of_length(run, most));
        } else {
            let PerEnd { sender, receiver } = &run.ends;
            let counts = sender.passed.counts.zip(receiver.passed.counts);
            let counts = counts.filter(|_| run.outcome == judge::Outcome::Clean);
            if matches!(config.length, RoundLength::Time(_)) {
                figures.set(&columns::COUNT, count);
            }
            figures
                .set(&columns::CLOCK_OFFSET, offset.map(|offset| offset.ns))
                .set(
                    &columns::CLOCK_OFFSET_BOUND,
                    offset.map(|offset| offset.bound_ns),
                );
            instrument["memory_load"] = json!(beside.map(RunGenerators::calibration));
            let counts = counts.map(|(sender, receiver)| PerEnd { sender, receiver });
            details["counters"] = json!(counts);
            all.extend(of_placement(&seats.placement.warnings));
            all.extend(findings::of_length(count, most, config));
            all.extend(offset.and_then(findings::of_clocks));
        }
        let row = RowOutcome {
            figures,
            findings: all,
            failure,
            ends_sweep: false,
            obtained,
            instrument,
            details,
            histograms: (run.times.as_ref()).map_or_else(Vec::new, Times::files),
            interval_logs: run.interval_logs.clone(),
        };
        Outcome {
            rows: vec![row],
            ..Outcome::default()
        }
    }
}

/// That of a run that came to nothing.
pub(super) fn failed(failure: String, ends_sweep: bool) -> Outcome {
    let row = RowOutcome {
        figures: rows::without_run(),
        failure: Some(failure),
        ends_sweep,
        ..RowOutcome::default()
    };
    Outcome {
        rows: vec![row],
        ..Outcome::default()
    }
}

fn obtained(
    point: &Point,
    run: &RunResult,
    compromises: &[Compromise],
    beside: Option<&RunGenerators>,
) -> Value {
    let mut sender = json!(point.sender);
    if point.percent_of_saturation.is_some() {
        // What was measured is a figure: it differs from run to run.
        sender["rate_per_s"].take();
    }
    let choice = registry::chosen(&point.queue, &ends::spec(point));
    json!({
        "queue": registry::entry(&point.queue),
        "queue_is": choice.map(|choice| choice.queue),
        "queue_is_by": choice.map(|choice| choice.grounds),
        "sender": sender,
        "receiver": point.receiver,
        "pages": run.ends.map(|end| end.pages),
        "queue_pages": run.ends.sender.queue_pages,
        "queue_locked": run.ends.sender.queue_locked,
        "placement_warnings": compromises,
        "memory_load": beside.map(RunGenerators::obtained),
    })
}

pub(super) fn write_elements(
    folder: &Path,
    round: u32,
    elements: &[ElementRow],
) -> Result<(), RunError> {
    let mut file = SampleWriter::open(folder, &columns::ELEMENTS, round)?;
    for some in elements.chunks(ROWS_PER_LOOK) {
        unless_interrupted()?;
        for element in some {
            file.append(element)?;
        }
    }
    Ok(file.finish()?)
}
