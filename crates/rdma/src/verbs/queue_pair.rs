//! Queue pairs.

use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rdma_sys as sys;
use serde::{Deserialize, Serialize};

use super::{
    CompletionQueue, ProtectionDomain, SendList, SendRequest, ServiceType, SharedReceiveQueue,
    Transport, VerbsError,
};
use crate::loaded;

/// The lengths of a queue pair's queues and the bytes it takes inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capabilities {
    /// Send requests that may be outstanding.
    pub send_requests: u32,
    /// Receive requests that may be outstanding; in a shared receive queue those of all its queue pairs.
    pub receive_requests: u32,
    /// Bytes of a message that can be copied into the request itself.
    pub inline_bytes: u32,
}

impl Capabilities {
    pub(super) fn granted(raw: &sys::ibv_qp_cap) -> Self {
        Capabilities {
            send_requests: raw.max_send_wr,
            receive_requests: raw.max_recv_wr,
            inline_bytes: raw.max_inline_data,
        }
    }
}

/// What a queue pair is made of.
#[derive(Debug, Clone)]
pub struct QueuePairAttributes {
    /// The service type.
    pub service: ServiceType,
    /// What is asked for; the device may grant more.
    pub capabilities: Capabilities,
    /// Places in memory of which one message can be put together.
    pub send_elements: u32,
    /// Where send requests complete.
    pub send_queue: Arc<CompletionQueue>,
    /// Where receive requests complete.
    pub receive_queue: Arc<CompletionQueue>,
    /// Where it takes receive requests from, if they are shared; it then holds none itself.
    pub shared_requests: Option<Arc<SharedReceiveQueue>>,
}

impl QueuePairAttributes {
    pub(crate) fn raw(&self) -> sys::ibv_qp_init_attr {
        let shared = self.shared_requests.as_deref();
        let (receive_requests, receive_elements) = match shared {
            None => (self.capabilities.receive_requests, 1),
            // Which are ignored then (ibv_create_qp(3)).
            Some(_) => (0, 0),
        };
        sys::ibv_qp_init_attr {
            qp_context: null_mut(),
            send_cq: self.send_queue.as_ptr(),
            recv_cq: self.receive_queue.as_ptr(),
            srq: shared.map_or(null_mut(), SharedReceiveQueue::as_ptr),
            cap: sys::ibv_qp_cap {
                max_send_wr: self.capabilities.send_requests,
                max_recv_wr: receive_requests,
                max_send_sge: self.send_elements,
                max_recv_sge: receive_elements,
                max_inline_data: self.capabilities.inline_bytes,
            },
            qp_type: self.service.raw(),
            // Each request itself requests a completion or does not.
            sq_sig_all: 0,
        }
    }
}

/// How a reliable connection repeats what is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Time until an unacknowledged packet is sent again: 4.096 us times two to this power.
    pub timeout: u8,
    /// Repetitions of a packet without an answer before the connection is given up.
    pub count: u8,
    /// Repetitions when the receiver has no request posted; 7 is without end.
    pub receiver_not_ready: u8,
    /// The code of the time before each of them, which the receiver asks for (`min_rnr_timer`).
    pub not_ready_timer: u8,
}

impl Retries {
    /// For peers that may leave their receive queue empty for a while: 4 s, by six times 655.36 ms. It must end: rxe
    /// does not let a device be removed while a packet is repeated without end.
    pub const PATIENT: Self = Retries {
        not_ready_timer: 0,
        ..Self::USUAL
    };

    /// 134 ms: the connection manager's own choice for RoCE is seconds, which makes a lost packet look like a broken
    /// connection. Six repetitions: the field has 3 bits, but its largest value, 7, means without end to Linux's rxe.
    /// 0.64 ms if the receiver is not ready.
    const USUAL: Self = Retries {
        timeout: 15,
        count: 6,
        receiver_not_ready: 6,
        not_ready_timer: 12,
    };
}

impl Default for Retries {
    fn default() -> Self {
        Self::USUAL
    }
}

/// RDMA reads and atomics that may be outstanding at a time on a reliable connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutstandingReads {
    /// To the peer (`max_rd_atomic`, the initiator depth).
    pub to_peer: u8,
    /// From the peer (`max_dest_rd_atomic`, the responder resources).
    pub from_peer: u8,
}

/// Destroys a queue pair that something else than the verbs created.
pub(crate) type DestroyFunction = Box<dyn Fn() + Send + Sync>;

/// A queue pair.
pub struct QueuePair {
    raw: NonNull<sys::ibv_qp>,
    granted: Capabilities,
    /// `None` for one that was created here.
    destroy: Option<DestroyFunction>,
    attributes: QueuePairAttributes,
    domain: Arc<ProtectionDomain>,
}

// SAFETY: verbs may be called from any thread, several at a time. One of a thread domain is the exception: see
// `ProtectionDomain::of_thread`, whose caller has promised that a single thread at a time uses it.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Takes over a queue pair that `destroy` destroys.
    ///
    /// # Safety
    /// `raw` must have been created in `domain` with `attributes`, and must live until `destroy` is called.
    pub(crate) unsafe fn from_raw(
        raw: NonNull<sys::ibv_qp>,
        granted: &sys::ibv_qp_cap,
        attributes: QueuePairAttributes,
        domain: &Arc<ProtectionDomain>,
        destroy: DestroyFunction,
    ) -> Self {
        QueuePair {
            raw,
            granted: Capabilities::granted(granted),
            destroy: Some(destroy),
            attributes,
            domain: Arc::clone(domain),
        }
    }

    /// Creates a queue pair, which is in the state RESET.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn create(
        domain: &Arc<ProtectionDomain>,
        attributes: QueuePairAttributes,
    ) -> Result<Self, VerbsError> {
        let mut raw = attributes.raw();
        // SAFETY: the domain and the queues exist, and the queue pair holds them.
        let create = || unsafe { loaded::ibv_create_qp(domain.as_ptr(), &mut raw) };
        let created = VerbsError::created(create, "ibv_create_qp", || {
            let (service, capabilities) = (attributes.service, attributes.capabilities);
            format!(
                "{}, {service:?}, {capabilities:?}",
                domain.context().device_name()
            )
        })?;
        Ok(QueuePair {
            raw: created,
            granted: Capabilities::granted(&raw.cap),
            destroy: None,
            attributes,
            domain: Arc::clone(domain),
        })
    }

    /// Sets the time after which a sender may try again when the receiver had no request posted. The connection manager
    /// makes it 655.36 ms (the kernel's `cm_init_qp_rtr_attr` leaves the code at 0). iWARP has none. A device that
    /// refuses keeps the connection with that time, which is then in its state.
    pub(crate) fn set_not_ready_timer(&self, code: u8) {
        let is_reliable = self.attributes.service == ServiceType::ReliableConnection;
        if code == 0 || !is_reliable || self.domain.context().transport() == Transport::Iwarp {
            return;
        }
        // SAFETY: the structure is integers and unions of these; zero is a value of it.
        let mut attributes: sys::ibv_qp_attr = unsafe { std::mem::zeroed() };
        // The state that it is in: a driver may read it whether or not the mask names it.
        attributes.qp_state = sys::ibv_qp_state::IBV_QPS_RTS;
        attributes.min_rnr_timer = code;
        let mask =
            sys::ibv_qp_attr_mask::IBV_QP_STATE | sys::ibv_qp_attr_mask::IBV_QP_MIN_RNR_TIMER;
        let step = "the time when the receiver is not ready";
        let _refused = self.modify(&mut attributes, mask, step);
    }

    /// Sets the attributes that the mask names. `step` is its purpose in words.
    pub(crate) fn modify(
        &self,
        attributes: &mut sys::ibv_qp_attr,
        mask: sys::ibv_qp_attr_mask,
        step: &str,
    ) -> Result<(), VerbsError> {
        // SAFETY: the queue pair exists; the attributes are only read.
        let code = unsafe { loaded::ibv_modify_qp(self.raw.as_ptr(), attributes, mask.0 as i32) };
        VerbsError::check(code, "ibv_modify_qp", || format!("{self:?} ({step})"))
    }

    pub(super) fn as_ptr(&self) -> *mut sys::ibv_qp {
        self.raw.as_ptr()
    }

    /// The shared receive queue that it takes receive requests from, if it does.
    pub fn shared_requests(&self) -> Option<&Arc<SharedReceiveQueue>> {
        self.attributes.shared_requests.as_ref()
    }

    /// Its service type.
    pub fn service(&self) -> ServiceType {
        self.attributes.service
    }

    /// What the device granted.
    pub fn granted(&self) -> Capabilities {
        self.granted
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair exists.
        unsafe { self.raw.as_ref().qp_num }
    }

    /// Where its send requests complete.
    pub fn send_queue(&self) -> &Arc<CompletionQueue> {
        &self.attributes.send_queue
    }

    /// Where its receive requests complete.
    pub fn receive_queue(&self) -> &Arc<CompletionQueue> {
        &self.attributes.receive_queue
    }

    /// Posts a send request.
    ///
    /// # Errors
    /// The errno: ENOMEM when the send queue is full, others when the queue pair has failed.
    #[inline(always)]
    pub fn post_send(&self, request: &mut SendRequest) -> Result<(), i32> {
        debug_assert!(Arc::ptr_eq(request.source().domain(), &self.domain));
        let mut bad = MaybeUninit::uninit();
        // SAFETY: the queue pair exists and copies the request; address handle and regions are held by the request, and
        // the end of a region's registration ends the HCA's access to it.
        match unsafe { sys::ibv_post_send(self.raw.as_ptr(), request.as_ptr(), bad.as_mut_ptr()) } {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// Posts all requests of a list by one call, and empties it. Returns how many were posted, and the errno
    /// of the first that was not: ENOMEM when the send queue is full, others when the queue pair has failed.
    #[inline(always)]
    pub fn post_list(&self, list: &mut SendList) -> (usize, Option<i32>) {
        debug_assert!(Arc::ptr_eq(list.source().domain(), &self.domain));
        let count = list.length();
        if count == 0 {
            return (0, None);
        }
        let mut bad = null_mut();
        // SAFETY: the queue pair exists and copies the requests; address handle and region are held by the
        // list, and the end of a region's registration ends the HCA's access to it.
        let code = unsafe { sys::ibv_post_send(self.raw.as_ptr(), list.linked(), &mut bad) };
        let posted = match code {
            0 => count,
            _ => list.place_of(bad),
        };
        list.clear();
        (posted, (code != 0).then_some(code))
    }

    /// The device it belongs to.
    pub fn device_name(&self) -> &str {
        self.domain.context().device_name()
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        match &self.destroy {
            Some(destroy) => destroy(),
            // SAFETY: created here, and nothing else destroys it.
            None => drop(unsafe { loaded::ibv_destroy_qp(self.raw.as_ptr()) }),
        }
    }
}

impl std::fmt::Debug for QueuePair {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (number, device) = (self.number(), self.device_name());
        write!(formatter, "QueuePair({number:#x} on {device})")
    }
}
