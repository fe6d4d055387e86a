//! Whether a queue has given out what was put in: all of it, once, in order, and nothing else.
//!
//! It compares what the sender put in with what the receiver got, element by element, after the run. Every element
//! carries a stamp that no other one carries.

use std::collections::HashSet;

use serde::Serialize;

/// What is wrong with what came out; all zero when nothing is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Elements that were put in.
    pub sent: u64,
    /// Elements that came out.
    pub received: u64,
    /// Put in, and never came out.
    pub lost: u64,
    /// Came out again.
    pub duplicated: u64,
    /// Came out after one that was put in later.
    pub reordered: u64,
    /// Came out, and were never put in.
    pub invented: u64,
    /// Came out with other words than those of their stamp.
    pub damaged: u64,
    /// Put in with a stamp not later than that of the one before, because the clock stood still: nobody can tell them
    /// apart, so the run cannot be judged.
    pub indistinguishable: u64,
}

impl Verdict {
    /// Compares the stamps put in with those that came out, `damaged` of which had other words than they should.
    pub fn of(sent: &[u64], received: &[u64], damaged: u64) -> Self {
        let mut verdict = Verdict {
            sent: sent.len() as u64,
            received: received.len() as u64,
            damaged,
            indistinguishable: sent.windows(2).filter(|pair| pair[1] <= pair[0]).count() as u64,
            ..Verdict::default()
        };
        if sent == received || verdict.indistinguishable > 0 {
            return verdict;
        }
        let mut seen = HashSet::with_capacity(received.len());
        let mut latest = 0;
        for stamp in received {
            let Ok(place) = sent.binary_search(stamp) else {
                verdict.invented += 1;
                continue;
            };
            if !seen.insert(place) {
                verdict.duplicated += 1;
            } else if place < latest {
                verdict.reordered += 1;
            } else {
                latest = place;
            }
        }
        verdict.lost = (sent.len() - seen.len()) as u64;
        verdict
    }

    /// Whether `expected` elements went in and came out as they should.
    pub fn is_clean(&self, expected: u64) -> bool {
        let clean = Verdict {
            sent: expected,
            received: expected,
            ..Verdict::default()
        };
        *self == clean
    }

    /// What is wrong, in words; of `expected` elements.
    pub fn in_words(&self, expected: u64) -> String {
        let mut found: Vec<String> = [
            (self.lost, "lost"),
            (self.duplicated, "duplicated"),
            (self.reordered, "out of order"),
            (self.invented, "never put in"),
            (self.damaged, "with other words than were put in"),
            (
                self.indistinguishable,
                "not to be told apart, because the clock stood still",
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if self.sent != expected {
            found.insert(0, format!("{} never enqueued", expected - self.sent));
        }
        if found.is_empty() {
            return "nothing is wrong".to_owned();
        }
        format!("of {expected} elements {}", found.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdict(received: &[u64]) -> Verdict {
        Verdict::of(&[10, 20, 30, 40], received, 0)
    }

    #[test]
    fn what_came_out_as_it_went_in_is_clean() {
        let verdict = verdict(&[10, 20, 30, 40]);
        assert!(verdict.is_clean(4));
        assert!(!verdict.is_clean(5));
        assert!(!Verdict::of(&[10], &[10], 1).is_clean(1));
    }

    #[test]
    fn each_fault_has_its_count() {
        assert_eq!(verdict(&[10, 30, 40]).lost, 1);
        assert_eq!(verdict(&[10, 20, 20, 30, 40]).duplicated, 1);
        assert_eq!(verdict(&[20, 10, 30, 40]).reordered, 1);
        assert_eq!(verdict(&[10, 20, 30, 40, 45]).invented, 1);
        let mixed = verdict(&[40, 7, 10, 10]);
        assert_eq!(
            (
                mixed.lost,
                mixed.duplicated,
                mixed.reordered,
                mixed.invented
            ),
            (2, 1, 1, 1)
        );
        assert_eq!(
            mixed.in_words(4),
            "of 4 elements 2 lost, 1 duplicated, 1 out of order, 1 never put in"
        );
    }

    #[test]
    fn a_clock_that_stood_still_leaves_nothing_to_judge() {
        let verdict = Verdict::of(&[10, 10], &[10, 10], 0);
        assert_eq!(verdict.indistinguishable, 1);
        assert!(!verdict.is_clean(2));
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
            let verdict = Verdict::of(&sent, &received, 0);
            prop_assert_eq!(verdict.is_clean(count), sent == received);
            // Each of what came out is in its place or has a fault, and what did not come out is lost.
            let once: std::collections::HashSet<_> = received.iter().filter(|stamp| sent.contains(stamp)).collect();
            prop_assert_eq!(verdict.lost as usize, sent.len() - once.len());
            prop_assert_eq!(verdict.duplicated + verdict.invented, (received.len() - once.len()) as u64);
        }
    }
}
