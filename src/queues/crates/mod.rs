//! Queues from crates.io, and the one of the standard library, behind the same two ends: one thin adapter each.
//!
//! They allocate without touching, and some grow while they fill for the first time. So each is filled to its capacity and
//! emptied once before it is handed out; from then on it works in memory that is there.

mod crossbeam;
mod flume;
mod heapless;
mod kanal;
mod ringbuf;
mod rtrb;
mod sync_channel;
mod thingbuf;

pub use crossbeam::CrossbeamArrayQueue;
pub use flume::Flume;
pub use heapless::Heapless;
pub use kanal::Kanal;
pub use ringbuf::Ringbuf;
pub use rtrb::Rtrb;
pub use sync_channel::SyncChannel;
pub use thingbuf::Thingbuf;

use std::num::NonZeroU64;

use crate::queues::element::Element;
use crate::queues::interface::{QueueError, Receiver, Sender};

/// The two ends, when the queue was filled and emptied; an error when it holds another number than was asked for.
fn touched<T: Element, S: Sender<T>, R: Receiver<T>>(
    queue: &'static str,
    capacity: usize,
    (mut sender, mut receiver): (S, R),
) -> Result<(S, R), QueueError> {
    let wrong = QueueError::Capacity {
        queue,
        asked: capacity,
        allowed: "the crate makes one for another number of elements of it",
    };
    let element = T::with_stamp(NonZeroU64::MIN);
    if !(0..capacity).all(|_| sender.enqueue(element)) || sender.enqueue(element) {
        return Err(wrong);
    }
    if !(0..capacity).all(|_| receiver.dequeue().is_some()) || receiver.dequeue().is_some() {
        return Err(wrong);
    }
    Ok((sender, receiver))
}
