//! Memory regions: memory that the HCA may read or write.

use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as sys;

use super::{ProtectionDomain, VerbsError};
use crate::buffer::{Bytes, StableMemory};
use crate::rdma::loaded;

/// What the HCA may do with a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read it, to send from it.
    Send,
    /// Write it, for incoming sends and for RDMA writes of the peer.
    Receive,
}

/// Registered memory.
#[derive(Debug)]
pub struct MemoryRegion {
    raw: NonNull<sys::ibv_mr>,
    domain: Arc<ProtectionDomain>,
    memory: Option<Arc<dyn StableMemory>>,
}

// SAFETY: verbs may be called from any thread; the keys never change.
unsafe impl Send for MemoryRegion {}
// SAFETY: as above.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Registers all of `memory`.
    ///
    /// # Errors
    /// When the device or the memlock limit does not allow it.
    pub fn register(
        domain: &Arc<ProtectionDomain>,
        memory: Arc<dyn StableMemory>,
        access: Access,
    ) -> Result<Arc<Self>, VerbsError> {
        let (start, length) = memory.region();
        let flags = match access {
            Access::Send => 0,
            Access::Receive => {
                sys::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0
                    | sys::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0
            }
        };
        // SAFETY: the memory stays where it is as long as `memory` lives, which the region holds until it is
        // deregistered; what the HCA writes there is read through raw pointers only.
        let raw =
            unsafe { loaded::ibv_reg_mr(domain.as_ptr(), start.cast(), length, flags as i32) };
        let (device, size) = (domain.context().device_name(), Bytes(length as u64));
        Ok(Arc::new(MemoryRegion {
            raw: VerbsError::created(raw, "ibv_reg_mr", || format!("{device} ({size})"))?,
            domain: Arc::clone(domain),
            memory: Some(memory),
        }))
    }

    /// The address of its first byte, and its length in bytes.
    pub fn extent(&self) -> (u64, u64) {
        // SAFETY: registered until drop.
        let raw = unsafe { self.raw.as_ref() };
        (raw.addr as u64, raw.length as u64)
    }

    /// The key for local work requests.
    pub fn local_key(&self) -> u32 {
        // SAFETY: registered until drop.
        unsafe { self.raw.as_ref().lkey }
    }

    /// The key that the peer's RDMA operations name.
    pub fn remote_key(&self) -> u32 {
        // SAFETY: registered until drop.
        unsafe { self.raw.as_ref().rkey }
    }

    /// The protection domain it is registered in.
    pub fn domain(&self) -> &Arc<ProtectionDomain> {
        &self.domain
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: registered here, once.
        if unsafe { loaded::ibv_dereg_mr(self.raw.as_ptr()) } != 0 {
            // The HCA may still write there: the memory must never be used for anything else.
            std::mem::forget(self.memory.take());
        }
    }
}
