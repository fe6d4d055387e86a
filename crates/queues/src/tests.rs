//! What is required of every queue in the registry: against a model, between two threads, and when it goes away filled.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::demoting::inside_line;
use super::element::{Element, Words};
use super::equeue::{Batching, Elasticity};
use super::interface::{Queue, Receiver, Sender};
use super::registry::{self, EachPayloadSize, QueueUser};
use super::{DemotingBaton, EQueue};

mod parameters;

/// Capacities that every queue comes in, heapless included.
const CAPACITIES: &[usize] = if cfg!(miri) {
    // Interpreted, each element costs a thousand times as much.
    &[1, 2, 7, 16]
} else {
    &[1, 2, 3, 7, 16, 64, 100, 1000, 1024]
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Enqueue(usize),
    Dequeue(usize),
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_usize..40).prop_map(Step::Enqueue),
        4 => (1_usize..40).prop_map(Step::Dequeue),
        1 => Just(Step::Enqueue(1100)),
        1 => Just(Step::Dequeue(1100)),
        2 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 12 } else { 120 })
}

fn configuration() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 48 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// How far a queue may lag behind the model.
#[derive(Debug, Clone, Copy)]
struct Slack {
    /// So many elements can be enqueued and not yet be seen, as long as there was no flush.
    unseen: usize,
    /// So many slots can be free and not yet be seen, as long as the receiver did not find the queue empty.
    unreturned: usize,
}

impl Slack {
    fn of(name: &str, capacity: usize) -> Self {
        let slice = (capacity / 16).max(1);
        let (unseen, unreturned) = match name {
            "mcringbuffer" => (slice - 1, slice - 1),
            // The last slot of a ring of more than one is never filled before the first is free.
            "b-queue" => (0, slice.min(capacity - 1)),
            // Once it has shrunk; never below 256.
            "equeue" => (0, capacity.saturating_sub(256).max(slice - 1)),
            _ => (0, 0),
        };
        Slack { unseen, unreturned }
    }
}

/// Runs the steps on both; the queue may lag behind, but not reorder, lose, double or invent, and not hold too many.
fn agrees_with_model<const N: usize>(
    capacity: usize,
    slack: Slack,
    (mut sender, mut receiver): (impl Sender<Words<N>>, impl Receiver<Words<N>>),
    steps: &[Step],
) {
    let mut model = VecDeque::new();
    let mut number = 0_u64;
    let mut everything_seen = true;
    let last = [Step::Flush, Step::Dequeue(usize::MAX)];
    for step in steps.iter().chain(&last) {
        match *step {
            Step::Enqueue(count) => {
                for _ in 0..count {
                    let element = Words::<N>::with_stamp(NonZeroU64::new(number + 1).unwrap());
                    if sender.enqueue(element) {
                        number += 1;
                        model.push_back(number);
                        everything_seen = false;
                        assert!(model.len() <= capacity, "holds more than {capacity}");
                    } else {
                        let least = capacity - slack.unreturned;
                        let is_full = model.len() >= least;
                        assert!(is_full, "full with {} of {capacity}", model.len());
                        break;
                    }
                }
            }
            Step::Dequeue(count) => {
                for _ in 0..count {
                    let Some(element) = receiver.dequeue() else {
                        let hidden = if everything_seen { 0 } else { slack.unseen };
                        let is_empty = model.len() <= hidden;
                        assert!(is_empty, "empty with {} of {capacity}", model.len());
                        break;
                    };
                    assert!(element.is_intact());
                    assert_eq!(Some(element.stamp()), model.pop_front());
                }
            }
            Step::Flush => {
                sender.flush();
                everything_seen = true;
            }
        }
    }
    assert!(model.is_empty());
}

struct AgainstModel<'a> {
    name: &'a str,
    capacity: usize,
    start: usize,
    steps: &'a [Step],
}

impl AgainstModel<'_> {
    fn check<Q: Queue<Words<N>>, const N: usize>(&self) {
        let slack = Slack::of(self.name, self.capacity);
        let ends = Q::starting_at(self.capacity, self.start).unwrap();
        agrees_with_model(self.capacity, slack, ends, self.steps);
    }
}

impl QueueUser for AgainstModel<'_> {
    type Output = ();

    fn with<Q: EachPayloadSize>(self) {
        self.check::<Q, 1>();
        self.check::<Q, 8>();
        self.check::<Q, 32>();
    }
}

/// All queues, and one with parameters that has a type of its own for them.
fn names() -> impl Iterator<Item = &'static str> {
    registry::names().chain(["fastforward:demote=0"])
}

fn made<Q: Queue<Words<N>>, const N: usize>(capacity: usize) -> (Q::Sender, Q::Receiver) {
    Q::with_capacity(capacity).unwrap()
}

proptest! {
    #![proptest_config(configuration())]

    #[test]
    fn every_queue_behaves_like_a_model(
        steps in steps(),
        common in prop::sample::select(CAPACITIES),
        any in 1_usize..300,
        before in 0_usize..100,
    ) {
        let start = 0_usize.wrapping_sub(before);
        for name in names() {
            let own = (registry::entry(name).unwrap().origin == registry::Origin::Here).then_some(any);
            for capacity in own.into_iter().chain([common]) {
                let steps = &steps;
                registry::visit(name, capacity, AgainstModel { name, capacity, start, steps }).unwrap();
            }
        }
    }

    #[test]
    fn equeue_shrinks_and_grows_again(
        steps in steps(),
        capacity in 1_usize..50,
        smallest in 1_usize..8,
        enlarge in 1_usize..4,
        shrink in 1_usize..4,
        batch in 1_usize..20,
    ) {
        let elasticity = Elasticity { smallest, enlarge, shrink };
        let batching = Batching { batch, slice: 1, penalty: 0 };
        let slack = Slack { unseen: 0, unreturned: capacity.saturating_sub(smallest) };
        let ends = EQueue::with_elasticity::<8>(capacity, elasticity, batching).unwrap();
        agrees_with_model(capacity, slack, ends, &steps);
    }
}

#[test]
fn our_own_queue_gives_lines_away_unless_it_is_large() {
    assert_eq!(inside_line(64, 1), 7);
    assert_eq!(inside_line(1 << 14, 1), 7);
    assert_eq!(inside_line((1 << 14) + 1, 1), usize::MAX);
    assert_eq!(inside_line(1024, 4), 1);
    assert_eq!(inside_line(1024, 8), 0);
    assert_eq!(inside_line(1024, 32), usize::MAX);
    // Lines that are given away, the last of them not whole, and lines that are kept, several times round.
    for capacity in [1, 7, 8, 20, (1 << 14) + 3] {
        let several_times_round = (4 * capacity + 20_000) as u64;
        let many = if cfg!(miri) { 100 } else { several_times_round };
        between_threads(made::<DemotingBaton, 1>(capacity), many);
        between_threads(made::<DemotingBaton, 2>(capacity), many);
        between_threads(made::<DemotingBaton, 8>(capacity), many);
    }
}

/// A new queue takes as many as it was made for, but for what its algorithm leaves free, and gives them back.
struct FilledAndEmptied<'a>(&'a str, usize);

impl QueueUser for FilledAndEmptied<'_> {
    type Output = ();

    fn with<Q: EachPayloadSize>(self) {
        let FilledAndEmptied(name, capacity) = self;
        let (mut sender, mut receiver) = made::<Q, 1>(capacity);
        let left_free = match name {
            "b-queue" | "equeue" => Slack::of(name, capacity).unreturned,
            _ => 0,
        };
        for _ in 0..3 {
            let mut numbers = 1_u64..;
            let taken = numbers.find(|number| !sender.enqueue(Words::from_words([*number])));
            let taken = taken.unwrap() - 1;
            let least = (capacity - left_free) as u64;
            let is_capacity = (least..=capacity as u64).contains(&taken);
            assert!(is_capacity, "{name}: {taken} of {capacity}");
            sender.flush();
            for number in 1..=taken {
                assert_eq!(receiver.dequeue(), Some(Words::from_words([number])));
            }
            assert_eq!(receiver.dequeue(), None);
        }
    }
}

#[test]
fn the_capacity_is_exact_but_for_what_a_batch_leaves_free() {
    for name in names() {
        for capacity in CAPACITIES {
            registry::visit(name, *capacity, FilledAndEmptied(name, *capacity)).unwrap();
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for name in names() {
        for capacity in [0, (1 << 24) + 1, usize::MAX] {
            let text = registry::refusal(name, capacity).unwrap();
            assert!(text.contains(name), "{text}");
            assert!(text.contains(&capacity.to_string()), "{text}");
        }
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = registry::names().collect();
    assert!(names.len() >= 8);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), registry::ENTRIES.len());
}

/// Miri reports memory that is not freed, and memory that is used after it was.
#[test]
fn both_ends_can_go_first_with_elements_inside() {
    struct Dropped {
        sender_first: bool,
    }
    impl QueueUser for Dropped {
        type Output = ();
        fn with<Q: EachPayloadSize>(self) {
            let (mut sender, mut receiver) = made::<Q, 8>(16);
            for number in 1..=10 {
                assert!(sender.enqueue(Element::with_stamp(NonZeroU64::new(number).unwrap())));
            }
            sender.flush();
            assert_eq!(receiver.dequeue().map(|element| element.stamp()), Some(1));
            if self.sender_first {
                drop(sender);
                // Those that disconnect may keep what is in: nobody may crash.
                let _ = receiver.dequeue();
            } else {
                drop(receiver);
                let _ = sender.enqueue(Element::with_stamp(NonZeroU64::MIN));
                sender.flush();
            }
        }
    }
    for name in names() {
        for sender_first in [true, false] {
            registry::visit(name, 16, Dropped { sender_first }).unwrap();
        }
    }
}

/// Two threads, and each element checked for order, loss, duplication and wholeness.
struct Stress {
    capacity: usize,
    count: u64,
}

impl QueueUser for Stress {
    type Output = ();

    fn with<Q: EachPayloadSize>(self) {
        let Stress { capacity, count } = self;
        between_threads(made::<Q, 1>(capacity), count);
        between_threads(made::<Q, 8>(capacity), count / 8);
    }
}

fn between_threads<const N: usize>(
    (mut sender, mut receiver): (impl Sender<Words<N>>, impl Receiver<Words<N>>),
    count: u64,
) {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut failures = 0_u32;
    let mut waited = move |side: &str, number: u64| {
        failures = failures.wrapping_add(1);
        // The other may need this CPU.
        if failures.is_multiple_of(64) {
            std::thread::yield_now();
            let is_in_time = Instant::now() < deadline;
            assert!(is_in_time, "the {side} hangs at element {number}");
        }
    };
    let mut waited_too = waited;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 1..=count {
                let element = Words::<N>::with_stamp(NonZeroU64::new(number).unwrap());
                while !sender.enqueue(element) {
                    waited("sender", number);
                }
            }
            sender.flush();
        });
        scope.spawn(move || {
            for number in 1..=count {
                let element = loop {
                    if let Some(element) = receiver.dequeue() {
                        break element;
                    }
                    waited_too("receiver", number);
                };
                assert!(element.is_intact(), "element {number} is torn: {element:?}");
                assert_eq!(element.stamp(), number);
            }
            assert!(receiver.dequeue().is_none(), "an element too many");
        });
    });
}

#[test]
fn a_million_elements_arrive_once_and_in_order() {
    let many = if cfg!(miri) { 5_000 } else { 1_000_000 };
    for name in names() {
        // Of what others wrote only the adapter is ours.
        let many = if registry::entry(name).unwrap().origin == registry::Origin::Here {
            many
        } else {
            many / 20
        };
        for &capacity in if cfg!(miri) {
            &[7][..]
        } else {
            &[1, 2, 7, 64, 1024]
        } {
            let count = if capacity < 64 { many / 50 } else { many };
            registry::visit(name, capacity, Stress { capacity, count }).unwrap();
        }
    }
}
