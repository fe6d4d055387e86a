//! What parameters do, and that elements arrive whatever they are.

use super::between_threads;
use crate::EQueue;
use crate::element::Words;
use crate::equeue::{Batching, Elasticity};
use crate::interface::{Queue, Receiver, Sender};
use crate::registry::{self, EachPayloadSize, QueueUser};

/// The smallest steps, without waits.
const BATCHING: Batching = Batching {
    batch: 4,
    slice: 1,
    penalty: 0,
};

#[test]
fn equeue_has_another_size_when_it_was_found_empty_and_full() {
    let elasticity = Elasticity {
        smallest: 4,
        enlarge: 2,
        shrink: 2,
    };
    let (mut sender, mut receiver) =
        EQueue::with_elasticity::<1>(16, elasticity, BATCHING).unwrap();
    let element = Words::from_words([1]);
    for _ in 0..100 {
        assert!(receiver.dequeue().is_none());
        assert!(sender.enqueue(element));
        assert!(receiver.dequeue().is_some());
    }
    let small = (0..).take_while(|_| sender.enqueue(element)).count();
    assert_eq!(small, 4, "it has shrunk");
    for _ in 0..1000 {
        assert!(!sender.enqueue(element));
    }
    // The size changes with the lap.
    for _ in 0..100 {
        assert!(receiver.dequeue().is_some());
        while sender.enqueue(element) {}
    }
    let large = (0..).take_while(|_| receiver.dequeue().is_some()).count();
    assert_eq!(large, 16, "it has grown again");
}

struct WithParameters<'a>(&'a str, usize, u64);

impl QueueUser for WithParameters<'_> {
    type Output = ();

    fn with<Q: EachPayloadSize>(self) {
        let WithParameters(name, capacity, count) = self;
        let given = registry::given(name).unwrap();
        let ends = <Q as Queue<Words<1>>>::with_parameters(capacity, &given);
        between_threads(ends.unwrap(), count);
        let ends = <Q as Queue<Words<32>>>::with_parameters(capacity, &given);
        between_threads(ends.unwrap(), count / 8);
    }
}

/// A receiver that keeps lines behind the sender does not go on at once where it has come too close.
#[test]
fn a_slip_that_is_chosen_is_kept() {
    struct Waits<'a>(&'a str);
    impl QueueUser for Waits<'_> {
        type Output = bool;
        fn with<Q: EachPayloadSize>(self) -> bool {
            let given = registry::given(self.0).unwrap();
            let (mut sender, mut receiver) =
                <Q as Queue<Words<1>>>::with_parameters(1024, &given).unwrap();
            let mut numbers = 1_u64..=65;
            assert!(numbers.all(|number| sender.enqueue(Words::from_words([number]))));
            // Behind so many it looks.
            assert!((0..64).all(|_| receiver.dequeue().is_some()));
            let waits = receiver.dequeue().is_none();
            // Nothing comes: it goes on with what there is.
            assert_eq!(receiver.dequeue().is_some(), waits);
            waits
        }
    }
    for (name, waits) in [
        ("fastforward", false),
        ("fastforward:slip=0", false),
        ("fastforward:slip=6", true),
    ] {
        assert_eq!(
            registry::visit(name, 1024, Waits(name)),
            Some(waits),
            "{name}"
        );
    }
}

#[test]
fn elements_arrive_once_and_in_order_whatever_the_parameters() {
    let count = if cfg!(miri) { 500 } else { 100_000 };
    for name in [
        "b-queue:batch=1:penalty=0",
        "b-queue:batch=1000000",
        "b-queue:batch=5:penalty=100",
        "mcringbuffer:batch=0",
        "mcringbuffer:batch=1000000",
        "equeue:batch=1:slice=1000:penalty=0",
        "equeue:batch=1000:slice=0",
        "baton-batching:batch=1",
        "baton-batching:batch=1000000",
        "baton-batching:fetch=0",
        "baton-demoting:largest=0",
        "baton-demoting:largest=1000000",
        "fastforward:slip=6",
        #[cfg(target_arch = "x86_64")]
        "fastforward:demote=1",
        #[cfg(target_arch = "x86_64")]
        "fastforward:slip=100:danger=99:demote=1",
        "fastforward:slip=100:danger=99",
        "fastforward:slip=1:danger=0",
    ] {
        for capacity in [1, 2, 7, 64, 1000] {
            let count = if capacity < 64 { count / 50 } else { count };
            registry::visit(name, capacity, WithParameters(name, capacity, count)).unwrap();
        }
    }
}
