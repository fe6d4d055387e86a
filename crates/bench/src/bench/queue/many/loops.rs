//! Makes the queues of several threads, and the loops of their ends.

use crate::bench::queue::error::ThreadError;
use crate::bench::queue::loops::{In, InAll, MakeLoop, Out, Side, loop_of};
use crate::bench::queue::plan::Point;
use crate::bench::queue::task::Task;
use crate::node::wiring::Wiring;
use crate::queues::element::{Element, Words};
use crate::queues::interface::Queue;
use crate::queues::many::ToAll;
use crate::queues::registry::{self, AllPayloads, QueueUser};

use super::plan::lines;

/// Makes all queues of a run, in one thread, and the loops of all of their ends: those of the producers, then those of
/// the consumers.
pub(super) type MakeAll = fn(&Task, &Wiring) -> Result<Vec<MakeLoop>, ThreadError>;

/// [`MakeAll`] for queues of one kind and elements of one size.
pub(super) fn make<Q: Queue<T>, T: Element>(
    task: &Task,
    wiring: &Wiring,
) -> Result<Vec<MakeLoop>, ThreadError> {
    let point = &task.point;
    // A plan has no others.
    let given = registry::given(&point.queue).unwrap_or_default();
    let none = || None::<Q::Receiver>;
    let mut senders: Vec<Vec<Q::Sender>> = (0..wiring.publishers).map(|_| Vec::new()).collect();
    let mut receivers: Vec<_> = (0..wiring.subscribers).map(|_| none()).collect();
    for line in lines(wiring) {
        let ends = [line.producers.len(), line.consumers.len()];
        let make = || Q::shared(point.capacity, &given, ends[0], ends[1]);
        let made = match &task.arena {
            Some(arena) => arena.within(make),
            None => make(),
        };
        let (of_line, to_line) =
            made.map_err(|error| ThreadError::Queue(point.queue.clone(), error))?;
        for (producer, sender) in line.producers.into_iter().zip(of_line) {
            senders[producer].push(sender);
        }
        for (consumer, receiver) in line.consumers.into_iter().zip(to_line) {
            receivers[consumer] = Some(receiver);
        }
    }
    let senders = senders.into_iter().enumerate().map(|(number, mut all)| {
        let side = Side::Produces(number);
        match all.len() {
            1 => loop_of::<In, T, _>(side, all.remove(0)),
            _ => loop_of::<InAll, T, _>(side, ToAll::new(all)),
        }
    });
    let receivers = receivers.into_iter().flatten();
    let receivers = receivers.map(|receiver| loop_of::<Out, T, _>(Side::Consumes, receiver));
    Ok(senders.chain(receivers).collect())
}

/// Makes runs with elements of so many bytes.
struct MakeOf(usize);

impl QueueUser for MakeOf {
    type Output = Option<MakeAll>;

    fn with<Q: AllPayloads>(self) -> Self::Output {
        match self.0 {
            8 => Some(make::<Q, Words<1>>),
            64 => Some(make::<Q, Words<8>>),
            256 => Some(make::<Q, Words<32>>),
            _ => None,
        }
    }
}

/// Makes runs of this queue and this size of an element.
pub(super) fn make_of(point: &Point) -> MakeAll {
    let make = registry::visit(&point.queue, point.capacity, MakeOf(point.payload));
    make.flatten()
        .expect("a plan has queues of the registry, for elements that they are made for")
}
