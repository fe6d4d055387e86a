//! An opened device.

use std::any::Any;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdma_sys as sys;

use super::VerbsError;
use super::async_event::{AsyncEvent, EventLog};
use crate::loaded;

/// Looks at the list of devices.
pub(super) fn with_list<T>(
    look: impl FnOnce(&[*mut sys::ibv_device]) -> T,
) -> Result<T, VerbsError> {
    loaded::load()?;
    let mut count = 0;
    // SAFETY: `count` is valid for writing; the list is freed below.
    let list = unsafe { loaded::ibv_get_device_list(&mut count) };
    if list.is_null() {
        return Err(VerbsError::last("ibv_get_device_list", "this host"));
    }
    // SAFETY: the list holds `count` valid device pointers until it is freed.
    let result = look(unsafe { std::slice::from_raw_parts(list, count as usize) });
    // SAFETY: the list came from ibv_get_device_list; the contexts opened from it do not need it.
    unsafe { loaded::ibv_free_device_list(list) };
    Ok(result)
}

/// The kernel's name of a device.
///
/// # Safety
/// `device` must be in a device list that has not been freed, or belong to an open context.
pub(super) unsafe fn name_of(device: *mut sys::ibv_device) -> String {
    // SAFETY: the caller vouches for the device, which has a zero-terminated name.
    let name = unsafe { CStr::from_ptr(loaded::ibv_get_device_name(device)) };
    name.to_string_lossy().into_owned()
}

/// An opened device.
#[derive(Debug)]
pub struct Context {
    raw: NonNull<sys::ibv_context>,
    name: String,
    /// What it belongs to (a connection manager id), kept alive; one that was opened here is closed on drop.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
    /// Its asynchronous events, and how many of them came before this handle was made.
    events: Arc<EventLog>,
    events_before: usize,
}

// SAFETY: verbs may be called from any thread, several at a time (ibv_open_device(3) and its companions).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens a device.
    ///
    /// # Safety
    /// `device` must be in a device list that has not been freed.
    pub(super) unsafe fn open(device: *mut sys::ibv_device) -> Result<Self, VerbsError> {
        // SAFETY: the caller vouches for the device.
        let name = unsafe { name_of(device) };
        // SAFETY: as above.
        let open = || unsafe { loaded::ibv_open_device(device) };
        let raw = VerbsError::created(open, "ibv_open_device", || &name)?;
        Ok(Context::of(raw, name, None))
    }

    /// Opens a device by name.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be opened.
    pub fn open_by_name(name: &str) -> Result<Self, VerbsError> {
        with_list(|list| {
            // SAFETY: the device is in the list.
            let is_named = |device: &&*mut sys::ibv_device| unsafe { name_of(**device) } == name;
            match list.iter().find(is_named) {
                // SAFETY: as above.
                Some(&device) => unsafe { Context::open(device) },
                None => Err(VerbsError::code("ibv_open_device", name, libc::ENODEV)),
            }
        })?
    }

    /// A context that somebody else opened and closes.
    ///
    /// # Safety
    /// `raw` must stay open as long as `keeper` lives.
    pub(crate) unsafe fn borrowed(
        raw: NonNull<sys::ibv_context>,
        keeper: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        // SAFETY: an opened context points to its device.
        let name = unsafe { name_of((*raw.as_ptr()).device) };
        Context::of(raw, name, Some(keeper))
    }

    fn of(
        raw: NonNull<sys::ibv_context>,
        name: String,
        keeper: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let events = EventLog::of(raw.as_ptr() as usize);
        let mut context = Context {
            raw,
            name,
            keeper,
            events_before: 0,
            events,
        };
        // What waits in the kernel is of the time before, too. An error comes again when somebody asks.
        let _ = context
            .events
            .concerning(0, 0, || context.take_async_event());
        context.events_before = context.events.length();
        context
    }

    pub(super) fn as_ptr(&self) -> *mut sys::ibv_context {
        self.raw.as_ptr()
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        &self.name
    }

    /// The extended verbs, if the provider's version of them has the member at this offset. (The binding's own look-up
    /// of them compares the marker with 32 bits of ones instead of a pointer's, and never finds them.)
    pub(super) fn extended(&self, offset: usize) -> Option<*mut sys::verbs_context> {
        // SAFETY: infiniband/verbs.h: a context whose `abi_compat` has all bits set is the last member of a
        // `verbs_context`, of which the provider's version has the last `sz` bytes. The context is open.
        unsafe {
            let context = self.as_ptr();
            if (*context).abi_compat as usize != usize::MAX {
                return None;
            }
            let extended = context
                .byte_sub(std::mem::offset_of!(sys::verbs_context, context))
                .cast::<sys::verbs_context>();
            let needed = size_of::<sys::verbs_context>() - offset;
            ((*extended).sz >= needed).then_some(extended)
        }
    }

    /// Asks through the extended verbs; `None` where the provider has none.
    pub(super) fn extended_attributes(&self) -> Option<sys::ibv_device_attr_ex> {
        let extended = self.extended(std::mem::offset_of!(sys::verbs_context, query_device_ex))?;
        let mut attributes = MaybeUninit::<sys::ibv_device_attr_ex>::zeroed();
        // SAFETY: the provider has this member, the context is open, no input is needed, and zero is a value of the
        // attributes.
        unsafe {
            let query = (*extended).query_device_ex?;
            let size = size_of::<sys::ibv_device_attr_ex>();
            let code = query(
                self.as_ptr(),
                std::ptr::null(),
                attributes.as_mut_ptr(),
                size,
            );
            (code == 0).then(|| attributes.assume_init())
        }
    }

    /// Takes an asynchronous event if one waits. Never blocks, provided that no other thread takes this device's
    /// events.
    fn take_async_event(&self) -> Result<Option<AsyncEvent>, VerbsError> {
        // SAFETY: the context is open, and so is its descriptor.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().async_fd) };
        let mut waiting = [PollFd::new(descriptor, PollFlags::POLLIN)];
        if !poll(&mut waiting, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
            return Ok(None);
        }
        let mut event = MaybeUninit::<sys::ibv_async_event>::uninit();
        // SAFETY: the context is open and the event is writable.
        if unsafe { loaded::ibv_get_async_event(self.as_ptr(), event.as_mut_ptr()) } != 0 {
            return Err(VerbsError::last("ibv_get_async_event", &self.name));
        }
        // SAFETY: the call succeeded, so the event is written; it is acknowledged exactly once. Its kind is read as the
        // number it is, as the kernel may know more kinds than the binding's enumeration.
        let (kind, port) = unsafe {
            let pointer = event.as_mut_ptr();
            let kind = (&raw const (*pointer).event_type).cast::<u32>().read();
            let port = (*pointer).element.port_num;
            loaded::ibv_ack_async_event(pointer);
            (kind, port)
        };
        Ok(Some(AsyncEvent::new(kind, port)))
    }

    /// The events since this handle was made that concern the device or this port of it.
    fn events_of(&self, port: u8) -> Result<Vec<AsyncEvent>, VerbsError> {
        let take = || self.take_async_event();
        self.events.concerning(port, self.events_before, take)
    }

    /// What has happened to the device as a whole, or to this port of it, so that no further message can be expected.
    /// Never blocks, provided that no other thread takes this device's events.
    ///
    /// # Errors
    /// When a waiting event cannot be read.
    pub fn fatal_event(&self, port: u8) -> Result<Option<String>, VerbsError> {
        let events = self.events_of(port)?;
        let mut endings = events
            .iter()
            .filter_map(|event| Some((event.ending()?, event)));
        let first = endings.next();
        Ok(first.map(|(ending, event)| {
            format!("{ending} ({} port {port}, event {})", self.name, event.kind)
        }))
    }

    /// What has changed of this port since this handle was made, each change once, in words: LID, GIDs, partition keys,
    /// subnet manager. Never blocks, provided that no other thread takes this device's events.
    ///
    /// # Errors
    /// When a waiting event cannot be read.
    pub fn changes(&self, port: u8) -> Result<Vec<String>, VerbsError> {
        let events = self.events_of(port)?;
        let mut changes: Vec<_> = events.iter().filter_map(AsyncEvent::change).collect();
        changes.sort_unstable();
        changes.dedup();
        let place = format!("{} port {port}", self.name);
        let in_words = |change| format!("{place}: {change}");
        Ok(changes.into_iter().map(in_words).collect())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.keeper.is_none() {
            // SAFETY: opened here, and everything made from it holds it by Arc, so nothing is left.
            unsafe { loaded::ibv_close_device(self.as_ptr()) };
        }
    }
}
