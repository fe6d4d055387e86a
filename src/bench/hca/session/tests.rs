//! Sessions over scripted ends: no device, real threads.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;
use crate::bench::hca::analysis::Delivered;
use crate::bench::hca::config::CpuRequest;
use crate::bench::hca::ends::BurstPort;
use crate::bench::hca::plan::{Plan, tests::single};
use crate::bench::hca::port::{Completion, EventPort, Failure, SendPort};
use crate::bench::hca::stamper::StampSlots;
use crate::bench::hca::tag::Tag;
use crate::buffer::Arrival;
use crate::host::{CpuSet, Topology, pinning};
use crate::time::{Monotonic, Ticks};

const MESSAGES: u32 = 8;

/// What the fabric does with message `sequence` of burst `burst`.
type Fate = fn(burst: u32, sequence: u32) -> Does;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    Deliver,
    Lose,
    /// Delivers it when the burst is over.
    Delay,
    /// Delivers it, and one of somebody else before it.
    DeliverAmongOthers,
    /// The send request fails, and nothing arrives.
    Fail,
    /// Posting does not return until the test lets it.
    Hang,
}

/// Everything that the two ends share.
#[derive(Debug)]
struct Fabric {
    fate: Fate,
    source: u32,
    tag: AtomicU32,
    arriving: Mutex<VecDeque<Completion>>,
    delayed: Mutex<VecDeque<Completion>>,
    completing: Mutex<VecDeque<Polled>>,
    stamps: Mutex<Vec<Ticks>>,
    posted_requests: AtomicU32,
    released: AtomicBool,
    trouble: Option<&'static str>,
    /// Where the receiving thread is moved to while it prepares a burst.
    move_to: Mutex<Option<CpuSet>>,
}

#[derive(Debug, Clone)]
struct End(Arc<Fabric>);

/// The port of either completion queue.
struct Queue(Arc<Fabric>, fn(&Fabric) -> Polled);

struct SendingPort {
    fabric: Arc<Fabric>,
    sequence: u32,
    stamp: Ticks,
}

impl BurstPort for SendingPort {
    fn set_tag(&mut self, tag: Tag) {
        self.fabric
            .tag
            .store(tag.immediate_data(0), Ordering::Relaxed);
    }
}

impl SendPort for SendingPort {
    fn prepare(&mut self, sequence: u32, _signaled: bool) {
        self.sequence = sequence;
    }

    fn stamp(&mut self, stamp: Ticks) {
        self.stamp = stamp;
    }

    fn post(&mut self) -> Result<(), Failure> {
        let fabric = &*self.fabric;
        let tag = fabric.tag.load(Ordering::Relaxed);
        let does = (fabric.fate)(tag >> 16, self.sequence);
        fabric.stamps.lock().unwrap()[self.sequence as usize] = self.stamp;
        let message = Completion {
            request: u64::from(self.sequence),
            immediate_data: tag | self.sequence,
            bytes: 8,
            source_queue_pair: fabric.source,
        };
        let arrive = |message| fabric.arriving.lock().unwrap().push_back(message);
        match does {
            Does::Deliver => arrive(message),
            Does::DeliverAmongOthers => {
                arrive(Completion {
                    source_queue_pair: fabric.source + 1,
                    ..message
                });
                arrive(message);
            }
            Does::Delay => fabric.delayed.lock().unwrap().push_back(message),
            Does::Hang => {
                while !fabric.released.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
            Does::Lose | Does::Fail => {}
        }
        let completed = match does {
            Does::Fail => Polled::Failed(Failure {
                request: Some(message.request),
                code: 12,
                vendor_error: 0,
                consequence: false,
                foreign: false,
                describe: |code, _| format!("status {code}"),
            }),
            _ => Polled::Done(Completion {
                request: u64::from(message.immediate_data),
                ..Completion::default()
            }),
        };
        fabric.completing.lock().unwrap().push_back(completed);
        Ok(())
    }
}

impl CompletionPort for Queue {
    fn poll(&mut self) -> Polled {
        (self.1)(&self.0)
    }
}

impl EventPort for Queue {
    fn arm(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn sleep(&mut self) -> Result<(), Failure> {
        std::thread::yield_now();
        Ok(())
    }
}

struct NoStamps;

impl StampSlots for NoStamps {
    fn restamp(&self, _sequence: u32, _stamp: Ticks) {}
}

impl SendingEnd for End {
    type Port = SendingPort;
    type Completions = Queue;
    type Stamps = NoStamps;

    fn fill(&self, _burst: u32, _sequence: u32) {}

    fn port(&self) -> SendingPort {
        SendingPort {
            fabric: Arc::clone(&self.0),
            sequence: 0,
            stamp: Ticks(0),
        }
    }

    fn completions(&self) -> Queue {
        Queue(Arc::clone(&self.0), |fabric| {
            let found = fabric.completing.lock().unwrap().pop_front();
            found.unwrap_or(Polled::Empty)
        })
    }

    fn stamps(&self) -> NoStamps {
        NoStamps
    }

    fn page_kind(&self) -> PageKind {
        PageKind::Small
    }

    fn trouble(&self) -> Option<String> {
        self.0.trouble.map(str::to_owned)
    }

    fn removal(&self) -> Option<String> {
        None
    }

    fn lowered_mtu(&self) -> Option<String> {
        None
    }
}

impl ReceivingEnd for End {
    type Port = Queue;
    type Delivered<'a> = Arrived;

    fn slots(&self) -> usize {
        MESSAGES as usize + 4
    }

    fn clear(&self, _slot: usize) {
        // What was delayed in the burst before arrives between the two.
        let delayed = std::mem::take(&mut *self.0.delayed.lock().unwrap());
        self.0.arriving.lock().unwrap().extend(delayed);
    }

    fn post(&self, _slot: usize) -> Result<(), String> {
        self.0.posted_requests.fetch_add(1, Ordering::Relaxed);
        if let Some(cpus) = self.0.move_to.lock().unwrap().take() {
            pinning::pin_current_thread_to(&cpus).unwrap();
        }
        Ok(())
    }

    fn port(&self) -> Queue {
        Queue(Arc::clone(&self.0), |fabric| {
            let found = fabric.arriving.lock().unwrap().pop_front();
            found.map_or(Polled::Empty, Polled::Done)
        })
    }

    fn source(&self) -> Option<u32> {
        Some(self.0.source)
    }

    fn delivered(&self, _burst: u32) -> Arrived {
        Arrived(self.0.stamps.lock().unwrap().clone())
    }

    fn page_kind(&self) -> PageKind {
        PageKind::Small
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn removal(&self) -> Option<String> {
        None
    }

    fn lowered_mtu(&self) -> Option<String> {
        None
    }
}

struct Arrived(Vec<Ticks>);

impl Delivered for Arrived {
    fn stamp(&self, _arrival: &Arrival, sequence: u32) -> Ticks {
        self.0[sequence as usize]
    }

    fn is_intact(&self, _arrival: &Arrival, _sequence: u32) -> bool {
        true
    }
}

/// A session over a fabric, and what its bursts came to.
struct Trial {
    fabric: Arc<Fabric>,
    session: Session<End, End>,
    tally: Tally,
}

fn trial(service: Service, fate: Fate) -> Trial {
    trial_with(service, fate, None, || None)
}

fn trial_with(
    service: Service,
    fate: Fate,
    trouble: Option<&'static str>,
    requested: fn() -> Option<Signal>,
) -> Trial {
    let fabric = Arc::new(Fabric {
        fate,
        source: 17,
        tag: AtomicU32::new(0),
        arriving: Mutex::default(),
        delayed: Mutex::default(),
        completing: Mutex::default(),
        stamps: Mutex::new(vec![Ticks(0); MESSAGES as usize]),
        posted_requests: AtomicU32::new(0),
        released: AtomicBool::new(false),
        trouble,
        move_to: Mutex::default(),
    });
    let topology = Topology::read().unwrap();
    let point = Plan::new(&single()).points.remove(0);
    let placement =
        Placement::of_point(&topology, &point, CpuRequest::default(), [None; 2]).unwrap();
    let settings = SessionSettings {
        service,
        operation: Operation::Send,
        timestamp: Timestamp::Submit,
        poll_recv: Poll::Busy,
        poll_comp: Poll::Busy,
        // Threads that share a CPU get their turns.
        pause: Nanos(200_000),
        receiver_pause: Nanos(0),
        depth: MESSAGES,
        signal_every: 1,
        timeout: Duration::from_millis(300),
        priority: None,
        huge_pages: HugePagePolicy::Off,
    };
    let end = Arc::new(End(Arc::clone(&fabric)));
    let wakeable = Wakeable::new().unwrap();
    let clock = Monotonic::default();
    let session = Session::start(
        clock, &end, &end, settings, &placement, &wakeable, requested,
    );
    Trial {
        fabric,
        session: session.unwrap(),
        tally: Tally::default(),
    }
}

impl Trial {
    /// Runs a burst of all messages and judges it; returns its failure.
    fn burst(&mut self) -> Option<String> {
        let record = self
            .session
            .run_burst(MESSAGES as usize, &mut |_| ())
            .unwrap();
        let failure = record.failure.clone();
        let clock = Monotonic::default();
        self.session.judge(&clock, 0, record, &mut self.tally);
        failure
    }

    fn counts(&self) -> Counts {
        self.tally.counts
    }
}

#[test]
fn bursts_one_after_the_other_deliver_everything() {
    let mut trial = trial(Service::Rc, |_, _| Does::Deliver);
    for _ in 0..3 {
        assert_eq!(trial.burst(), None);
    }
    let expected = Counts {
        sent: 24,
        received: 24,
        ..Counts::default()
    };
    assert_eq!(trial.counts(), expected);
    assert_eq!(trial.tally.messages.len(), 24);
    // Those of a burst and the spare ones, and then only as many as were used.
    let posted = trial.fabric.posted_requests.load(Ordering::Relaxed);
    assert_eq!(posted, (MESSAGES + 4) + 2 * MESSAGES);
}

#[test]
fn losses_are_counted_where_they_are_no_failure() {
    let lose_two = |_, sequence| {
        if sequence % 5 == 2 {
            Does::Lose
        } else {
            Does::Deliver
        }
    };
    let mut unreliable = trial(Service::Uc, lose_two);
    assert_eq!(unreliable.burst(), None);
    assert_eq!(unreliable.burst(), None);
    let counts = unreliable.counts();
    assert_eq!((counts.sent, counts.received, counts.lost), (16, 12, 4));

    let mut reliable = trial(Service::Rc, lose_two);
    let failure = reliable.burst().unwrap();
    assert!(
        failure.contains("2 messages of a reliable connection did not arrive"),
        "{failure}"
    );
}

#[test]
fn what_comes_after_its_burst_is_late_and_no_message_of_the_next() {
    let mut trial = trial(Service::Ud, |burst, sequence| match (burst, sequence) {
        (0, 3) => Does::Delay,
        _ => Does::Deliver,
    });
    assert_eq!(trial.burst(), None);
    assert_eq!((trial.counts().lost, trial.counts().late), (1, 0));
    assert_eq!(trial.burst(), None);
    let counts = trial.counts();
    assert_eq!((counts.sent, counts.received), (16, 15));
    assert_eq!((counts.lost, counts.late, counts.foreign), (1, 1, 0));
}

#[test]
fn messages_of_others_are_named_and_neither_lost_nor_doubled() {
    let mut trial = trial(Service::Ud, |_, sequence| {
        if sequence < 3 {
            Does::DeliverAmongOthers
        } else {
            Does::Deliver
        }
    });
    assert_eq!(trial.burst(), None);
    let expected = Counts {
        sent: 8,
        received: 8,
        foreign: 3,
        ..Counts::default()
    };
    assert_eq!(trial.counts(), expected);
}

#[test]
fn a_failed_completion_is_the_reason_and_ends_the_burst() {
    let mut trial = trial(Service::Rc, |_, sequence| {
        if sequence < 4 {
            Does::Deliver
        } else {
            Does::Fail
        }
    });
    let failure = trial.burst().unwrap();
    assert!(
        failure.contains("completed with an error, the first: status 12"),
        "{failure}"
    );
    assert!(trial.counts().failed_completions >= 1);
    assert_eq!(trial.counts().received, 4);
}

#[test]
fn trouble_of_an_end_is_the_reason() {
    let lose = |_, _| Does::Lose;
    let mut trial = trial_with(Service::Rc, lose, Some("the port went down"), || None);
    assert_eq!(trial.burst().unwrap(), "the port went down");
}

#[test]
fn a_thread_that_does_not_leave_its_loop_is_named() {
    let mut trial = trial(Service::Uc, |_, sequence| {
        if sequence == 5 {
            Does::Hang
        } else {
            Does::Deliver
        }
    });
    let error = trial
        .session
        .run_burst(MESSAGES as usize, &mut |_| ())
        .unwrap_err()
        .to_string();
    trial.fabric.released.store(true, Ordering::Relaxed);
    assert!(
        error.starts_with("the sender did not leave its loop"),
        "{error}"
    );
}

#[test]
fn a_signal_ends_a_burst_and_what_was_under_way_is_not_lost() {
    static SIGNAL: AtomicBool = AtomicBool::new(false);
    let fate = |_, sequence| {
        if sequence < 3 {
            return Does::Deliver;
        }
        SIGNAL.store(true, Ordering::Relaxed);
        Does::Lose
    };
    let requested = || SIGNAL.load(Ordering::Relaxed).then_some(Signal::SIGINT);
    let mut trial = trial_with(Service::Rc, fate, None, requested);
    assert_eq!(trial.burst().unwrap(), "interrupted by SIGINT");
    let expected = Counts {
        sent: 3,
        received: 3,
        ..Counts::default()
    };
    assert_eq!(trial.counts(), expected);
}

#[test]
fn a_thread_that_was_moved_is_named() {
    let allowed = Topology::read().unwrap().allowed();
    let mut trial = trial(Service::Rc, |_, _| Does::Deliver);
    if allowed.len() == 1 {
        return assert_eq!(trial.burst(), None);
    }
    *trial.fabric.move_to.lock().unwrap() = Some(allowed);
    let failure = trial.burst().unwrap();
    assert!(
        failure.starts_with("the receiver was moved away from CPU"),
        "{failure}"
    );
    assert_eq!(trial.counts().received, u64::from(MESSAGES));
}
