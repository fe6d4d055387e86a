//! The threads of a point: placed once, then one loop a burst.
//!
//! Each takes tasks from a channel, makes ready what belongs to it, runs its hot loop, and reports. Nothing but the loop
//! runs between the two readings of the page fault counter.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::completion::{Collector, CompletionOutcome, Elsewhere};
use super::config::{Operation, Poll, Timestamp};
use super::control::Control;
use super::endpoints::Endpoints;
use super::occupied::Occupied;
use super::port::{BusyPolling, CompletionPort, Polled, WaitForEvent};
use super::receiver::{ReceiveOutcome, Tag, receive};
use super::sender::{SendOutcome, SendStamp, StampMode, SubmitStamp, send};
use super::stamper::{StampOutcome, restamp};
use super::verbs_port::{VerbsCompletionPort, VerbsSendPort};
use crate::buffer::{Arrival, BufferError, HugePagePolicy, PageKind, StampBuffer};
use crate::host::{HostError, PageFaults, Role, Wakeable, pinning, priority};
use crate::pacing::{ConstantWait, NoPause, Pacing};
use crate::rdma::verbs::VerbsError;
use crate::time::{Clock, Nanos, Ticks};

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
pub(super) enum Report {
    /// It runs where it should and has its memory, in these pages.
    Placed(Option<PageKind>),
    /// It cannot run.
    Unfit(Role, ThreadError),
    /// The sending loop ended.
    Sent {
        submitted: Vec<Ticks>,
        /// t_comp by sequence number, if the sender took the completions.
        completed: Option<(Vec<Ticks>, CompletionOutcome)>,
        outcome: SendOutcome,
        faults: u64,
    },
    /// The receiving loop ended.
    Received {
        arrivals: Vec<Arrival>,
        outcome: ReceiveOutcome,
        faults: u64,
    },
    /// The completion loop ended.
    Completed {
        completed: Vec<Ticks>,
        outcome: CompletionOutcome,
        faults: u64,
    },
    /// The stamp thread ended its rewriting.
    Restamped(StampOutcome),
}

/// A thread cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// It cannot be placed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// It has no memory.
    #[error("memory for --burst messages of --size bytes: {0}")]
    Buffer(#[from] BufferError),
    /// Receive requests cannot be posted.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
}

/// What all threads of a point need.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) capacity: usize,
    pub(super) huge_pages: HugePagePolicy,
    pub(super) priority: Option<u8>,
    pub(super) wakeable: Wakeable,
    pub(super) reports: Sender<Report>,
}

/// A running thread and the way to give it tasks.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) tasks: Sender<Task>,
    pub(super) handle: JoinHandle<()>,
}

/// Starts a thread that places itself on `cpu` and then runs `work`.
fn start<W>(role: Role, cpu: usize, frame: &Frame, work: W) -> std::io::Result<Worker>
where
    W: FnOnce(&Frame, Receiver<Task>) -> Result<(), ThreadError> + Send + 'static,
{
    let (tasks, incoming) = channel();
    let frame = frame.clone();
    let name = match role {
        Role::Sender => "hcabench-send",
        Role::Receiver => "hcabench-recv",
        Role::Completion => "hcabench-comp",
        Role::Stamp => "hcabench-stamp",
    };
    let handle = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let run = || -> Result<(), ThreadError> {
                pinning::pin_current_thread(cpu)?;
                if let Some(level) = frame.priority {
                    priority::set_fifo(i32::from(level))?;
                }
                work(&frame, incoming)
            };
            if let Err(error) = run() {
                let _ = frame.reports.send(Report::Unfit(role, error));
            }
        })?;
    Ok(Worker { tasks, handle })
}

/// Page faults of this thread while `work` runs.
fn counting_faults<R>(work: impl FnOnce() -> R) -> Result<(R, u64), HostError> {
    let before = PageFaults::of_current_thread()?;
    let result = work();
    let after = PageFaults::of_current_thread()?;
    Ok((result, after.since(&before).total()))
}

/// How the sending thread works.
#[derive(Debug, Clone, Copy)]
pub(super) struct SenderSettings {
    pub(super) pause: Nanos,
    pub(super) timestamp: Timestamp,
    /// Every so many messages one is signalled.
    pub(super) signal_every: u32,
    /// Whether the sender takes the completions itself.
    pub(super) collects: bool,
}

/// Starts the sending thread.
pub(super) fn start_sender<C: Clock>(
    clock: C,
    cpu: usize,
    frame: &Frame,
    endpoints: &Arc<Endpoints>,
    settings: SenderSettings,
) -> std::io::Result<Worker> {
    let endpoints = Arc::clone(endpoints);
    start(Role::Sender, cpu, frame, move |frame, tasks| {
        let submitted = StampBuffer::new(frame.capacity, frame.huge_pages)?;
        let completed = StampBuffer::new(frame.capacity, frame.huge_pages)?;
        let thread = SendingThread {
            clock,
            settings,
            port: endpoints.send_port(),
            endpoints,
            submitted,
            completed,
        };
        let _ = frame
            .reports
            .send(Report::Placed(Some(thread.submitted.page_kind())));
        match (settings.pause, settings.timestamp) {
            (Nanos(0), Timestamp::Submit) => thread.work(frame, tasks, NoPause, || SubmitStamp),
            (Nanos(0), Timestamp::Send) => thread.work(frame, tasks, NoPause, || SendStamp),
            (pause, Timestamp::Submit) => {
                thread.work(frame, tasks, ConstantWait::new(&clock, pause), || {
                    SubmitStamp
                })
            }
            (pause, Timestamp::Send) => {
                thread.work(frame, tasks, ConstantWait::new(&clock, pause), || SendStamp)
            }
        }
    })
}

struct SendingThread<C> {
    clock: C,
    settings: SenderSettings,
    port: VerbsSendPort,
    endpoints: Arc<Endpoints>,
    submitted: StampBuffer<Ticks>,
    completed: StampBuffer<Ticks>,
}

impl<C: Clock> SendingThread<C> {
    fn work<W: Pacing, S: StampMode>(
        mut self,
        frame: &Frame,
        tasks: Receiver<Task>,
        mut pacing: W,
        stamp_mode: impl Fn() -> S,
    ) -> Result<(), ThreadError> {
        while let Ok(task) = tasks.recv() {
            // A large burst takes its time, even longer than a user who wants to end it.
            for sequence in (0..task.count).take_while(|_| !task.control.stopped()) {
                self.endpoints
                    .source()
                    .fill(sequence, task.number, sequence as u32);
            }
            let tag = Tag::new(task.number);
            self.port.set_tag(tag);
            let every = self.settings.signal_every;
            let submitted = &mut self.submitted[..task.count];
            let completed = &mut self.completed[..task.count];
            completed.fill(Ticks(0));
            let control = &*task.control;
            let (clock, port) = (&self.clock, &mut self.port);
            let (outcome, completions, faults) = if self.settings.collects {
                let expected = completions_expected(task.count, every);
                let queue = self.endpoints.completion_port();
                let mut collector =
                    Collector::new(queue, completed, expected, control).of_burst(tag);
                let (outcome, faults) = ready_to_send(&task, || {
                    send(
                        clock,
                        port,
                        &mut pacing,
                        &mut collector,
                        stamp_mode(),
                        every,
                        submitted,
                        control,
                    )
                })?;
                (outcome, Some(collector.into_outcome()), faults)
            } else {
                let (outcome, faults) = ready_to_send(&task, || {
                    send(
                        clock,
                        port,
                        &mut pacing,
                        &mut Elsewhere,
                        stamp_mode(),
                        every,
                        submitted,
                        control,
                    )
                })?;
                (outcome, None, faults)
            };
            let report = Report::Sent {
                submitted: self.submitted[..outcome.posted as usize].to_vec(),
                completed: completions
                    .map(|completions| (self.completed[..task.count].to_vec(), completions)),
                outcome,
                faults,
            };
            if frame.reports.send(report).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Waits for the other threads, then runs the sending loop.
fn ready_to_send(
    task: &Task,
    work: impl FnOnce() -> SendOutcome,
) -> Result<(SendOutcome, u64), HostError> {
    let all_ready = task.control.wait_until_ready(task.others);
    task.control.set_begun();
    if !all_ready {
        task.control.set_sender_done();
        let nothing = SendOutcome {
            posted: 0,
            last_post: Ticks(0),
            failure: None,
        };
        return Ok((nothing, 0));
    }
    counting_faults(work)
}

/// Signalled messages among `count`, when every so many is signalled and the last always is.
pub(super) fn completions_expected(count: usize, every: u32) -> u32 {
    (count as u32).div_ceil(every)
}

/// How the receiving thread works.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReceiverSettings {
    pub(super) mode: Poll,
    pub(super) operation: Operation,
    /// What it is away for before each look.
    pub(super) pause: Nanos,
}

/// Starts the receiving thread.
pub(super) fn start_receiver<C: Clock>(
    clock: C,
    cpu: usize,
    frame: &Frame,
    endpoints: &Arc<Endpoints>,
    settings: ReceiverSettings,
) -> std::io::Result<Worker> {
    let endpoints = Arc::clone(endpoints);
    start(Role::Receiver, cpu, frame, move |frame, tasks| {
        let mut arrivals = StampBuffer::<Arrival>::new(frame.capacity, frame.huge_pages)?;
        let mut requests = ReceiveRequests::new(&endpoints);
        let mut port = endpoints.receive_port();
        let _ = frame
            .reports
            .send(Report::Placed(Some(arrivals.page_kind())));
        while let Ok(task) = tasks.recv() {
            let target = endpoints.target();
            let cleared = if settings.operation == Operation::Write {
                task.count
            } else {
                target.slots()
            };
            let going_on = |_: &usize| !task.control.stopped();
            (0..cleared)
                .take_while(going_on)
                .for_each(|slot| target.clear(slot));
            let late_before = requests.drain(&mut port);
            requests.top_up(&endpoints, task.count)?;
            let log = &mut arrivals[..task.count];
            let (control, tag) = (&*task.control, Tag::new(task.number));
            let work = ConstantWait::new(&clock, settings.pause);
            let (outcome, faults) = counting_faults(|| match (settings.mode, settings.pause) {
                (Poll::Busy, Nanos(0)) => {
                    receive(&clock, &mut port, BusyPolling, tag, log, control)
                }
                (Poll::Busy, _) => {
                    let mut port = Occupied::new(&mut port, &clock, work);
                    receive(&clock, &mut port, BusyPolling, tag, log, control)
                }
                (Poll::Event, Nanos(0)) => frame.wakeable.during(|| {
                    let mode = WaitForEvent::default();
                    receive(&clock, &mut port, mode, tag, log, control)
                }),
                (Poll::Event, _) => frame.wakeable.during(|| {
                    let mut port = Occupied::new(&mut port, &clock, work);
                    let mode = WaitForEvent::default();
                    receive(&clock, &mut port, mode, tag, log, control)
                }),
            })?;
            requests.took(outcome.received + outcome.late as usize);
            let outcome = ReceiveOutcome {
                late: outcome.late + late_before,
                ..outcome
            };
            let report = Report::Received {
                arrivals: arrivals[..outcome.received].to_vec(),
                outcome,
                faults,
            };
            if frame.reports.send(report).is_err() {
                break;
            }
        }
        Ok(())
    })
}

/// The receive requests that are posted. Slots are used in turn, so a request that a lost message left behind keeps its
/// slot to itself.
struct ReceiveRequests {
    slots: usize,
    next: usize,
    outstanding: usize,
}

impl ReceiveRequests {
    fn new(endpoints: &Endpoints) -> Self {
        ReceiveRequests {
            slots: endpoints.target().slots(),
            next: 0,
            outstanding: 0,
        }
    }

    fn top_up(&mut self, endpoints: &Endpoints, wanted: usize) -> Result<(), VerbsError> {
        while self.outstanding < wanted {
            endpoints
                .receiving()
                .post_receive(endpoints.target_region(), self.next)?;
            self.next = (self.next + 1) % self.slots;
            self.outstanding += 1;
        }
        Ok(())
    }

    /// Takes the completions of messages that came after their burst was over, so that their requests are posted anew.
    /// Returns how many there were.
    fn drain(&mut self, port: &mut VerbsCompletionPort) -> u32 {
        let mut late = 0;
        // A failed one says no more than the burst to come will say itself.
        while let Polled::Done(_) = port.poll() {
            late += 1;
        }
        self.took(late);
        late as u32
    }

    fn took(&mut self, count: usize) {
        self.outstanding -= count.min(self.outstanding);
    }
}

/// Starts a thread that takes the send completions.
pub(super) fn start_completion<C: Clock>(
    clock: C,
    cpu: usize,
    frame: &Frame,
    endpoints: &Arc<Endpoints>,
    mode: Poll,
    signal_every: u32,
) -> std::io::Result<Worker> {
    let endpoints = Arc::clone(endpoints);
    start(Role::Completion, cpu, frame, move |frame, tasks| {
        let mut completed = StampBuffer::<Ticks>::new(frame.capacity, frame.huge_pages)?;
        let _ = frame
            .reports
            .send(Report::Placed(Some(completed.page_kind())));
        while let Ok(task) = tasks.recv() {
            let stamps = &mut completed[..task.count];
            stamps.fill(Ticks(0));
            let expected = completions_expected(task.count, signal_every);
            let port: VerbsCompletionPort = endpoints.completion_port();
            let collector = Collector::new(port, stamps, expected, &task.control)
                .of_burst(Tag::new(task.number));
            let (outcome, faults) = counting_faults(|| match mode {
                Poll::Busy => collector.run(&clock, BusyPolling),
                Poll::Event => frame
                    .wakeable
                    .during(|| collector.run(&clock, WaitForEvent::default())),
            })?;
            let report = Report::Completed {
                completed: completed[..task.count].to_vec(),
                outcome,
                faults,
            };
            if frame.reports.send(report).is_err() {
                break;
            }
        }
        Ok(())
    })
}

/// Starts the thread that rewrites stamps.
pub(super) fn start_stamper<C: Clock>(
    clock: C,
    cpu: usize,
    frame: &Frame,
    endpoints: &Arc<Endpoints>,
) -> std::io::Result<Worker> {
    let stamps = endpoints.stamps();
    start(Role::Stamp, cpu, frame, move |frame, tasks| {
        let _ = frame.reports.send(Report::Placed(None));
        while let Ok(task) = tasks.recv() {
            let outcome = restamp(&clock, &stamps, &task.control);
            if frame.reports.send(Report::Restamped(outcome)).is_err() {
                break;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_always_signalled() {
        assert_eq!(completions_expected(1000, 1), 1000);
        assert_eq!(completions_expected(1000, 1000), 1);
        assert_eq!(completions_expected(1000, 300), 4);
        assert_eq!(completions_expected(1, 8192), 1);
    }
}
