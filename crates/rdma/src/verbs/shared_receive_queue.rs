//! Shared receive queues: one queue of receive requests for several queue pairs.

use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rdma_sys as sys;

use super::{ProtectionDomain, VerbsError};
use crate::loaded;

/// A shared receive queue: the queue pairs that are created with it take receive requests from it.
#[derive(Debug)]
pub struct SharedReceiveQueue {
    raw: NonNull<sys::ibv_srq>,
    granted: u32,
    domain: Arc<ProtectionDomain>,
}

// SAFETY: verbs may be called from any thread, several at a time; for one of a thread domain the caller of
// `ProtectionDomain::of_thread` has promised that a single thread at a time uses it.
unsafe impl Send for SharedReceiveQueue {}
// SAFETY: as above.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    /// Creates one for at least `requests`, each for one place in memory.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn create(domain: &Arc<ProtectionDomain>, requests: u32) -> Result<Arc<Self>, VerbsError> {
        let mut attributes = sys::ibv_srq_init_attr {
            srq_context: null_mut(),
            attr: sys::ibv_srq_attr {
                max_wr: requests,
                max_sge: 1,
                srq_limit: 0,
            },
        };
        // SAFETY: the domain exists and is held by the queue; the attributes are writable.
        let create = || unsafe { loaded::ibv_create_srq(domain.as_ptr(), &mut attributes) };
        let object = || format!("{} ({requests} requests)", domain.context().device_name());
        Ok(Arc::new(SharedReceiveQueue {
            raw: VerbsError::created(create, "ibv_create_srq", object)?,
            granted: attributes.attr.max_wr,
            domain: Arc::clone(domain),
        }))
    }

    pub(super) fn as_ptr(&self) -> *mut sys::ibv_srq {
        self.raw.as_ptr()
    }

    /// Requests that it holds.
    pub fn granted(&self) -> u32 {
        self.granted
    }

    /// The device it belongs to.
    pub fn device_name(&self) -> &str {
        self.domain.context().device_name()
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: created here; queue pairs hold it by Arc.
        let code = unsafe { loaded::ibv_destroy_srq(self.as_ptr()) };
        // Other codes are those of a device that was removed.
        debug_assert_ne!(code, libc::EBUSY, "ibv_destroy_srq");
    }
}
