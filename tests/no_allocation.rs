//! The hot loops allocate nothing and free nothing: counted by an allocator, on the loops' own threads.

#![expect(clippy::disallowed_methods, reason = "a test may panic")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hcabench::bench::clock::hot_loop::watch;
use hcabench::bench::clock::recorder::{CountingRecorder, KeepingRecorder, Recorder};
use hcabench::bench::hca::loops::completion::{Collect, Collector, NoCollection};
use hcabench::bench::hca::loops::control::Control;
use hcabench::bench::hca::loops::memory_polling::MemoryPollingPort;
use hcabench::bench::hca::loops::memory_port;
use hcabench::bench::hca::loops::memory_port::MemoryReceivePort;
use hcabench::bench::hca::loops::port::{
    BusyPolling, CompletionPort, EventPort, Failure, PollMode, PollResult, WaitForEvent,
};
use hcabench::bench::hca::loops::receiver::receive;
use hcabench::bench::hca::loops::sender::{BurstSend, SendStamp, StampMode, SubmitStamp, send};
use hcabench::bench::hca::loops::signalling::Signalling;
use hcabench::bench::hca::loops::stamper::{StampSlots, restamp};
use hcabench::bench::hca::loops::tag::{Expected, Tag};
use hcabench::buffer::{Arrival, HugePagePolicy, Payload, PayloadBuffer, PolledSlots, StampBuffer};
use hcabench::node::connected::Connected;
use hcabench::node::settings::UnixSocket;
use hcabench::node::tcp::TcpSockets;
use hcabench::node::udp::Udp;
use hcabench::node::unix::UnixSockets;
use hcabench::node::{Ends, Node, NodeError, Pool, Scenario, Settings, Slot, Wiring, rings};
use hcabench::pacing::{ConstantWait, NoPause, Pacing};
use hcabench::time::{
    AnyClock, AnyReading, Clock, ClockKind, ClockUser, Nanos, Posix, Reading, ReadingKind,
    ReadingUser, Ticks,
};

use completed::{Completed, completed};
use counting::counted;

#[path = "loops/completed.rs"]
mod completed;
#[path = "loops/counting.rs"]
mod counting;

const MESSAGES: usize = 8192;

#[test]
fn the_counter_counts_this_thread_and_no_other() {
    assert_eq!(counted(|| ()).1, 0);
    let (kept, calls) = counted(|| black_box(Box::new(black_box(1_u64))));
    assert_eq!(calls, 1);
    assert_eq!(counted(|| drop(kept)).1, 1);
    let mut list = vec![1_u64; 10];
    assert_eq!(counted(|| black_box(&mut list).reserve_exact(1000)).1, 1);
    assert_eq!(
        counted(|| black_box(vec![0_u64; black_box(100)]).len()).1,
        2
    );
    let control = Control::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !control.stopped() {
                drop(black_box(Box::new(black_box(2_u64))));
                control.set_posted(1);
            }
        });
        let (_, calls) = counted(|| {
            while control.posted() == 0 {
                std::hint::spin_loop();
            }
        });
        control.stop();
        assert_eq!(calls, 0);
    });
}

#[test]
fn looking_for_messages_in_memory_allocates_nothing() {
    let buffer = PayloadBuffer::new(MESSAGES, 9, 0, HugePagePolicy::Off);
    let payload = Payload::new(buffer.unwrap());
    let mut port = MemoryPollingPort::<true>::new(PolledSlots::new(&payload, 1, MESSAGES), 1);
    for index in 0..MESSAGES {
        payload.fill(index, 1, index as u32);
    }
    let mut arrivals = vec![Arrival::default(); MESSAGES];
    let (clock, control) = (Posix::MONOTONIC, Control::default());
    let expected = Expected::new(1, MESSAGES, &[]);
    let (outcome, calls) = counted(|| {
        let (clock, log) = (&clock, &mut arrivals);
        receive(clock, &mut port, BusyPolling, expected, log, &control)
    });
    assert_eq!((outcome.received, calls), (MESSAGES, 0));
}

struct Awake(MemoryReceivePort);

impl CompletionPort for Awake {
    fn poll(&mut self) -> PollResult {
        self.0.poll()
    }
}

impl EventPort for Awake {
    fn arm(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    fn sleep(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

struct Stamps(StampBuffer<u64>);

impl StampSlots for Stamps {
    fn restamp(&self, sequence: u32, stamp: Ticks) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        assert!((sequence as usize) < self.0.len());
        LAST.store(stamp.0, Ordering::Relaxed);
    }
}

/// Runs a burst of [`MESSAGES`] and counts what the sending, the receiving and the stamping loop call.
fn burst<S: StampMode, C: Clock, W: Pacing + Send, K: Collect + Send, M: PollMode<Awake> + Send>(
    clock: &C,
    mut pacing: W,
    mut collect: K,
    poll_mode: M,
    control: &Control,
) {
    let tag = Tag::new(1);
    let (mut send_port, receive_port) = memory_port::connect(MESSAGES, tag.immediate_data(0));
    let mut receive_port = Awake(receive_port);
    let mut submitted = StampBuffer::<Ticks>::new(MESSAGES, HugePagePolicy::Try).unwrap();
    let mut arrivals = StampBuffer::<Arrival>::new(MESSAGES, HugePagePolicy::Try).unwrap();
    let expected = Expected::new(1, MESSAGES, &[]);
    let stamps = Stamps(StampBuffer::new(MESSAGES, HugePagePolicy::Try).unwrap());
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (port, log) = (&mut receive_port, &mut arrivals);
            counted(|| receive(clock, port, poll_mode, expected, log, control))
        });
        let stamper = scope.spawn(|| {
            let stamps = stamps;
            counted(|| restamp(clock, &stamps, control)).1
        });
        assert!(control.wait_until_ready(2));
        let burst = BurstSend {
            signalling: Signalling::new(1, 1),
            submitted: &mut submitted,
            control,
        };
        let (port, pacing, collect) = (&mut send_port, &mut pacing, &mut collect);
        let (sending, calls) = counted(|| send::<S>(clock, port, pacing, collect, burst));
        let found = (sending.posted as usize, calls);
        assert_eq!(found, (MESSAGES, 0), "the sending loop");
        let (receiving, calls) = receiver.join().unwrap();
        let found = (receiving.received, calls);
        assert_eq!(found, (MESSAGES, 0), "the receiving loop");
        assert_eq!(stamper.join().unwrap(), 0, "the stamping loop");
    });
}

fn collector<'a>(control: &'a Control, stamps: &'a mut [Ticks]) -> Collector<'a, Completed<'a>> {
    let completions = completed(control);
    Collector::new(completions, stamps, MESSAGES as u32, Tag::new(0), control)
}

struct AllLoops;

impl ClockUser for AllLoops {
    type Output = ();

    fn with<C: Clock>(self, clock: C) {
        let wait = || ConstantWait::new(&clock, Nanos(500));
        let fresh = Control::default;
        burst::<SubmitStamp, _, _, _, _>(&clock, NoPause, NoCollection, BusyPolling, &fresh());
        let events = WaitForEvent::default();
        burst::<SubmitStamp, _, _, _, _>(&clock, wait(), NoCollection, events, &fresh());
        burst::<SendStamp, _, _, _, _>(&clock, wait(), NoCollection, BusyPolling, &fresh());
        collecting(&clock, NoPause);
        collecting(&clock, wait());
    }
}

fn collecting<C: Clock, W: Pacing + Send>(clock: &C, pacing: W) {
    let control = Control::default();
    let mut stamps = StampBuffer::<Ticks>::new(MESSAGES, HugePagePolicy::Try).unwrap();
    let collector = collector(&control, &mut stamps);
    burst::<SubmitStamp, _, _, _, _>(clock, pacing, collector, BusyPolling, &control);
    assert_eq!(control.completed() as usize, MESSAGES);
    assert!(stamps.iter().all(|stamp| stamp.0 != 0));
}

struct OwnThread;

impl ClockUser for OwnThread {
    type Output = ();

    fn with<C: Clock>(self, clock: C) {
        let control = Control::default();
        control.set_posted(MESSAGES as u32);
        let mut stamps = StampBuffer::<Ticks>::new(MESSAGES, HugePagePolicy::Try).unwrap();
        let collector = collector(&control, &mut stamps);
        let (outcome, calls) = counted(|| collector.run(&clock, BusyPolling));
        assert_eq!((outcome.succeeded as usize, calls), (MESSAGES, 0));
    }
}

#[test]
fn no_loop_allocates_with_clock_monotonic() {
    check(ClockKind::Monotonic);
}

#[test]
fn no_loop_allocates_with_clock_monotonic_raw() {
    check(ClockKind::MonotonicRaw);
}

#[test]
fn no_loop_allocates_with_the_counter() {
    use hcabench::time::TscTrust;
    if let Err(reason) = TscTrust::find() {
        // Then no run can use it either.
        assert!(AnyClock::prepare(ClockKind::Counter).is_err());
        println!("not tested here: {reason}");
        return;
    }
    check(ClockKind::Counter);
}

fn check(kind: ClockKind) {
    // A busy machine can keep the TSC's rate from settling at once.
    let clock = (0..10).find_map(|_| AnyClock::prepare(kind).ok());
    let clock = clock.expect("the clock can be used here");
    clock.visit(AllLoops);
    clock.visit(OwnThread);
}

/// The loop of the clock-jump benchmark, with all that it can store; every difference at most once above the limit.
struct WatchClock;

impl ReadingUser for WatchClock {
    type Output = ();
    fn with<R: Reading>(self, reading: R) {
        let slots = StampBuffer::new(MESSAGES, HugePagePolicy::Try).unwrap();
        let mut recorder = (CountingRecorder::default(), KeepingRecorder::new(slots));
        let (left, calls) = counted(|| {
            let mut left = MESSAGES as u64;
            let mut last = reading.read();
            while left > 0 {
                let limit = recorder.direct_limit();
                let pass = watch(&reading, &mut recorder, last, left, limit);
                left -= pass.readings;
                last = pass.last;
                if let Some(found) = pass.found {
                    recorder.record(found.difference & (u64::MAX >> 1));
                }
            }
            left
        });
        assert_eq!((left, calls), (0, 0));
    }
}

#[test]
fn watching_a_clock_allocates_nothing() {
    for &kind in ReadingKind::ALL {
        if let Ok(reading) = AnyReading::prepare(kind, None) {
            reading.visit(WatchClock);
        }
    }
}

fn pass_samples<P: Node, S: Node>(
    name: &str,
    ends: impl FnOnce(&Wiring, &Settings) -> Result<Ends<P, S>, NodeError>,
) {
    const WORDS: usize = 10;
    let wiring = Wiring::new(Scenario::FanOut, 2, 2);
    let settings = Settings {
        vectorize: 4,
        // libzmq takes its time to notice that there is room again.
        send_queue: 512,
        receive_queue: 512,
        ..Settings::of_words(WORDS)
    };
    let mut ends = ends(&wiring, &settings).unwrap();
    let mut pool = Pool::new(16, WORDS, HugePagePolicy::Off).unwrap();
    let mut samples = Vec::with_capacity(pool.count());
    for publisher in &mut ends.publishers {
        publisher.start(&mut pool, &mut || true).unwrap();
    }
    for subscriber in &mut ends.subscribers {
        subscriber.start(&mut pool, &mut || true).unwrap();
    }
    // Where the ends find each other on the way, what is sent before is lost.
    let deadline = Instant::now() + Duration::from_secs(30);
    for publisher in &mut ends.publishers {
        for subscriber in &mut ends.subscribers {
            let mut is_reached = false;
            while !is_reached {
                assert!(Instant::now() < deadline, "{name}: nothing arrives");
                pool.fill(&mut samples, 1);
                publisher.write(&mut pool, &mut samples).unwrap();
                pool.release_all(&mut samples);
                is_reached = drain(subscriber, &mut pool, &mut samples) > 0;
            }
        }
    }
    for subscriber in &mut ends.subscribers {
        while drain(subscriber, &mut pool, &mut samples) > 0 {}
    }
    let (received, calls) = counted(|| {
        let mut received = 0;
        for _ in 0..100 {
            for publisher in &mut ends.publishers {
                pool.fill(&mut samples, 3);
                assert_eq!(publisher.write(&mut pool, &mut samples).unwrap(), 3);
                pool.release_all(&mut samples);
            }
            for subscriber in &mut ends.subscribers {
                let mut missing = 6;
                while missing > 0 && Instant::now() < deadline {
                    pool.fill(&mut samples, settings.vectorize);
                    let go_on = || Instant::now() < deadline;
                    missing -= subscriber.read(&mut pool, &mut samples, go_on).unwrap();
                    pool.release_all(&mut samples);
                }
                received += 6 - missing;
            }
        }
        received
    });
    assert_eq!((received, calls), (100 * 2 * 6, 0), "{name}");
}

/// Reads what is there, and what comes while nothing has come for some time.
fn drain(subscriber: &mut impl Node, pool: &mut Pool, samples: &mut Vec<Slot>) -> usize {
    let end = Instant::now() + Duration::from_millis(100);
    pool.fill(samples, 4);
    let received = subscriber.read(pool, samples, || Instant::now() < end);
    pool.release_all(samples);
    received.unwrap()
}

#[test]
fn passing_samples_on_allocates_nothing() {
    pass_samples("loopback", |wiring, settings| {
        Ends::of(&rings::loopback(wiring, settings)?, wiring)
    });
    pass_samples("shmem", |wiring, settings| {
        let memory = rings::memory(wiring, settings)?;
        Ends::of(&rings::shmem(wiring, settings, &memory), wiring)
    });
    pass_samples("udp", |wiring, settings| {
        Ends::of(&Udp { wiring, settings }, wiring)
    });
    pass_samples("tcp", |wiring, settings| {
        Ends::of(
            &Connected {
                sockets: TcpSockets::of(settings),
                wiring,
                settings,
                name: "hcabench-no-allocation",
            },
            wiring,
        )
    });
    for unix_socket in [UnixSocket::Stream, UnixSocket::SeqPacket] {
        pass_samples("unix", |wiring, settings| {
            let mut settings = settings.clone();
            settings.sockets.unix_socket = unix_socket;
            let name = format!("hcabench-no-allocation-{}", std::process::id());
            Ends::of(
                &Connected {
                    sockets: UnixSockets::of(&settings),
                    wiring,
                    settings: &settings,
                    name: &name,
                },
                wiring,
            )
        });
    }
    // What libzmq allocates does not come from here.
    #[cfg(feature = "zeromq")]
    pass_samples("zeromq", |wiring, settings| {
        Ends::of(&hcabench::node::zeromq::Zeromq { wiring, settings }, wiring)
    });
}
