//! Sessions over scripted ends: no device, real threads.

use crate::testing::Has as _;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::background::tests::{copying, failing};
use super::*;
use crate::bench::hca::ends::BurstPort;
use crate::bench::hca::ends::ReceivingEnd;
use crate::bench::hca::ends::hardware_stamps::HardwareStamps;
use crate::bench::hca::loops::port::scripted::failure;
use crate::bench::hca::loops::port::{Completion, EventPort, Failure, SendPort};
use crate::bench::hca::loops::stamper::StampSlots;
use crate::bench::hca::loops::tag::Tag;
use crate::bench::hca::message::Counts;
use crate::bench::hca::plan::placement::RunThreads;
use crate::bench::hca::plan::{Plan, Point, made_up::single};
use crate::bench::hca::settings::config::{CpuRequest, Operation};
use crate::buffer::{Arrival, HugePagePolicy};
use crate::host::{CpuSet, Topology, Wakeable, pinning};
use crate::rdma::verbs::VerbsError;
use crate::time::{CounterKind, Nanos, Posix, Ticks};

const MESSAGES: u32 = 8;
const PACKETS: &str = "hw_counters/sent_pkts";
/// A statistic of the interface, which has twice as many.
const FRAMES: &str = "ethtool/frames";
/// The number of the queue pair that sends.
const SOURCE: u32 = 17;

type FateFunction = fn(burst: u32, sequence: u32) -> Does;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    Deliver,
    Lose,
    /// Delivers it when the burst is over.
    Delay,
    DeliverAmongOthers,
    Fail,
    /// Posting does not return until the test lets it.
    Hang,
    /// Nothing arrives and nothing completes.
    Vanish,
    /// A read brings back something else.
    Spoil,
}

#[derive(Debug)]
struct Fabric {
    fate: FateFunction,
    tag: AtomicU32,
    arriving: Mutex<VecDeque<PollResult>>,
    delayed: Mutex<VecDeque<PollResult>>,
    completing: Mutex<VecDeque<PollResult>>,
    stamps: Mutex<[Ticks; MESSAGES as usize]>,
    packets: AtomicU64,
    posted_requests: AtomicU32,
    released: AtomicBool,
    trouble: Option<&'static str>,
    root_cause: Mutex<Option<&'static str>>,
    left: AtomicBool,
    mtu_is_lowered: AtomicBool,
    /// Of both ports, in their order.
    readings: Mutex<Vec<CounterReading>>,
    changes: &'static [&'static str],
    /// The stamps of sender and receiver, whose adapters count differently, and the moments that they are of.
    hardware: [Option<HardwareStamps>; 2],
    moments: [Mutex<Vec<u64>>; 2],
    /// Where the receiving thread is moved to while it prepares a burst.
    move_to: Mutex<Option<CpuSet>>,
    /// Requests that its queue holds.
    requests: usize,
}

#[derive(Debug, Clone)]
struct SimulatedEnd(Arc<Fabric>);

struct SimulatedQueue {
    fabric: Arc<Fabric>,
    queue: fn(&Fabric) -> &Mutex<VecDeque<PollResult>>,
    end: usize,
    /// When the last completion was taken.
    moment: u64,
}

impl SimulatedQueue {
    fn of(
        fabric: &Arc<Fabric>,
        end: usize,
        queue: fn(&Fabric) -> &Mutex<VecDeque<PollResult>>,
    ) -> Self {
        SimulatedQueue {
            fabric: Arc::clone(fabric),
            queue,
            end,
            moment: 0,
        }
    }
}

/// How the adapter of an end counts: 150 MHz, and a little more.
fn hardware_count(end: usize, ns: u64) -> u64 {
    let (offset, per_20_us) = [(7, 3000), (1 << 40, 3001)][end];
    offset + (u128::from(ns) * per_20_us / 20_000) as u64
}

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
        fabric.packets.fetch_add(1, Ordering::Relaxed);
        fabric.stamps.lock().unwrap()[self.sequence as usize] = self.stamp;
        let message = Completion {
            request: u64::from(self.sequence),
            immediate_data: tag | self.sequence,
            bytes: 8,
            source_queue_pair: SOURCE,
        };
        let arrive = |message| {
            let message = PollResult::Done(message);
            fabric.arriving.lock().unwrap().push_back(message);
        };
        match does {
            Does::Deliver => arrive(message),
            Does::DeliverAmongOthers => {
                let source_queue_pair = SOURCE + 1;
                arrive(Completion {
                    source_queue_pair,
                    ..message
                });
                arrive(message);
            }
            Does::Delay => {
                let message = PollResult::Done(message);
                fabric.delayed.lock().unwrap().push_back(message);
            }
            Does::Hang => {
                while !fabric.released.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
            Does::Lose | Does::Fail | Does::Vanish | Does::Spoil => {}
        }
        let completed = match does {
            Does::Fail => PollResult::Failed(Failure {
                request: Some(message.request),
                ..failure(12, false)
            }),
            _ => PollResult::Done(Completion {
                request: u64::from(message.immediate_data),
                ..Completion::default()
            }),
        };
        if does != Does::Vanish {
            fabric.completing.lock().unwrap().push_back(completed);
        }
        Ok(())
    }
}

impl CompletionPort for SimulatedQueue {
    fn poll(&mut self) -> PollResult {
        let found = (self.queue)(&self.fabric).lock().unwrap().pop_front();
        self.moment = Posix::MONOTONIC.now().0;
        found.unwrap_or(PollResult::Empty)
    }

    fn keep_stamp(&mut self, place: usize) {
        if let Some(stamps) = &self.fabric.hardware[self.end] {
            let count = hardware_count(self.end, self.moment);
            stamps.words()[place].store(count, Ordering::Relaxed);
            let mut moments = self.fabric.moments[self.end].lock().unwrap();
            moments.push(self.moment);
        }
    }
}

impl Drop for SimulatedQueue {
    fn drop(&mut self) {
        self.fabric.left.store(true, Ordering::Release);
    }
}

impl EventPort for SimulatedQueue {
    fn arm(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn sleep(&mut self) -> Result<(), Failure> {
        std::thread::yield_now();
        Ok(())
    }
}

impl StampSlots for SimulatedEnd {
    fn restamp(&self, _sequence: u32, _stamp: Ticks) {}
}

impl SendingEnd for SimulatedEnd {
    type Port = SendingPort;
    type SpreadPort = SendingPort;
    type Completions = SimulatedQueue;
    type Stamps = SimulatedEnd;

    fn fill(&self, _burst: u32, _sequence: u32) {}

    fn port(&self) -> SendingPort {
        SendingPort {
            fabric: Arc::clone(&self.0),
            sequence: 0,
            stamp: Ticks(0),
        }
    }

    fn spread_port(&self) -> SendingPort {
        SendingEnd::port(self)
    }

    fn completions(&self) -> SimulatedQueue {
        SimulatedQueue::of(&self.0, 0, |fabric| &fabric.completing)
    }

    fn hardware(&self) -> Option<&HardwareStamps> {
        self.0.hardware[0].as_ref()
    }

    fn stamps(&self) -> SimulatedEnd {
        self.clone()
    }

    fn fetched(&self, burst: u32, sequence: u32) -> bool {
        (self.0.fate)(burst, sequence) != Does::Spoil
    }

    fn link(&self) -> &dyn Link {
        self
    }
}

impl Link for SimulatedEnd {
    fn page_kind(&self) -> PageKind {
        PageKind::Small
    }

    fn trouble(&self) -> Option<String> {
        self.0.trouble.map(str::to_owned)
    }

    /// It is found only by a thread that leaves.
    fn root_cause(&self, _limit: Duration) -> Option<String> {
        let found = self.0.left.load(Ordering::Acquire);
        let cause = *self.0.root_cause.lock().unwrap();
        cause.filter(|_| found).map(str::to_owned)
    }

    fn lowered_mtu(&self) -> Option<String> {
        let is_lowered = self.0.mtu_is_lowered.load(Ordering::Relaxed);
        is_lowered.then(|| "the MTU was lowered".to_owned())
    }

    /// Packets that were posted so far; each took one.
    fn counters(&self, reading: CounterReading) -> PortCounters {
        self.0.readings.lock().unwrap().push(reading);
        let packets = self.0.packets.load(Ordering::Relaxed);
        let (of_device, of_interface) = ((PACKETS, packets), (FRAMES, 2 * packets));
        PortCounters::of(&match reading {
            CounterReading::All => vec![of_device, of_interface],
            CounterReading::Interfaces => vec![of_interface],
            CounterReading::FreshOfDevice => vec![of_device],
        })
    }

    fn changes(&self) -> Vec<String> {
        self.0
            .changes
            .iter()
            .map(|&change| change.to_owned())
            .collect()
    }
}

impl ReceivingEnd for SimulatedEnd {
    type Port = SimulatedQueue;

    fn slots(&self) -> usize {
        MESSAGES as usize + 4
    }

    fn requests(&self) -> usize {
        self.0.requests
    }

    fn clear(&self, _slot: usize) {
        // What was delayed in the burst before arrives between the two.
        let delayed = std::mem::take(&mut *self.0.delayed.lock().unwrap());
        self.0.arriving.lock().unwrap().extend(delayed);
    }

    fn post(&self, _slot: usize) -> Result<(), VerbsError> {
        self.0.posted_requests.fetch_add(1, Ordering::Relaxed);
        if let Some(cpus) = self.0.move_to.lock().unwrap().take() {
            pinning::pin_current_thread_to(&cpus).unwrap();
        }
        Ok(())
    }

    fn port(&self, _burst: u32, _messages: usize) -> SimulatedQueue {
        SimulatedQueue::of(&self.0, 1, |fabric| &fabric.arriving)
    }

    fn hardware(&self) -> Option<&HardwareStamps> {
        self.0.hardware[1].as_ref()
    }

    fn sources(&self) -> &[u32] {
        &[SOURCE]
    }

    fn delivered(&self, _burst: u32, _arrival: &Arrival, sequence: u32) -> Option<Ticks> {
        Some(self.0.stamps.lock().unwrap()[sequence as usize])
    }

    fn link(&self) -> &dyn Link {
        self
    }
}

struct Trial {
    fabric: Arc<Fabric>,
    session: Session<SimulatedEnd, SimulatedEnd>,
    tally: Tally,
}

fn trial(service: Service, fate: FateFunction) -> Trial {
    trial_with(service, fate, None, || None)
}

fn trial_with(
    service: Service,
    fate: FateFunction,
    trouble: Option<&'static str>,
    requested: fn() -> Option<Signal>,
) -> Trial {
    trial_of((service, Operation::Send), fate, trouble, requested)
}

fn reads(fate: FateFunction) -> Trial {
    trial_of((Service::Rc, Operation::Read), fate, None, || None)
}

fn trial_of(
    operation: (Service, Operation),
    fate: FateFunction,
    trouble: Option<&'static str>,
    requested: fn() -> Option<Signal>,
) -> Trial {
    let requests = MESSAGES as usize + 4;
    trial_of_length(operation, fate, trouble, requested, [None, None], requests)
}

fn trial_stamped(
    operation: (Service, Operation),
    fate: FateFunction,
    hardware: [Option<HardwareStamps>; 2],
) -> Trial {
    let requests = MESSAGES as usize + 4;
    trial_of_length(operation, fate, None, || None, hardware, requests)
}

/// One whose queue of receive requests may be shorter than its slots are many.
fn trial_of_length(
    (service, operation): (Service, Operation),
    fate: FateFunction,
    trouble: Option<&'static str>,
    requested: fn() -> Option<Signal>,
    hardware: [Option<HardwareStamps>; 2],
    requests: usize,
) -> Trial {
    let fabric = Arc::new(Fabric {
        fate,
        trouble,
        root_cause: Mutex::default(),
        left: AtomicBool::default(),
        mtu_is_lowered: AtomicBool::default(),
        readings: Mutex::default(),
        changes: &["a port 1: the LID changed"],
        packets: AtomicU64::default(),
        tag: AtomicU32::default(),
        arriving: Mutex::default(),
        delayed: Mutex::default(),
        completing: Mutex::default(),
        stamps: Mutex::default(),
        posted_requests: AtomicU32::default(),
        released: AtomicBool::default(),
        move_to: Mutex::default(),
        hardware,
        moments: Default::default(),
        requests,
    });
    let topology = Topology::read().unwrap();
    let point = Point {
        service,
        operation,
        // Threads that share a CPU get their turns.
        pause_ns: Nanos(200_000),
        burst: MESSAGES,
        depth: MESSAGES,
        ..Plan::new(&single()).points[0]
    };
    let (run, cpus) = (RunThreads::default(), CpuRequest::default());
    let placement = Placement::of_point(&topology, &point, run, cpus, [None; 2]).unwrap();
    let frame = Frame {
        point,
        priority: None,
        seed: 1,
        huge_pages: HugePagePolicy::Off,
        wakeable: Wakeable::new().unwrap(),
        far: false,
    };
    let end = Arc::new(SimulatedEnd(Arc::clone(&fabric)));
    let timeout = Duration::from_millis(300);
    let clock = Posix::MONOTONIC;
    let session = Session::start(clock, &end, &end, frame, timeout, &placement, requested);
    Trial {
        fabric,
        session: session.unwrap(),
        tally: Tally::default(),
    }
}

impl Trial {
    fn burst(&mut self) -> Option<String> {
        let record = self
            .session
            .run_burst(MESSAGES as usize, &mut |_| ())
            .unwrap();
        let failure = record.failure.clone();
        let clock = Posix::MONOTONIC;
        self.session.judge(&clock, 0, record, &mut self.tally);
        failure
    }

    fn counts(&self) -> Counts {
        self.tally.counts
    }
}

/// Counts with nothing but what was sent and received.
fn all(messages: u64) -> Counts {
    Counts {
        sent: messages,
        received: messages,
        ..Counts::default()
    }
}

#[test]
fn bursts_one_after_the_other_deliver_everything() {
    let mut trial = trial(Service::Rc, |_, _| Does::Deliver);
    for _ in 0..3 {
        assert_eq!(trial.burst(), None);
    }
    assert_eq!(trial.counts(), all(24));
    assert_eq!(trial.tally.messages.len(), 24);
    // Those of a burst and the spare ones, and then only as many as were used.
    let posted = trial.fabric.posted_requests.load(Ordering::Relaxed);
    assert_eq!(posted, (MESSAGES + 4) + 2 * MESSAGES);
}

#[test]
fn a_queue_that_is_shorter_than_the_burst_is_filled_again_while_it_runs() {
    let send = (Service::Ud, Operation::Send);
    let deliver: FateFunction = |_, _| Does::Deliver;
    let mut trial = trial_of_length(send, deliver, None, || None, [None, None], 2);
    for _ in 0..3 {
        assert_eq!(trial.burst(), None);
    }
    assert_eq!(trial.counts(), all(24));
    let posted = trial.fabric.posted_requests.load(Ordering::Relaxed);
    assert_eq!(posted, 2 + 3 * MESSAGES);
}

/// Measures two bursts after a warm-up of at least three messages, a burst; returns what came of it, and the last progress that was told.
fn measure(trial: &mut Trial) -> (Result<Tally, RunError>, Option<Progress>) {
    let mut last = None;
    let mut progress = |told: Progress| {
        assert!(told.done <= told.of, "{told:?}");
        last = Some(told);
    };
    let measured = (trial.session).measure(
        &Posix::MONOTONIC,
        Warmup::Messages(3),
        2,
        &mut progress,
        &mut (),
    );
    (measured, last)
}

#[test]
fn a_point_is_its_bursts_without_the_warm_up() {
    let mut trial = trial(Service::Rc, |_, _| Does::Deliver);
    let tally = measure(&mut trial).0.unwrap();
    assert_eq!((tally.counts, tally.failure), (all(16), None));
    assert_eq!(tally.warmed_up, 8);
    let repeats: Vec<u32> = tally.messages.iter().map(|one| one.repeat).collect();
    assert_eq!(repeats, [[0; 8], [1; 8]].concat());
}

fn hardware_of(end: usize) -> HardwareStamps {
    let kind = CounterKind {
        mask: u64::MAX >> 1,
        hertz: Some(150e6),
    };
    HardwareStamps::made_up(kind, MESSAGES as usize, move || {
        Ok(hardware_count(end, Posix::MONOTONIC.now().0))
    })
}

#[test]
fn stamps_of_adapters_are_at_their_messages_within_their_error() {
    let stamps = [0, 1].map(|end| Some(hardware_of(end)));
    let delivers: FateFunction = |burst, sequence| match (burst, sequence) {
        (_, 3) => Does::Lose,
        (_, 5) => Does::DeliverAmongOthers,
        _ => Does::Deliver,
    };
    let send = (Service::Ud, Operation::Send);
    let mut trial = trial_stamped(send, delivers, stamps);
    let tally = measure(&mut trial).0.unwrap();
    assert_eq!((tally.counts.received, tally.counts.foreign), (14, 2));
    let found = tally.hardware.unwrap();
    assert_eq!(found.messages.len(), 16);
    let ends = [&found.sender, &found.receiver];
    assert_eq!(ends.map(|end| end.completions), [16, 14]);
    assert_eq!(
        ends.map(|end| (end.missing, end.outside, end.too_late())),
        [(0, 0, 0); 2]
    );
    let mut moments = trial
        .fabric
        .moments
        .iter()
        .map(|all| all.lock().unwrap().clone());
    let [of_sender, of_receiver] = [moments.next().unwrap(), moments.next().unwrap()];
    let is_one_of = |moments: &[u64], ns: u64, error: u64| {
        moments.iter().any(|moment| moment.abs_diff(ns) <= error)
    };
    for (times, message) in found.messages.iter().zip(&tally.messages) {
        let completed = times.completed_ns.unwrap();
        assert!(is_one_of(&of_sender, completed, found.sender.error_ns));
        assert!(completed <= message.completed_ns.unwrap() + found.sender.error_ns);
        assert_eq!(times.received_ns.is_some(), message.sequence != 3);
        if let Some(received) = times.received_ns {
            assert!(is_one_of(&of_receiver, received, found.receiver.error_ns));
            assert!(received <= message.received_ns.unwrap() + found.receiver.error_ns);
            assert!(received + found.receiver.error_ns >= message.submitted_ns);
        }
    }
    assert!(found.sender.lag.as_ref().unwrap().count == 16 && found.sender.rate_off().is_none());
}

#[test]
fn a_clock_that_cannot_be_read_any_more_ends_the_point_with_what_was_measured() {
    let reads = AtomicU32::default();
    let broken = HardwareStamps::made_up(
        CounterKind {
            mask: u64::MAX,
            hertz: None,
        },
        MESSAGES as usize,
        move || match reads.fetch_add(1, Ordering::Relaxed) {
            // Of the warm-up and of before the first burst, 32 each.
            0..96 => Ok(hardware_count(0, Posix::MONOTONIC.now().0)),
            _ => Err(VerbsError::code("ibv_query_rt_values_ex", "a", libc::EIO)),
        },
    );
    let deliver: FateFunction = |_, _| Does::Deliver;
    let send = (Service::Rc, Operation::Send);
    let mut trial = trial_stamped(send, deliver, [Some(broken), None]);
    let tally = measure(&mut trial).0.unwrap();
    assert_eq!(tally.counts, all(8));
    tally.failure.unwrap().has(&["ibv_query_rt_values_ex"]);
    let found = tally.hardware.unwrap();
    assert_eq!((found.sender.completions, found.sender.missing), (8, 8));
    assert_eq!(found.receiver.completions, 0);
}

#[test]
fn counters_are_those_of_the_measured_bursts_and_a_change_of_both_ends_is_told_once() {
    let mut trial = trial(Service::Rc, |_, _| Does::Deliver);
    let ports = measure(&mut trial).0.unwrap().ports;
    // Without the three of the warm-up.
    for end in [&ports.sender, &ports.receiver] {
        assert!(end.iter().eq([(FRAMES, 32), (PACKETS, 16)]), "{end:?}");
    }
    assert_eq!(ports.receiver.packets_sent(), Some(16));
    assert_eq!(ports.changes, ["a port 1: the LID changed"]);
    // Before it is waited for those of either device.
    let readings = trial.fabric.readings.lock().unwrap();
    let expected = [
        CounterReading::All,
        CounterReading::Interfaces,
        CounterReading::FreshOfDevice,
    ];
    assert_eq!(*readings, expected.map(|reading| [reading; 2]).concat());
    drop(readings);
    // A failure in the warm-up leaves nothing measured.
    let mut failing = self::trial(Service::Rc, |burst, _| all_but(0, Does::Fail, burst));
    let ports = measure(&mut failing).0.unwrap().ports;
    assert_eq!(ports.sender, PortCounters::default());
    assert_eq!(ports.changes.len(), 1);
}

#[test]
fn what_the_background_did_is_told_and_its_failure_ends_the_point() {
    let mut whole = trial(Service::Rc, |_, _| Does::Deliver);
    whole.session.beside(copying());
    let tally = measure(&mut whole).0.unwrap();
    assert_eq!(tally.failure, None);
    assert!(tally.background.is_some() && whole.session.background.is_none());

    let mut broken = trial(Service::Rc, |_, _| Does::Deliver);
    broken.session.beside(failing());
    let tally = measure(&mut broken).0.unwrap();
    let why = "background thread: failure 12".to_owned();
    assert_eq!(tally.failure, Some(why));
    assert!(tally.background.is_some());
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    // In the warm-up, in the first burst, and in the second.
    let fates: [(FateFunction, u64); 3] = [
        (|burst, _| all_but(0, Does::Fail, burst), 0),
        (|burst, _| all_but(1, Does::Fail, burst), 0),
        (|burst, _| all_but(2, Does::Fail, burst), 8),
    ];
    for (fate, received) in fates {
        let tally = measure(&mut trial(Service::Rc, fate)).0.unwrap();
        tally.failure.unwrap().has(&["failure 12"]);
        assert_eq!(tally.counts.received, received);
    }
    // A thread that hangs leaves nothing of its burst.
    let fates: [(FateFunction, Option<u64>); 2] = [
        (|burst, _| all_but(1, Does::Hang, burst), None),
        (|burst, _| all_but(2, Does::Hang, burst), Some(8)),
    ];
    for (fate, received) in fates {
        let mut trial = trial(Service::Uc, fate);
        let (measured, told) = measure(&mut trial);
        trial.fabric.released.store(true, Ordering::Relaxed);
        // The whole point is what there is to do.
        assert_eq!(told.unwrap().of, 8 + 16);
        assert_eq!(measured.ok().map(|tally| tally.counts.received), received);
    }
}

fn all_but(one: u32, does: Does, burst: u32) -> Does {
    if burst == one { does } else { Does::Deliver }
}

#[test]
fn an_mtu_that_was_lowered_is_named_where_a_reliable_connection_loses_messages() {
    let mut trial = trial(Service::Rc, |_, _| Does::Lose);
    trial.fabric.mtu_is_lowered.store(true, Ordering::Relaxed);
    let failure = trial.burst().unwrap();
    failure.ends("did not arrive within --timeout: the MTU was lowered");
}

#[test]
fn losses_are_counted_where_they_are_no_failure() {
    let lose_two = |_, sequence| match sequence % 5 {
        2 => Does::Lose,
        _ => Does::Deliver,
    };
    let mut unreliable = trial(Service::Uc, lose_two);
    assert_eq!(unreliable.burst(), None);
    assert_eq!(unreliable.burst(), None);
    let counts = unreliable.counts();
    assert_eq!((counts.sent, counts.received, counts.lost), (16, 12, 4));

    let failure = trial(Service::Rc, lose_two).burst().unwrap();
    let said = "2 messages of a reliable connection did not arrive";
    assert!(failure.contains(said), "{failure}");
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
    let mut trial = trial(Service::Ud, |_, sequence| match sequence {
        0..3 => Does::DeliverAmongOthers,
        _ => Does::Deliver,
    });
    assert_eq!(trial.burst(), None);
    let expected = Counts {
        foreign: 3,
        ..all(8)
    };
    assert_eq!(trial.counts(), expected);
}

#[test]
fn a_failed_completion_is_the_reason_and_ends_the_burst() {
    let mut trial = trial(Service::Rc, |_, sequence| match sequence {
        0..4 => Does::Deliver,
        _ => Does::Fail,
    });
    let failure = trial.burst().unwrap();
    failure.has(&["completed with an error, the first: failure 12"]);
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
fn the_root_cause_is_the_reason_though_it_is_found_after_its_effect() {
    // No thread leaves before it is told to.
    let vanish = |_, _| Does::Vanish;
    let mut trial = trial_with(Service::Rc, vanish, Some("disconnected"), || None);
    *trial.fabric.root_cause.lock().unwrap() = Some("the other host has gone");
    assert_eq!(trial.burst().unwrap(), "the other host has gone");
}

#[test]
fn a_thread_that_does_not_leave_its_loop_is_named() {
    let mut trial = trial(Service::Uc, |_, sequence| match sequence {
        5 => Does::Hang,
        _ => Does::Deliver,
    });
    let ended = trial.session.run_burst(MESSAGES as usize, &mut |_| ());
    trial.fabric.released.store(true, Ordering::Relaxed);
    let error = ended.unwrap_err().to_string();
    let said = "the sender did not leave its loop";
    assert!(error.starts_with(said), "{error}");
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
    assert_eq!(trial.counts(), all(3));
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
    let said = "the receiver was moved away from CPU";
    assert!(failure.starts_with(said), "{failure}");
    assert_eq!(trial.counts().received, u64::from(MESSAGES));
}

mod requests;
