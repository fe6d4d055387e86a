//! The far receiver, as a session of this process sees it: a thread that hands each burst on and gives back what the
//! other process stored.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::message::{ReceivedBurst, WireMessage};
use crate::bench::hca::ends::Link;
use crate::bench::hca::ends::requesting_end::Target;
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::receiver::ReceiveOutcome;
use crate::bench::hca::plan::placement::RECEIVER;
use crate::bench::hca::result::LoopFaults;
use crate::bench::hca::session::burst_record::BurstRecord;
use crate::bench::hca::session::receiving_half::ReceivingSide;
use crate::bench::hca::session::watch::PREPARATION;
use crate::bench::hca::session::worker::{BurstTask, Frame, Threads, start};
use crate::between::message::{ANSWER, expect_nothing, only, receive_message, send_message, take};
use crate::buffer::{Arrival, PageKind};
use crate::host::throttling::ThrottlingRecord;
use crate::launch::wire::{Wire, WireError};
use crate::rdma::verbs::{CounterReading, PortCounters};
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::workers::WorkerPlacement;
use crate::time::{Clock, Ticks};

/// How long the other process may take to end a burst: less than the session waits for its threads, which is twice two
/// seconds.
const ENDING: Duration = Duration::from_millis(3_500);
/// How often the other process is told that this one is there.
const BEAT: Duration = Duration::from_secs(1);

/// How often the flags of a running burst are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The connection to the other process. Between bursts it is the session's, during one the thread's.
pub(super) type SharedWire = Arc<Mutex<Wire>>;

/// The connection, for as long as nobody else needs it.
pub(super) fn lock(wire: &SharedWire) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of the far end.
#[derive(Debug, Default)]
struct FarState {
    /// The stamps that the arrivals of the last burst brought, by their place in the list.
    delivered: Vec<Option<u64>>,
    /// What went wrong there.
    trouble: Option<String>,
    /// Whether it does not answer any more.
    gone: bool,
    /// That its process has closed the connection, or has told that it cannot go on or that its device was removed.
    root_cause: Option<String>,
    /// The word that atomics change, since the last burst.
    word: Option<u64>,
}

/// The far receiver.
#[derive(Debug)]
pub(super) struct FarReceiver {
    wire: SharedWire,
    pages: PageKind,
    stamp_pages: PageKind,
    /// Where the thread that stands for it runs.
    cpu: usize,
    known: Mutex<FarState>,
}

impl FarReceiver {
    /// The receiver behind a connection: the pages of its stamps and of its messages, and where the thread that stands
    /// for it may run.
    pub(super) fn new(wire: SharedWire, [stamps, payload]: [PageKind; 2], cpu: usize) -> Self {
        FarReceiver {
            wire,
            pages: payload,
            stamp_pages: stamps,
            cpu,
            known: Mutex::default(),
        }
    }

    /// The other process does not answer, for this reason: it is not asked any more.
    pub(super) fn set_gone(&self, error: &RunError) {
        let mut known = self.known();
        known.gone = true;
        // Silence may have its cause on the way there, so it explains nothing else.
        if let RunError::Wire(WireError::Closed(_)) | RunError::Peer(..) = error {
            known.root_cause.get_or_insert_with(|| error.to_string());
        }
    }

    fn known(&self) -> MutexGuard<'_, FarState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the far receiver take a burst.
    fn hand_on(&self, task: &BurstTask) -> Result<BurstRecord, RunError> {
        let mut wire = lock(&self.wire);
        let (number, count) = (task.number, task.count);
        send_message(&mut wire, &WireMessage::Burst { number, count })?;
        let mut stopping = None;
        let begun = Instant::now();
        let (mut heard, mut beaten) = (begun, begun);
        let part = loop {
            if task.control.stopped() && stopping.is_none() {
                send_message(&mut wire, &WireMessage::Stop)?;
                stopping = Some(Instant::now());
            }
            let limit = match stopping {
                Some(since) => (since, ENDING),
                None => (heard, ANSWER),
            };
            if limit.0.elapsed() > limit.1 {
                return Err(wire.unanswered(limit.1).into());
            }
            if beaten.elapsed() > BEAT {
                send_message(&mut wire, &WireMessage::Waiting)?;
                beaten = Instant::now();
            }
            let Some(message) = wire.poll(LOOK)? else {
                continue;
            };
            heard = Instant::now();
            match message {
                WireMessage::Receiving => task.control.announce_ready(),
                WireMessage::Far { received, trouble } => {
                    task.control.set_received(received);
                    if trouble.is_some() {
                        self.known().trouble = trouble;
                    }
                }
                other => break take(&wire, other, only!(WireMessage::BurstOver(part) => *part))?,
            }
        };
        if part.failure.is_some() {
            task.control.set_failed();
        }
        if let Some(cause) = &part.root_cause {
            let error = RunError::Peer(wire.peer(), Failure::Run(cause.clone()));
            self.known().root_cause = Some(error.to_string());
        }
        Ok(self.record(part))
    }

    /// What the far receiver stored, as if a thread here had.
    fn record(&self, part: ReceivedBurst) -> BurstRecord {
        let arrivals = part.stamps.iter().zip(&part.labels).enumerate();
        let arrivals = arrivals.map(|(place, (stamp, label))| Arrival {
            stamp: Ticks(*stamp),
            label: *label,
            slot: place as u32,
            bytes: 0,
        });
        let arrivals: Vec<Arrival> = arrivals.collect();
        self.known().delivered = part.delivered;
        BurstRecord {
            receive: Some(ReceiveOutcome {
                received: arrivals.len(),
                strays: part.strays,
                failure: None,
            }),
            arrivals,
            faults: LoopFaults {
                receiver: part.faults,
                ..LoopFaults::default()
            },
            failure: part.failure,
            ..BurstRecord::default()
        }
    }

    /// Asks the other process; nothing where it does not answer, or did not before.
    fn ask<T>(
        &self,
        message: &WireMessage,
        limit: Duration,
        wanted: impl FnOnce(WireMessage) -> Result<T, Box<WireMessage>>,
    ) -> Option<T> {
        if self.known().gone {
            return None;
        }
        let mut wire = lock(&self.wire);
        let told = send_message(&mut wire, message).map_err(RunError::from);
        let answer = told.and_then(|()| Ok(receive_message(&mut wire, limit, wanted)?));
        answer
            .inspect_err(|error| {
                self.set_gone(error);
                self.known()
                    .trouble
                    .get_or_insert_with(|| error.to_string());
            })
            .ok()
    }

    /// How CPU quotas stopped the other end since the first measured burst. One that has gone is reported as such.
    pub(super) fn throttled(&self) -> ThrottlingRecord {
        let throttled = only!(WireMessage::Throttled(found) => *found);
        let found = self.ask(&WireMessage::Throttling, ANSWER, throttled);
        found.unwrap_or_default()
    }
}

impl ReceivingSide for FarReceiver {
    const OTHER_CLOCK: bool = true;

    fn start<C: Clock>(
        self: &Arc<Self>,
        threads: &mut Threads,
        _clock: C,
        _frame: &Frame,
        _cpu: usize,
    ) -> Result<Sender<BurstTask>, RigError> {
        let far = Arc::clone(self);
        // It measures nothing, so it has no priority and no CPU of its own.
        let seat = WorkerPlacement {
            role: RECEIVER,
            cpu: self.cpu,
            priority: None,
        };
        start(threads, seat, move |post| {
            post.placed(Some(far.stamp_pages));
            post.each(|task| far.hand_on(task).inspect_err(|error| far.set_gone(error)))
        })
    }

    fn delivered(&self, _burst: u32, arrival: &Arrival, _sequence: u32) -> Option<Ticks> {
        let known = self.known();
        let stamp = known.delivered.get(arrival.slot as usize).copied();
        stamp.flatten().map(Ticks)
    }

    fn link(&self) -> &dyn Link {
        self
    }
}

/// The memory that reads and atomics are of, in the other process.
pub(super) struct FarTarget(pub(super) Arc<FarReceiver>);

impl Target for FarTarget {
    fn make_ready(&self, burst: u32, sequence: u32) {
        // All of a burst at once.
        if sequence == 0 {
            let filled = only!(WireMessage::Filled => ());
            self.0
                .ask(&WireMessage::Fill { burst }, PREPARATION, filled);
            self.0.known().word = None;
        }
    }

    fn word(&self, _burst: u32) -> u64 {
        let known = self.0.known().word;
        known.unwrap_or_else(|| {
            let told = only!(WireMessage::Told(word) => word);
            let word = self
                .0
                .ask(&WireMessage::Word, PREPARATION, told)
                .unwrap_or(0);
            self.0.known().word = Some(word);
            word
        })
    }
}

impl Link for FarReceiver {
    fn page_kind(&self) -> PageKind {
        self.pages
    }

    fn trouble(&self) -> Option<String> {
        self.known().trouble.clone()
    }

    fn root_cause(&self, limit: Duration) -> Option<String> {
        let gone = self.known().gone;
        // During a burst of messages the thread of the far receiver holds the connection, and listens.
        if !gone
            && let Ok(mut wire) = self.wire.try_lock()
            && let Err(error) = expect_nothing::<WireMessage>(&mut wire, limit)
        {
            self.set_gone(&error.into());
        }
        self.known().root_cause.clone()
    }

    fn lowered_mtu(&self) -> Option<String> {
        None
    }

    fn counters(&self, reading: CounterReading) -> PortCounters {
        let counted = only!(WireMessage::Counted(counters) => counters);
        let counters = self.ask(&WireMessage::Counters(reading), ANSWER, counted);
        counters.unwrap_or_default()
    }

    fn changes(&self) -> Vec<String> {
        let was_gone = self.known().gone;
        let changed = only!(WireMessage::Changed(changes) => changes);
        let changes = self.ask(&WireMessage::Changes, ANSWER, changed);
        // That it has just gone is a change as well.
        changes.unwrap_or_else(|| self.trouble().filter(|_| !was_gone).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Has as _;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::bench::hca::loops::control::Control;

    fn far_receiver() -> (FarReceiver, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let wire = Arc::new(Mutex::new(Wire::of(here).unwrap()));
        let far = FarReceiver::new(wire, [PageKind::Small; 2], 0);
        (far, listener.accept().unwrap().0)
    }

    /// Why nothing more passes, once a burst was handed on to a process that has said `line` and closed the connection.
    fn root_cause_after(line: &str) -> String {
        let (far, mut other) = far_receiver();
        other.write_all(line.as_bytes()).unwrap();
        drop(other);
        let task = BurstTask {
            number: 0,
            count: 1,
            others: 1,
            control: Arc::new(Control::default()),
        };
        let error = far.hand_on(&task).unwrap_err();
        assert_eq!(far.known().root_cause, None);
        far.set_gone(&error);
        far.root_cause(Duration::ZERO).unwrap()
    }

    #[test]
    fn the_other_end_reports_what_was_throttled_there() {
        let (far, mut other) = far_receiver();
        let mut found = ThrottlingRecord {
            period_ns: 100_000_000,
            ..ThrottlingRecord::default()
        };
        (found.group.throttled, found.group.periods) = (28, 29);
        let message = WireMessage::Throttled(Box::new(found.clone()));
        let line = serde_json::to_string(&message).unwrap();
        other.write_all(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(far.throttled(), found);
        drop(other);
        assert_eq!(far.throttled(), ThrottlingRecord::default());
    }

    #[test]
    fn a_process_that_has_ended_is_the_root_cause() {
        root_cause_after("").ends("has closed the connection");
        let failed = WireMessage::Failed(Failure::Run("the machine goes down".to_owned()));
        let line = format!("{}\n", serde_json::to_string(&failed).unwrap());
        root_cause_after(&line).ends("the machine goes down");
    }

    #[test]
    fn silence_is_no_root_cause() {
        let (far, _other) = far_receiver();
        let error = lock(&far.wire).unanswered(ANSWER);
        far.set_gone(&error.into());
        assert_eq!(far.root_cause(Duration::ZERO), None);
    }

    #[test]
    fn a_process_that_ends_while_nobody_listens_is_noticed() {
        let (far, other) = far_receiver();
        assert_eq!(far.root_cause(Duration::ZERO), None);
        drop(other);
        let cause = far.root_cause(Duration::from_secs(20)).unwrap();
        assert!(cause.ends_with("has closed the connection"), "{cause}");
    }
}
