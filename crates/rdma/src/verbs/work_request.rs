//! Send requests: prepared once, patched from message to message.

use std::marker::PhantomPinned;
use std::pin::Pin;
use std::sync::Arc;

use rdma_sys as sys;

use super::{AddressHandle, MemoryRegion};

/// Where messages go, and by which operation.
#[derive(Debug, Clone)]
pub enum Destination {
    /// Send with immediate data over a connection.
    Send,
    /// Send without immediate data over a connection, for a transport that has none (iWARP).
    PlainSend,
    /// Send with immediate data to the queue pair behind an address handle (UD).
    Datagram(Arc<AddressHandle>),
    /// RDMA write with immediate data into the peer's region of this remote key.
    Write {
        /// The key.
        remote_key: u32,
    },
    /// RDMA write without immediate data: the peer has no completion of it.
    SilentWrite {
        /// The key.
        remote_key: u32,
    },
    /// RDMA read out of the peer's region of this remote key.
    Read {
        /// The key.
        remote_key: u32,
    },
    /// Adds to 8 bytes in the peer's region, and brings back what was there.
    FetchAdd {
        /// The key.
        remote_key: u32,
        /// What is added.
        add: u64,
    },
    /// Writes 8 bytes in the peer's region if they are what is expected, and brings back what was there.
    CompareSwap {
        /// The key.
        remote_key: u32,
    },
}

impl Destination {
    fn opcode(&self) -> sys::ibv_wr_opcode::Type {
        use sys::ibv_wr_opcode as of;
        match self {
            Destination::Send | Destination::Datagram(_) => of::IBV_WR_SEND_WITH_IMM,
            Destination::PlainSend => of::IBV_WR_SEND,
            Destination::Write { .. } => of::IBV_WR_RDMA_WRITE_WITH_IMM,
            Destination::SilentWrite { .. } => of::IBV_WR_RDMA_WRITE,
            Destination::Read { .. } => of::IBV_WR_RDMA_READ,
            Destination::FetchAdd { .. } => of::IBV_WR_ATOMIC_FETCH_AND_ADD,
            Destination::CompareSwap { .. } => of::IBV_WR_ATOMIC_CMP_AND_SWP,
        }
    }

    /// What a request of it begins with. No other member of the union is set afterwards.
    fn remote(&self) -> sys::wr_t {
        let rdma = |rkey: u32| sys::wr_t {
            rdma: sys::rdma_t {
                remote_addr: 0,
                rkey,
            },
        };
        let atomic = |rkey: u32, compare_add: u64| sys::wr_t {
            atomic: sys::atomic_t {
                remote_addr: 0,
                compare_add,
                swap: 0,
                rkey,
            },
        };
        match self {
            Destination::Send | Destination::PlainSend => rdma(0),
            Destination::Datagram(handle) => sys::wr_t {
                ud: sys::ud_t {
                    ah: handle.as_ptr(),
                    remote_qpn: handle.queue_pair_number,
                    remote_qkey: handle.queue_key,
                },
            },
            Destination::Write { remote_key }
            | Destination::SilentWrite { remote_key }
            | Destination::Read { remote_key } => rdma(*remote_key),
            Destination::FetchAdd { remote_key, add } => atomic(*remote_key, *add),
            Destination::CompareSwap { remote_key } => atomic(*remote_key, 0),
        }
    }
}

/// One message, prepared: its data lies in a memory region. It is used again and again.
#[derive(Debug)]
pub struct SendRequest {
    chain: Pin<Box<Chain>>,
    source: Arc<MemoryRegion>,
    /// Where a message may begin: bounds within the region.
    first: u64,
    last: u64,
    /// Held: the chain names its address handle.
    _destination: Destination,
    reach: RemoteAddressing,
}

/// The member of the request's union that holds its place in the peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemoteAddressing {
    Nowhere,
    Rdma,
    Atomic,
}

impl From<&Destination> for RemoteAddressing {
    fn from(destination: &Destination) -> Self {
        match destination {
            Destination::Send | Destination::PlainSend | Destination::Datagram(_) => {
                RemoteAddressing::Nowhere
            }
            Destination::Write { .. }
            | Destination::SilentWrite { .. }
            | Destination::Read { .. } => RemoteAddressing::Rdma,
            Destination::FetchAdd { .. } | Destination::CompareSwap { .. } => {
                RemoteAddressing::Atomic
            }
        }
    }
}

/// The request and the scatter/gather element it points to.
struct Chain {
    request: sys::ibv_send_wr,
    element: sys::ibv_sge,
    _pinned: PhantomPinned,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Chain(opcode {})", self.request.opcode)
    }
}

// SAFETY: the pointers in it lead to itself (on the heap) and to objects that are held by Arc; one owner at a time.
unsafe impl Send for SendRequest {}

const SIGNALED: u32 = sys::ibv_send_flags::IBV_SEND_SIGNALED.0;
const INLINE: u32 = sys::ibv_send_flags::IBV_SEND_INLINE.0;

impl SendRequest {
    /// Prepares a request that sends `length` bytes at a time out of `source`, or brings as many back into it.
    ///
    /// # Panics
    /// If the region is shorter.
    pub fn new(
        source: &Arc<MemoryRegion>,
        length: u32,
        destination: Destination,
        inline: bool,
    ) -> Self {
        let (first, bytes) = source.extent();
        let room = bytes.checked_sub(u64::from(length));
        let mut chain = Box::new(Chain {
            // SAFETY: the structure is integers, null pointers and unions of these; zero is a value of it.
            request: unsafe { std::mem::zeroed() },
            element: sys::ibv_sge {
                addr: 0,
                length,
                lkey: source.local_key(),
            },
            _pinned: PhantomPinned,
        });
        chain.request.opcode = destination.opcode();
        chain.request.wr = destination.remote();
        chain.request.send_flags = if inline { INLINE } else { 0 };
        chain.request.num_sge = 1;
        chain.request.sg_list = &raw mut chain.element;
        SendRequest {
            chain: Box::into_pin(chain),
            source: Arc::clone(source),
            first,
            last: first + room.expect("a message fits into its region"),
            reach: RemoteAddressing::from(&destination),
            _destination: destination,
        }
    }

    #[inline(always)]
    fn chain(&mut self) -> &mut Chain {
        // SAFETY: nothing is moved out of the pin; callers change plain fields only.
        unsafe { self.chain.as_mut().get_unchecked_mut() }
    }

    /// The region the messages come from, or go to.
    pub fn source(&self) -> &Arc<MemoryRegion> {
        &self.source
    }

    /// Turns the request to the data at `address` in the region, with its immediate data, signalled or not. The
    /// immediate data is the request's number as well.
    ///
    /// # Panics
    /// If the data would not lie in the region: inline data is read from there by the CPU, which asks for no key.
    #[inline(always)]
    pub fn aim(&mut self, address: u64, immediate_data: u32, signaled: bool) {
        assert!((self.first..=self.last).contains(&address));
        let chain = self.chain();
        chain.element.addr = address;
        chain.request.wr_id = u64::from(immediate_data);
        chain.request.imm_data_invalidated_rkey_union.imm_data = immediate_data.to_be();
        chain.request.send_flags =
            (chain.request.send_flags & !SIGNALED) | if signaled { SIGNALED } else { 0 };
    }

    /// Turns the request to `address` in the peer's region. Does nothing to a send.
    #[inline(always)]
    pub fn aim_remote(&mut self, address: u64) {
        // The member of the union that `new` set.
        match self.reach {
            RemoteAddressing::Nowhere => {}
            RemoteAddressing::Rdma => self.chain().request.wr.rdma.remote_addr = address,
            RemoteAddressing::Atomic => self.chain().request.wr.atomic.remote_addr = address,
        }
    }

    /// Sets the value that a compare and swap expects, and the one that it writes then.
    ///
    /// # Panics
    /// If the request is none.
    #[inline(always)]
    pub fn compare_and_swap(&mut self, expected: u64, new: u64) {
        let opcode = self.chain().request.opcode;
        assert_eq!(opcode, sys::ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP);
        // SAFETY: of this operation it is the member of the union that `new` set.
        let atomic = unsafe { &mut self.chain().request.wr.atomic };
        (atomic.compare_add, atomic.swap) = (expected, new);
    }

    #[inline(always)]
    pub(super) fn as_ptr(&mut self) -> *mut sys::ibv_send_wr {
        &raw mut self.chain().request
    }
}
