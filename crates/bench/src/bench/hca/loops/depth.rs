//! A sender that may have fewer messages in flight than a burst has (`--depth`).
//!
//! The loop itself is the same: this is a pace around its pace. A message that would be one too many is not prepared, so
//! the wait stands before its time stamp and is not in its latency. Where messages are posted at a rate, it makes them
//! late: it is in the latency from the intended time.

use super::control::Control;
use crate::pacing::Pacing;
use crate::time::{Clock, Ticks};

/// A pace whose every pause lasts until there is room for one more message.
#[derive(Debug)]
pub struct WithinDepth<'a, P> {
    pacing: &'a mut P,
    control: &'a Control,
    depth: u32,
    until_renewed: bool,
    posted: u32,
}

impl<'a, P: Pacing> WithinDepth<'a, P> {
    /// `pacing`, with at most `depth` messages in flight.
    ///
    /// A message is in flight until a completion has shown that it left its send queue. With `until_renewed` it is in
    /// flight until its receive request was posted anew as well. That is for RC, where it would find the receiver not
    /// ready: an acknowledgement tells that a request was taken, and not that there is another. On UC and UD it must not
    /// be asked for, as a message that was lost takes none.
    pub fn new(pacing: &'a mut P, control: &'a Control, depth: u32, until_renewed: bool) -> Self {
        WithinDepth {
            pacing,
            control,
            depth,
            until_renewed,
            posted: 0,
        }
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        let left = self.control.left();
        let arrived = if self.until_renewed {
            left.min(self.control.renewed())
        } else {
            left
        };
        self.posted.saturating_sub(arrived) < self.depth
    }
}

impl<P: Pacing> Pacing for WithinDepth<'_, P> {
    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        self.pacing.start_at(now);
    }

    fn next_due<C: Clock>(&mut self, _clock: &C) -> Option<Ticks> {
        unreachable!("room for a message is waited for, in a pause, and not due at a time")
    }

    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, mut tick: impl FnMut() -> bool) {
        self.posted += 1;
        self.pacing.pause(clock, &mut tick);
        while !self.has_room() && tick() {}
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::bench::hca::loops::completion::{Collector, SendQueueProgress};
    use crate::bench::hca::loops::port::scripted::Counting;
    use crate::bench::hca::loops::port::{
        Completion, CompletionPort, Failure, PollResult, SendPort,
    };
    use crate::bench::hca::loops::sender::{BurstSend, SubmitStamp, send};
    use crate::bench::hca::loops::signalling::Signalling;
    use crate::bench::hca::loops::tag::Tag;
    use crate::pacing::NoPause;

    /// Send queues whose requests complete in an order that a script has, and a receiver that posts requests anew.
    #[derive(Default)]
    struct Fabric {
        /// Of each queue pair: what was posted and has not left, and whether it was signalled.
        queues: Vec<VecDeque<(u32, bool)>>,
        done: VecDeque<u32>,
        posted: u32,
        arrived: u32,
        looks: usize,
        turns: Vec<u8>,
        /// Most requests of a send queue that held their place there when one was posted.
        longest_queue: u32,
        /// Messages over each queue pair, and those of them that completions have shown to have left.
        places: Vec<(u32, u32)>,
        /// Most messages that had no receive request posted anew.
        most_unrenewed: u32,
    }

    impl Fabric {
        /// One message leaves, and perhaps a request is posted anew.
        fn go_on(&mut self, control: &Control) {
            self.looks += 1;
            assert!(self.looks < 100_000, "the sender waits for ever");
            let turn = self.turns[self.looks % self.turns.len()];
            let pairs = self.queues.len();
            let first = usize::from(turn) % pairs;
            let busy = (0..pairs).map(|one| (first + one) % pairs);
            let busy = busy.into_iter().find(|&one| !self.queues[one].is_empty());
            if let Some((sequence, signaled)) = busy.and_then(|one| self.queues[one].pop_front()) {
                self.arrived += 1;
                if signaled {
                    self.done.push_back(sequence);
                }
            }
            let is_slow = turn % 3 == 1 && !self.looks.is_multiple_of(5);
            if !is_slow && control.renewed() < self.arrived {
                control.set_renewed(control.renewed() + 1);
            }
        }
    }

    thread_local! {
        static FABRIC: RefCell<Fabric> = RefCell::default();
    }

    struct Port<'a> {
        control: &'a Control,
        prepared: (u32, bool),
    }

    impl SendPort for Port<'_> {
        fn prepare(&mut self, sequence: u32, signaled: bool) {
            self.prepared = (sequence, signaled);
        }

        fn stamp(&mut self, _stamp: Ticks) {}

        fn post(&mut self) -> Result<(), Failure> {
            FABRIC.with_borrow_mut(|fabric| {
                let at = self.prepared.0 as usize % fabric.queues.len();
                fabric.queues[at].push_back(self.prepared);
                fabric.posted += 1;
                fabric.places[at].0 += 1;
                let held = fabric.places[at].0 - fabric.places[at].1;
                fabric.longest_queue = fabric.longest_queue.max(held);
                let unrenewed = fabric.posted - self.control.renewed();
                fabric.most_unrenewed = fabric.most_unrenewed.max(unrenewed);
            });
            Ok(())
        }
    }

    struct Completions<'a>(&'a Control);

    impl CompletionPort for Completions<'_> {
        fn poll(&mut self) -> PollResult {
            FABRIC.with_borrow_mut(|fabric| {
                fabric.go_on(self.0);
                let Some(sequence) = fabric.done.pop_front() else {
                    return PollResult::Empty;
                };
                let pairs = fabric.queues.len() as u32;
                fabric.places[(sequence % pairs) as usize].1 = sequence / pairs + 1;
                PollResult::Done(Completion {
                    request: u64::from(sequence),
                    ..Completion::default()
                })
            })
        }
    }

    /// Sends `count` messages within a depth, over send queues of the length that a point has.
    fn check(
        (count, depth): (u32, u32),
        queue_pairs: u32,
        unsignaled: bool,
        reliable: bool,
        turns: Vec<u8>,
    ) {
        let every = match unsignaled {
            true => Signalling::longest_run(depth, queue_pairs),
            false => 1,
        };
        let signalling = Signalling::new(every, queue_pairs);
        let control = Control::default();
        FABRIC.set(Fabric {
            queues: vec![VecDeque::new(); queue_pairs as usize],
            places: vec![(0, 0); queue_pairs as usize],
            turns,
            ..Fabric::default()
        });
        let (mut submitted, mut completed) = (
            vec![Ticks(0); count as usize],
            vec![Ticks(0); count as usize],
        );
        let (port, expected) = (Completions(&control), signalling.among(count));
        let collector = Collector::new(port, &mut completed, expected, Tag::new(0), &control);
        let mut collector = collector.telling(SendQueueProgress::new(signalling));
        let (mut pacing, burst) = (
            NoPause,
            BurstSend {
                signalling,
                submitted: &mut submitted,
                control: &control,
            },
        );
        let mut pacing = WithinDepth::new(&mut pacing, &control, depth, reliable);
        let prepared = (0, false);
        let mut port = Port {
            control: &control,
            prepared,
        };
        let outcome = send::<SubmitStamp>(&Counting, &mut port, &mut pacing, &mut collector, burst);
        let of = format!("{count} messages, depth {depth}, {queue_pairs} queue pairs");
        assert_eq!(outcome.posted, count, "{of}");
        assert_eq!(collector.into_outcome().succeeded, expected, "{of}");
        assert_eq!(control.left(), count, "{of}");
        FABRIC.with_borrow(|fabric| {
            let length = depth.min(count.div_ceil(queue_pairs));
            let is_kept = fabric.longest_queue <= length;
            assert!(is_kept, "{of}: {}", fabric.longest_queue);
            assert!(!reliable || fabric.most_unrenewed <= depth, "{of}");
        });
    }

    #[test]
    fn the_shortest_depths_end_signalled_or_not() {
        for (depth, count) in [1, 2, 3]
            .into_iter()
            .flat_map(|depth| [(depth, 1), (depth, 20)])
        {
            for queue_pairs in [1, 2, 3, 5] {
                for (unsignaled, reliable) in [(false, false), (true, false), (true, true)] {
                    let turns = vec![0, 1, 2];
                    check((count, depth), queue_pairs, unsignaled, reliable, turns);
                }
            }
        }
    }

    #[test]
    fn a_stop_ends_the_wait_for_room() {
        let control = Control::default();
        let mut pacing = NoPause;
        let mut pacing = WithinDepth::new(&mut pacing, &control, 1, false);
        let mut ticks = 0;
        pacing.pause(&Counting, || {
            ticks += 1;
            ticks < 50
        });
        assert_eq!(ticks, 50);
    }

    proptest! {
        #[test]
        fn no_order_of_completions_blocks_the_sender_or_overfills_a_queue(
            count in 1_u32..120,
            depth in 1_u32..40,
            queue_pairs in 1_u32..9,
            unsignaled: bool,
            reliable: bool,
            turns in prop::collection::vec(any::<u8>(), 1..40),
        ) {
            check((count, depth), queue_pairs, unsignaled, reliable, turns);
        }
    }
}
