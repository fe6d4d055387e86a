//! Protection domains: what may work together on one device. One of a thread promises that its queues are used by one
//! thread at a time, so that a driver can post without a lock.

use std::ffi::c_int;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as sys;

use super::{Context, VerbsError};
use crate::loaded;

/// A protection domain.
#[derive(Debug)]
pub struct ProtectionDomain {
    raw: NonNull<sys::ibv_pd>,
    /// What one of a thread is made of.
    _parts: Option<ThreadParts>,
    context: Arc<Context>,
}

/// A parent domain takes the place of the protection domain in it everywhere (ibv_alloc_parent_domain(3)).
#[derive(Debug)]
struct ThreadParts {
    _thread: ThreadDomain,
    _protection: Arc<ProtectionDomain>,
}

/// A thread domain.
#[derive(Debug)]
struct ThreadDomain {
    raw: NonNull<sys::ibv_td>,
    deallocate: unsafe extern "C" fn(*mut sys::ibv_td) -> c_int,
}

impl ThreadDomain {
    fn allocate(context: &Context) -> Result<Self, VerbsError> {
        const VERB: &str = "ibv_alloc_td";
        let lacks = || VerbsError::code(VERB, context.device_name(), libc::EOPNOTSUPP);
        // SAFETY: the provider has the member at this offset, and those after it.
        let (allocate, deallocate) = context
            .extended(offset_of!(sys::verbs_context, dealloc_td))
            .and_then(|all| unsafe { (*all).alloc_td.zip((*all).dealloc_td) })
            .ok_or_else(lacks)?;
        let mut attributes = sys::ibv_td_init_attr { comp_mask: 0 };
        // SAFETY: the context is open, and the attributes are only read.
        let allocate = || unsafe { allocate(context.as_ptr(), &mut attributes) };
        Ok(ThreadDomain {
            raw: VerbsError::created(allocate, VERB, || context.device_name())?,
            deallocate,
        })
    }
}

impl Drop for ThreadDomain {
    fn drop(&mut self) {
        // SAFETY: allocated here; the parent domain that it is a part of goes first.
        let code = unsafe { (self.deallocate)(self.raw.as_ptr()) };
        debug_assert_ne!(code, libc::EBUSY, "ibv_dealloc_td");
    }
}

// SAFETY: verbs that make something in a domain may be called from any thread, several at a time; of those on what was
// made in one of a thread `ProtectionDomain::of_thread` has the rule.
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
        let allocate = || unsafe { loaded::ibv_alloc_pd(context.as_ptr()) };
        Ok(Arc::new(ProtectionDomain {
            raw: VerbsError::created(allocate, "ibv_alloc_pd", || context.device_name())?,
            _parts: None,
            context: Arc::clone(context),
        }))
    }

    /// Allocates one whose queues a single thread uses at a time.
    ///
    /// # Safety
    /// No two threads may use at a time what is made in it: its queue pairs, which includes polling their completion
    /// queues (ionic's `ionic_poll_cq` works on the queue pair's queues under the lock that this switches off), and its
    /// shared receive queues.
    ///
    /// # Errors
    /// When the device refuses, or its driver has no thread domains.
    pub(super) unsafe fn of_thread(context: &Arc<Context>) -> Result<Arc<Self>, VerbsError> {
        const VERB: &str = "ibv_alloc_parent_domain";
        let thread = ThreadDomain::allocate(context)?;
        let protection = ProtectionDomain::allocate(context)?;
        // SAFETY: the structure is pointers and integers; zero is a value of it.
        let mut attributes: sys::ibv_parent_domain_init_attr = unsafe { std::mem::zeroed() };
        (attributes.pd, attributes.td) = (protection.as_ptr(), thread.raw.as_ptr());
        let lacks = || VerbsError::code(VERB, context.device_name(), libc::EOPNOTSUPP);
        // SAFETY: the provider has the member at this offset.
        let allocate = context
            .extended(offset_of!(sys::verbs_context, alloc_parent_domain))
            .and_then(|all| unsafe { (*all).alloc_parent_domain })
            .ok_or_else(lacks)?;
        // SAFETY: the context is open, both parts exist and are held by the new domain.
        let allocate = || unsafe { allocate(context.as_ptr(), &mut attributes) };
        Ok(Arc::new(ProtectionDomain {
            raw: VerbsError::created(allocate, VERB, || context.device_name())?,
            _parts: Some(ThreadParts {
                _thread: thread,
                _protection: protection,
            }),
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
        let code = unsafe { loaded::ibv_dealloc_pd(self.as_ptr()) };
        // Other codes are those of a device that was removed.
        debug_assert_ne!(code, libc::EBUSY, "ibv_dealloc_pd");
    }
}
