//! What the threads of a point have in common: their tasks, their reports, and what they may fail by.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::completion::CompletionOutcome;
use super::control::Control;
use super::receiver::ReceiveOutcome;
use super::sender::SendOutcome;
use super::stamper::StampOutcome;
use crate::buffer::{Arrival, BufferError, HugePagePolicy, PageKind};
use crate::host::pinning::{self, Moved};
use crate::host::{HostError, PageFaults, Wakeable};
use crate::rig::error::RigError;
use crate::rig::workers::{Crew, Reporter, Seat};
use crate::time::Ticks;

/// A burst to be run.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// Its number on this connection; it tags the messages and their pattern.
    pub(super) number: u32,
    /// Its messages.
    pub(super) count: usize,
    /// Threads that must be ready before the sender starts.
    pub(super) others: u32,
    /// Shared by the burst's threads.
    pub(super) control: Arc<Control>,
}

/// What a thread tells.
#[derive(Debug)]
// One a burst: a box would spare nothing.
#[allow(clippy::large_enum_variant)]
pub(super) enum Report {
    /// It runs where it should and has its memory, in these pages.
    Placed(Option<PageKind>),
    /// Its part of a burst is over.
    Done {
        what: Done,
        /// Page faults in its loop.
        faults: u64,
        /// That it did not stay on its CPU.
        moved: Option<Moved>,
    },
}

/// What a thread did in a burst.
#[derive(Debug)]
pub(super) enum Done {
    /// The sending loop ended.
    Sent {
        submitted: Vec<Ticks>,
        /// t_comp by sequence number, if the sender took the completions.
        completed: Option<(Vec<Ticks>, CompletionOutcome)>,
        outcome: SendOutcome,
    },
    /// The receiving loop ended.
    Received {
        arrivals: Vec<Arrival>,
        outcome: ReceiveOutcome,
    },
    /// The completion loop ended.
    Completed {
        completed: Vec<Ticks>,
        outcome: CompletionOutcome,
    },
    /// The stamp thread ended its rewriting.
    Restamped(StampOutcome),
}

/// A thread cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It cannot be placed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// It has no memory.
    #[error("memory for --burst messages of --size bytes: {0}")]
    Buffer(#[from] BufferError),
    /// Receive requests cannot be posted.
    #[error("{0}")]
    Post(String),
}

/// The threads of a point.
pub(super) type Threads = Crew<Report, WorkerError>;

/// What all threads of a point need.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// The most messages of a burst.
    pub(super) capacity: usize,
    pub(super) huge_pages: HugePagePolicy,
    pub(super) wakeable: Wakeable,
}

/// A thread's way to its tasks and back.
pub(super) struct Post<'a> {
    cpu: usize,
    tasks: Receiver<Task>,
    reporter: &'a Reporter<Report, WorkerError>,
}

impl Post<'_> {
    /// Tells that it is placed and has its memory.
    pub(super) fn placed(&self, pages: Option<PageKind>) {
        self.reporter.send(Report::Placed(pages));
    }

    /// Does `work` for each task until there are no more, and reports.
    pub(super) fn each(
        self,
        mut work: impl FnMut(&Task) -> Result<(Done, u64), WorkerError>,
    ) -> Result<(), WorkerError> {
        while let Ok(task) = self.tasks.recv() {
            let (what, faults) = work(&task)?;
            let moved = pinning::check_still_on(self.cpu).err();
            if !self.reporter.send(Report::Done {
                what,
                faults,
                moved,
            }) {
                break;
            }
        }
        Ok(())
    }
}

/// Starts a thread that does `work`; returns the way to give it tasks.
pub(super) fn start(
    threads: &mut Threads,
    seat: Seat,
    work: impl FnOnce(Post<'_>) -> Result<(), WorkerError> + Send + 'static,
) -> Result<Sender<Task>, RigError> {
    let (give, tasks) = channel();
    threads.start(seat, move |reporter| {
        work(Post {
            cpu: seat.cpu,
            tasks,
            reporter,
        })
    })?;
    Ok(give)
}

/// Page faults of this thread while `work` runs.
pub(super) fn counting_faults<R>(work: impl FnOnce() -> R) -> Result<(R, u64), HostError> {
    let before = PageFaults::of_current_thread()?;
    let result = work();
    let after = PageFaults::of_current_thread()?;
    Ok((result, after.since(&before).total()))
}
