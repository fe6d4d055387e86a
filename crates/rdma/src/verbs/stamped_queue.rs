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
        | of::IBV_WC_EX_WITH_QP_NUM
        | of::IBV_WC_EX_WITH_SRC_QP
        | of::IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    u64::from(all.0)
}

/// A completion queue whose completions the adapter stamps by its clock.
#[derive(Debug, Clone)]
pub struct StampedQueue {
    queue: Arc<CompletionQueue>,
    functions: Functions,
}

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
            let create = || unsafe { create(context.as_ptr(), &mut attributes) };
            // infiniband/verbs.h, ibv_cq_ex_to_cq: the extended structure begins as the other.
            VerbsError::created(create, CREATE, object).map(NonNull::cast)
        })?;
        // SAFETY: the queue exists, was created as an extended one, and no other thread has it yet: polling writes to it.
        let functions = Functions::of(unsafe { &*queue.as_ptr().cast() });
        let functions = functions.ok_or_else(missing)?;
        Ok(StampedQueue { queue, functions })
    }

    fn as_ptr(&self) -> *mut sys::ibv_cq_ex {
        self.queue.as_ptr().cast()
    }

    /// The same queue, for queue pairs and events.
    pub fn queue(&self) -> &Arc<CompletionQueue> {
        &self.queue
    }

    /// A poller of this queue. Each thread that polls has its own.
    pub fn poller(&self) -> StampedPoller {
        StampedPoller {
            queue: self.clone(),
            stamp: 0,
        }
    }
}

type OfQueue<T> = unsafe extern "C" fn(*mut sys::ibv_cq_ex) -> T;

/// The functions of a queue by which completions are read.
#[derive(Debug, Clone, Copy)]
struct Functions {
    start: unsafe extern "C" fn(*mut sys::ibv_cq_ex, *mut sys::ibv_poll_cq_attr) -> i32,
    end: OfQueue<()>,
    vendor_error: OfQueue<u32>,
    byte_count: OfQueue<u32>,
    immediate_data: OfQueue<u32>,
    source_queue_pair: OfQueue<u32>,
    stamp: OfQueue<u64>,
}

impl Functions {
    /// `None` where the driver left out any.
    fn of(queue: &sys::ibv_cq_ex) -> Option<Self> {
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

    /// Takes one completion if there is one, and its stamp.
    ///
    /// # Safety
    /// They must be those of `queue`, which exists. Where the provider takes no lock (`MLX5_SINGLE_THREADED` and the
    /// like), no other thread may poll it at the same time.
    #[inline(always)]
    unsafe fn poll(&self, queue: *mut sys::ibv_cq_ex, stamp: &mut u64) -> PollResult {
        let mut attributes = sys::ibv_poll_cq_attr { comp_mask: 0 };
        // SAFETY: the caller vouches for the queue.
        match unsafe { (self.start)(queue, &mut attributes) } {
            0 => {}
            // Nothing was begun that has to be ended (ibv_create_cq_ex(3)).
            libc::ENOENT => return PollResult::Empty,
            code => return PollResult::Broken(code),
        }
        // SAFETY: as above; the current completion is there until the end, and of no other thread, as the provider holds the
        // queue's lock from a start that succeeds to the end (rdma-core, providers/mlx5/cq.c, mlx5_start_poll). The
        // queue was created for these fields, and of a completion that failed only number, status and vendor's code are
        // valid.
        unsafe {
            let work_request_id = (*queue).wr_id;
            let result = match (*queue).status {
                sys::ibv_wc_status::IBV_WC_SUCCESS => {
                    *stamp = (self.stamp)(queue);
                    PollResult::Done(WorkCompletion {
                        work_request_id,
                        immediate_data: u32::from_be((self.immediate_data)(queue)),
                        byte_count: (self.byte_count)(queue),
                        source_queue_pair: (self.source_queue_pair)(queue),
                    })
                }
                status => PollResult::Failed(FailedCompletion {
                    work_request_id,
                    status,
                    vendor_error: (self.vendor_error)(queue),
                }),
            };
            (self.end)(queue);
            result
        }
    }
}

/// Takes completions with their stamps out of a queue, one at a time.
pub struct StampedPoller {
    queue: StampedQueue,
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
        // SAFETY: the functions were read from this queue, which exists. A burst has one thread that polls a queue.
        unsafe { (self.queue.functions).poll(self.queue.as_ptr(), &mut self.stamp) }
    }

    /// The queue.
    pub fn queue(&self) -> &CompletionQueue {
        &self.queue.queue
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// What a look finds: a code, or a completion of a number and a status.
    #[derive(Clone, Copy)]
    enum Look {
        Code(i32),
        Completion(u64, sys::ibv_wc_status::Type),
    }

    /// A queue that plays a script; the fields of a completion follow from its number.
    #[repr(C)]
    struct Scripted {
        queue: sys::ibv_cq_ex,
        looks: VecDeque<Look>,
        begun: u32,
        ended: u32,
        /// The fields that were read.
        read: Vec<&'static str>,
    }

    unsafe fn of<'a>(queue: *mut sys::ibv_cq_ex) -> &'a mut Scripted {
        // SAFETY: it is the first member of one that the test owns.
        unsafe { &mut *queue.cast() }
    }

    unsafe extern "C" fn start(queue: *mut sys::ibv_cq_ex, _: *mut sys::ibv_poll_cq_attr) -> i32 {
        // SAFETY: as in `of`.
        let scripted = unsafe { of(queue) };
        assert_eq!(
            scripted.begun, scripted.ended,
            "begun before the last was ended"
        );
        match scripted
            .looks
            .pop_front()
            .unwrap_or(Look::Code(libc::ENOENT))
        {
            Look::Code(code) => code,
            Look::Completion(number, status) => {
                scripted.begun += 1;
                (scripted.queue.wr_id, scripted.queue.status) = (number, status);
                0
            }
        }
    }

    unsafe extern "C" fn end(queue: *mut sys::ibv_cq_ex) {
        // SAFETY: as in `of`.
        let scripted = unsafe { of(queue) };
        scripted.ended += 1;
        // What is read behind the end belongs to no completion.
        scripted.queue.wr_id = u64::MAX;
    }

    macro_rules! fields {
        ($($name:ident: $value:ty = $field:expr;)+) => {$(
            unsafe extern "C" fn $name(queue: *mut sys::ibv_cq_ex) -> $value {
                // SAFETY: as in `of`.
                let scripted = unsafe { of(queue) };
                assert!(scripted.begun > scripted.ended, "there is no completion");
                scripted.read.push(stringify!($name));
                let field: fn(u64) -> $value = $field;
                field(scripted.queue.wr_id)
            }
        )+};
    }

    fields! {
        vendor_error: u32 = |number| number as u32 + 1;
        byte_count: u32 = |number| number as u32 + 2;
        immediate_data: u32 = |number| (number as u32 + 3).to_be();
        source_queue_pair: u32 = |number| number as u32 + 4;
        stamp: u64 = |number| number + (1 << 40);
    }

    fn scripted(looks: &[Look]) -> Scripted {
        // SAFETY: it is numbers, pointers and functions that may be missing; zero is a value of all of them.
        let mut queue: sys::ibv_cq_ex = unsafe { std::mem::zeroed() };
        queue.start_poll = Some(start);
        queue.end_poll = Some(end);
        queue.read_vendor_err = Some(vendor_error);
        queue.read_byte_len = Some(byte_count);
        queue.read_imm_data = Some(immediate_data);
        queue.read_src_qp = Some(source_queue_pair);
        queue.read_completion_ts = Some(stamp);
        Scripted {
            queue,
            looks: looks.iter().copied().collect(),
            begun: 0,
            ended: 0,
            read: Vec::new(),
        }
    }

    #[test]
    fn completions_come_one_at_a_time_each_with_its_own_stamp() {
        use sys::ibv_wc_status::{IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR};
        let mut queue = scripted(&[
            Look::Code(libc::ENOENT),
            Look::Completion(10, IBV_WC_SUCCESS),
            Look::Completion(20, IBV_WC_WR_FLUSH_ERR),
            Look::Completion(30, IBV_WC_SUCCESS),
            Look::Code(libc::EIO),
        ]);
        let functions = Functions::of(&queue.queue).unwrap();
        let mut last = 0;
        let mut poll = |queue: &mut Scripted| {
            let pointer = std::ptr::from_mut(queue).cast();
            // SAFETY: the functions are those of this queue.
            let found = unsafe { functions.poll(pointer, &mut last) };
            (found, last)
        };
        assert!(matches!(poll(&mut queue), (PollResult::Empty, 0)));
        let (PollResult::Done(done), 0x100_0000_000A) = poll(&mut queue) else {
            panic!("the first completion, with its stamp");
        };
        let WorkCompletion {
            work_request_id,
            immediate_data,
            byte_count,
            source_queue_pair,
        } = done;
        let fields = [immediate_data, byte_count, source_queue_pair];
        assert_eq!((work_request_id, fields), (10, [13, 12, 14]));
        queue.read.clear();
        let (PollResult::Failed(failed), _) = poll(&mut queue) else {
            panic!("one that failed");
        };
        assert!(failed.is_flush() && failed.work_request_id == 20);
        assert_eq!(failed.vendor_error, 21);
        // No other field of it is valid.
        assert_eq!(queue.read, ["vendor_error"]);
        let (PollResult::Done(done), 0x100_0000_001E) = poll(&mut queue) else {
            panic!("the last completion, with its stamp");
        };
        assert_eq!(done.work_request_id, 30);
        assert!(matches!(
            poll(&mut queue),
            (PollResult::Broken(libc::EIO), _)
        ));
        assert!(matches!(poll(&mut queue), (PollResult::Empty, _)));
        assert_eq!((queue.begun, queue.ended), (3, 3));
    }

    #[test]
    fn a_queue_without_stamps_is_none_of_these() {
        let mut queue = scripted(&[]);
        assert!(Functions::of(&queue.queue).is_some());
        queue.queue.read_completion_ts = None;
        assert!(Functions::of(&queue.queue).is_none());
    }
}
