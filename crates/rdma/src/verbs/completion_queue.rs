//! Completion queues: by which the HCA reports that a work request is done.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdma_sys as sys;

use super::{Context, VerbsError};
use crate::loaded;

/// A completion queue, with a separate channel if it is to be waited for.
#[derive(Debug)]
pub struct CompletionQueue {
    raw: NonNull<sys::ibv_cq>,
    unacknowledged: AtomicU32,
    channel: Option<Channel>,
    context: Arc<Context>,
}

/// A completion channel: where a thread sleeps until its queue has something.
#[derive(Debug)]
struct Channel(NonNull<sys::ibv_comp_channel>);

impl Channel {
    fn create(context: &Context) -> Result<Self, VerbsError> {
        // SAFETY: the context is open, and held by the queue that the channel is for.
        let create = || unsafe { loaded::ibv_create_comp_channel(context.as_ptr()) };
        let device = || context.device_name();
        VerbsError::created(create, "ibv_create_comp_channel", device).map(Channel)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: created here; the queue that uses it owns it and is destroyed first.
        unsafe { loaded::ibv_destroy_comp_channel(self.0.as_ptr()) };
    }
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}

/// What a look into a completion queue brought.
#[derive(Debug, Clone, Copy)]
pub enum PollResult {
    /// Nothing was there.
    Empty,
    /// A work request ended well.
    Done(WorkCompletion),
    /// A work request failed.
    Failed(FailedCompletion),
    /// The queue itself is broken; a negative return value of the verb.
    Broken(i32),
}

/// A completion.
#[derive(Debug, Clone, Copy)]
pub struct WorkCompletion {
    /// The number that the work request was given.
    pub work_request_id: u64,
    /// Immediate data, in this host's byte order; meaningless for a send request's completion.
    pub immediate_data: u32,
    /// Bytes received, for UD with the global route header; meaningless for a send request's completion.
    pub byte_count: u32,
    /// The queue pair that sent the message; set on UD only, and meaningless for a send request's completion.
    pub source_queue_pair: u32,
}

/// A completion with an error.
#[derive(Debug, Clone, Copy)]
pub struct FailedCompletion {
    /// The number that the work request was given.
    pub work_request_id: u64,
    /// `ibv_wc_status`.
    pub status: u32,
    /// The vendor's own code.
    pub vendor_error: u32,
}

impl FailedCompletion {
    /// Whether the request was only flushed because the queue pair had failed before.
    pub fn is_flush(&self) -> bool {
        self.status == sys::ibv_wc_status::IBV_WC_WR_FLUSH_ERR
    }

    /// Whether a message did not fit into the receive request, or was not one that this queue pair takes.
    pub fn is_misfit(&self) -> bool {
        use sys::ibv_wc_status as of;
        [of::IBV_WC_LOC_LEN_ERR, of::IBV_WC_REM_INV_REQ_ERR].contains(&self.status)
    }
}

/// The status of a failed completion in words.
pub fn describe_status(status: u32, vendor_error: u32) -> String {
    // SAFETY: the function returns a static text for every number.
    let text = unsafe { CStr::from_ptr(loaded::ibv_wc_status_str(status)) };
    let text = text.to_string_lossy();
    format!("{text} (status {status}, vendor error {vendor_error:#x})")
}

impl CompletionQueue {
    /// Creates a queue of at least `entries`, with a channel if `with_channel`, whose events come by the interrupt
    /// `vector` of the device, numbered from 0.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn create(
        context: &Arc<Context>,
        entries: u32,
        with_channel: bool,
        vector: u32,
    ) -> Result<Arc<Self>, VerbsError> {
        Self::create_by(context, with_channel, |events| {
            // SAFETY: context and channel are valid and held by the queue.
            let create = || unsafe {
                let (entries, vector) = (entries as i32, vector as i32);
                loaded::ibv_create_cq(context.as_ptr(), entries, null_mut(), events, vector)
            };
            let device = || context.device_name();
            let object = || format!("{} ({entries} entries, vector {vector})", device());
            VerbsError::created(create, "ibv_create_cq", object)
        })
    }

    /// Creates a queue by a function that gets the channel, or null.
    pub(super) fn create_by(
        context: &Arc<Context>,
        with_channel: bool,
        create: impl FnOnce(*mut sys::ibv_comp_channel) -> Result<NonNull<sys::ibv_cq>, VerbsError>,
    ) -> Result<Arc<Self>, VerbsError> {
        let channel = with_channel.then(|| Channel::create(context)).transpose()?;
        let events = channel.as_ref().map_or(null_mut(), |one| one.0.as_ptr());
        Ok(Arc::new(CompletionQueue {
            raw: create(events)?,
            unacknowledged: AtomicU32::new(0),
            channel,
            context: Arc::clone(context),
        }))
    }

    pub(super) fn as_ptr(&self) -> *mut sys::ibv_cq {
        self.raw.as_ptr()
    }

    /// A poller of this queue. Each thread that polls has its own.
    pub fn poller(self: &Arc<Self>) -> Poller {
        Poller {
            queue: Arc::clone(self),
            // SAFETY: the structure is integers and a union of integers; zero is a value of it.
            completion: unsafe { std::mem::zeroed() },
        }
    }

    /// Asks for an event at the next completion.
    ///
    /// # Errors
    /// When the device refuses.
    #[inline]
    pub fn request_notification(&self) -> Result<(), VerbsError> {
        // SAFETY: the queue exists.
        let code = unsafe { sys::ibv_req_notify_cq(self.raw.as_ptr(), 0) };
        VerbsError::check(code, "ibv_req_notify_cq", || self.context.device_name())
    }

    /// Sleeps until the event asked for. Returns false when a signal came instead ([`crate::host`] has the means to
    /// send one), so that the caller can see whether it is to stop.
    ///
    /// # Errors
    /// When the event cannot be read.
    ///
    /// # Panics
    /// When the queue was created without a channel.
    #[inline]
    pub fn wait_for_event(&self) -> Result<bool, VerbsError> {
        let channel = self
            .channel
            .as_ref()
            .expect("a queue that is waited for has a channel");
        let (mut queue, mut user) = (null_mut(), null_mut());
        // SAFETY: the channel exists and both results are writable.
        if unsafe { loaded::ibv_get_cq_event(channel.0.as_ptr(), &mut queue, &mut user) } == 0 {
            self.unacknowledged.fetch_add(1, Ordering::Relaxed);
            return Ok(true);
        }
        if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
            Ok(false)
        } else {
            Err(VerbsError::last(
                "ibv_get_cq_event",
                self.context.device_name(),
            ))
        }
    }

    /// The same for at most `limit`; false as well if no event came in it.
    ///
    /// # Errors
    /// When the event cannot be read.
    ///
    /// # Panics
    /// When the queue was created without a channel.
    #[inline]
    pub fn wait_for_event_within(&self, limit: PollTimeout) -> Result<bool, VerbsError> {
        let channel = self.channel.as_ref();
        let channel = channel.expect("a queue that is waited for has a channel");
        // SAFETY: the channel exists, and its descriptor is open as long as it does.
        let descriptor = unsafe { BorrowedFd::borrow_raw(channel.0.as_ref().fd) };
        let mut descriptors = [PollFd::new(descriptor, PollFlags::POLLIN)];
        match poll(&mut descriptors, limit) {
            Ok(1..) => self.wait_for_event(),
            // Nothing in time, or a signal: a waiting thread looks whether it is to stop.
            Ok(_) | Err(_) => Ok(false),
        }
    }
}

/// Takes completions out of a queue, one at a time, so that no completion's time stamp waits for another.
pub struct Poller {
    queue: Arc<CompletionQueue>,
    completion: sys::ibv_wc,
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Poller({:?})", self.queue)
    }
}

impl Poller {
    /// Takes one completion if there is one. Never blocks.
    #[inline(always)]
    pub fn poll(&mut self) -> PollResult {
        let completion = &mut self.completion;
        // SAFETY: the queue exists and there is room for one completion.
        match unsafe { sys::ibv_poll_cq(self.queue.raw.as_ptr(), 1, completion) } {
            0 => PollResult::Empty,
            count if count < 0 => PollResult::Broken(count),
            _ if completion.status != sys::ibv_wc_status::IBV_WC_SUCCESS => {
                PollResult::Failed(FailedCompletion {
                    work_request_id: completion.wr_id,
                    status: completion.status,
                    vendor_error: completion.vendor_err,
                })
            }
            _ => PollResult::Done(WorkCompletion {
                work_request_id: completion.wr_id,
                // SAFETY: both members of the union are 32 bits of integer, zero before the first completion.
                immediate_data: u32::from_be(unsafe {
                    completion.imm_data_invalidated_rkey_union.imm_data
                }),
                byte_count: completion.byte_len,
                source_queue_pair: completion.src_qp,
            }),
        }
    }

    /// The queue pair of the completion that was taken last: that of the request, or that which took it from a shared
    /// receive queue.
    #[inline(always)]
    pub fn queue_pair(&self) -> u32 {
        self.completion.qp_num
    }

    /// The queue.
    pub fn queue(&self) -> &CompletionQueue {
        &self.queue
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: created here; queue pairs hold it by Arc. Destroying waits for events that were read and not
        // acknowledged, so they are first.
        unsafe {
            loaded::ibv_ack_cq_events(self.as_ptr(), *self.unacknowledged.get_mut());
            loaded::ibv_destroy_cq(self.as_ptr());
        }
    }
}
