//! Makes the queues of a run, and the loops of their ends.
//!
//! Only the loops are compiled for each queue and element; all else is behind [`EndsMaker`] and `dyn Loop`, which is
//! called a few times a run. Otherwise the compiler would be busy for ten minutes.

use super::config::Measure;
use super::cpus::Cpus;
use super::error::ThreadError;
use super::loops::{
    Answering, Asking, Dequeueing, Enqueueing, FanOutEnqueueing, LoopKind, UnstartedLoop, loop_of,
};
use super::plan::Point;
use super::round_trip::EndPair;
use super::sharing::{SharedQueue, lines};
use super::task::Task;
use crate::host::CoreRelation;
use crate::node::wiring::Wiring;
use crate::queues::baton::QueueSpec;
use crate::queues::element::{Element, Words};
use crate::queues::interface::{Queue, QueueError};
use crate::queues::many::FanOutSender;
use crate::queues::parameters::Parameters;
use crate::queues::registry::{self, EachPayloadSize, QueueUser};

/// Makes all queues of a run, in one thread, and the loops of all of their ends: those of the senders, then those of
/// the receivers.
pub(super) type EndsMaker = fn(&Task) -> Result<Vec<UnstartedLoop>, ThreadError>;

/// [`EndsMaker`] for a kind of queue and element.
pub(super) fn make<Q: Queue<T>, T: Element>(
    task: &Task,
) -> Result<Vec<UnstartedLoop>, ThreadError> {
    if let Some(wiring) = &task.point.wiring {
        return make_shared::<Q, T>(task, wiring);
    }
    if task.config.measure == Measure::RoundTrip {
        return make_round_trip::<Q, Q, T>(task);
    }
    let (sender, receiver) = queue_of::<Q, T>(task)?;
    Ok(vec![
        loop_of::<Enqueueing, T, _>(LoopKind::Sends, sender),
        loop_of::<Dequeueing, T, _>(LoopKind::Receives, receiver),
    ])
}

/// The same with a queue there and another one back.
pub(super) fn make_round_trip<There: Queue<T>, Back: Queue<T>, T: Element>(
    task: &Task,
) -> Result<Vec<UnstartedLoop>, ThreadError> {
    let (there, arrives) = queue_of::<There, T>(task)?;
    let (back, returns) = queue_of::<Back, T>(task)?;
    let asking = EndPair {
        sender: there,
        receiver: returns,
    };
    let answering = EndPair {
        sender: back,
        receiver: arrives,
    };
    Ok(vec![
        loop_of::<Asking, T, _>(LoopKind::Asks, asking),
        loop_of::<Answering, T, _>(LoopKind::Answers, answering),
    ])
}

/// The same with the queues of a wiring.
fn make_shared<Q: Queue<T>, T: Element>(
    task: &Task,
    wiring: &Wiring,
) -> Result<Vec<UnstartedLoop>, ThreadError> {
    let mut senders: Vec<Vec<Q::Sender>> = (0..wiring.publishers).map(|_| Vec::new()).collect();
    let mut receivers = Vec::new();
    for_each_line(task, wiring, &mut |given, line| {
        let SharedQueue {
            producers,
            consumers,
        } = line;
        let capacity = task.point.capacity;
        let (of_line, to_line) = Q::shared(capacity, given, producers.len(), consumers.len())?;
        for (&producer, sender) in producers.iter().zip(of_line) {
            senders[producer].push(sender);
        }
        let to_line = to_line.into_iter();
        // Each consumer has one queue, and the queues are in the order of their consumers.
        receivers.extend(to_line.map(|it| loop_of::<Dequeueing, T, _>(LoopKind::Consumes, it)));
        Ok(())
    })?;
    let senders = senders.into_iter().enumerate().map(|(number, mut all)| {
        let side = LoopKind::Produces(number);
        match all.len() {
            1 => loop_of::<Enqueueing, T, _>(side, all.remove(0)),
            _ => loop_of::<FanOutEnqueueing, T, _>(side, FanOutSender::new(all)),
        }
    });
    Ok(senders.chain(receivers).collect())
}

/// Makes the queue of each line of a wiring.
fn for_each_line(
    task: &Task,
    wiring: &Wiring,
    make: &mut dyn FnMut(&Parameters, &SharedQueue) -> Result<(), QueueError>,
) -> Result<(), ThreadError> {
    (lines(wiring).iter()).try_for_each(|line| in_arena(task, &mut |given| make(given, line)))
}

/// A queue of one sender and one receiver.
fn queue_of<Q: Queue<T>, T: Element>(task: &Task) -> Result<(Q::Sender, Q::Receiver), ThreadError> {
    let mut ends = None;
    in_arena(task, &mut |given| {
        ends = Some(Q::with_parameters(task.point.capacity, given)?);
        Ok(())
    })?;
    Ok(ends.expect("it was made"))
}

/// Makes a queue in the memory of the run.
fn in_arena(
    task: &Task,
    make: &mut dyn FnMut(&Parameters) -> Result<(), QueueError>,
) -> Result<(), ThreadError> {
    // A plan has no others.
    let given = registry::given(&task.point.queue).unwrap_or_default();
    let made = match &task.arena {
        Some(arena) => arena.within(|| make(&given)),
        None => make(&given),
    };
    made.map_err(|error| ThreadError::Queue(task.point.queue.clone(), error))
}

/// Makes ends for elements of so many bytes.
struct EndMaker(usize);

impl QueueUser for EndMaker {
    type Output = Option<EndsMaker>;

    fn with<Q: EachPayloadSize>(self) -> Self::Output {
        match self.0 {
            8 => Some(make::<Q, Words<1>>),
            64 => Some(make::<Q, Words<8>>),
            256 => Some(make::<Q, Words<32>>),
            _ => None,
        }
    }
}

/// What is known of the queue of a point. Threads that share queues run on several CPUs, on no core alone.
pub(super) fn spec(point: &Point) -> QueueSpec {
    let Cpus {
        sender,
        receiver,
        cores,
    } = point.cpus;
    // The cores of a cluster share the second-level cache on the processors that can demote.
    let near = [CoreRelation::SmtSiblings, CoreRelation::SameCluster];
    let is_near = sender == receiver || cores.is_some_and(|cores| near.contains(&cores));
    QueueSpec {
        capacity: point.capacity,
        words: point.payload / size_of::<u64>(),
        cpus: [sender, receiver],
        shares_cache: point.wiring.is_none() && is_near,
    }
}

/// Makes ends of this queue for this size of an element.
pub(super) fn make_of(point: &Point) -> EndsMaker {
    let make = registry::visit(&point.queue, spec(point), EndMaker(point.payload));
    make.flatten()
        .expect("a plan has queues of the registry, for elements that they are made for")
}
