//! Ends that are processes: the program runs itself again for each end, which makes its end and runs its loop.
//!
//! Subscribers are made first. Each reports its address, and then publishers are made. What all of them
//! share, and their logs, lie in memory whose files they inherit. A report comes back as a line.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::{Config, LogPlace, RunsAs};
use super::ends::{
    Common, OneSide, PUBLISHER, SUBSCRIBER, Setup, Workers, finished, misunderstood, seat,
};
use super::error::{NodeThreadError, RunError};
use super::log::{InheritedLog, LogError, SharedLog};
use super::point::Point;
use super::result::{ReceivedSample, Report, Reports, SentSample};
use super::shared::{ReceivedLog, SharedState};
use super::subscriber;
use super::task::LogRoom;
use crate::buffer::{InheritedMemory, SharedMemory};
use crate::host::{Needs, Wakeable, interrupt, open_files};
use crate::node::{NodeError, Side};
use crate::rig::benchmark::Failure;
use crate::rig::child::{self, ChildHandle, ChildProcess, answer, listen, this_program};
use crate::rig::control::Control;
use crate::rig::error::{RigError, unless_interrupted};
use crate::rig::role::Role;
use crate::rig::workers::{Crew, SupervisorTimeouts};
use crate::time::{AnyClock, Clock, ClockUser};

/// Which kind of child an end is.
const KIND: &str = "node-end";
/// How long an end may take until it is made: a process starts, and opens what it needs.
const MAKING: Duration = Duration::from_secs(60);
/// No limit: the supervisor of those that wait has some.
const SUPERVISED: Duration = Duration::from_secs(u32::MAX as u64);
/// What a process takes beside what its end does, in bytes.
pub(super) const BYTES_BESIDE: u64 = 8 << 20;

/// Files that are open in the main process beside those of its ends.
const FILES_BESIDE: u64 = 128;

/// Files that are open in the main process for each end: two pipes, the log, and who waits for the report.
fn files_of_an_end(log: LogPlace) -> u64 {
    match log {
        LogPlace::Memory => 4,
        LogPlace::File { .. } => 5,
    }
}

/// Raises the limit of open files so that there can be so many ends, each of which may have as many open, too.
///
/// # Errors
/// When the hard limit is below that: what is impossible, and why.
pub(super) fn allow(ends: u32, config: &Config) -> Result<(), RunError> {
    let of_an_end = files_of_an_end(config.log);
    let needed = FILES_BESIDE + of_an_end * u64::from(ends);
    let limit = open_files::raise(needed)?;
    if needed <= limit {
        return Ok(());
    }
    let most = limit.saturating_sub(FILES_BESIDE) / of_an_end;
    Err(NodeError::Setting(format!(
        "--ends processes with {ends} ends is impossible: {needed} files would be open, and the limit is {limit}, \
         which allows {most} ends: lower --publishers or --subscribers, use --ends threads, or raise it as root with \
         ulimit -n {needed}"
    ))
    .into())
}

/// Files that are open beside the ends of a point: shared memory, the supervisor's pipes, what is written.
const FILES_OF_A_POINT: u64 = 8;
/// Of each end: the way to its supervisor, and a timer.
const FILES_OF_A_THREAD: u64 = 2;

/// Threads and files that a point takes beside what this process has.
pub(super) fn needs(point: &Point, config: &Config) -> Needs {
    let wiring = &point.wiring;
    let ends = u64::from(wiring.publishers) + u64::from(wiring.subscribers);
    let connections = (0..wiring.publishers).map(|it| wiring.subscribers_of(it).count() as u64);
    let of_type = point.node_type.needs(ends, connections.sum());
    let log = files_of_an_end(config.log);
    let here = Needs::of_threads(ends);
    match point.ends {
        RunsAs::Threads => {
            let log = log - files_of_an_end(LogPlace::Memory);
            Needs {
                threads: here.threads + of_type.threads,
                stacks: here.stacks + of_type.stacks,
                files: (FILES_OF_A_THREAD + log) * ends + of_type.files + FILES_OF_A_POINT,
            }
        }
        // A thread here waits for each process, which has two beside its loop.
        RunsAs::Processes => Needs {
            threads: 4 * ends + of_type.threads,
            files: (log + 1) * ends + FILES_OF_A_POINT,
            ..here
        },
    }
}

/// What an end takes in its process.
fn needs_of_an_end(ask: &EndRequest) -> Needs {
    let point = &ask.common.point;
    let peers = match ask.side {
        Side::Publishers => point.wiring.subscribers_of(ask.number).count(),
        Side::Subscribers => point.wiring.publishers_of(ask.number).count(),
    };
    let of_type = point.node_type.needs(1, peers as u64);
    let here = Needs::of_threads(1);
    Needs {
        threads: here.threads + of_type.threads,
        stacks: here.stacks + of_type.stacks,
        files: FILES_OF_A_THREAD + of_type.files + FILES_OF_A_POINT,
    }
}

/// What a process is told.
#[derive(Debug, Serialize, Deserialize)]
struct EndRequest {
    common: Common,
    side: Side,
    number: u32,
    cpu: usize,
    /// Counts of the TSC in a second: all convert stamps alike.
    tsc_hertz: Option<f64>,
    /// The addresses of all subscribers, for a publisher.
    subscribers: Vec<Value>,
    shared: InheritedMemory,
    log: InheritedLog,
    type_memory: Option<InheritedMemory>,
}

/// What it is told then: all ends are made. How long it waits for the others counts from here on.
#[derive(Debug, Serialize)]
struct BeginRequest;

/// What it answers: that its end is made, and then one of the others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Made(Value),
    Report(Box<Report>),
    /// Something else has ended the run.
    Stopped,
    /// Whose fault that is, the parent knows.
    NoBroker(String),
    Failed(Failure),
}

fn role(side: Side) -> Role {
    match side {
        Side::Publishers => PUBLISHER,
        Side::Subscribers => SUBSCRIBER,
    }
}

/// Room for the log of an end, which its process writes and this one reads.
fn room(common: &Common, folder: &Path, side: Side, number: u32) -> Result<SharedLog, LogError> {
    let Common { point, config, .. } = common;
    let (steps, place, pages) = (
        config.steps(point.rate_per_s),
        config.log,
        config.huge_pages,
    );
    match side {
        Side::Publishers => {
            SharedLog::new::<{ SentSample::WORDS }>(place, steps as usize, pages, folder)
        }
        Side::Subscribers => {
            let entries = subscriber::entries(&point.wiring, steps, number);
            SharedLog::new::<{ ReceivedSample::WORDS }>(place, entries, pages, folder)
        }
    }
}

/// The processes of a run, whose ends are made. They are killed when this is dropped.
#[derive(Debug)]
pub(super) struct Processes {
    waiting: Vec<(Role, ChildProcess)>,
    handles: Vec<ChildHandle>,
    publishers: Vec<SharedLog>,
    subscribers: Vec<SharedLog>,
}

impl Processes {
    /// Starts this program again for each end, and waits until all ends are made. `cpus`: those of the publishers, then
    /// those of the subscribers.
    pub(super) fn start(
        setup: &Setup<'_>,
        clock: &AnyClock,
        shared: &SharedMemory,
        cpus: &[usize],
        folder: &Path,
    ) -> Result<Self, RunError> {
        let wiring = &setup.common.point.wiring;
        let mut all = Processes {
            waiting: Vec::new(),
            handles: Vec::new(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
        };
        let mut subscribers = Vec::new();
        for side in [Side::Subscribers, Side::Publishers] {
            let publishers = wiring.publishers as usize;
            let cpus = match side {
                Side::Publishers => &cpus[..publishers],
                Side::Subscribers => &cpus[publishers..],
            };
            let made_before = all.waiting.len();
            for (number, &cpu) in (0..).zip(cpus) {
                unless_interrupted()?;
                let log = room(setup.common, folder, side, number)?;
                let ask = EndRequest {
                    common: setup.common.clone(),
                    side,
                    number,
                    cpu,
                    tsc_hertz: clock.tsc_facts().map(|facts| facts.rate.hertz),
                    subscribers: subscribers.clone(),
                    shared: shared.inherited(),
                    log: log.inherited(),
                    type_memory: setup.type_memory.map(SharedMemory::inherited),
                };
                let memory = [shared].into_iter().chain(setup.type_memory);
                let files: Vec<_> = memory.map(AsFd::as_fd).chain(log.files()).collect();
                let what = format!("the process of {} {number}", role(side));
                let mut child = ChildProcess::start(this_program(), KIND, what, &files)?;
                child.ask(&ask)?;
                all.handles.push(child.handle());
                all.waiting.push((role(side), child));
                match side {
                    Side::Publishers => all.publishers.push(log),
                    Side::Subscribers => all.subscribers.push(log),
                }
            }
            let made = all.waiting[made_before..].iter_mut();
            subscribers = made
                .map(|(_, child)| made_by(child))
                .collect::<Result<_, _>>()?;
        }
        for (_, child) in &mut all.waiting {
            child.ask(&BeginRequest)?;
        }
        Ok(all)
    }

    /// Starts a thread for each process that waits for its report, and sleeps on that CPU.
    pub(super) fn follow(mut self, cpu: usize, workers: &mut Workers) -> Result<Self, RunError> {
        for (role, mut child) in self.waiting.drain(..) {
            let waits = Role::new(role.name, "hcabench-wait");
            workers.start(seat(waits, cpu), move |reporter| {
                reporter.send(report_of(&mut child)?);
                child.let_go();
                Ok(())
            })?;
        }
        Ok(self)
    }

    /// Passes a signal on to all of them, if there was one.
    pub(super) fn pass_on_signal(&self) {
        if let Some(signal) = interrupt::requested() {
            self.handles
                .iter()
                .for_each(|handle| handle.send_signal(signal));
        }
    }

    /// Shows the logs of the subscribers, once all ends are ready: by then each has touched its own.
    pub(super) fn show_logs(&self, shared: &SharedState) {
        if shared.run.ready() as usize == self.handles.len() {
            for number in 0..shared.wiring.subscribers {
                // What cannot be mapped is told at the end.
                let _ = self.received(number, shared);
            }
        }
    }

    /// The log of a subscriber. It is mapped once, as it is locked.
    fn received(&self, number: u32, shared: &SharedState) -> Result<Arc<ReceivedLog>, LogError> {
        if let Some(log) = shared.log_of(number) {
            return Ok(Arc::clone(log));
        }
        let log = Arc::new(self.subscribers[number as usize].open()?);
        shared.show_log(number, &log);
        Ok(log)
    }

    /// Adds the logs to the reports, once all processes have ended.
    pub(super) fn add_logs(
        &self,
        reports: &mut Reports,
        shared: &SharedState,
    ) -> Result<(), LogError> {
        for (report, log) in reports.publishers.iter_mut().zip(&self.publishers) {
            report.log.add(Arc::new(log.open()?));
        }
        for (number, report) in (0..).zip(&mut reports.subscribers) {
            report.log.add(self.received(number, shared)?);
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // At once, so that none is waited for before the next one knows.
        self.handles.iter().for_each(ChildHandle::kill);
    }
}

/// What it tells once its end is made.
fn made_by(child: &mut ChildProcess) -> Result<Value, RunError> {
    let answered = child.next(MAKING)?;
    unless_interrupted()?;
    match answered {
        Answer::Made(told) => Ok(told),
        Answer::Failed(failure) => Err(failure.into()),
        Answer::Stopped => Err(NodeError::GivenUp.into()),
        Answer::NoBroker(reason) => Err(NodeError::NoBroker(reason).into()),
        Answer::Report(_) => Err(child.unexpected(&"a report").into()),
    }
}

fn report_of(child: &mut ChildProcess) -> Result<Report, NodeThreadError> {
    match child.next(SUPERVISED)? {
        Answer::Report(report) => Ok(*report),
        Answer::Failed(failure) => Err(failure.into()),
        Answer::Stopped => Err(NodeThreadError::Stopped),
        Answer::NoBroker(reason) => Err(NodeError::NoBroker(reason).into()),
        Answer::Made(_) => Err(child.unexpected(&"made again").into()),
    }
}

/// Whether this process is to be an end.
pub fn is_asked_for() -> bool {
    child::is(KIND)
}

/// Is the end that the parent asks for. Returns the exit code.
///
/// # Errors
/// When the parent has gone.
pub fn serve() -> io::Result<u8> {
    let answered = match end() {
        Ok(report) => Answer::Report(Box::new(report)),
        Err(
            RunError::Thread(
                _,
                NodeThreadError::Stopped
                | NodeThreadError::Node(NodeError::GivenUp | NodeError::PeerEnded(_)),
            )
            | RunError::Node(NodeError::GivenUp),
        ) => Answer::Stopped,
        Err(RunError::Node(NodeError::NoBroker(reason))) => Answer::NoBroker(reason),
        Err(RunError::Thread(_, error)) => Answer::Failed(Failure::Run(error.to_string())),
        Err(error) => Answer::Failed(error.into()),
    };
    answer(&answered)?;
    Ok(u8::from(!matches!(answered, Answer::Report(_))))
}

fn end() -> Result<Report, RunError> {
    interrupt::install_under_parent()?;
    let asked = listen()?;
    let line = asked.recv().map_err(|_| NodeError::GivenUp)?;
    let ask: EndRequest = serde_json::from_str(&line).map_err(misunderstood)?;
    let clock = AnyClock::at_rate(ask.common.config.timer.clock(), ask.tsc_hertz);
    clock.map_err(RigError::Clock)?.visit(EndProcess {
        ask: &ask,
        asked: &asked,
    })
}

struct EndProcess<'a> {
    ask: &'a EndRequest,
    asked: &'a Receiver<String>,
}

impl ClockUser for EndProcess<'_> {
    type Output = Result<Report, RunError>;

    fn with<C: Clock>(self, clock: C) -> Result<Report, RunError> {
        let ask = self.ask;
        let point = &ask.common.point;
        needs_of_an_end(ask).require("its process")?;
        let shared = SharedState::new(point.wiring, &SharedMemory::of_parent(ask.shared)?)?;
        let shared = Arc::new(shared);
        let type_memory = ask.type_memory.map(SharedMemory::of_parent).transpose()?;
        #[cfg(feature = "rdma")]
        let fabric = (point.node_type == crate::node::NodeType::InfiniBand)
            .then(|| super::verbs::choose(&ask.common.config))
            .transpose()
            // The parent has found them, so they have gone since.
            .map_err(|error| Failure::Run(error.to_string()))?;
        let setup = Setup {
            common: &ask.common,
            shared: &shared,
            type_memory: type_memory.as_ref(),
            #[cfg(feature = "rdma")]
            fabric: fabric.as_ref(),
            wakeable: &Wakeable::new()?,
        };
        let made = |mut addresses: Vec<Value>| -> Result<Workers, RunError> {
            // A parent that has gone ends this process.
            let _ = answer(&Answer::Made(addresses.pop().unwrap_or_default()));
            self.asked.recv().map_err(|_| NodeError::GivenUp)?;
            // The stop flag of the run is not its own: it ends at the end of this one.
            Ok(Crew::new(&Arc::new(Control::default()))?)
        };
        let mut workers = setup.visit(OneSide {
            setup: &setup,
            clock,
            side: ask.side,
            ends: &[(ask.number, ask.cpu)],
            subscribers: &ask.subscribers,
            log: |_| Ok(LogRoom::Shared(SharedLog::of_parent(ask.log.clone())?)),
            made,
        })?;
        let run = &shared.run;
        let is_stopped = || {
            let stopped = || RunError::Thread(role(ask.side), NodeThreadError::Stopped);
            run.stopped().then(stopped)
        };
        let stops = || {
            run.stop();
            setup.wakeable.wake();
        };
        let collected = workers.collect(&SupervisorTimeouts::default(), is_stopped, stops)?;
        let mut reports = finished(collected)?;
        workers.dismiss(SupervisorTimeouts::default().grace);
        Ok(reports.remove(0))
    }
}
