//! The thread that keeps a posted message's time stamp fresh until the HCA has read it.

use super::control::Control;
use crate::time::{Clock, Ticks};

/// Messages whose stamps can be rewritten while they are under way.
pub trait StampSlots: Send {
    /// Overwrites the stamp of message `sequence`.
    fn restamp(&self, sequence: u32, stamp: Ticks);
}

/// Rewrites, over and over, the stamps of all messages that were posted and have not been received, the oldest first.
/// The more of them there are, the older a stamp is when the HCA reads it, so t_send wants a pause between messages.
/// Ends when all were received, or when told to stop; returns how many stamps were written.
pub fn restamp<C: Clock, L: StampSlots>(clock: &C, slots: &L, control: &Control) -> u64 {
    let mut rewritten = 0;
    control.announce_ready();
    while !control.stopped() {
        // Read before the number of messages: if the sender was done by then, that number is the last.
        let sender_done = control.sender_done();
        let posted = control.posted();
        let received = control.received();
        if received >= posted {
            if sender_done {
                break;
            }
            continue;
        }
        for sequence in received..posted {
            slots.restamp(sequence, clock.now());
        }
        rewritten += u64::from(posted - received);
    }
    rewritten
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::bench::hca::loops::port::scripted::Counting;
    use crate::host::pinning;
    use crate::time::Posix;

    /// Writes down what is rewritten, and lets the burst go on meanwhile.
    struct Watching<'a, F> {
        written: RefCell<Vec<(u32, Ticks)>>,
        then: F,
        control: &'a Control,
    }

    impl<F: Fn(usize, &Control) + Send> StampSlots for Watching<'_, F> {
        fn restamp(&self, sequence: u32, stamp: Ticks) {
            self.written.borrow_mut().push((sequence, stamp));
            assert!(self.written.borrow().len() < 1000, "it does not end");
            (self.then)(self.written.borrow().len(), self.control);
        }
    }

    /// Each message is received when it is rewritten.
    struct Take<'a>(&'a Control);

    impl StampSlots for Take<'_> {
        fn restamp(&self, sequence: u32, _stamp: Ticks) {
            self.0.set_received(sequence + 1);
        }
    }

    fn watching<F: Fn(usize, &Control) + Send>(
        control: &Control,
        then: F,
    ) -> (u64, Vec<(u32, Ticks)>) {
        let slots = Watching {
            written: RefCell::default(),
            then,
            control,
        };
        let rewritten = restamp(&Counting, &slots, control);
        (rewritten, slots.written.into_inner())
    }

    #[test]
    fn only_what_was_posted_and_not_received_is_rewritten() {
        let control = Control::default();
        control.set_posted(5);
        control.set_received(2);
        let (rewritten, written) = watching(&control, |count, control| match count {
            // The second of three: from the next round on there is one message less.
            2 => control.set_received(3),
            5 => {
                control.set_posted(6);
                control.set_received(5);
            }
            6 => {
                control.set_received(6);
                control.set_sender_done();
            }
            _ => {}
        });
        let sequences: Vec<u32> = written.iter().map(|&(sequence, _)| sequence).collect();
        assert_eq!(sequences, [2, 3, 4, 3, 4, 5]);
        assert_eq!(rewritten, 6);
        // Each stamp is fresh.
        assert!(
            written
                .iter()
                .zip(1..)
                .all(|(&(_, stamp), reading)| stamp == Ticks(reading))
        );
        assert!(!control.stopped());
    }

    #[test]
    fn it_is_ready_before_the_first_message_and_goes_on_while_more_are_to_be_posted() {
        let control = Control::default();
        let limit = Instant::now() + Duration::from_secs(20);
        let wait_until = |is_so: &dyn Fn() -> bool| {
            while !is_so() {
                if Instant::now() > limit {
                    control.stop();
                    panic!("it takes too long");
                }
                std::thread::yield_now();
            }
        };
        let clock = Posix::MONOTONIC;
        std::thread::scope(|scope| {
            let stamper = scope.spawn(|| restamp(&clock, &Take(&control), &control));
            wait_until(&|| control.ready() == 1);
            for posted in 1..=50 {
                control.set_posted(posted);
                wait_until(&|| control.received() == posted);
            }
            assert!(!stamper.is_finished());
            control.set_sender_done();
            assert_eq!(stamper.join().unwrap(), 50);
        });
    }

    #[test]
    fn what_was_lost_ends_with_the_word_to_stop() {
        let control = Control::default();
        control.set_posted(2);
        control.set_sender_done();
        let (rewritten, _) = watching(&control, |count, control| match count {
            1 => control.set_received(1),
            20 => control.stop(),
            _ => {}
        });
        assert_eq!(rewritten, 20);
    }

    #[test]
    fn the_last_message_is_not_missed_when_the_sender_ends_right_after_it() {
        // The race is of a few nanoseconds: many rounds, each thread on a CPU of its own, as far as there are two.
        const ROUNDS: usize = 50_000;
        let cpus: Vec<usize> = pinning::current_affinity().unwrap().iter().collect();
        let bursts: Vec<Control> = (0..ROUNDS).map(|_| Control::default()).collect();
        let enough = Instant::now() + Duration::from_secs(2);
        let missed = std::thread::scope(|scope| {
            scope.spawn(|| {
                pinning::pin_current_thread(*cpus.last().unwrap()).unwrap();
                for control in &bursts {
                    if !control.wait_until_ready(1) {
                        break;
                    }
                    control.set_posted(1);
                    control.set_sender_done();
                }
            });
            let stamper = scope.spawn(|| {
                pinning::pin_current_thread(cpus[0]).unwrap();
                let (mut missed, clock) = (0, Posix::MONOTONIC);
                for control in &bursts {
                    if Instant::now() > enough {
                        control.stop();
                        break;
                    }
                    let rewritten = restamp(&clock, &Take(control), control);
                    missed += u32::from(rewritten == 0);
                }
                missed
            });
            stamper.join().unwrap()
        });
        assert_eq!(missed, 0);
    }
}
