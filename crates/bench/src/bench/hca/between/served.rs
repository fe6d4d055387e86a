//! A point that is served: its receiving thread takes the bursts that the other end announces, and probes are answered
//! between them.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::mpsc::Sender as Tasks;
use std::time::{Duration, Instant};

use super::message::{PreparedPoint, ReceivedBurst, WireMessage};
use super::ping_pong::{MOST_PROBES, ProbeProgress, Stamped};
use super::probe_end::ProbeEnd;
use crate::bench::hca::ends::{Link, ReceivingEnd};
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::control::Control;
use crate::bench::hca::loops::receiver::ReceiveOutcome;
use crate::bench::hca::loops::tag::Tag;
use crate::bench::hca::session::burst_record::BurstRecord;
use crate::bench::hca::session::receiving_half::ReceivingSide;
use crate::bench::hca::session::watch::PREPARATION;
use crate::bench::hca::session::worker::{BurstTask, Frame, Threads, gather, wait_until_placed};
use crate::between::message::{next, only, send_message, take};
use crate::buffer::PageKind;
use crate::host::interrupt;
use crate::host::throttling::ThrottleCounters;
use crate::launch::wire::Wire;
use crate::rdma::verbs::CounterReading;
use crate::rig::benchmark::Failure;
use crate::rig::control::Control as RunControl;
use crate::rig::error::RigError;
use crate::rig::workers::{Cause, Crew, SupervisorTimeouts};
use crate::time::Clock;

/// How often a running burst is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often the other end is told how far a burst is.
const TELL: Duration = Duration::from_millis(50);
/// How often a link is looked at, which costs a system call.
const LINK_LOOK: Duration = Duration::from_millis(200);
/// How long the other end may be silent while something runs here for it.
const SILENCE: Duration = Duration::from_secs(15);
/// How long probes may take.
const PROBING: Duration = Duration::from_secs(150);
/// How long threads may take to leave their loop.
const GRACE: Duration = Duration::from_secs(2);

/// What ends a burst here.
enum ServedEnding {
    /// The other end has gone, or said what it must not.
    Gone(RunError),
    /// Told to leave their loops, threads did not.
    Held,
}

/// Does what the other end asks of a point, until it is over. `respond` does what not all points have.
pub(super) fn serve_point<C: Clock>(
    wire: &mut Wire,
    link: &dyn Link,
    (clock, probes): (&C, &ProbeEnd<C>),
    mut respond: impl FnMut(&mut Wire, WireMessage) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let mut throttling = ThrottleCounters::open();
    loop {
        match next(wire)? {
            WireMessage::PointOver => return Ok(()),
            WireMessage::Throttling => {
                let throttled = Box::new(throttling.record());
                send_message(wire, &WireMessage::Throttled(throttled))?;
            }
            WireMessage::Probe { first, count } => {
                answer_probes(wire, probes, clock, (first, count))?
            }
            WireMessage::Counters(reading) => {
                if reading == CounterReading::All {
                    // It asks for them before the first measured burst.
                    throttling.begin();
                }
                send_message(wire, &WireMessage::Counted(link.counters(reading)))?;
            }
            WireMessage::Changes => send_message(wire, &WireMessage::Changed(link.changes()))?,
            other => respond(wire, other)?,
        }
    }
}

/// The receiving thread of a point, and who gives it bursts.
pub(super) struct ServedReceiver<R: ReceivingEnd, C> {
    clock: C,
    frame: Frame,
    receiver: Arc<R>,
    threads: Threads,
    tasks: Tasks<BurstTask>,
    stamp_pages: PageKind,
}

impl<R: ReceivingEnd, C: Clock> ServedReceiver<R, C> {
    pub(super) fn start(
        clock: C,
        frame: &Frame,
        receiver: Arc<R>,
        cpu: usize,
    ) -> Result<Self, RunError> {
        let mut threads = Crew::new(&Arc::new(RunControl::default()))?;
        let tasks = receiver.start(&mut threads, clock, frame, cpu)?;
        let stamp_pages = wait_until_placed(&mut threads, &interrupt::requested)?;
        Ok(ServedReceiver {
            clock,
            frame: frame.clone(),
            receiver,
            threads,
            tasks,
            stamp_pages,
        })
    }

    /// Does what the other end asks of a point, until it is over.
    pub(super) fn serve(
        mut self,
        wire: &mut Wire,
        mut made: PreparedPoint,
        probes: &ProbeEnd<C>,
    ) -> Result<(), RunError> {
        let receiver = Arc::clone(&self.receiver);
        let link = ReceivingEnd::link(&*receiver);
        made.pages[0] = self.stamp_pages;
        send_message(wire, &WireMessage::Made(Box::new(made)))?;
        let clock = self.clock;
        serve_point(
            wire,
            link,
            (&clock, probes),
            |wire, message| match message {
                WireMessage::Burst { number, count } => {
                    let part = self.burst(wire, number, count)?;
                    Ok(send_message(wire, &WireMessage::BurstOver(Box::new(part)))?)
                }
                // Of a burst that is over.
                WireMessage::Stop | WireMessage::Waiting => Ok(()),
                other => Ok(take(wire, other, only!(WireMessage::PointOver => ()))?),
            },
        )
    }

    fn burst(
        &mut self,
        wire: &mut Wire,
        number: u32,
        count: usize,
    ) -> Result<ReceivedBurst, RunError> {
        if count > self.frame.point.burst as usize {
            let text = format!(
                "a burst of {count} messages was announced as one of at most {}",
                self.frame.point.burst
            );
            return Err(RunError::Peer(wire.peer(), Failure::Run(text)));
        }
        let control = Arc::new(Control::default());
        let task = BurstTask {
            number,
            count,
            others: 0,
            control: Arc::clone(&control),
        };
        // A thread that has gone shows by its missing report.
        let _ = self.tasks.send(task);
        let begun = Instant::now();
        let mut told = begun;
        while control.ready() == 0 && !control.failed() && begun.elapsed() < PREPARATION {
            if interrupt::requested().is_some() {
                break;
            }
            // The other end waits for as long as this one shows that it does not hang.
            if told.elapsed() >= TELL {
                told = Instant::now();
                let far = WireMessage::Far {
                    received: 0,
                    trouble: None,
                };
                send_message(wire, &far)?;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        if control.ready() > 0 {
            send_message(wire, &WireMessage::Receiving)?;
        }
        let wakeable = &self.frame.wakeable;
        let over: Cell<Option<Instant>> = Cell::new(None);
        let trouble = RefCell::new(None);
        let leave = || {
            control.stop();
            wakeable.wake();
        };
        let link = ReceivingEnd::link(&*self.receiver);
        let (mut told, mut looked, mut heard) = (Instant::now(), Instant::now(), Instant::now());
        let look = || {
            if let Some(since) = over.get() {
                leave();
                return (since.elapsed() > GRACE).then_some(ServedEnding::Held);
            }
            match wire.poll::<WireMessage>(Duration::ZERO) {
                Ok(None) if heard.elapsed() > SILENCE => {
                    return Some(ServedEnding::Gone(wire.unanswered(SILENCE).into()));
                }
                Ok(None) => {}
                Ok(Some(WireMessage::Waiting)) => heard = Instant::now(),
                Ok(Some(WireMessage::Stop)) => {
                    over.set(Some(Instant::now()));
                    leave();
                    return None;
                }
                Ok(Some(other)) => {
                    let error = take(wire, other, only!(WireMessage::Stop => ()));
                    return error.err().map(|error| ServedEnding::Gone(error.into()));
                }
                Err(error) => return Some(ServedEnding::Gone(error.into())),
            }
            if looked.elapsed() >= LINK_LOOK {
                looked = Instant::now();
                let found = link.root_cause(Duration::ZERO).or_else(|| link.trouble());
                *trouble.borrow_mut() = found;
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                let (received, trouble) = (control.received(), trouble.borrow().clone());
                let far = WireMessage::Far { received, trouble };
                if let Err(error) = send_message(wire, &far) {
                    return Some(ServedEnding::Gone(error.into()));
                }
            }
            None
        };
        let patience = SupervisorTimeouts {
            look: LOOK,
            grace: GRACE,
            ..SupervisorTimeouts::default()
        };
        let collected = self.threads.collect(&patience, look, leave)?;
        match collected.cause {
            Some(Cause::Signal(signal)) => return Err(RigError::Interrupted(signal).into()),
            Some(Cause::Watch(ServedEnding::Gone(error))) => return Err(error),
            Some(Cause::Watch(ServedEnding::Held) | Cause::Worker) | None => {}
        }
        let mut record = BurstRecord::default();
        gather(&mut record, collected.reports, &collected.failures);
        Ok(self.part(number, record, trouble.into_inner()))
    }

    /// What is told of a burst.
    fn part(&self, number: u32, record: BurstRecord, trouble: Option<String>) -> ReceivedBurst {
        let delivered = record.arrivals.iter().map(|arrival| {
            let sequence = Tag::sequence(arrival.label);
            let stamp = ReceivingEnd::delivered(&*self.receiver, number, arrival, sequence);
            stamp.map(|stamp| stamp.0)
        });
        let nanos = |stamp| self.clock.to_nanos(stamp).0;
        let (strays, failure) = match record.receive {
            Some(ReceiveOutcome {
                strays, failure, ..
            }) => (
                strays,
                failure.map(|failure| format!("receiving: {failure}")),
            ),
            None => Default::default(),
        };
        ReceivedBurst {
            delivered: delivered.collect(),
            stamps: record.arrivals.iter().map(|it| nanos(it.stamp)).collect(),
            labels: record.arrivals.iter().map(|it| it.label).collect(),
            strays,
            faults: record.faults.receiver,
            failure: record.failure.or(failure).or(trouble),
            root_cause: ReceivingEnd::link(&*self.receiver).root_cause(Duration::ZERO),
        }
    }
}

impl<R: ReceivingEnd, C> Drop for ServedReceiver<R, C> {
    fn drop(&mut self) {
        // Without tasks to come, the thread ends.
        let (gone, _) = std::sync::mpsc::channel();
        self.tasks = gone;
        self.threads.dismiss(GRACE);
    }
}

/// Answers probes until the other end says that they are over.
fn answer_probes<C: Clock>(
    wire: &mut Wire,
    end: &ProbeEnd<C>,
    clock: &C,
    numbers: (u32, u32),
) -> Result<(), RunError> {
    let (first, count) = numbers;
    if count > MOST_PROBES || first.checked_add(count).is_none() {
        let text = format!(
            "asks for {count} probes from number {first}, at most {MOST_PROBES} are allowed"
        );
        return Err(RunError::Peer(wire.peer(), Failure::Run(text)));
    }
    send_message(wire, &WireMessage::Receiving)?;
    let watched = ProbeProgress::default();
    let (over, stamped) = end.exchange(numbers, &watched, |is_finished| {
        let begun = Instant::now();
        let over = loop {
            match wire.poll::<WireMessage>(Duration::from_millis(100)) {
                Ok(None) if begun.elapsed() > PROBING => {
                    break Err(wire.unanswered(PROBING).into());
                }
                Ok(None) => {}
                Ok(Some(message)) => {
                    break take(wire, message, only!(WireMessage::ProbesOver => ()));
                }
                Err(error) => break Err(error.into()),
            }
        };
        watched.stop();
        while !is_finished() {
            end.wakeable.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        over
    })?;
    over?;
    let (stamped, failure) = match stamped {
        Ok(stamped) => (stamped, None),
        Err(failure) => (Vec::new(), Some(failure.to_string())),
    };
    let nanos = |mut one: Stamped| {
        one.sent.0 = clock.to_nanos(one.sent).0;
        one.received.0 = clock.to_nanos(one.received).0;
        one
    };
    let stamped = stamped.into_iter().map(nanos).collect();
    Ok(send_message(
        wire,
        &WireMessage::Probed { stamped, failure },
    )?)
}
