//! Protection domains: what may work together on one device.

use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as sys;

use super::{Context, VerbsError};
use crate::loaded;

/// A protection domain.
#[derive(Debug)]
pub struct ProtectionDomain {
    raw: NonNull<sys::ibv_pd>,
    context: Arc<Context>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for ProtectionDomain {}
// SAFETY: as above.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates one.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn allocate(context: &Arc<Context>) -> Result<Arc<Self>, VerbsError> {
        // SAFETY: the context is open and held by the new domain.
        let raw = unsafe { loaded::ibv_alloc_pd(context.as_ptr()) };
        Ok(Arc::new(ProtectionDomain {
            raw: VerbsError::created(raw, "ibv_alloc_pd", || context.device_name())?,
            context: Arc::clone(context),
        }))
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_pd {
        self.raw.as_ptr()
    }

    /// The device it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: allocated here; everything made from it holds it by Arc.
        unsafe { loaded::ibv_dealloc_pd(self.as_ptr()) };
    }
}
