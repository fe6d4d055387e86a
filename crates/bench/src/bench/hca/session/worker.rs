//! What the threads of a point have in common: what they need, their tasks and reports, and what they may fail by.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::burst_record::BurstRecord;
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::control::Control;
use crate::bench::hca::loops::signalling::Signalling;
use crate::bench::hca::plan::Point;
use crate::bench::hca::plan::placement::RECEIVER;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::counters::ThreadUsage;
use crate::host::{Wakeable, pinning};
use crate::rig::error::RigError;
use crate::rig::role::Role;
use crate::rig::workers::{Cause, Crew, Reporter, SupervisorTimeouts, WorkerPlacement};

/// How long placing the threads and touching their memory may take.
const PLACING: Duration = Duration::from_secs(30);

/// A burst to be run.
#[derive(Debug, Clone)]
pub(crate) struct BurstTask {
    /// Its number on this connection; it tags the messages and their pattern.
    pub(crate) number: u32,
    /// Its messages.
    pub(crate) count: usize,
    /// Threads that must be ready before the sender starts.
    pub(crate) others: u32,
    /// Shared by the burst's threads.
    pub(crate) control: Arc<Control>,
}

/// What a thread tells.
#[derive(Debug)]
// One a burst: a box would spare nothing.
#[allow(clippy::large_enum_variant)]
pub(crate) enum ThreadReport {
    /// It runs where it should and has its memory, in these pages.
    Placed(Option<PageKind>),
    /// What it saw of a burst.
    Done(BurstRecord),
}

/// The threads of a point.
pub(crate) type Threads = Crew<ThreadReport, RunError>;

/// What all threads of a point need.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) point: Point,
    pub(crate) priority: Option<u8>,
    /// What the times of Poisson arrivals follow from, in this round.
    pub(crate) seed: u64,
    pub(crate) huge_pages: HugePagePolicy,
    pub(crate) wakeable: Wakeable,
    /// Whether the receiver is in another process, so that the sender cannot see how far it is.
    pub(crate) far: bool,
}

impl Frame {
    /// The place of a thread.
    pub(crate) fn seat(&self, role: Role, cpu: usize) -> WorkerPlacement {
        WorkerPlacement {
            role,
            cpu,
            priority: self.priority,
        }
    }

    /// Which messages are signalled.
    pub(crate) fn signalling(&self) -> Signalling {
        let Point {
            burst,
            depth,
            queue_pairs,
            ..
        } = self.point;
        let every = match (self.point.unsignaled.is_on(), self.point.is_limited()) {
            (false, _) => 1,
            (true, false) => self.point.share(burst),
            (true, true) => Signalling::longest_run(depth, queue_pairs),
        };
        Signalling::new(every, queue_pairs)
    }

    /// Signalled messages among `count`.
    pub(crate) fn completions_of(&self, count: usize) -> u32 {
        self.signalling().among(count as u32)
    }
}

/// A thread's way to its tasks and back.
pub(crate) struct TaskChannel<'a> {
    seat: WorkerPlacement,
    tasks: Receiver<BurstTask>,
    reporter: &'a Reporter<ThreadReport>,
}

impl TaskChannel<'_> {
    /// Tells that it is placed and has its memory.
    pub(crate) fn placed(&self, pages: Option<PageKind>) {
        self.reporter.send(ThreadReport::Placed(pages));
    }

    /// Does `work` for each task until there are no more, and reports.
    pub(crate) fn each(
        self,
        mut work: impl FnMut(&BurstTask) -> Result<BurstRecord, RunError>,
    ) -> Result<(), RunError> {
        while let Ok(task) = self.tasks.recv() {
            let mut record = work(&task)?;
            let WorkerPlacement { role, cpu, .. } = self.seat;
            if let Err(moved) = pinning::check_still_on(cpu) {
                record.failure = Some(RigError::Moved { role, moved }.to_string());
            }
            if !self.reporter.send(ThreadReport::Done(record)) {
                break;
            }
        }
        Ok(())
    }
}

/// Starts a thread that does `work`; returns the way to give it tasks.
pub(crate) fn start(
    threads: &mut Threads,
    seat: WorkerPlacement,
    work: impl FnOnce(TaskChannel<'_>) -> Result<(), RunError> + Send + 'static,
) -> Result<Sender<BurstTask>, RigError> {
    let (give, tasks) = channel();
    threads.start(seat, move |reporter| {
        work(TaskChannel {
            seat,
            tasks,
            reporter,
        })
    })?;
    Ok(give)
}

/// Waits until all threads are placed and have their memory, under signals of which `requested` tells. Returns the
/// smallest pages of those that have stamps.
///
/// # Errors
/// When one cannot be placed, or not in time, or a signal comes.
pub(crate) fn wait_until_placed(
    threads: &mut Threads,
    requested: &dyn Fn() -> Option<Signal>,
) -> Result<PageKind, RunError> {
    let since = Instant::now();
    let late = || (since.elapsed() > PLACING).then_some(());
    let placed = threads.collect_under(requested, &SupervisorTimeouts::default(), late, || ())?;
    if let Some((role, error)) = placed.failures.into_iter().next() {
        return Err(RunError::Worker(role, Box::new(error)));
    }
    match placed.cause {
        Some(Cause::Signal(signal)) => return Err(RigError::Interrupted(signal).into()),
        Some(_) => {
            let (role, limit) = (RECEIVER, PLACING);
            return Err(RigError::NotReady { role, limit }.into());
        }
        None => {}
    }
    let pages = placed
        .reports
        .into_iter()
        .filter_map(|(_, report)| match report {
            ThreadReport::Placed(pages) => pages,
            ThreadReport::Done(_) => None,
        });
    Ok(pages.fold(PageKind::Huge, PageKind::min))
}

/// Adds to a burst what its threads saw, and the first failure of one.
pub(crate) fn gather(
    record: &mut BurstRecord,
    reports: Vec<(usize, ThreadReport)>,
    failures: &[(Role, RunError)],
) {
    for (_, report) in reports {
        if let ThreadReport::Done(part) = report {
            record.add(part);
        }
    }
    if let Some((role, error)) = failures.first() {
        let failure = || format!("{role}: {error}");
        record.failure.get_or_insert_with(failure);
    }
}

/// Page faults of this thread while `work` runs.
pub(crate) fn counting_faults<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = ThreadUsage::now();
    let result = work();
    (result, ThreadUsage::now().since(before).faults())
}
