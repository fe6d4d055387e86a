//! The thread of the receiving end.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::burst_record::BurstRecord;
use super::busy_receiver::BusyReceiver;
use super::config::{Operation, Poll};
use super::control::Control;
use super::ends::ReceivingEnd;
use super::error::RunError;
use super::placement::RECEIVER;
use super::port::{BusyPolling, EventPort, WaitForEvent};
use super::receive_requests::ReceiveRequests;
use super::receiver::{ReceiveOutcome, receive};
use super::result::LoopFaults;
use super::tag::Expected;
use super::verbs_port::not_posted;
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
        let mut log = StampBuffer::<Arrival>::new(frame.longest as usize, frame.huge_pages)?;
        let point = &frame.point;
        let mut requests = ReceiveRequests::new(end.slots(), end.requests(), point.queue_pairs);
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
            let expected = Expected::new(task.number, task.count, end.sources());
            let before = requests.drain(&mut port, &expected);
            let post_one = |slot| end.post(slot);
            (requests.top_up(post_one)).map_err(|error| RunError::Post(error.to_string()))?;
            let (arrivals, control) = (&mut log[..task.count], &*task.control);
            let (mut outcome, faults) = if point.queue_pairs == 1 && !point.is_limited() {
                let took = take_messages(&clock, &mut port, &frame, expected, arrivals, control);
                let (outcome, _) = &took;
                requests.took_of_only(outcome.received + outcome.strays.total() as usize);
                took
            } else {
                let post_one = |slot| end.post(slot).map_err(|error| not_posted(&error));
                let mut port = requests.renewing(&mut port, post_one, control);
                let took = take_messages(&clock, &mut port, &frame, expected, arrivals, control);
                // One that cannot be posted now cannot be before the next burst either.
                let _ = port.finish();
                took
            };
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

/// Runs the receiving loop as the point has it; returns the page faults of it, too.
fn take_messages<C: Clock>(
    clock: &C,
    port: &mut impl EventPort,
    frame: &Frame,
    expected: Expected<'_>,
    arrivals: &mut [Arrival],
    control: &Control,
) -> (ReceiveOutcome, u64) {
    let (mode, pause) = (frame.point.poll_recv, frame.point.receiver_pause_ns);
    let work = ConstantWait::new(clock, pause);
    counting_faults(|| match (mode, pause) {
        (Poll::Busy, Nanos(0)) => receive(clock, port, BusyPolling, expected, arrivals, control),
        (Poll::Busy, _) => {
            let mut port = BusyReceiver::new(port, clock, work, control.stop_flag());
            receive(clock, &mut port, BusyPolling, expected, arrivals, control)
        }
        (Poll::Event, Nanos(0)) => frame.wakeable.during(|| {
            let mode = WaitForEvent::default();
            receive(clock, port, mode, expected, arrivals, control)
        }),
        (Poll::Event, _) => frame.wakeable.during(|| {
            let mut port = BusyReceiver::new(port, clock, work, control.stop_flag());
            let mode = WaitForEvent::default();
            receive(clock, &mut port, mode, expected, arrivals, control)
        }),
    })
}
