//! A round in a process of its own: the program runs itself again, and the sweep drives it point by point.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::host::interrupt;
use crate::results::folder;
use crate::rig::benchmark::{Benchmark, Failure, Outcome, Place, Plan, Progress};
use crate::rig::child::{self, Asked, answer, listen, this_program};

/// Which kind of child a round is.
const KIND: &str = "round";

/// How long a child may take to its first word, beside what its plan takes.
const START: Duration = Duration::from_secs(600);

#[derive(Debug, Serialize, Deserialize)]
struct Ask {
    /// The names of the point's rows, by which the child finds it in its own plan.
    names: Vec<String>,
    place: Place,
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
pub fn is_worker() -> bool {
    child::is(KIND)
}

/// Measures what the sweep asks for, until it asks for nothing more. Returns the exit code.
pub fn serve(benchmark: &mut dyn Benchmark) -> io::Result<u8> {
    let ready = interrupt::install_under_parent()
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
    answer(&Answer::Ready)?;
    let asked = listen();
    let mut held = None;
    while let Ok(line) = asked.recv() {
        let ask: Ask = serde_json::from_str(&line).map_err(io::Error::other)?;
        if let (None, Some(run)) = (&held, ask.place.folders.first().and_then(|it| it.parent())) {
            held = Some(folder::hold(run)?);
        }
        let outcome = match find(&plan, &ask.names) {
            None => Err(Failure::Run(format!(
                "a round of its own does not have the point {}: its devices or the machine have changed",
                ask.names.join(", ")
            ))),
            Some(point) => benchmark.measure(point, &ask.place, &mut |so_far| {
                // A sweep that has gone shows by the end of standard input.
                let _ = answer(&Answer::Progress(so_far));
            }),
        };
        match outcome {
            Ok(outcome) => answer(&Answer::Outcome(Box::new(outcome)))?,
            Err(failure) => {
                answer(&Answer::Failed(failure))?;
                return Ok(1);
            }
        }
    }
    Ok(0)
}

fn find(plan: &Plan, names: &[String]) -> Option<usize> {
    let named = |rows: &[crate::rig::benchmark::PlannedRow]| {
        rows.len() == names.len() && rows.iter().zip(names).all(|(row, name)| row.name == *name)
    };
    let point = plan.points.iter().find(|point| named(&point.rows))?;
    Some(point.index)
}

/// The sweep's end: one child, for one round.
pub struct Round(Asked);

impl Round {
    /// Starts this program again with these arguments, and waits until it can measure.
    pub fn start(arguments: &[OsString]) -> Result<Self, Failure> {
        let mut command = this_program();
        command.args(arguments);
        let mut child = Asked::start(command, KIND, "the process of a round", &[])?;
        match child.next(START)? {
            Answer::Ready => Ok(Round(child)),
            Answer::Failed(failure) => Err(failure),
            other => Err(child.unexpected(&format!("{other:?}"))),
        }
    }

    /// Measures a point in the child.
    pub fn measure(
        &mut self,
        names: &[String],
        place: &Place,
        limit: Duration,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let child = &mut self.0;
        child.ask(&Ask {
            names: names.to_vec(),
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

impl Drop for Round {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
