//! Completion channels: where a thread sleeps until a completion queue has something.

use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as sys;

use super::{Context, VerbsError};

/// A completion channel, for one completion queue.
#[derive(Debug)]
pub struct CompletionChannel {
    raw: NonNull<sys::ibv_comp_channel>,
    context: Arc<Context>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for CompletionChannel {}
// SAFETY: as above.
unsafe impl Sync for CompletionChannel {}

impl CompletionChannel {
    /// Creates one.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn create(context: &Arc<Context>) -> Result<Self, VerbsError> {
        // SAFETY: the context is open and held by the channel.
        match NonNull::new(unsafe { sys::ibv_create_comp_channel(context.as_ptr()) }) {
            Some(raw) => Ok(CompletionChannel {
                raw,
                context: Arc::clone(context),
            }),
            None => Err(VerbsError::last(
                "ibv_create_comp_channel",
                context.device_name(),
            )),
        }
    }

    pub(super) fn as_ptr(&self) -> *mut sys::ibv_comp_channel {
        self.raw.as_ptr()
    }

    pub(super) fn device_name(&self) -> &str {
        self.context.device_name()
    }
}

impl Drop for CompletionChannel {
    fn drop(&mut self) {
        // SAFETY: created here; the queue that uses it owns it and is destroyed first.
        unsafe { sys::ibv_destroy_comp_channel(self.as_ptr()) };
    }
}
