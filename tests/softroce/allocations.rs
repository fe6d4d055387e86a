//! The loops allocate nothing: an allocator that counts, thread by thread, says so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hcabench::bench::hca::ends::endpoints::{EndpointSettings, Endpoints, Receives};
use hcabench::bench::hca::ends::verbs_port::VerbsCompletionPort;
use hcabench::bench::hca::ends::{BurstPort, ReceivingEnd, SendingEnd};
use hcabench::bench::hca::loops::completion::{Collector, NoCollection};
use hcabench::bench::hca::loops::control::Control;
use hcabench::bench::hca::loops::port::{BusyPolling, PollMode, WaitForEvent};
use hcabench::bench::hca::loops::receiver::receive;
use hcabench::bench::hca::loops::sender::{BurstSend, SubmitStamp, send};
use hcabench::bench::hca::loops::signalling::Signalling;
use hcabench::bench::hca::loops::tag::{Expected, Tag};
use hcabench::bench::hca::plan::Point;
use hcabench::bench::hca::settings::config::{Operation, Poll, Service, Switch};
use hcabench::buffer::{Arrival, HugePagePolicy, StampBuffer};
use hcabench::node::Scenario;
use hcabench::pacing::NoPause;
use hcabench::rdma::cm::EventChannel;
use hcabench::rig::ports::Service as NodeService;
use hcabench::time::{Posix, Ticks};

use crate::connections::{SERVICES, ends, settings};
use crate::counting::counted;
use crate::machine::Machine;
use crate::node_ends;

const MESSAGES: usize = 8192;
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn the_allocator_counts() {
    let (kept, calls) = counted(|| vec![1_u8; 100]);
    assert_eq!((kept.len(), calls), (100, 1));
    assert_eq!(counted(|| drop(kept)).1, 1);
}

fn run<M: PollMode<VerbsCompletionPort>>(
    service: Service,
    operation: Operation,
    inline: bool,
    events: bool,
    mode: fn() -> M,
) {
    let channel = EventChannel::create().unwrap();
    let [from, to] = ends();
    let poll = if events { Poll::Event } else { Poll::Busy };
    let settings = settings(service);
    let settings = EndpointSettings {
        point: Point {
            operation,
            inline: if inline { Switch::On } else { Switch::Off },
            poll_recv: poll,
            poll_comp: poll,
            burst: MESSAGES as u32,
            depth: MESSAGES as u32,
            ..settings.point
        },
        receives: Receives {
            requests: MESSAGES as u32,
            slots: MESSAGES as u32,
        },
        ..settings
    };
    let endpoints = Arc::new(Endpoints::connect(Some(&channel), &from, &to, &settings).unwrap());
    for slot in 0..MESSAGES {
        endpoints.receiver.post(slot).unwrap();
    }
    let clock = Posix::MONOTONIC;
    let control = Control::default();
    let policy = HugePagePolicy::Off;
    let tag = Tag::new(5);
    let (received, sent, completed) = std::thread::scope(|scope| {
        let (endpoints, control, clock) = (&endpoints, &control, &clock);
        let receiving = scope.spawn(move || {
            let mut arrivals = StampBuffer::<Arrival>::new(MESSAGES, policy).unwrap();
            let mut port = endpoints.receiver.port(5, MESSAGES);
            let log = &mut arrivals[..];
            let expected = Expected::new(5, MESSAGES, endpoints.receiver.sources());
            let (outcome, calls) =
                counted(|| receive(clock, &mut port, mode(), expected, log, control));
            assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
            (outcome.received, calls)
        });
        let completing = scope.spawn(move || {
            let mut stamps = StampBuffer::<Ticks>::new(MESSAGES, policy).unwrap();
            let port = endpoints.sender.completions();
            let collector = Collector::new(port, &mut stamps[..], MESSAGES as u32, tag, control);
            let (outcome, calls) = counted(|| collector.run(clock, mode()));
            assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
            (outcome.succeeded as usize, calls)
        });
        let sending = scope.spawn(move || {
            let mut submitted = StampBuffer::<Ticks>::new(MESSAGES, policy).unwrap();
            let mut port = endpoints.sender.port();
            port.set_tag(tag);
            assert!(control.wait_until_ready(2));
            let (outcome, calls) = counted(|| {
                let burst = BurstSend {
                    signalling: Signalling::new(1, 1),
                    submitted: &mut submitted[..],
                    control,
                };
                send::<SubmitStamp>(clock, &mut port, &mut NoPause, &mut NoCollection, burst)
            });
            assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
            (outcome.posted as usize, calls)
        });
        let deadline = Instant::now() + LIMIT;
        let threads = [receiving, sending, completing];
        while !threads.iter().all(|thread| thread.is_finished()) {
            if Instant::now() > deadline {
                // The scope would wait for them, and those that sleep in the kernel would not see a stop.
                eprintln!("the loops did not end within {LIMIT:?}");
                std::process::exit(1);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        threads.map(|thread| thread.join().unwrap()).into()
    });
    for (loop_of, (messages, calls)) in [
        ("receiver", received),
        ("sender", sent),
        ("completion thread", completed),
    ] {
        assert_eq!(messages, MESSAGES, "{service:?}: messages of the {loop_of}");
        assert_eq!(
            calls, 0,
            "{service:?}: calls of the allocator by the {loop_of}"
        );
    }
}

fn pass_samples(service: NodeService, inline: bool) {
    let settings = node_ends::settings(service, inline);
    let mut ends = node_ends::started(&node_ends::wiring(Scenario::FanOut, 2, 2), &settings);
    let deadline = Instant::now() + LIMIT;
    let (received, calls) = counted(|| {
        let mut received = 0;
        for _ in 0..500 {
            for publisher in &mut ends.publishers {
                let mut missing = 3;
                while missing > 0 && Instant::now() < deadline {
                    missing -= publisher.write(missing);
                }
            }
            for subscriber in &mut ends.subscribers {
                let mut missing = 2 * 3;
                while missing > 0 && Instant::now() < deadline {
                    missing -= subscriber.read(|| Instant::now() < deadline);
                }
                received += 2 * 3 - missing;
            }
        }
        received
    });
    assert_eq!(received, 500 * 2 * 2 * 3, "{service:?}, inline: {inline}");
    assert_eq!(calls, 0, "{service:?}, inline: {inline}");
}

library_tests! {
    fn passing_samples_on_allocates_nothing() {
        let _machine = Machine::take();
        for service in [NodeService::Rc, NodeService::Uc, NodeService::Ud] {
            pass_samples(service, true);
            pass_samples(service, false);
        }
    }

    fn the_loops_over_verbs_allocate_nothing() {
        let _machine = Machine::take();
        for service in SERVICES {
            run(service, Operation::Send, true, false, || BusyPolling);
        }
        run(Service::Rc, Operation::Write, false, false, || BusyPolling);
    }

    fn the_loops_that_wait_for_events_allocate_nothing() {
        let _machine = Machine::take();
        run(Service::Rc, Operation::Send, false, true, WaitForEvent::default);
    }
}
