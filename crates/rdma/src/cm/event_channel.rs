//! The event channel, and the events that came over it.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdma_sys as sys;

use super::{CmError, EventKind};
use crate::loaded;
use crate::verbs::AddressVector;

/// An event, copied and acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// An errno or a reason, depending on the kind.
    pub status: i32,
    /// Where the peer is, for an established UD pair.
    pub address: Option<AddressVector>,
    /// The id that the event belongs to (for a request: the listening one).
    owner: usize,
    /// The id that a request brings with it.
    pub(super) request: Option<usize>,
}

/// How often who waits looks whether it is to stop, and whether another thread has read its event.
const LOOK: Duration = Duration::from_millis(100);

/// Where connection manager ids report.
#[derive(Debug)]
pub struct EventChannel {
    /// Those that were read, and not yet taken.
    kept: Mutex<VecDeque<Event>>,
    raw: NonNull<sys::rdma_event_channel>,
    given_up: AtomicBool,
}

// SAFETY: librdmacm may be called from any thread.
unsafe impl Send for EventChannel {}
// SAFETY: as above.
unsafe impl Sync for EventChannel {}

impl EventChannel {
    /// Creates a channel.
    ///
    /// # Errors
    /// When the kernel's connection manager cannot be reached.
    pub fn create() -> Result<Arc<Self>, CmError> {
        loaded::load()?;
        // SAFETY: no preconditions.
        let raw = NonNull::new(unsafe { loaded::rdma_create_event_channel() })
            .ok_or_else(|| CmError::last("rdma_create_event_channel", "/dev/infiniband/rdma_cm"))?;
        let channel = EventChannel {
            kept: Mutex::default(),
            raw,
            given_up: AtomicBool::new(false),
        };
        let flags = FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK);
        fcntl(channel.descriptor(), flags)
            .map_err(|_| CmError::last("fcntl(O_NONBLOCK)", "event channel"))?;
        Ok(Arc::new(channel))
    }

    pub(super) fn as_ptr(&self) -> *mut sys::rdma_event_channel {
        self.raw.as_ptr()
    }

    /// A thread that waits here gives up soon, and one that is to wait at once.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Waits until there may be an event, for some 100 ms at most. Returns false if the waiting thread is to give up.
    pub fn wait(&self) -> bool {
        let goes_on = !self.is_given_up();
        if goes_on {
            self.wait_within(LOOK);
        }
        goes_on
    }

    /// Waits until there may be an event, within the limit and for some 100 ms at most.
    pub(super) fn wait_within(&self, limit: Duration) {
        let limit = PollTimeout::try_from(limit.min(LOOK)).unwrap_or(PollTimeout::ZERO);
        // Whatever ends it, the next look shows what there is.
        let _ = poll(
            &mut [PollFd::new(self.descriptor(), PollFlags::POLLIN)],
            limit,
        );
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel exists, and its descriptor is open as long as it does.
        unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().fd) }
    }

    /// Reads the events that have come, and returns all that were not yet taken. Never blocks.
    fn events(&self) -> MutexGuard<'_, VecDeque<Event>> {
        // The queue is consistent after every statement, so a panic elsewhere does not spoil it.
        let kept = self.kept.lock();
        let mut events = kept.unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut raw = std::ptr::null_mut();
            // SAFETY: the channel exists and `raw` is writable; the descriptor does not block.
            if unsafe { loaded::rdma_get_cm_event(self.as_ptr(), &mut raw) } != 0 {
                return events;
            }
            // Kept before it is acknowledged: destroying an id waits for the acknowledgements, and then forgets its
            // events.
            // SAFETY: the event is valid until it is acknowledged, which happens once, after copying.
            unsafe {
                events.push_back(copy(&*raw));
                loaded::rdma_ack_cm_event(raw);
            }
        }
    }

    /// Takes the oldest event of the id of this key. Never blocks.
    pub(super) fn take(&self, key: usize) -> Option<Event> {
        let mut events = self.events();
        let place = events.iter().position(|event| event.owner == key);
        place.and_then(|place| events.remove(place))
    }

    /// The first unexpected event of a kind that came for the id of this key. Never blocks.
    pub(super) fn find(&self, key: usize, is_wanted: impl Fn(EventKind) -> bool) -> Option<Event> {
        self.events()
            .iter()
            .find(|event| event.owner == key && is_wanted(event.kind))
            .copied()
    }

    /// Drops what is left of `id`'s events, so that a later id at the same place in memory does not get them.
    pub(super) fn forget(&self, key: usize) {
        let mut events = self.events();
        let (of_id, rest): (VecDeque<_>, VecDeque<_>) =
            events.drain(..).partition(|event| event.owner == key);
        *events = rest;
        drop(events);
        destroy_requests(of_id);
    }
}

fn destroy_requests(events: impl IntoIterator<Item = Event>) {
    for request in events.into_iter().filter_map(|event| event.request) {
        // SAFETY: the id came with a request that was not taken, and the event was acknowledged.
        unsafe { loaded::rdma_destroy_id(request as *mut sys::rdma_cm_id) };
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        let kept = self.kept.get_mut();
        destroy_requests(std::mem::take(kept.unwrap_or_else(PoisonError::into_inner)));
        // SAFETY: created here; all ids hold the channel by Arc, so none is left.
        unsafe { loaded::rdma_destroy_event_channel(self.as_ptr()) };
    }
}

fn copy(raw: &sys::rdma_cm_event) -> Event {
    let kind = EventKind::from_raw(raw.event);
    let is_request = kind == EventKind::ConnectRequest;
    // SAFETY: an event has a valid id, and the id knows its port space.
    let is_datagram = unsafe { (*raw.id).ps } == sys::rdma_port_space::RDMA_PS_UDP;
    let address = (kind == EventKind::Established && is_datagram).then(|| {
        // SAFETY: for the UDP port space `ud` is the member of the union that is set.
        let parameters = unsafe { raw.param.ud };
        AddressVector {
            attributes: parameters.ah_attr,
            queue_pair_number: parameters.qp_num,
            queue_key: parameters.qkey,
        }
    });
    Event {
        kind,
        status: raw.status,
        address,
        owner: if is_request { raw.listen_id } else { raw.id } as usize,
        request: is_request.then_some(raw.id as usize),
    }
}
