//! Which samples the node-type infiniband takes, and that it gives all of them back.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use hcabench::node::{Scenario, Settings};
use hcabench::rig::ports::Service;
use nix::sys::signal::{SigHandler, Signal, raise, signal};

use crate::machine::{Away, Machine};
use crate::node_ends::{End, Ends, settings, started, wiring};
use crate::own_process;

/// Longer than a request takes that nothing hinders, on any machine.
const DONE: Duration = Duration::from_millis(300);
const LIMIT: Duration = Duration::from_secs(60);

/// Passes samples on until `is_over` of so many received, then stops both; returns whether their pools are whole.
fn pass_until(
    ends: Ends,
    publisher_first: bool,
    received: &AtomicU64,
    is_over: impl Fn() -> bool + Sync,
) -> [bool; 2] {
    let Ends {
        mut publishers,
        mut subscribers,
    } = ends;
    let (mut publisher, mut subscriber) = (publishers.remove(0), subscribers.remove(0));
    let stopped = AtomicBool::new(false);
    let wait_for_other = || {
        let deadline = Instant::now() + LIMIT;
        while !stopped.load(Ordering::Acquire) && Instant::now() < deadline {
            sleep(Duration::from_millis(1));
        }
    };
    let stop = |is_first: bool, stop: &mut dyn FnMut() -> bool| {
        if !is_first {
            wait_for_other();
        }
        let is_whole = stop();
        stopped.store(true, Ordering::Release);
        is_whole
    };
    scope(|scope| {
        let publishing = scope.spawn(|| {
            while !is_over() && publisher.try_write(3).is_ok() {
                std::thread::yield_now();
            }
            let mut publisher = Some(publisher);
            stop(publisher_first, &mut || {
                publisher.take().is_some_and(End::stop)
            })
        });
        let subscribing = scope.spawn(|| {
            while !is_over() {
                match subscriber.try_read(|| !is_over()) {
                    Ok(count) => received.fetch_add(count as u64, Ordering::Relaxed),
                    Err(_) => break,
                };
            }
            let mut subscriber = Some(subscriber);
            stop(!publisher_first, &mut || {
                subscriber.take().is_some_and(End::stop)
            })
        });
        [publishing.join().unwrap(), subscribing.join().unwrap()]
    })
}

/// Samples that have been passed on before anything happens.
const BEFORE_END: u64 = 500;

/// Ends that are stopped in full traffic, with requests of all kinds under way.
fn stopped_in_mid_run(service: Service) {
    let _machine = Machine::take();
    for (inline, publisher_first) in [(true, true), (false, false), (false, true), (true, false)] {
        let received = AtomicU64::new(0);
        let ends = started(
            &wiring(Scenario::StraightRun, 1, 1),
            &settings(service, inline),
        );
        let is_over = || received.load(Ordering::Relaxed) >= BEFORE_END;
        let are_whole = pass_until(ends, publisher_first, &received, is_over);
        assert_eq!(are_whole, [true, true], "{service:?}, inline: {inline}");
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

fn interrupted(service: Service) {
    let _machine = Machine::take();
    // SAFETY: the handler only touches an atomic.
    unsafe { signal(Signal::SIGINT, SigHandler::Handler(note)) }.unwrap();
    let received = AtomicU64::new(0);
    let ends = started(
        &wiring(Scenario::StraightRun, 1, 1),
        &settings(service, false),
    );
    let is_raised = AtomicBool::new(false);
    let is_over = || {
        let is_time = received.load(Ordering::Relaxed) >= BEFORE_END;
        if is_time && !is_raised.swap(true, Ordering::Relaxed) {
            raise(Signal::SIGINT).unwrap();
        }
        INTERRUPTED.load(Ordering::Relaxed)
    };
    let are_whole = pass_until(ends, true, &received, is_over);
    assert_eq!(are_whole, [true, true], "{service:?}");
}

library_tests! {
    fn the_pool_is_whole_after_rc_is_stopped() {
        stopped_in_mid_run(Service::Rc);
    }

    fn the_pool_is_whole_after_uc_is_stopped() {
        stopped_in_mid_run(Service::Uc);
    }

    fn the_pool_is_whole_after_ud_is_stopped() {
        stopped_in_mid_run(Service::Ud);
    }

    fn the_pool_is_whole_after_rc_is_interrupted() {
        interrupted(Service::Rc);
    }

    fn the_pool_is_whole_after_ud_is_interrupted() {
        interrupted(Service::Ud);
    }

    /// What is looked for is there: a pool of which the node-type has kept samples is not whole.
    fn a_pool_is_not_whole_while_its_end_has_samples() {
        let _machine = Machine::take();
        let mut ends = started(
            &wiring(Scenario::StraightRun, 1, 1),
            &settings(Service::Rc, false),
        );
        // It has requests posted.
        let subscriber = ends.subscribers.remove(0);
        assert!(!subscriber.pool.is_whole());
        drop(subscriber.node);
        assert!(!subscriber.pool.is_whole());
    }

    /// Some adapters free a send queue only as completions are taken, so that the count of a node must be as strict.
    fn a_send_queue_that_is_full_takes_more_as_soon_as_its_requests_are_done() {
        let _machine = Machine::take();
        for (send_queue, every, inline) in [(1, 1, false), (1, 1, true), (4, 4, true), (8, 5, true)] {
            let usual = settings(Service::Rc, inline);
            let settings = Settings {
                vectorize: 1,
                send_queue,
                verbs: hcabench::node::settings::Verbs {
                    signal_every: every,
                    ..usual.verbs
                },
                ..usual
            };
            let mut ends = started(&wiring(Scenario::StraightRun, 1, 1), &settings);
            let publisher = &mut ends.publishers[0];
            for round in 0..5 {
                sleep(DONE);
                // Of a queue of 8 with a completion every 5 not all are free, but those before the completion.
                for sample in 0..every {
                    assert_eq!(
                        publisher.write(1), 1,
                        "sample {sample} of round {round}, --send-queue {send_queue} --signal-every {every}"
                    );
                }
            }
        }
    }

    fn a_sample_goes_to_all_subscribers_or_to_none() {
        let _machine = Machine::take();
        for service in [Service::Rc, Service::Uc, Service::Ud] {
            let usual = settings(service, false);
            let settings = Settings {
                vectorize: 1,
                send_queue: 4,
                receive_queue: 8,
                ..usual
            };
            let mut ends = started(&wiring(Scenario::FanOut, 1, 2), &settings);
            let publisher = &mut ends.publishers[0];
            let (mut taken, mut received) = (0, 0);
            let [reading, _] = &mut ends.subscribers[..] else {
                panic!("two subscribers");
            };
            // The other one reads nothing: over RC its queue pair fills up.
            for _ in 0..20 {
                taken += publisher.write(1);
                let end = Instant::now() + DONE / 10;
                received += reading.read(|| Instant::now() < end);
            }
            if service == Service::Rc {
                assert!(taken < 20, "the one that does not read must have held it up");
            }
            let end = Instant::now() + DONE;
            while Instant::now() < end {
                received += reading.read(|| Instant::now() < end);
            }
            assert_eq!(received, taken, "{service:?}");
        }
    }
}

#[test]
#[expect(
    clippy::zombie_processes,
    reason = "the removal ends after this process"
)]
fn the_pool_is_whole_after_the_removal_of_its_device() {
    let _machine = Machine::take();
    let path = concat!(
        module_path!(),
        "::the_pool_is_whole_after_the_removal_of_its_device"
    );
    // The device goes when the process that uses it ends; who started that brings it back.
    let away = (!own_process::is_inner()).then(|| Away::by_another("rxe1"));
    own_process::run(path, || {
        let received = AtomicU64::new(0);
        let ends = started(
            &wiring(Scenario::StraightRun, 1, 1),
            &settings(Service::Rc, false),
        );
        let is_asked_for = AtomicBool::new(false);
        let deadline = Instant::now() + LIMIT;
        let are_whole = pass_until(ends, true, &received, || {
            let is_time = received.load(Ordering::Relaxed) >= BEFORE_END;
            if is_time && !is_asked_for.swap(true, Ordering::Relaxed) {
                let removal = Command::new("rdma")
                    .args(["link", "delete", "rxe1"])
                    .spawn();
                removal.unwrap();
            }
            let is_in_time = Instant::now() < deadline;
            assert!(is_in_time, "the ends did not notice the removal");
            false
        });
        assert_eq!(are_whole, [true, true]);
    });
    away.into_iter().for_each(Away::bring_back);
}
