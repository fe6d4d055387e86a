//! The bounded channel of the standard library, for many senders and one receiver.

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The bounded channel of the standard library.
#[derive(Debug)]
pub struct SyncChannel;

/// The sending end.
pub struct SyncChannelSender<T>(std::sync::mpsc::SyncSender<T>);

/// The receiving end.
pub struct SyncChannelReceiver<T>(std::sync::mpsc::Receiver<T>);

impl<T: Element> Sender<T> for SyncChannelSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        self.0.try_send(element).is_ok()
    }
}

impl<T: Element> Receiver<T> for SyncChannelReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T: Element> Queue<T> for SyncChannel {
    type Sender = SyncChannelSender<T>;
    type Receiver = SyncChannelReceiver<T>;

    const NAME: &'static str = "sync-channel";
    const SOURCE: &'static str = "Rust's standard library, mpsc::sync_channel";
    const ENDS: Ends = Ends::Mpsc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("sync-channel", capacity)?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(capacity);
        super::touched(
            "sync-channel",
            capacity,
            (SyncChannelSender(sender), SyncChannelReceiver(receiver)),
        )
    }
}
