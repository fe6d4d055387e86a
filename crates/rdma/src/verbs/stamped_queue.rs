//! Completion queues whose completions have a stamp of the adapter: extended ones, polled by other functions.

use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rdma_sys as sys;

use super::completion_queue::{CompletionQueue, FailedCompletion, PollResult, WorkCompletion};
use super::{Context, VerbsError};

const CREATE: &str = "ibv_create_cq_ex";

/// What is read of a completion.
fn fields() -> u64 {
    use sys::ibv_create_cq_wc_flags as of;
    let all = of::IBV_WC_EX_WITH_BYTE_LEN
        | of::IBV_WC_EX_WITH_IMM
        | of::IBV_WC_EX_WITH_SRC_QP
        | of::IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    u64::from(all.0)
}

/// A completion queue whose completions the adapter stamps by its clock.
#[derive(Debug, Clone)]
pub struct StampedQueue(Arc<CompletionQueue>);

impl StampedQueue {
    /// As [`CompletionQueue::create`].
    ///
    /// # Errors
    /// When the device refuses.
    pub fn create(
        context: &Arc<Context>,
        entries: u32,
        with_channel: bool,
        vector: u32,
    ) -> Result<Self, VerbsError> {
        let object = || {
            let device = context.device_name();
            format!("{device} ({entries} entries with time stamps, vector {vector})")
        };
        let missing = || VerbsError::code(CREATE, object(), libc::EOPNOTSUPP);
        let offset = std::mem::offset_of!(sys::verbs_context, create_cq_ex);
        let extended = context.extended(offset).ok_or_else(missing)?;
        // SAFETY: the provider has this member.
        let create = unsafe { (*extended).create_cq_ex }.ok_or_else(missing)?;
        let queue = CompletionQueue::create_by(context, with_channel, |channel| {
            let mut attributes = sys::ibv_cq_init_attr_ex {
                cqe: entries,
                cq_context: null_mut(),
                channel,
                comp_vector: vector,
                wc_flags: fields(),
                comp_mask: 0,
                flags: 0,
                parent_domain: null_mut(),
            };
            // SAFETY: context and channel are valid and held by the queue.
            let raw = unsafe { create(context.as_ptr(), &mut attributes) };
            // infiniband/verbs.h, ibv_cq_ex_to_cq: the extended structure begins as the other.
            VerbsError::created(raw, CREATE, object).map(NonNull::cast)
        })?;
        let queue = StampedQueue(queue);
        queue.functions().map(|_| queue).ok_or_else(missing)
    }

    fn as_ptr(&self) -> *mut sys::ibv_cq_ex {
        self.0.as_ptr().cast()
    }

    /// `None` where the driver left out any.
    fn functions(&self) -> Option<Functions> {
        // SAFETY: the queue exists, and was created as an extended one.
        let queue = unsafe { &*self.as_ptr() };
        Some(Functions {
            start: queue.start_poll?,
            end: queue.end_poll?,
            vendor_error: queue.read_vendor_err?,
            byte_count: queue.read_byte_len?,
            immediate_data: queue.read_imm_data?,
            source_queue_pair: queue.read_src_qp?,
            stamp: queue.read_completion_ts?,
        })
    }

    /// The same queue, for queue pairs and events.
    pub fn queue(&self) -> &Arc<CompletionQueue> {
        &self.0
    }

    /// A poller of this queue. Each thread that polls has its own.
    pub fn poller(&self) -> StampedPoller {
        StampedPoller {
            functions: self.functions().expect("looked at when it was created"),
            queue: self.clone(),
            stamp: 0,
        }
    }
}

type OfQueue<T> = unsafe extern "C" fn(*mut sys::ibv_cq_ex) -> T;

/// The functions of a queue by which completions are read.
#[derive(Clone, Copy)]
struct Functions {
    start: unsafe extern "C" fn(*mut sys::ibv_cq_ex, *mut sys::ibv_poll_cq_attr) -> i32,
    end: OfQueue<()>,
    vendor_error: OfQueue<u32>,
    byte_count: OfQueue<u32>,
    immediate_data: OfQueue<u32>,
    source_queue_pair: OfQueue<u32>,
    stamp: OfQueue<u64>,
}

/// Takes completions with their stamps out of a queue, one at a time.
pub struct StampedPoller {
    queue: StampedQueue,
    functions: Functions,
    stamp: u64,
}

impl StampedPoller {
    /// The adapter's stamp of the completion that was taken last.
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Takes one completion if there is one. Never blocks.
    #[inline(always)]
    pub fn poll(&mut self) -> PollResult {
        let Functions {
            start,
            end,
            vendor_error,
            byte_count,
            immediate_data,
            source_queue_pair,
            stamp,
        } = self.functions;
        let queue = self.queue.as_ptr();
        let mut attributes = sys::ibv_poll_cq_attr { comp_mask: 0 };
        // SAFETY: the queue exists.
        match unsafe { start(queue, &mut attributes) } {
            0 => {}
            libc::ENOENT => return PollResult::Empty,
            code => return PollResult::Broken(code),
        }
        // SAFETY: the queue exists, its current completion is there until the end, and has what the queue was created
        // for. Of one that failed no more than these three fields is valid.
        unsafe {
            let work_request_id = (*queue).wr_id;
            let result = match (*queue).status {
                sys::ibv_wc_status::IBV_WC_SUCCESS => {
                    self.stamp = stamp(queue);
                    PollResult::Done(WorkCompletion {
                        work_request_id,
                        immediate_data: u32::from_be(immediate_data(queue)),
                        byte_count: byte_count(queue),
                        source_queue_pair: source_queue_pair(queue),
                    })
                }
                status => PollResult::Failed(FailedCompletion {
                    work_request_id,
                    status,
                    vendor_error: vendor_error(queue),
                }),
            };
            end(queue);
            result
        }
    }

    /// The queue.
    pub fn queue(&self) -> &CompletionQueue {
        &self.queue.0
    }
}
