//! Several send requests that are posted by one call, each put together of two places in memory.

use std::sync::Arc;

use rdma_sys as sys;

use super::{AddressHandle, MemoryRegion};

/// The places that a message is put together of: its head and the rest.
const ELEMENTS: usize = 2;
const SIGNALED: u32 = sys::ibv_send_flags::IBV_SEND_SIGNALED.0;
const INLINE: u32 = sys::ibv_send_flags::IBV_SEND_INLINE.0;

/// Sends (without immediate data) to one peer, which are linked and posted together.
pub struct SendList {
    requests: Box<[sys::ibv_send_wr]>,
    elements: Box<[[sys::ibv_sge; ELEMENTS]]>,
    count: usize,
    head: u32,
    /// Where a message may begin: bounds within the region.
    first: u64,
    last: u64,
    source: Arc<MemoryRegion>,
    /// Held: the requests name it.
    _target: Option<Arc<AddressHandle>>,
}

// SAFETY: the pointers in it lead to its own boxes and to objects that are held by Arc; one owner at a time.
unsafe impl Send for SendList {}

impl SendList {
    /// A list for at most `capacity` messages of `length` bytes out of `source`, of which the first `head` bytes are a
    /// separate element; on UD with the way to the peer.
    ///
    /// # Panics
    /// If the region is shorter, or `head` longer, than a message.
    pub fn new(
        source: &Arc<MemoryRegion>,
        (head, length): (u32, u32),
        capacity: usize,
        target: Option<Arc<AddressHandle>>,
    ) -> Self {
        let (first, bytes) = source.extent();
        let room = bytes.checked_sub(u64::from(length));
        let element = |length| sys::ibv_sge {
            addr: 0,
            length,
            lkey: source.local_key(),
        };
        let rest = length
            .checked_sub(head)
            .expect("a head is part of a message");
        let request = |_| {
            // SAFETY: the structure is integers, null pointers and unions of these; zero is a value of it.
            let mut request: sys::ibv_send_wr = unsafe { std::mem::zeroed() };
            request.opcode = sys::ibv_wr_opcode::IBV_WR_SEND;
            request.num_sge = if rest > 0 { ELEMENTS as i32 } else { 1 };
            if let Some(handle) = &target {
                request.wr.ud = sys::ud_t {
                    ah: handle.as_ptr(),
                    remote_qpn: handle.queue_pair_number,
                    remote_qkey: handle.queue_key,
                };
            }
            request
        };
        SendList {
            requests: (0..capacity).map(request).collect(),
            elements: vec![[element(head), element(rest)]; capacity].into(),
            count: 0,
            head,
            first,
            last: first + room.expect("a message fits into its region"),
            source: Arc::clone(source),
            _target: target,
        }
    }

    /// Adds the message at `address`, whose completion has this number.
    ///
    /// # Panics
    /// If there is no more room, or the message does not lie in the region: the CPU reads inline data from there, and
    /// asks for no key.
    #[inline(always)]
    pub fn push(&mut self, number: u64, address: u64, signaled: bool, inline: bool) {
        assert!((self.first..=self.last).contains(&address));
        let elements = &mut self.elements[self.count];
        elements[0].addr = address;
        elements[1].addr = address + u64::from(self.head);
        let request = &mut self.requests[self.count];
        request.wr_id = number;
        request.send_flags = if signaled { SIGNALED } else { 0 } | if inline { INLINE } else { 0 };
        self.count += 1;
    }

    /// How many it holds.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.count
    }

    /// The region the messages come from.
    pub fn source(&self) -> &Arc<MemoryRegion> {
        &self.source
    }

    /// Links the requests, and returns the first.
    #[inline(always)]
    pub(super) fn linked(&mut self) -> *mut sys::ibv_send_wr {
        let (requests, elements) = (self.requests.as_mut_ptr(), self.elements.as_mut_ptr());
        for (at, request) in self.requests[..self.count].iter_mut().enumerate() {
            request.sg_list = elements.wrapping_add(at).cast();
            request.next = match at + 1 == self.count {
                true => std::ptr::null_mut(),
                false => requests.wrapping_add(at + 1),
            };
        }
        requests
    }

    /// The place of a request that a verb points to.
    pub(super) fn place_of(&self, request: *const sys::ibv_send_wr) -> usize {
        let from = self.requests.as_ptr() as usize;
        (request as usize).saturating_sub(from) / size_of::<sys::ibv_send_wr>()
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}

impl std::fmt::Debug for SendList {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "SendList({} of {})",
            self.count,
            self.requests.len()
        )
    }
}
