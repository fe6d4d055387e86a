//! A round in a process of its own: the program runs itself again, and the sweep drives it point by point.
//!
//! One line of JSON each way: the sweep asks on the child's standard input, the child answers on its standard output.

use std::ffi::OsString;
use std::io::{self, BufRead, Read as _, Write};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, raise};
use serde::{Deserialize, Serialize};

use crate::host::interrupt::{self, HeldBack};
use crate::results::folder;
use crate::rig::benchmark::{Benchmark, Failure, Outcome, Place, Plan, Progress};

/// The environment variable that makes the program the child of a sweep.
pub const VARIABLE: &str = "HCABENCH_ROUND_WORKER";

/// How long a child may take to its first word, beside what its plan takes.
const START: Duration = Duration::from_secs(600);
/// How often the sweep looks for an answer once it has passed on a signal.
const LOOK: Duration = Duration::from_millis(50);
/// How long the child may take to end after a signal, before it is killed.
const GRACE: Duration = Duration::from_millis(800);
/// How long a child whose sweep has gone may take to end what it is at.
const ORPHAN: Duration = Duration::from_secs(2);

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
    std::env::var_os(VARIABLE).is_some()
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

fn answer(answer: &Answer) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The lines of standard input. At its end nothing more is asked for, or the sweep has gone: then this process is to
/// end, too, whatever it is at.
fn listen() -> Receiver<String> {
    let (give, take) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if give.send(line).is_err() {
                return;
            }
        }
        // A process that waits to be asked ends by this, one that measures by the signal.
        drop(give);
        let _ = raise(Signal::SIGTERM);
        std::thread::sleep(ORPHAN);
        std::process::exit(1);
    });
    take
}

/// The sweep's end: one child, for one round.
pub struct Round {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// What was read and is not answered yet.
    read: Vec<u8>,
    /// The signal that was passed on, and when. A second one would kill the child before it says what it has.
    told: Option<(Instant, Signal)>,
}

impl Round {
    /// Starts this program again with these arguments, and waits until it can measure.
    pub fn start(arguments: &[OsString]) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::Run(format!(
                "a round could not be started in a process of its own: {error}"
            ))
        };
        let mut child = crate::cli::this_program()
            .args(arguments)
            .env(VARIABLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| failed(io::Error::other("no pipe")))?;
        let mut round = Round {
            child,
            stdin,
            stdout,
            read: Vec::new(),
            told: None,
        };
        match round.next(START)? {
            Answer::Ready => Ok(round),
            Answer::Failed(failure) => Err(failure),
            Answer::Progress(_) | Answer::Outcome(_) => Err(unexpected()),
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
        let ask = Ask {
            names: names.to_vec(),
            place: place.clone(),
        };
        let line = serde_json::to_string(&ask).map_err(|error| Failure::Run(error.to_string()))?;
        if let Some(stdin) = &mut self.stdin {
            // A child that has gone shows by the end of its answers.
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
        loop {
            match self.next(limit)? {
                Answer::Progress(so_far) => progress(so_far),
                Answer::Outcome(outcome) => return Ok(*outcome),
                Answer::Failed(failure) => return Err(failure),
                Answer::Ready => return Err(unexpected()),
            }
        }
    }

    /// The next answer. A signal to this process is passed on; the child then says what it has. Sleeps until there is
    /// one of the two: the parent of a round may sit on a CPU that is measured.
    fn next(&mut self, limit: Duration) -> Result<Answer, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Run(format!("the process of a round: {error}"))
        };
        // After the child was started, which would have the signals held back as well.
        let held = HeldBack::new().map_err(|error| failed(&error))?;
        let begun = Instant::now();
        loop {
            if let Some(line) = self.line() {
                let answer = serde_json::from_slice(&line);
                return answer.map_err(|error| Failure::Run(format!("{} ({error})", unexpected())));
            }
            match (self.told, interrupt::requested()) {
                (None, Some(signal)) => {
                    crate::cli::pass_on(signal, &self.child);
                    self.told = Some((Instant::now(), signal));
                }
                (Some((since, signal)), _) if since.elapsed() > GRACE => {
                    self.end();
                    return Err(Failure::Interrupted(signal.to_string()));
                }
                _ => {}
            }
            let left = match self.told {
                Some(_) => LOOK,
                None => limit.saturating_sub(begun.elapsed()),
            };
            if left.is_zero() {
                self.end();
                return Err(Failure::Run(format!(
                    "the process of a round did not answer within {}",
                    humantime::format_duration(Duration::from_secs(limit.as_secs()))
                )));
            }
            if !held
                .wait(self.stdout.as_fd(), left)
                .map_err(|error| failed(&error))?
            {
                continue;
            }
            let mut part = [0; 1 << 16];
            match self.stdout.read(&mut part) {
                Ok(0) => return Err(self.gone()),
                Ok(length) => self.read.extend_from_slice(&part[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    /// A whole line of what was read.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.read.iter().position(|byte| *byte == b'\n')?;
        let rest = self.read.split_off(end + 1);
        Some(std::mem::replace(&mut self.read, rest))
    }

    fn gone(&mut self) -> Failure {
        let status = self.status(GRACE);
        if let Some(signal) = interrupt::requested() {
            return Failure::Interrupted(signal.to_string());
        }
        Failure::Run(match status {
            Some(status) => format!("the process of a round ended early: {status}"),
            None => "the process of a round said no more".to_owned(),
        })
    }

    /// How it ended, if it has within `limit`.
    fn status(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(2)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    fn end(&mut self) {
        // It may have ended by itself. One that is held by the kernel is left behind.
        let _ = self.child.kill();
        self.status(GRACE);
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        // The end of its standard input ends it.
        self.stdin = None;
        if self.status(GRACE).is_none() {
            self.end();
        }
    }
}

fn unexpected() -> Failure {
    Failure::Run("the process of a round gave an answer that was not asked for".to_owned())
}
