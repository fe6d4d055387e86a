//! One end of an established connection, or of a UD pair that knows its peer.

use std::sync::Arc;

use super::{Event, EventKind, Id};
use crate::rdma::verbs::{AddressVector, QueuePair};

/// A queue pair that reaches its peer.
#[derive(Debug)]
pub struct Connection {
    queue_pair: Arc<QueuePair>,
    id: Arc<Id>,
    address: Option<AddressVector>,
}

impl Connection {
    pub(super) fn new(queue_pair: QueuePair, id: Arc<Id>, address: Option<AddressVector>) -> Self {
        Connection {
            queue_pair: Arc::new(queue_pair),
            id,
            address,
        }
    }

    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        &self.queue_pair
    }

    /// Where the peer is; known to the active end of a UD pair.
    pub fn address(&self) -> Option<&AddressVector> {
        self.address.as_ref()
    }

    /// The event that ended the connection, if one came. Never blocks.
    pub fn ending(&self) -> Option<Event> {
        let ends = EventKind::ends_connection;
        self.id.channel().find(&self.id, ends)
    }

    /// Whether its device was removed. Never blocks.
    pub fn was_removed(&self) -> bool {
        let removal = |kind| kind == EventKind::DeviceRemoval;
        self.id.channel().find(&self.id, removal).is_some()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.id.disconnect();
    }
}
