//! Probes between two hosts: a message there and an answer back, with a stamp before each post and behind each
//! completion.
//!
//! The stamps are taken where those of messages are: the next message is ready but for its stamp before the clock is
//! read, and the clock is read right after a completion was taken. The sender's completions are looked for while nothing
//! is under way.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bench::hca::ends::BurstPort;
use crate::bench::hca::loops::port::{CompletionPort, Failure, PollMode, PollResult};
use crate::bench::hca::loops::tag::Tag;
use crate::time::{Clock, Ticks};

/// Messages of a burst of probes: slots of the payload, and receive requests.
pub(super) const SLOTS: u32 = 64;
/// The most probes of a phase.
pub(super) const MOST_PROBES: u32 = 100_000;
/// Each so many messages one is signalled, so that the send queue is emptied.
const SIGNALLED: u32 = 32;
/// How long a completion of a message that was answered is waited for: it is there, or nearly.
const EMPTYING: Duration = Duration::from_secs(2);

/// Shared by the thread that exchanges probes and the one that watches it.
#[derive(Debug, Default)]
pub(super) struct ProbeProgress {
    /// The thread is to end.
    stop: AtomicBool,
    /// The probe that is under way, counted from 1.
    at: AtomicU32,
    /// The last one that is given up.
    given_up: AtomicU32,
}

impl ProbeProgress {
    /// Has the thread end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The probe that is under way, counted from 1.
    pub(super) fn at(&self) -> u32 {
        self.at.load(Ordering::Relaxed)
    }

    /// Gives up a probe: its answer is waited for no longer.
    pub(super) fn give_up(&self, probe: u32) {
        self.given_up.store(probe, Ordering::Relaxed);
    }

    fn is_given_up(&self, probe: u32) -> bool {
        self.given_up.load(Ordering::Relaxed) >= probe
    }
}

/// What one end of a probe stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamped {
    /// Its number, on this connection.
    pub(super) number: u32,
    /// Right before its message was posted.
    pub(super) sent: Ticks,
    /// Right after a message of the other end was there.
    pub(super) received: Ticks,
}

/// The ports of one end.
pub(super) struct Ports<'a, S, R, D> {
    /// Where messages are sent.
    pub(super) send: &'a mut S,
    /// Where those of the other end arrive.
    pub(super) receive: &'a mut R,
    /// Where completions of what was sent are found.
    pub(super) sent: &'a mut D,
    /// Posts the receive request of a slot anew.
    pub(super) post: &'a mut dyn FnMut(u64) -> Result<(), Failure>,
    /// Messages since the last signalled one.
    pub(super) unsignalled: u32,
}

impl<S: BurstPort, R: CompletionPort, D: CompletionPort> Ports<'_, S, R, D> {
    /// Makes probe `number` ready but for its stamp.
    fn prepare(&mut self, number: u32) {
        self.send.set_tag(Tag::new(number / SLOTS));
        let signalled = self.unsignalled + 1 == SIGNALLED;
        self.send.prepare(number % SLOTS, signalled);
    }

    /// After a message was posted: takes the completion of a signalled one, so that the queue has room.
    fn empty(&mut self) -> Result<(), Failure> {
        self.unsignalled += 1;
        if self.unsignalled < SIGNALLED {
            return self.failure();
        }
        self.unsignalled = 0;
        let begun = std::time::Instant::now();
        loop {
            match self.sent.poll() {
                PollResult::Done(_) => return Ok(()),
                PollResult::Failed(failure) => return Err(failure),
                PollResult::Empty if begun.elapsed() > EMPTYING => return Ok(()),
                PollResult::Empty => {}
            }
        }
    }

    /// What has failed of the messages that were sent.
    fn failure(&mut self) -> Result<(), Failure> {
        match self.sent.poll() {
            PollResult::Failed(failure) => Err(failure),
            PollResult::Done(_) | PollResult::Empty => Ok(()),
        }
    }
}

/// The immediate data of a probe.
fn label(number: u32) -> u32 {
    Tag::new(number / SLOTS).immediate_data(number % SLOTS)
}

/// Sends probes `first` to `first + count - 1` and waits for the answer of each. What had no answer is left out.
///
/// # Errors
/// When a port fails.
pub(super) fn ask<C: Clock, S: BurstPort, R: CompletionPort, D: CompletionPort>(
    clock: &C,
    mut ports: Ports<'_, S, R, D>,
    mut mode: impl PollMode<R>,
    (first, count): (u32, u32),
    watched: &ProbeProgress,
) -> Result<Vec<Stamped>, Failure> {
    let mut stamped = Vec::with_capacity(count as usize);
    mode.start(ports.receive)?;
    for number in first..first + count {
        if watched.stopped() {
            break;
        }
        let probe = number - first + 1;
        watched.at.store(probe, Ordering::Relaxed);
        ports.prepare(number);
        let sent = clock.now();
        ports.send.stamp(sent);
        ports.send.post()?;
        loop {
            match ports.receive.poll() {
                PollResult::Done(completion) => {
                    let received = clock.now();
                    (ports.post)(completion.request)?;
                    // The answer to one that was given up may come late.
                    if completion.immediate_data == label(number) {
                        stamped.push(Stamped {
                            number,
                            sent,
                            received,
                        });
                        break;
                    }
                }
                PollResult::Empty if watched.stopped() || watched.is_given_up(probe) => break,
                PollResult::Empty => mode.idle(ports.receive)?,
                PollResult::Failed(failure) if failure.foreign => {}
                PollResult::Failed(failure) => return Err(failure),
            }
        }
        ports.empty()?;
    }
    Ok(stamped)
}

/// Answers each probe with one of its number, until it is told to stop.
///
/// # Errors
/// When a port fails.
pub(super) fn answer<C: Clock, S: BurstPort, R: CompletionPort, D: CompletionPort>(
    clock: &C,
    mut ports: Ports<'_, S, R, D>,
    mut mode: impl PollMode<R>,
    (first, count): (u32, u32),
    watched: &ProbeProgress,
) -> Result<Vec<Stamped>, Failure> {
    let mut stamped = Vec::with_capacity(count as usize);
    mode.start(ports.receive)?;
    let mut expected = first;
    ports.prepare(expected);
    while expected < first + count {
        match ports.receive.poll() {
            PollResult::Done(completion) => {
                let received = clock.now();
                let came =
                    (expected..first + count).find(|at| completion.immediate_data == label(*at));
                let Some(number) = came else {
                    // Of an earlier phase, or of somebody else.
                    (ports.post)(completion.request)?;
                    continue;
                };
                if number != expected {
                    // Those before it were lost.
                    ports.prepare(number);
                }
                let sent = clock.now();
                ports.send.stamp(sent);
                ports.send.post()?;
                (ports.post)(completion.request)?;
                stamped.push(Stamped {
                    number,
                    sent,
                    received,
                });
                ports.empty()?;
                expected = number + 1;
                ports.prepare(expected);
            }
            PollResult::Empty if watched.stopped() => break,
            PollResult::Empty => mode.idle(ports.receive)?,
            PollResult::Failed(failure) if failure.foreign => {}
            PollResult::Failed(failure) => return Err(failure),
        }
    }
    Ok(stamped)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::bench::hca::loops::port::{BusyPolling, Completion, SendPort};
    use crate::time::Posix;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Sends labels; loses those that it is told to.
    struct Out {
        to: Sender<u32>,
        lost: Vec<u32>,
        tag: Tag,
        next: u32,
    }

    impl BurstPort for Out {
        fn set_tag(&mut self, tag: Tag) {
            self.tag = tag;
        }
    }

    impl SendPort for Out {
        fn prepare(&mut self, sequence: u32, _signaled: bool) {
            self.next = self.tag.immediate_data(sequence);
        }
        fn stamp(&mut self, _stamp: Ticks) {}
        fn post(&mut self) -> Result<(), Failure> {
            if let Some(at) = self.lost.iter().position(|lost| label(*lost) == self.next) {
                self.lost.remove(at);
                return Ok(());
            }
            let _ = self.to.send(self.next);
            Ok(())
        }
    }

    struct In(Receiver<u32>);

    impl CompletionPort for In {
        fn poll(&mut self) -> PollResult {
            match self.0.try_recv() {
                Ok(immediate_data) => PollResult::Done(Completion {
                    immediate_data,
                    ..Completion::default()
                }),
                Err(_) => PollResult::Empty,
            }
        }
    }

    struct Complete;

    impl CompletionPort for Complete {
        fn poll(&mut self) -> PollResult {
            PollResult::Done(Completion::default())
        }
    }

    fn exchange(count: u32, there: &[u32], back: &[u32]) -> [Vec<Stamped>; 2] {
        let ((to_b, at_b), (to_a, at_a)) = (channel(), channel());
        let out = |to, lost: &[u32]| Out {
            to,
            lost: lost.to_vec(),
            tag: Tag::new(0),
            next: 0,
        };
        let (mut a, mut b) = (out(to_b, there), out(to_a, back));
        let (mut from_b, mut from_a) = (In(at_a), In(at_b));
        let (asking, answering) = (ProbeProgress::default(), ProbeProgress::default());
        let numbers = (SLOTS - 3, count);
        let clock = Posix::MONOTONIC;
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let ports = Ports {
                    send: &mut b,
                    receive: &mut from_a,
                    sent: &mut Complete,
                    post: &mut |_| Ok(()),
                    unsignalled: 0,
                };
                answer(&clock, ports, BusyPolling, numbers, &answering).unwrap()
            });
            let first = scope.spawn(|| {
                let ports = Ports {
                    send: &mut a,
                    receive: &mut from_b,
                    sent: &mut Complete,
                    post: &mut |_| Ok(()),
                    unsignalled: 0,
                };
                ask(&clock, ports, BusyPolling, numbers, &asking).unwrap()
            });
            let begun = std::time::Instant::now();
            while !first.is_finished() {
                assert!(begun.elapsed() < LIMIT, "it hangs");
                let at = asking.at();
                std::thread::sleep(Duration::from_millis(20));
                // However long a thread has no CPU, only what is lost is given up.
                let number = SLOTS - 3 + at.saturating_sub(1);
                let is_lost = there.contains(&number) || back.contains(&number);
                if asking.at() == at && is_lost {
                    asking.give_up(at);
                }
            }
            answering.stop();
            [first.join().unwrap(), second.join().unwrap()]
        })
    }

    fn numbers(stamped: &[Stamped]) -> Vec<u32> {
        stamped.iter().map(|one| one.number - (SLOTS - 3)).collect()
    }

    #[test]
    fn each_probe_is_answered_by_its_number_and_stamped_in_order() {
        let [asked, answered] = exchange(200, &[], &[]);
        assert_eq!(numbers(&asked), (0..200).collect::<Vec<_>>());
        assert_eq!(numbers(&answered), numbers(&asked));
        for (a, b) in asked.iter().zip(&answered) {
            // One clock: the four stamps are in the order of events.
            assert!(a.sent <= b.received && b.received <= b.sent && b.sent <= a.received);
        }
    }

    #[test]
    fn what_is_lost_there_or_back_is_given_up_and_the_others_are_not() {
        let at = |number: u32| number + SLOTS - 3;
        let [asked, answered] = exchange(10, &[at(2)], &[at(5), at(6)]);
        assert_eq!(numbers(&asked), [0, 1, 3, 4, 7, 8, 9]);
        assert_eq!(numbers(&answered), [0, 1, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn who_is_told_to_stop_ends_at_once() {
        let (to, _kept) = channel();
        let (_silent, from) = channel();
        let watched = ProbeProgress::default();
        watched.stop();
        let ports = Ports {
            send: &mut Out {
                to,
                lost: Vec::new(),
                tag: Tag::new(0),
                next: 0,
            },
            receive: &mut In(from),
            sent: &mut Complete,
            post: &mut |_| Ok(()),
            unsignalled: 0,
        };
        let clock = Posix::MONOTONIC;
        let stamped = answer(&clock, ports, BusyPolling, (0, 10), &watched).unwrap();
        assert!(stamped.is_empty());
    }
}
