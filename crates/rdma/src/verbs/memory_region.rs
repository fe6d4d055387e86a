//! Memory regions: memory that the HCA may read or write.

use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as sys;
use serde::{Deserialize, Serialize};

use super::{ProtectionDomain, Transport, VerbsError};
use crate::buffer::{Bytes, StableMemory};
use crate::loaded;

/// What the HCA may do with a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Read it, to send from it.
    Send,
    /// Write it, for incoming sends and for RDMA writes of the peer.
    Receive,
    /// Write it with what the peer's memory is read or had before.
    Fetch,
    /// Read it for the peer.
    Serve,
    /// Read and write it for atomic operations of the peer.
    ServeAtomics,
}

impl Access {
    /// What the peer may do by it, as a queue pair's attributes have it too.
    pub(crate) fn of_peer(self) -> sys::ibv_access_flags {
        use sys::ibv_access_flags as of;
        match self {
            Access::Send | Access::Fetch => of(0),
            Access::Receive => of::IBV_ACCESS_REMOTE_WRITE,
            Access::Serve => of::IBV_ACCESS_REMOTE_READ,
            Access::ServeAtomics => of::IBV_ACCESS_REMOTE_ATOMIC,
        }
    }

    fn flags(self, transport: Transport) -> sys::ibv_access_flags {
        match self {
            // There what is read comes back as a write of the peer (RFC 5040, 5.3; kernel, drivers/infiniband/core/rw.c).
            Access::Fetch if transport == Transport::Iwarp => Access::Receive.flags(transport),
            Access::Send | Access::Serve => self.of_peer(),
            // What the peer may write the device must be allowed to write.
            Access::Receive | Access::Fetch | Access::ServeAtomics => {
                self.of_peer() | sys::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE
            }
        }
    }
}

/// How memory is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Registration {
    /// What the HCA may do with it.
    pub access: Access,
    /// Whether PCI Express may change the order of the HCA's writes to it. What polls for the last byte of a message
    /// relies on the order.
    pub relaxed_ordering: bool,
    /// Whether its pages are found when the HCA uses them, and not pinned before (on-demand paging).
    pub on_demand: bool,
}

impl From<Access> for Registration {
    /// In order, and pinned.
    fn from(access: Access) -> Self {
        Registration {
            access,
            relaxed_ordering: false,
            on_demand: false,
        }
    }
}

impl Registration {
    fn flags(self, transport: Transport) -> sys::ibv_access_flags {
        use sys::ibv_access_flags as of;
        let mut flags = self.access.flags(transport);
        for (is_set, flag) in [
            (self.relaxed_ordering, of::IBV_ACCESS_RELAXED_ORDERING),
            (self.on_demand, of::IBV_ACCESS_ON_DEMAND),
        ] {
            if is_set {
                flags |= flag;
            }
        }
        flags
    }
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
        how: impl Into<Registration>,
    ) -> Result<Arc<Self>, VerbsError> {
        let (start, length) = memory.region();
        let how = how.into();
        let flags = how.flags(domain.context().transport()).0;
        let (domain_pointer, address) = (domain.as_ptr(), start.cast());
        // The header's macro takes the second function where a flag may be one that old kernels do not know: it leaves
        // such flags out there (infiniband/verbs.h, __ibv_reg_mr; libibverbs/verbs.c, ibv_reg_mr_iova2).
        // SAFETY: the memory stays where it is as long as `memory` lives, which the region holds until it is
        // deregistered; what the HCA writes there is read through raw pointers only.
        let register = || unsafe {
            match how.relaxed_ordering {
                false => loaded::ibv_reg_mr(domain_pointer, address, length, flags as i32),
                true => {
                    loaded::ibv_reg_mr_iova2(domain_pointer, address, length, start as u64, flags)
                }
            }
        };
        let (device, size) = (domain.context().device_name(), Bytes(length as u64));
        Ok(Arc::new(MemoryRegion {
            raw: VerbsError::created(register, "ibv_reg_mr", || format!("{device} ({size})"))?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_over_iwarp_may_be_written_by_the_peer() {
        let write = sys::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0;
        for (access, transport, may) in [
            (Access::Fetch, Transport::Iwarp, true),
            (Access::Fetch, Transport::InfiniBand, false),
            (Access::Send, Transport::Iwarp, false),
            (Access::Receive, Transport::InfiniBand, true),
        ] {
            let flags = access.flags(transport).0;
            assert_eq!(flags & write != 0, may, "{access:?} {transport:?}");
        }
    }

    #[test]
    fn order_and_paging_are_flags_beside_the_access() {
        use sys::ibv_access_flags as of;
        let plain = Registration::from(Access::Receive);
        let flags = |how: Registration| how.flags(Transport::InfiniBand).0;
        let relaxed = Registration {
            relaxed_ordering: true,
            ..plain
        };
        let paged = Registration {
            on_demand: true,
            ..plain
        };
        let without = Access::Receive.flags(Transport::InfiniBand).0;
        assert_eq!(flags(plain), without);
        assert_eq!(flags(relaxed), without | of::IBV_ACCESS_RELAXED_ORDERING.0);
        assert_eq!(flags(paged), without | of::IBV_ACCESS_ON_DEMAND.0);
    }
}
