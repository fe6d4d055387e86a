//! Whether a queue has given out what was put in: all of it, once, in order, and nothing else.
//!
//! It compares what the sender put in with what the receiver got, element by element, after the run. Every element
//! carries a stamp that no other one carries.

use serde::Serialize;

use super::measurer::CarriedElements;
use crate::rig::ledger::{Arrival, Ledger, Tally};
use crate::rig::named::named;

#[derive(Debug, Clone, Copy, Default)]
pub struct ObservedElements<'a> {
    pub sent: &'a [u64],
    /// Those that came out while the receiver was in its loop.
    pub received: &'a [u64],
    /// Those that came out when both ends had left their loops.
    pub leftovers: &'a [u64],
    /// Elements with other words than those of their stamp.
    pub damaged: u64,
    /// Whether an end left because nothing went through for `--timeout`.
    pub gave_up: bool,
    /// What elements of the warm-up carried, where they were put in and where they came out.
    pub warmed_up: [CarriedElements; 2],
}

named! {
    Outcome {
        /// What was put in came out as it should.
        Clean = "clean",
        /// It did not: the queue is broken.
        Wrong = "wrong",
        /// Nothing went through for too long; what did was in order. A CPU was taken away, or the queue is stuck.
        GaveUp = "gave-up",
        /// The clock did not tell elements apart.
        Unjudged = "unjudged",
    }
}

/// What became of what was put in, and what is wrong with what came out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Of all elements. Late is what came out only after the receiver had left, because it saw none although the sender
    /// was done.
    #[serde(flatten)]
    pub elements: Tally,
    /// Elements that came out while the receiver waited for them.
    pub in_time: u64,
    /// Put in with a stamp not later than that of the one before, because the clock stood still: nobody can tell them
    /// apart, so the run cannot be judged.
    pub indistinguishable: u64,
    /// Whether what came out of the warm-up is something else than what was put in, by number, order or sum.
    pub is_warm_up_wrong: bool,
    /// Whether an end left because nothing went through for `--timeout`.
    pub gave_up: bool,
}

impl Verdict {
    /// Compares the stamps put in with those that came out.
    pub fn of(seen: ObservedElements<'_>) -> Self {
        let ObservedElements {
            sent,
            received,
            leftovers,
            damaged,
            gave_up,
            warmed_up: [put_in, came_out],
        } = seen;
        let (count, in_time) = (sent.len() as u64, received.len() as u64);
        let indistinguishable = sent.windows(2).filter(|pair| pair[1] <= pair[0]).count() as u64;
        let in_order = (sent == received && leftovers.is_empty()) || indistinguishable > 0;
        let mut elements = Tally {
            sent: count,
            received: in_time,
            ..Tally::default()
        };
        if !in_order {
            let mut ledger = Ledger::new(&[sent.len()]);
            for (index, stamp) in received.iter().chain(leftovers).enumerate() {
                // A number beyond all is one that was never sent.
                let number = sent.binary_search(stamp).unwrap_or(sent.len());
                let arrival = ledger.arrived(0, number);
                // An end that gave up left before its time.
                if arrival == Arrival::First && index >= received.len() && !gave_up {
                    ledger.late();
                }
            }
            elements = ledger.close();
        }
        elements.damaged = damaged;
        Verdict {
            elements,
            in_time,
            indistinguishable,
            // Where the clock stood still, order tells nothing.
            is_warm_up_wrong: !gave_up && put_in.out_of_order == 0 && put_in != came_out,
            gave_up,
        }
    }

    /// The same where each element was answered, with what became of the answers.
    pub fn with_answers(self, answers: &Verdict) -> Self {
        let [there, back] = [&self.elements, &answers.elements];
        Verdict {
            elements: Tally {
                sent: there.sent,
                received: there.received.min(back.received),
                // An answer is the element as it came out: one that was damaged on its way there is so on its way back.
                damaged: there.damaged.max(back.damaged),
                ..there.plus(back)
            },
            in_time: self.in_time.min(answers.in_time),
            ..self
        }
    }

    /// How a run went in which `expected` elements should have gone in and come out.
    pub fn outcome(&self, expected: u64) -> Outcome {
        let of = &self.elements;
        let out_of_place = of.lost + of.duplicated + of.reordered + of.never_sent;
        if self.indistinguishable > 0 {
            Outcome::Unjudged
        } else if out_of_place + of.late + of.damaged > 0 || self.is_warm_up_wrong {
            Outcome::Wrong
        } else if self.gave_up || (of.sent, self.in_time) != (expected, expected) {
            Outcome::GaveUp
        } else {
            Outcome::Clean
        }
    }

    /// What is wrong, in words; of `expected` elements.
    pub fn in_words(&self, expected: u64) -> String {
        let of = &self.elements;
        let mut found: Vec<String> = [
            (expected.saturating_sub(of.sent), "never enqueued"),
            (of.lost, "lost"),
            (of.duplicated, "duplicated"),
            (of.reordered, "out of order"),
            (of.never_sent, "never put in"),
            (of.damaged, "with other words than were put in"),
            (
                of.late,
                "dequeued only after the receiver had given up waiting for them",
            ),
            (
                self.indistinguishable,
                "not distinguished, because the clock did not advance",
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if self.is_warm_up_wrong {
            found.push("others in the warm-up than were put in".to_owned());
        }
        if found.is_empty() {
            return format!("of {expected} elements {} came out", self.in_time);
        }
        format!("of {expected} elements {}", found.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SENT: [u64; 4] = [10, 20, 30, 40];

    fn verdict(received: &[u64]) -> Verdict {
        Verdict::of(ObservedElements {
            sent: &SENT,
            received,
            ..ObservedElements::default()
        })
    }

    #[test]
    fn what_came_out_as_it_went_in_is_clean() {
        let mut verdict = verdict(&[10, 20, 30, 40]);
        assert_eq!(verdict.outcome(4), Outcome::Clean);
        verdict.elements.damaged = 1;
        assert_eq!(verdict.outcome(4), Outcome::Wrong);
    }

    #[test]
    fn each_fault_has_its_count() {
        assert_eq!(verdict(&[10, 30, 40]).elements.lost, 1);
        assert_eq!(verdict(&[10, 20, 20, 30, 40]).elements.duplicated, 1);
        assert_eq!(verdict(&[20, 10, 30, 40]).elements.reordered, 1);
        assert_eq!(verdict(&[10, 20, 30, 40, 45]).elements.never_sent, 1);
        let mixed = verdict(&[40, 7, 10, 10]);
        let expected = "of 4 elements 2 lost, 1 duplicated, 1 out of order, 1 never put in";
        assert_eq!(mixed.in_words(4), expected);
    }

    #[test]
    fn a_warm_up_that_lost_or_swapped_elements_is_no_clean_run() {
        let carried = |elements, sum, out_of_order| CarriedElements {
            elements,
            sum,
            out_of_order,
        };
        let seen = |came_out| ObservedElements {
            sent: &SENT,
            received: &SENT,
            warmed_up: [carried(3, 60, 0), came_out],
            ..ObservedElements::default()
        };
        let judged = |came_out| Verdict::of(seen(came_out));
        assert_eq!(judged(carried(3, 60, 0)).outcome(4), Outcome::Clean);
        for wrong in [carried(2, 60, 0), carried(3, 61, 0), carried(3, 60, 1)] {
            assert_eq!(judged(wrong).outcome(4), Outcome::Wrong);
            assert!(judged(wrong).in_words(4).contains("warm-up"));
        }
        // Who gave up has left the rest of a part.
        let gave_up = Verdict::of(ObservedElements {
            gave_up: true,
            ..seen(carried(2, 30, 0))
        });
        assert_eq!(gave_up.outcome(4), Outcome::GaveUp);
    }

    #[test]
    fn a_clock_that_stood_still_leaves_nothing_to_judge() {
        let stamps = [10, 10];
        let verdict = Verdict::of(ObservedElements {
            sent: &stamps,
            received: &stamps,
            ..ObservedElements::default()
        });
        assert_eq!(verdict.indistinguishable, 1);
        assert_eq!(verdict.outcome(2), Outcome::Unjudged);
    }

    #[test]
    fn what_comes_out_when_the_receiver_has_left_does_not_count_as_received() {
        let seen = ObservedElements {
            sent: &SENT,
            received: &SENT[..2],
            leftovers: &SENT[2..],
            ..ObservedElements::default()
        };
        let verdict = Verdict::of(seen);
        let Tally { late, lost, .. } = verdict.elements;
        assert_eq!((verdict.in_time, late, lost), (2, 2, 0));
        assert_eq!(verdict.outcome(4), Outcome::Wrong);
        // One beyond the last is a fault as well.
        let twice = Verdict::of(ObservedElements {
            received: &SENT,
            leftovers: &[40],
            ..seen
        });
        assert_eq!(twice.elements.duplicated, 1);
        assert_eq!(twice.outcome(4), Outcome::Wrong);
    }

    #[test]
    fn a_stall_is_no_fault_of_the_queue_and_no_clean_run_either() {
        let seen = ObservedElements {
            sent: &SENT,
            received: &SENT[..2],
            leftovers: &SENT[2..],
            gave_up: true,
            ..ObservedElements::default()
        };
        let stalled = Verdict::of(seen);
        assert_eq!(stalled.outcome(9), Outcome::GaveUp);
        assert_eq!(stalled.in_words(9), "of 9 elements 5 never enqueued");
        // It gave up, and then all the rest came.
        assert_eq!(stalled.outcome(4), Outcome::GaveUp);
        // Also where an end gave up, no element may be lost.
        let lossy = Verdict::of(ObservedElements {
            leftovers: &SENT[3..],
            ..seen
        });
        assert_eq!((lossy.elements.lost, lossy.outcome(9)), (1, Outcome::Wrong));
    }

    proptest! {
        #[test]
        fn any_difference_is_seen(count in 1_u64..50, edits in prop::collection::vec((0_usize..50, 0_u64..60), 0..4)) {
            let sent: Vec<u64> = (1..=count).collect();
            let mut received = sent.clone();
            for (place, value) in edits {
                let place = place % (received.len() + 1);
                match value % 3 {
                    0 if place < received.len() => { received.remove(place); }
                    1 => received.insert(place, value),
                    _ if place < received.len() => received[place] = value,
                    _ => {}
                }
            }
            let seen = ObservedElements { sent: &sent, received: &received, ..ObservedElements::default() };
            let verdict = Verdict::of(seen);
            prop_assert_eq!(verdict.outcome(count) == Outcome::Clean, sent == received);
            // Each of what came out is in its place or has a fault, and what did not come out is lost.
            let once: std::collections::HashSet<_> = received.iter().filter(|stamp| sent.contains(stamp)).collect();
            prop_assert_eq!(verdict.elements.lost as usize, sent.len() - once.len());
            prop_assert_eq!(verdict.elements.duplicated + verdict.elements.never_sent, (received.len() - once.len()) as u64);
        }
    }
}
