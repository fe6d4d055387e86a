//! A round in a process of its own: the program runs itself again, and the sweep drives it point by point.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bench::Assignment;
use crate::host::interrupt;
use crate::results::folder;
use crate::rig::benchmark::{Failure, Outcome, Place, PlannedPoint, Progress};
use crate::rig::child::{self, Asked, answer, listen, this_program};

/// Which kind of child a round is.
const KIND: &str = "round";

/// How long a child may take to its first word, beside what its plan takes.
const START: Duration = Duration::from_secs(600);

#[derive(Debug, Serialize, Deserialize)]
struct Ask {
    /// Its place in the plan of the benchmark.
    point: usize,
    /// The names of its rows: the child must have planned the same.
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
pub fn serve() -> io::Result<u8> {
    let installed = interrupt::install_under_parent();
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        return Ok(0);
    }
    let assignment: Assignment = serde_json::from_str(&line).map_err(io::Error::other)?;
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
    answer(&Answer::Ready)?;
    let asked = listen();
    let mut held = None;
    while let Ok(line) = asked.recv() {
        let ask: Ask = serde_json::from_str(&line).map_err(io::Error::other)?;
        if let (None, Some(run)) = (&held, ask.place.folders.first().and_then(|it| it.parent())) {
            held = Some(folder::hold(run)?);
        }
        let is_asked = |it: &PlannedPoint| it.index == ask.point && it.names().eq(ask.names.iter());
        let outcome = match plan.points.iter().any(is_asked) {
            false => Err(Failure::Run(format!(
                "a round of its own does not have the point {}: its devices or the machine have changed",
                ask.names.join(", ")
            ))),
            true => benchmark.measure(ask.point, &ask.place, &mut |so_far| {
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

/// The sweep's end: one child, for one round.
pub struct Round(Asked);

impl Round {
    /// Starts this program again, and waits until it can measure what is assigned to it.
    pub fn start(assignment: &Assignment) -> Result<Self, Failure> {
        let mut child = Asked::start(this_program(), KIND, "the process of a round", &[])?;
        child.ask(assignment)?;
        match child.next(START)? {
            Answer::Ready => Ok(Round(child)),
            Answer::Failed(failure) => Err(failure),
            other => Err(child.unexpected(&format!("{other:?}"))),
        }
    }

    /// Measures a point in the child.
    pub fn measure(
        &mut self,
        point: &PlannedPoint,
        place: &Place,
        limit: Duration,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let child = &mut self.0;
        child.ask(&Ask {
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

impl Drop for Round {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Command, CommandLine};

    /// What is asked for by a command line.
    fn assignment(line: &str) -> Assignment {
        let line = CommandLine::try_parse_from(line.split(' ')).unwrap();
        match line.command {
            #[cfg(feature = "rdma")]
            None if line.hca.between.peer.is_some() => {
                Assignment::TwoHosts(line.hca.config(), line.hca.between.config())
            }
            #[cfg(feature = "rdma")]
            None => Assignment::OneHost(line.hca.config()),
            Some(Command::Clock(arguments)) => arguments.assignment(),
            Some(Command::Memory(arguments)) => arguments.assignment(),
            Some(Command::Node(arguments)) => arguments.assignment(),
            Some(Command::Queue(arguments)) => arguments.assignment().unwrap(),
            _ => unreachable!("it measures nothing"),
        }
    }

    #[test]
    fn a_process_of_a_round_gets_what_was_asked_for() {
        for line in [
            #[cfg(feature = "rdma")]
            "hcabench --service rc,ud --size 8..64 --rate 1k --arrivals poisson --depth 4 --warmup 3ms --sender a:1 \
             --sender-cpu 3 --traffic-class 7,0x20 --memory-load 30%,60% --background 0,200@4KiB --comp-vector 1,2",
            #[cfg(feature = "rdma")]
            "hcabench --peer other:7 --clock-uncertainty 3us --inline=off,on --poll event --receiver-pause 5us",
            "hcabench queue --load bursty --group 5 --wait 300ns --jitter 7% --receiver-load constant-rate \
             --receiver-rate 1234567.891 --memory-load 50 --retry backoff --priority 3",
            "hcabench queue --producers 2 --consumers 2 --scenario fan-out --measure throughput",
            "hcabench queue --queue lamport --topology --load-curve --count 12345",
            "hcabench node --type udp,shmem --rate 1234.567891,0.1 --ends threads,processes --log file --broker a:1883 \
             --samples --format villas --scenario fan-in --timer timerfd --receiver a:1@10.0.0.1 --count 3",
            "hcabench memory --generators 1-3,8 --smooth savgol:7:2 --pages 2m --pause 0,max,off --size 1GiB",
            "hcabench clock --cpu 0,2 --fail-above 5us@p99.95,1ms --threshold 300ns --causes trace --duration 1500ms \
             --tsc-khz 2100000",
            "hcabench clock --all-cpus --everything --keep-jumps 512",
            "hcabench clock --until 3 --priority 5",
        ] {
            let asked = assignment(line);
            let text = serde_json::to_string(&asked).unwrap();
            let got: Assignment = serde_json::from_str(&text).unwrap();
            assert_eq!(format!("{got:?}"), format!("{asked:?}"), "{line}");
        }
    }
}
