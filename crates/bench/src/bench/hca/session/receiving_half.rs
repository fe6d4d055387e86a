//! The receiving side of a session: the thread of a receiving end in this process, or what stands for one in another.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::burst_record::BurstRecord;
use super::worker::{BurstTask, Frame, Threads, counting_faults, start};
use crate::bench::hca::ends::hardware_stamps::HardwareStamps;
use crate::bench::hca::ends::verbs_port::not_posted;
use crate::bench::hca::ends::{Link, ReceivingEnd};
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::busy_receiver::BusyReceiver;
use crate::bench::hca::loops::control::Control;
use crate::bench::hca::loops::port::{BusyPolling, EventPort, WaitForEvent};
use crate::bench::hca::loops::receive_requests::ReceiveRequests;
use crate::bench::hca::loops::receiver::{ReceiveOutcome, receive};
use crate::bench::hca::loops::tag::Expected;
use crate::bench::hca::plan::placement::RECEIVER;
use crate::bench::hca::result::LoopFaults;
use crate::bench::hca::settings::config::{Operation, Poll};
use crate::buffer::{Arrival, StampBuffer};
use crate::pacing::ConstantWait;
use crate::rig::error::RigError;
use crate::time::{Clock, Nanos, Ticks};

/// Where messages of a session arrive, wherever that is.
pub(crate) trait ReceivingSide: Send + Sync + 'static {
    /// Starts its thread, of which one that measures runs on that CPU; returns the way to give it tasks.
    fn start<C: Clock>(
        self: &Arc<Self>,
        threads: &mut Threads,
        clock: C,
        frame: &Frame,
        cpu: usize,
    ) -> Result<Sender<BurstTask>, RigError>;
    /// The time stamp that message `sequence` of a burst brought, if length and pattern are those that were sent.
    fn delivered(&self, burst: u32, arrival: &Arrival, sequence: u32) -> Option<Ticks>;
    /// The stamps of its receive completions, if its adapter stamps them.
    fn hardware(&self) -> Option<&HardwareStamps> {
        None
    }
    /// Whether its stamps are of another clock than the sender's: nanoseconds then, not ticks.
    const OTHER_CLOCK: bool;
    /// What it has in common with the other end.
    fn link(&self) -> &dyn Link;
}

impl<E: ReceivingEnd> ReceivingSide for E {
    const OTHER_CLOCK: bool = false;

    fn start<C: Clock>(
        self: &Arc<Self>,
        threads: &mut Threads,
        clock: C,
        frame: &Frame,
        cpu: usize,
    ) -> Result<Sender<BurstTask>, RigError> {
        start_receiving(threads, clock, frame, self, cpu)
    }

    fn delivered(&self, burst: u32, arrival: &Arrival, sequence: u32) -> Option<Ticks> {
        ReceivingEnd::delivered(self, burst, arrival, sequence)
    }

    fn hardware(&self) -> Option<&HardwareStamps> {
        ReceivingEnd::hardware(self)
    }

    fn link(&self) -> &dyn Link {
        ReceivingEnd::link(self)
    }
}

/// Starts the receiving thread on a CPU; returns the way to give it tasks.
pub(crate) fn start_receiving<C: Clock, E: ReceivingEnd>(
    threads: &mut Threads,
    clock: C,
    frame: &Frame,
    end: &Arc<E>,
    cpu: usize,
) -> Result<Sender<BurstTask>, RigError> {
    let (end, frame, seat) = (Arc::clone(end), frame.clone(), frame.seat(RECEIVER, cpu));
    start(threads, seat, move |post| {
        let mut log = StampBuffer::<Arrival>::new(frame.point.burst as usize, frame.huge_pages)?;
        let point = &frame.point;
        let mut requests =
            ReceiveRequests::new(end.slots(), end.requests(), point.receive_queues());
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
            let burst = BurstReceiver {
                expected,
                arrivals: &mut log[..task.count],
                control: &task.control,
            };
            let (mut outcome, faults) = match point.receiver_pause_ns {
                Nanos(0) => take_messages(&clock, &mut port, &frame, &*end, &mut requests, burst),
                pause => {
                    // Before it is away it posts what was taken anew, so that is the outer port.
                    let (work, stop) =
                        (ConstantWait::new(&clock, pause), burst.control.stop_flag());
                    let mut port = BusyReceiver::new(&mut port, &clock, work, stop);
                    take_messages(&clock, &mut port, &frame, &*end, &mut requests, burst)
                }
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

/// What a burst brings, and where it goes.
struct BurstReceiver<'a> {
    expected: Expected<'a>,
    arrivals: &'a mut [Arrival],
    control: &'a Control,
}

/// Runs the receiving loop, and sees to it that what messages take of the receive requests is counted, or posted anew
/// where the point has it so. Returns its page faults, too.
fn take_messages<C: Clock, P: EventPort>(
    clock: &C,
    port: &mut P,
    frame: &Frame,
    end: &impl ReceivingEnd,
    requests: &mut ReceiveRequests,
    burst: BurstReceiver<'_>,
) -> (ReceiveOutcome, u64) {
    // A shared queue may be shorter than the burst.
    if frame.point.receive_queues() == 1 && !frame.point.is_limited() && requests.holds_all_slots()
    {
        let (outcome, faults) = take_by_mode(clock, port, frame, burst);
        requests.took_of_only(outcome.received + outcome.strays.total() as usize);
        return (outcome, faults);
    }
    let post_one = |slot| end.post(slot).map_err(|error| not_posted(&error));
    let mut port = requests.renewing(port, post_one, burst.control);
    let took = take_by_mode(clock, &mut port, frame, burst);
    // One that cannot be posted now cannot be before the next burst either.
    let _ = port.finish();
    took
}

/// Runs the receiving loop in the poll mode of the point.
fn take_by_mode<C: Clock, P: EventPort>(
    clock: &C,
    port: &mut P,
    frame: &Frame,
    burst: BurstReceiver<'_>,
) -> (ReceiveOutcome, u64) {
    let BurstReceiver {
        expected,
        arrivals,
        control,
    } = burst;
    counting_faults(|| match frame.point.poll_recv {
        Poll::Busy => receive(clock, port, BusyPolling, expected, arrivals, control),
        Poll::Event => frame.wakeable.during(|| {
            let mode = WaitForEvent::default();
            receive(clock, port, mode, expected, arrivals, control)
        }),
    })
}
