//! How many messages were in flight when one was posted: computed after the run, from the stamps.
//!
//! In flight is what was posted earlier in the same burst and was received later, by t_subm of the one and t_recv of
//! the others. A lost message counts as in flight at no time: nobody knows how long it was under way, and what was
//! dropped keeps nothing from passing. It is the queue that a latency from t_subm contains: only a message that was
//! *alone*, with no other in flight, tells how long the way is. Reads and atomics are in flight until their t_comp.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bench::hca::message::Message;
use crate::stats::percentile_of_sorted;

/// Less growth than this, in messages, may be a stall.
const LEAST_GROWTH: f64 = 4.0;
/// Less growth than this for each message that is posted may be a stall.
const LEAST_SLOPE: f64 = 0.05;

/// What the messages of a point say about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InFlight {
    /// The median.
    pub p50: Option<f64>,
    pub max: Option<u64>,
    /// The share of messages that were alone.
    pub alone_share: Option<f64>,
    /// Median latency of those that were alone, in nanoseconds.
    pub latency_alone_p50_ns: Option<f64>,
    /// Its growth, where more was offered than the path took.
    pub growth: Option<Growth>,
}

/// From the second quarter of the bursts to the last: the first fills the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The median in flight in the second quarter.
    pub from: f64,
    /// The median in flight in the last.
    pub to: f64,
    /// The share of what was offered that the path took.
    pub taken: f64,
}

/// Sets how many were in flight when each of the messages of a burst was posted, where each is until `until`. They are
/// in the order of posting.
pub fn set_in_flight(burst: &mut [Message], until: impl Fn(&Message) -> Option<u64>) {
    let mut under_way = BinaryHeap::new();
    for message in burst {
        while under_way
            .peek()
            .is_some_and(|&Reverse(end)| end <= message.submitted_ns)
        {
            under_way.pop();
        }
        message.in_flight = under_way.len() as u32;
        under_way.extend(until(message).map(Reverse));
    }
}

impl InFlight {
    /// Of the messages of a point.
    pub fn of(messages: &[Message], burst: u32) -> Self {
        let counts = |of: &dyn Fn(&Message) -> bool| {
            let counts = messages.iter().filter(|&message| of(message));
            let mut counts: Vec<i64> = counts.map(|one| i64::from(one.in_flight)).collect();
            counts.sort_unstable();
            counts
        };
        let all = counts(&|_| true);
        let alone = messages.iter().filter(|message| message.in_flight == 0);
        let mut latencies: Vec<i64> = alone.filter_map(Message::latency_ns).collect();
        latencies.sort_unstable();
        let quarter = |number: u32| {
            let is_in = |one: &Message| {
                let place = 4 * u64::from(one.sequence) / u64::from(burst.max(1));
                place == u64::from(number)
            };
            percentile_of_sorted(&counts(&is_in), 50.0)
        };
        InFlight {
            p50: percentile_of_sorted(&all, 50.0),
            max: all.last().map(|&most| most as u64),
            alone_share: (!all.is_empty())
                .then(|| all.partition_point(|&count| count == 0) as f64 / all.len() as f64),
            latency_alone_p50_ns: percentile_of_sorted(&latencies, 50.0),
            growth: quarter(1)
                .zip(quarter(3))
                .and_then(|(from, to)| Growth::between(from, to, burst)),
        }
    }
}

impl Growth {
    /// The growth over half of a burst, if there is any to speak of.
    fn between(from: f64, to: f64, burst: u32) -> Option<Self> {
        let slope = (to - from) / (f64::from(burst) / 2.0);
        (to - from >= LEAST_GROWTH && slope >= LEAST_SLOPE).then(|| Growth {
            from,
            to,
            taken: (1.0 - slope).max(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bench::hca::message::Fate;

    fn burst(stamps: &[(u64, Option<u64>)]) -> Vec<Message> {
        let message = |(sequence, &(submitted_ns, received_ns)): (usize, &(u64, Option<u64>))| {
            let fate = received_ns.map_or(Fate::Lost, |_| Fate::Received);
            Message {
                sequence: sequence as u32,
                fate,
                submitted_ns,
                received_ns,
                ..Message::default()
            }
        };
        stamps.iter().enumerate().map(message).collect()
    }

    fn counted(stamps: &[(u64, Option<u64>)]) -> Vec<Message> {
        let mut messages = burst(stamps);
        set_in_flight(&mut messages, |message| message.received_ns);
        messages
    }

    fn counts(messages: &[Message]) -> Vec<u32> {
        messages.iter().map(|message| message.in_flight).collect()
    }

    #[test]
    fn a_message_is_in_flight_until_it_is_received_and_a_lost_one_never() {
        let messages = counted(&[
            (10, Some(35)),
            (20, Some(90)),
            (30, None),
            // The first was received at this very moment.
            (35, Some(80)),
            (40, Some(70)),
            (100, Some(110)),
        ]);
        assert_eq!(counts(&messages), [0, 1, 2, 1, 2, 0]);
    }

    #[test]
    fn those_alone_tell_how_long_the_way_is() {
        let messages = counted(&[(0, Some(10)), (5, Some(25)), (50, Some(56)), (90, None)]);
        let found = InFlight::of(&messages, 4);
        let expected = InFlight {
            p50: Some(0.0),
            max: Some(1),
            alone_share: Some(0.75),
            latency_alone_p50_ns: Some(8.0),
            growth: None,
        };
        assert_eq!(found, expected);
        assert_eq!(InFlight::of(&[], 4), InFlight::default());
    }

    /// A burst where a message is posted every `offered` and taken every `taken` nanoseconds.
    fn queueing(messages: u64, offered: u64, taken: u64) -> InFlight {
        let mut free = 0;
        let stamps: Vec<_> = (0..messages)
            .map(|number| {
                let submitted = number * offered;
                free = u64::max(free, submitted) + taken;
                (submitted, Some(free))
            })
            .collect();
        InFlight::of(&counted(&stamps), messages as u32)
    }

    #[test]
    fn offered_above_what_the_path_takes_shows_as_growth() {
        let growth = queueing(1000, 80, 100).growth.unwrap();
        assert!((growth.taken - 0.8).abs() < 0.01, "{growth:?}");
        assert!(growth.from < growth.to, "{growth:?}");
        for (offered, taken) in [(100, 100), (100, 50), (100, 99)] {
            assert_eq!(queueing(1000, offered, taken).growth, None);
        }
        // All at once: the path has taken none of the later ones.
        assert_eq!(queueing(1000, 0, 100).growth.unwrap().taken, 0.0);
        assert_eq!(queueing(4, 0, 100).growth, None);
    }

    proptest! {
        #[test]
        fn it_is_what_a_naive_count_finds(
            stamps in prop::collection::vec((0_u64..50, prop::option::of(0_u64..400)), 0..60)
        ) {
            let mut now = 0;
            // The clock of the receiver may be behind that of the sender.
            let stamps: Vec<_> = stamps
                .into_iter()
                .map(|(pause, way)| {
                    now += pause;
                    (now + 100, way.map(|way| now + way))
                })
                .collect();
            let naive = |place: usize| {
                let earlier = stamps[..place].iter();
                earlier.filter(|one| one.1.is_some_and(|received| received > stamps[place].0)).count() as u32
            };
            let expected: Vec<u32> = (0..stamps.len()).map(naive).collect();
            prop_assert_eq!(counts(&counted(&stamps)), expected);
        }
    }
}
