//! The thread of the receiving end, and its receive requests.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::burst_record::BurstRecord;
use super::busy_receiver::BusyReceiver;
use super::config::{LARGEST_BURST, Operation, Poll};
use super::ends::ReceivingEnd;
use super::error::RunError;
use super::placement::RECEIVER;
use super::port::{BusyPolling, CompletionPort, Polled, WaitForEvent};
use super::receiver::{Strays, receive};
use super::result::LoopFaults;
use super::tag::Expected;
use super::worker::{Frame, Task, Threads, counting_faults, start};
use crate::buffer::{Arrival, StampBuffer};
use crate::pacing::ConstantWait;
use crate::rig::error::RigError;
use crate::time::{Clock, Nanos};

/// Starts the receiving thread on a CPU; returns the way to give it tasks.
pub(super) fn start_receiving<C: Clock, E: ReceivingEnd>(
    threads: &mut Threads,
    clock: C,
    frame: &Frame,
    end: &Arc<E>,
    cpu: usize,
) -> Result<Sender<Task>, RigError> {
    let (end, frame, seat) = (Arc::clone(end), frame.clone(), frame.seat(RECEIVER, cpu));
    start(threads, seat, move |post| {
        let capacity = frame.depth as usize;
        let mut log = StampBuffer::<Arrival>::new(capacity, frame.huge_pages)?;
        // What the capacity has no use for is there for messages of others, each of which takes one.
        let spare = end.slots().saturating_sub(capacity);
        let mut requests = ReceiveRequests::new(end.slots());
        post.placed(Some(log.page_kind()));
        post.each(|task| {
            let cleared = match frame.point.operation {
                // In any of them.
                Operation::Send => end.slots(),
                _ => task.count,
            };
            (0..cleared)
                .take_while(|_| !task.control.stopped())
                .for_each(|slot| end.clear(slot));
            let mut port = end.port(task.number, task.count);
            let expected = Expected::new(task.number, task.count, end.source());
            let before = requests.drain(&mut port, &expected);
            requests
                .top_up(&*end, task.count + spare)
                .map_err(RunError::Post)?;
            let (arrivals, control) = (&mut log[..task.count], &*task.control);
            let (mode, pause) = (frame.point.poll_recv, frame.point.receiver_pause_ns);
            let work = ConstantWait::new(&clock, pause);
            let (mut outcome, faults) = counting_faults(|| match (mode, pause) {
                (Poll::Busy, Nanos(0)) => {
                    receive(&clock, &mut port, BusyPolling, expected, arrivals, control)
                }
                (Poll::Busy, _) => {
                    let mut port = BusyReceiver::new(&mut port, &clock, work, control.stop_flag());
                    receive(&clock, &mut port, BusyPolling, expected, arrivals, control)
                }
                (Poll::Event, Nanos(0)) => frame.wakeable.during(|| {
                    let mode = WaitForEvent::default();
                    receive(&clock, &mut port, mode, expected, arrivals, control)
                }),
                (Poll::Event, _) => frame.wakeable.during(|| {
                    let mut port = BusyReceiver::new(&mut port, &clock, work, control.stop_flag());
                    let mode = WaitForEvent::default();
                    receive(&clock, &mut port, mode, expected, arrivals, control)
                }),
            });
            requests.took(outcome.received + outcome.strays.total() as usize);
            outcome.strays.late += before.late;
            outcome.strays.foreign += before.foreign;
            Ok(BurstRecord {
                arrivals: log[..outcome.received].to_vec(),
                receive: Some(outcome),
                faults: LoopFaults {
                    receiver: faults,
                    ..LoopFaults::default()
                },
                ..BurstRecord::default()
            })
        })
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
    fn new(slots: usize) -> Self {
        ReceiveRequests {
            slots,
            next: 0,
            outstanding: 0,
        }
    }

    fn top_up(&mut self, end: &impl ReceivingEnd, wanted: usize) -> Result<(), String> {
        while self.outstanding < wanted.min(self.slots) {
            end.post(self.next)?;
            self.next = (self.next + 1) % self.slots;
            self.outstanding += 1;
        }
        Ok(())
    }

    /// Takes the completions of messages that came between two bursts, so that their requests are posted anew.
    fn drain(&mut self, port: &mut impl CompletionPort, expected: &Expected) -> Strays {
        let mut strays = Strays::default();
        loop {
            match port.poll() {
                Polled::Done(completion) => strays.file(&completion, expected, LARGEST_BURST),
                Polled::Failed(failure) if failure.foreign => strays.foreign += 1,
                // A failed one says no more than the burst to come will say itself.
                Polled::Empty | Polled::Failed(_) => break,
            }
        }
        self.took(strays.total() as usize);
        strays
    }

    fn took(&mut self, count: usize) {
        self.outstanding -= count.min(self.outstanding);
    }
}
