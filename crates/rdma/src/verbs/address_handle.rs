//! Address handles: where a UD message goes.

use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as sys;

use super::{ProtectionDomain, VerbsError};
use crate::loaded;

/// The way to a UD queue pair, from the connection manager's event.
#[derive(Clone, Copy)]
pub struct AddressVector {
    pub(crate) attributes: sys::ibv_ah_attr,
    pub(crate) queue_pair_number: u32,
    pub(crate) queue_key: u32,
}

impl AddressVector {
    /// The way to another queue pair of the same port.
    pub fn to_queue_pair(mut self, number: u32) -> Self {
        self.queue_pair_number = number;
        self
    }
}

impl std::fmt::Debug for AddressVector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.queue_pair_number;
        write!(formatter, "AddressVector(queue pair {number:#x})")
    }
}

/// An address handle with the queue pair number and key that go with it.
#[derive(Debug)]
pub struct AddressHandle {
    raw: NonNull<sys::ibv_ah>,
    pub(super) queue_pair_number: u32,
    pub(super) queue_key: u32,
    _domain: Arc<ProtectionDomain>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for AddressHandle {}
// SAFETY: as above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    /// Creates one.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn create(
        domain: &Arc<ProtectionDomain>,
        vector: &AddressVector,
    ) -> Result<Arc<Self>, VerbsError> {
        let mut attributes = vector.attributes;
        // SAFETY: the domain exists and is held; the attributes are only read.
        let create = || unsafe { loaded::ibv_create_ah(domain.as_ptr(), &mut attributes) };
        let device = || domain.context().device_name();
        Ok(Arc::new(AddressHandle {
            raw: VerbsError::created(create, "ibv_create_ah", device)?,
            queue_pair_number: vector.queue_pair_number,
            queue_key: vector.queue_key,
            _domain: Arc::clone(domain),
        }))
    }

    pub(super) fn as_ptr(&self) -> *mut sys::ibv_ah {
        self.raw.as_ptr()
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: created here; send requests that name it hold it by Arc.
        unsafe { loaded::ibv_destroy_ah(self.as_ptr()) };
    }
}
