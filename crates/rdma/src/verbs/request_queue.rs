//! Where receive requests are posted: to the queue of a queue pair, or to one that several share.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::Arc;

use rdma_sys as sys;

use super::{MemoryRegion, QueuePair, SharedReceiveQueue, VerbsError};

/// A provider's function that posts receive requests. For both kinds of queues it has a pointer to the queue before the
/// same arguments, and pointers to sized types are passed alike.
type Post<Q> =
    unsafe extern "C" fn(*mut Q, *mut sys::ibv_recv_wr, *mut *mut sys::ibv_recv_wr) -> c_int;

/// Where receive requests are posted. Which of the two kinds it is was settled when it was made, so that posting takes
/// no branch.
#[derive(Debug, Clone)]
pub struct RequestQueue {
    raw: *mut c_void,
    post: Post<c_void>,
    owner: Owner,
}

/// What keeps the queue, for its lifetime and for errors.
#[derive(Debug, Clone)]
enum Owner {
    QueuePair(Arc<QueuePair>),
    Shared(Arc<SharedReceiveQueue>),
}

// SAFETY: the owner keeps the queue. Verbs may be called from any thread, several at a time; for a queue of a thread
// domain the caller of `ProtectionDomain::of_thread` has promised that a single thread at a time uses it.
unsafe impl Send for RequestQueue {}
// SAFETY: as above.
unsafe impl Sync for RequestQueue {}

impl RequestQueue {
    /// That from which a queue pair takes its receive requests.
    ///
    /// # Panics
    /// When its provider has no function for it, which none lacks.
    pub fn of(queue_pair: &Arc<QueuePair>) -> Self {
        type Verb<Q> = Option<Post<Q>>;
        // SAFETY: both queues exist and point to their open context; `Post` has why the types are compatible.
        let (raw, post, owner) = unsafe {
            match queue_pair.shared_requests() {
                None => {
                    let queue = queue_pair.as_ptr();
                    let post = (*(*queue).context).ops.post_recv;
                    let owner = Owner::QueuePair(Arc::clone(queue_pair));
                    let post = transmute::<Verb<sys::ibv_qp>, Verb<c_void>>(post);
                    (queue.cast(), post, owner)
                }
                Some(shared) => {
                    let queue = shared.as_ptr();
                    let post = (*(*queue).context).ops.post_srq_recv;
                    let owner = Owner::Shared(Arc::clone(shared));
                    let post = transmute::<Verb<sys::ibv_srq>, Verb<c_void>>(post);
                    (queue.cast(), post, owner)
                }
            }
        };
        RequestQueue {
            raw,
            post: post.expect("a provider that creates a queue posts to it"),
            owner,
        }
    }

    /// Posts a receive request of this number for `length` bytes at `address` in a region.
    ///
    /// # Errors
    /// When the queue is full or the queue pair has failed.
    #[inline]
    pub fn post(
        &self,
        region: &MemoryRegion,
        number: u64,
        address: u64,
        length: u32,
    ) -> Result<(), VerbsError> {
        let mut element = sys::ibv_sge {
            addr: address,
            length,
            lkey: region.local_key(),
        };
        let mut request = sys::ibv_recv_wr {
            wr_id: number,
            next: null_mut(),
            sg_list: &raw mut element,
            num_sge: 1,
        };
        let mut bad = null_mut();
        // SAFETY: the owner keeps the queue, which copies the request. By the key the HCA writes inside of the region
        // only, whose deregistration ends its access, whatever is still posted.
        match unsafe { (self.post)(self.raw, &mut request, &mut bad) } {
            0 => Ok(()),
            code => Err(self.refused(number, code)),
        }
    }

    #[cold]
    fn refused(&self, number: u64, code: c_int) -> VerbsError {
        let (verb, device, most) = match &self.owner {
            Owner::QueuePair(one) => {
                let most = one.granted().receive_requests;
                ("ibv_post_recv", one.device_name(), most)
            }
            Owner::Shared(queue) => ("ibv_post_srq_recv", queue.device_name(), queue.granted()),
        };
        VerbsError::code(verb, format!("{device} (request {number} of {most})"), code)
    }
}
