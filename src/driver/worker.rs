//! A round in a separate process: the program runs itself again, and the sweep drives it point by point.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bench::Assignment;
use crate::host::interrupt;
use crate::results::folder;
use crate::rig::benchmark::{Failure, Outcome, PlannedPoint, Progress, SampleFolders};
use crate::rig::child::{self, ChildProcess, answer, listen, this_program};

/// Which kind of child a round is.
const KIND: &str = "round";

/// How long a child may take to its first word, beside what its plan takes.
const START: Duration = Duration::from_secs(600);

#[derive(Debug, Serialize, Deserialize)]
struct MeasurementRequest {
    /// Its place in the plan of the benchmark.
    point: usize,
    /// The names of its rows: the child must have planned the same.
    names: Vec<String>,
    place: SampleFolders,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ready,
    Progress(Progress),
    Outcome(Box<Outcome>),
    Failed(Failure),
}

/// Whether this process is the child of a sweep.
pub(crate) fn is_worker() -> bool {
    child::is(KIND)
}

/// Measures what the sweep asks for, until it asks for nothing more. Returns the exit code.
pub(crate) fn serve() -> io::Result<u8> {
    let installed = interrupt::install_under_parent();
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        return Ok(0);
    }
    let assignment: Assignment = match serde_json::from_str(&line) {
        Ok(assignment) => assignment,
        Err(error) => {
            let text = format!("the process of a round cannot read what it is to measure: {error}");
            answer(&Answer::Failed(Failure::Run(text)))?;
            return Ok(1);
        }
    };
    let mut benchmark = assignment.benchmark();
    let ready = installed
        .map_err(|error| Failure::Run(error.to_string()))
        .and_then(|()| benchmark.plan())
        .and_then(|plan| benchmark.prepare(plan));
    let plan = match ready {
        Ok(ready) => ready.plan,
        Err(failure) => {
            answer(&Answer::Failed(failure))?;
            return Ok(1);
        }
    };
    let asked = match listen() {
        Ok(asked) => asked,
        Err(error) => {
            answer(&Answer::Failed(Failure::Shortage(error.to_string())))?;
            return Ok(1);
        }
    };
    answer(&Answer::Ready)?;
    let mut held = None;
    while let Ok(line) = asked.recv() {
        let ask: MeasurementRequest = serde_json::from_str(&line).map_err(io::Error::other)?;
        if let (None, Some(run)) = (&held, ask.place.folders.first().and_then(|it| it.parent())) {
            held = Some(folder::hold(run)?);
        }
        let is_asked = |it: &PlannedPoint| it.index == ask.point && it.names().eq(ask.names.iter());
        let outcome = match plan.points.iter().any(is_asked) {
            // Such as a NUMA node that has too little free memory by now.
            false => Err(Failure::Shortage(format!(
                "the process of this round does not have the point {}: what is free of the machine has changed",
                ask.names.join(", ")
            ))),
            true => benchmark.measure(ask.point, &ask.place, &mut |so_far| {
                // A sweep that has exited shows by the end of standard input.
                let _ = answer(&Answer::Progress(so_far));
            }),
        };
        match outcome {
            Ok(outcome) => answer(&Answer::Outcome(Box::new(outcome)))?,
            // Other points may be measured.
            Err(failure) if failure.fails_its_point() => answer(&Answer::Failed(failure))?,
            Err(failure) => {
                answer(&Answer::Failed(failure))?;
                return Ok(1);
            }
        }
    }
    Ok(0)
}

/// The sweep's end: one child, for one round.
pub(crate) struct RoundProcess(ChildProcess);

impl RoundProcess {
    /// Starts this program again, and waits until it can measure what is assigned to it.
    pub(crate) fn start(assignment: &Assignment) -> Result<Self, Failure> {
        let mut child = ChildProcess::start(this_program(), KIND, "the process of a round", &[])?;
        child.ask(assignment)?;
        match child.next(START)? {
            Answer::Ready => Ok(RoundProcess(child)),
            Answer::Failed(failure) => Err(failure),
            other => Err(child.unexpected(&format!("{other:?}"))),
        }
    }

    /// Whether the child has exited.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Measures a point in the child.
    pub(crate) fn measure(
        &mut self,
        point: &PlannedPoint,
        place: &SampleFolders,
        limit: Duration,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let child = &mut self.0;
        child.ask(&MeasurementRequest {
            point: point.index,
            names: point.names().map(str::to_owned).collect(),
            place: place.clone(),
        })?;
        loop {
            match child.next(limit)? {
                Answer::Progress(so_far) => progress(so_far),
                Answer::Outcome(outcome) => return Ok(*outcome),
                Answer::Failed(failure) => return Err(failure),
                Answer::Ready => return Err(child.unexpected(&"it is ready")),
            }
        }
    }
}

impl Drop for RoundProcess {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
