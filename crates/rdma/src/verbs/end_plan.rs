//! What the queue pairs of one end are made with: tried before a measurement, and made for it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Access, Capabilities, CompletionQueue, Context, MemoryRegion, ProtectionDomain, QueuePair,
    QueuePairAttributes, Registration, ServiceType, SharedReceiveQueue, VerbsError,
};
use crate::buffer::{HugePagePolicy, PayloadBuffer};

/// The queue pairs of an end, and how the memory of their messages is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndPlan {
    /// The service type.
    pub service: ServiceType,
    /// Of each queue pair.
    pub capabilities: Capabilities,
    /// How many there are.
    pub queue_pairs: u32,
    /// Whether they take receive requests from a queue that they share.
    pub shares_requests: bool,
    /// Whether a single thread at a time uses them, and polls their completions, so that the driver needs no lock: a
    /// promise by who sets it, for as long as they exist.
    pub of_thread: bool,
    /// How memory is registered.
    pub registration: Registration,
}

/// How the completion queues of an end report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventPlan {
    /// Whether a thread waits for events of the send requests.
    pub of_sends: bool,
    /// Whether one waits for events of the receive requests.
    pub of_receives: bool,
    /// The interrupt by which they come.
    pub vector: u32,
}

impl EndPlan {
    /// The usual: each queue pair with separate queues, on memory that is sent from.
    pub fn usual(service: ServiceType, capabilities: Capabilities, queue_pairs: u32) -> Self {
        EndPlan {
            service,
            capabilities,
            queue_pairs,
            shares_requests: false,
            of_thread: false,
            registration: Registration::from(Access::Send),
        }
    }

    /// Entries of the completion queues of all send and of all receive requests.
    pub fn entries(&self) -> [u32; 2] {
        let Capabilities {
            send_requests,
            receive_requests,
            ..
        } = self.capabilities;
        let queues = match self.shares_requests {
            false => self.queue_pairs,
            true => 1,
        };
        [send_requests * self.queue_pairs, receive_requests * queues].map(|all| all.max(1))
    }

    /// Makes all but the queue pairs: their domain, and the queues that they have in common. All have one completion
    /// queue a direction, so that a loop polls one, however many they are.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn make(
        &self,
        context: &Arc<Context>,
        events: EventPlan,
    ) -> Result<(Arc<ProtectionDomain>, QueuePairAttributes), VerbsError> {
        let capabilities = self.capabilities;
        let domain = match self.of_thread {
            false => ProtectionDomain::allocate(context)?,
            // SAFETY: who sets `of_thread` promises it.
            true => unsafe { ProtectionDomain::of_thread(context) }?,
        };
        let shared_requests = match self.shares_requests {
            false => None,
            true => {
                let requests = capabilities.receive_requests;
                Some(SharedReceiveQueue::create(&domain, requests)?)
            }
        };
        let [sends, receives] = self.entries();
        let queue = |entries, with_events| {
            CompletionQueue::create(context, entries, with_events, events.vector)
        };
        let attributes = QueuePairAttributes {
            service: self.service,
            capabilities,
            send_elements: 1,
            send_queue: queue(sends, events.of_sends)?,
            receive_queue: queue(receives, events.of_receives)?,
            shared_requests,
        };
        Ok((domain, attributes))
    }

    /// Makes the queue pairs and destroys them, to find out whether and with what the device grants them. Memory is
    /// registered as well where that is not done in the usual way.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn attempt(&self, context: &Arc<Context>) -> Result<Capabilities, VerbsError> {
        let (domain, attributes) = self.make(context, EventPlan::default())?;
        if self.registration != Registration::from(self.registration.access)
            && let Ok(memory) = PayloadBuffer::new(1, 8, 0, HugePagePolicy::Off)
        {
            MemoryRegion::register(&domain, Arc::new(memory), self.registration)?;
        }
        let create = |_| QueuePair::create(&domain, attributes.clone());
        let created = (0..self.queue_pairs)
            .map(create)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(created
            .first()
            .map_or(self.capabilities, QueuePair::granted))
    }
}

/// The largest inline size, in bytes, that a queue pair of this service type gets on a device, found by creating some
/// with a single request; 0 where inline data is not supported.
///
/// # Errors
/// When even a queue pair without inline data is refused: the device does not have the service type.
pub fn granted_inline(context: &Arc<Context>, service: ServiceType) -> Result<u32, VerbsError> {
    let try_with = |inline_bytes: u32| {
        let smallest = Capabilities {
            send_requests: 1,
            receive_requests: 1,
            inline_bytes,
        };
        let plan = EndPlan::usual(service, smallest, 1);
        plan.attempt(context).map(|granted| granted.inline_bytes)
    };
    let mut largest = try_with(0)?;
    // Devices refuse what is too much and grant what is less, some of them more than asked for: halve the interval
    // between what was granted and what was refused.
    let mut refused = 65_536;
    while refused > largest + 1 {
        let middle = largest + (refused - largest) / 2;
        match try_with(middle) {
            Ok(granted) if granted >= middle => largest = granted,
            _ => refused = middle,
        }
    }
    Ok(largest)
}
