//! Connection manager ids.

use std::ffi::CStr;
use std::net::{IpAddr, SocketAddr};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use rdma_sys as sys;

use super::{CmError, Event, EventChannel, EventKind};
use crate::host::interrupt;
use crate::loaded;
use crate::verbs::{
    Context, OutstandingReads, ProtectionDomain, QueuePair, QueuePairAttributes, Retries,
};

/// An id: one end of a connection in the making, and after.
#[derive(Debug)]
pub struct Id {
    raw: NonNull<sys::rdma_cm_id>,
    channel: Arc<EventChannel>,
}

// SAFETY: librdmacm may be called from any thread.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

/// `RDMA_OPTION_ID` and the options of it from rdma/rdma_cma.h, which the bindings leave out.
const OPTION_LEVEL_ID: i32 = 0;
const OPTION_TYPE_OF_SERVICE: i32 = 0;
const OPTION_ACK_TIMEOUT: i32 = 3;

impl Id {
    /// Takes over an id that reports to `channel`.
    ///
    /// # Safety
    /// Only this object may destroy `raw`, and it must belong to `channel`.
    pub(super) unsafe fn from_raw(
        raw: NonNull<sys::rdma_cm_id>,
        channel: &Arc<EventChannel>,
    ) -> Self {
        Id {
            raw,
            channel: Arc::clone(channel),
        }
    }

    /// The id that a connection request brought, as a separate handle.
    pub(super) fn requested(event: Event, channel: &Arc<EventChannel>) -> Option<Self> {
        let raw = NonNull::new(event.request? as *mut sys::rdma_cm_id)?;
        // SAFETY: the id came with the event, which is consumed here, so it has no other owner.
        Some(unsafe { Id::from_raw(raw, channel) })
    }

    /// The first unexpected event of a kind that came for it. Never blocks.
    pub(super) fn find(&self, is_wanted: impl Fn(EventKind) -> bool) -> Option<Event> {
        self.channel.find(self.key(), is_wanted)
    }

    /// Waits for an event of it. One that ends the attempt is an error.
    pub(super) fn expect(
        &self,
        wanted: EventKind,
        step: &'static str,
        limit: Duration,
    ) -> Result<Event, CmError> {
        let deadline = Instant::now() + limit;
        loop {
            match self.channel.take(self.key()) {
                Some(event) if event.kind == wanted => return Ok(event),
                Some(event) => {
                    return Err(CmError::Event {
                        step,
                        object: self.describe(),
                        event: event.kind,
                        status: event.status,
                        advice: advice_for(event.kind),
                    });
                }
                None => {}
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                return Err(CmError::TimedOut {
                    step,
                    object: self.describe(),
                    awaited: wanted,
                    limit,
                });
            };
            if interrupt::requested().is_some() || self.channel.is_given_up() {
                return Err(CmError::Interrupted { step });
            }
            self.channel.wait_within(left);
        }
    }

    pub(super) fn as_ptr(&self) -> *mut sys::rdma_cm_id {
        self.raw.as_ptr()
    }

    pub(super) fn channel(&self) -> &Arc<EventChannel> {
        &self.channel
    }

    pub(super) fn key(&self) -> usize {
        self.raw.as_ptr() as usize
    }

    pub(super) fn describe(&self) -> String {
        self.place().unwrap_or_else(|| "no device yet".to_owned())
    }

    fn verbs(&self) -> Option<NonNull<sys::ibv_context>> {
        // SAFETY: the id exists.
        NonNull::new(unsafe { self.raw.as_ref().verbs })
    }

    /// The device and the port that the connection manager chose for it, in words.
    fn place(&self) -> Option<String> {
        let verbs = self.verbs()?;
        // SAFETY: the id exists, its context is open, and the device of that has a name.
        let (name, port) = unsafe {
            let name = loaded::ibv_get_device_name(verbs.as_ref().device);
            (CStr::from_ptr(name), self.raw.as_ref().port_num)
        };
        Some(format!("{} port {port}", name.to_string_lossy()))
    }

    /// Checks that the connection manager chose the device and port that were asked for.
    pub(super) fn check_device(
        &self,
        address: IpAddr,
        device: &str,
        port: u8,
    ) -> Result<(), CmError> {
        let wanted = format!("{device} port {port}");
        let found = self.place();
        if found.as_ref() == Some(&wanted) {
            return Ok(());
        }
        Err(CmError::WrongDevice {
            address: address.to_string(),
            wanted,
            found: found.unwrap_or_else(|| "no device".to_owned()),
        })
    }

    /// The device's context, which the id keeps open.
    ///
    /// # Panics
    /// For an id that neither was bound or resolved nor came with a request.
    pub(super) fn context(self: &Arc<Self>) -> Arc<Context> {
        let verbs = self.verbs().expect("the id has a device");
        // SAFETY: librdmacm keeps the context open as long as the id exists.
        Arc::new(unsafe { Context::borrowed(verbs, Arc::clone(self) as _) })
    }

    /// The port number that it is bound to.
    pub(super) fn local_port(&self) -> u16 {
        // SAFETY: the id exists.
        u16::from_be(unsafe { loaded::rdma_get_src_port(self.as_ptr()) })
    }

    pub(super) fn bind(&self, address: IpAddr) -> Result<(), CmError> {
        let storage = SockaddrStorage::from(SocketAddr::new(address, 0));
        // SAFETY: the id exists; the address is only read.
        let code = unsafe { loaded::rdma_bind_addr(self.as_ptr(), storage.as_ptr().cast_mut()) };
        CmError::check(code, "rdma_bind_addr", address.to_string())
    }

    pub(super) fn resolve_address(
        &self,
        from: IpAddr,
        to: SocketAddr,
        limit: Duration,
    ) -> Result<(), CmError> {
        let source = SockaddrStorage::from(SocketAddr::new(from, 0));
        let destination = SockaddrStorage::from(to);
        // SAFETY: the id exists; the addresses are only read.
        let code = unsafe {
            loaded::rdma_resolve_addr(
                self.as_ptr(),
                source.as_ptr().cast_mut(),
                destination.as_ptr().cast_mut(),
                milliseconds(limit),
            )
        };
        CmError::check(code, "rdma_resolve_addr", format!("{from} to {to}"))
    }

    pub(super) fn resolve_route(&self, limit: Duration) -> Result<(), CmError> {
        // SAFETY: the id exists.
        let code = unsafe { loaded::rdma_resolve_route(self.as_ptr(), milliseconds(limit)) };
        CmError::check(code, "rdma_resolve_route", self.describe())
    }

    /// Listens; at most this many requests that were not yet taken are kept, and the others are rejected.
    pub(super) fn listen(&self, waiting: usize) -> Result<(), CmError> {
        let backlog = i32::try_from(waiting).unwrap_or(i32::MAX);
        // SAFETY: the id exists.
        let code = unsafe { loaded::rdma_listen(self.as_ptr(), backlog) };
        CmError::check(code, "rdma_listen", self.describe())
    }

    /// Creates the queue pair of this id and brings it into the state in which it takes receive requests.
    pub(super) fn create_queue_pair(
        self: &Arc<Self>,
        domain: &Arc<ProtectionDomain>,
        attributes: QueuePairAttributes,
    ) -> Result<QueuePair, CmError> {
        let mut raw = attributes.raw();
        // SAFETY: the id exists, the domain belongs to its context and is held by the queue pair, as are the queues.
        let code = unsafe { loaded::rdma_create_qp(self.as_ptr(), domain.as_ptr(), &mut raw) };
        let (service, capabilities) = (attributes.service, attributes.capabilities);
        let object = format!("{}, {service:?}, {capabilities:?}", self.describe());
        CmError::check(code, "rdma_create_qp", object)?;
        // SAFETY: the call succeeded, so the id has a queue pair.
        let created = unsafe { self.raw.as_ref().qp };
        let id = Arc::clone(self);
        // SAFETY: created right above, with these attributes; librdmacm destroys it on request and not before.
        Ok(unsafe {
            QueuePair::from_raw(
                NonNull::new(created).expect("rdma_create_qp succeeded"),
                &raw.cap,
                attributes,
                domain,
                Box::new(move || loaded::rdma_destroy_qp(id.as_ptr())),
            )
        })
    }

    pub(super) fn connect(&self, retries: Retries, reads: OutstandingReads) -> Result<(), CmError> {
        self.set_ack_timeout(retries)?;
        let mut parameters = connection_parameters(retries, reads);
        // SAFETY: the id exists; the parameters are only read.
        let code = unsafe { loaded::rdma_connect(self.as_ptr(), &mut parameters) };
        CmError::check(code, "rdma_connect", self.describe())
    }

    pub(super) fn accept(
        &self,
        queue_pair: &QueuePair,
        retries: Retries,
        reads: OutstandingReads,
    ) -> Result<(), CmError> {
        self.set_ack_timeout(retries)?;
        let mut parameters = connection_parameters(retries, reads);
        parameters.qp_num = queue_pair.number();
        // SAFETY: the id exists; the parameters are only read.
        let code = unsafe { loaded::rdma_accept(self.as_ptr(), &mut parameters) };
        CmError::check(code, "rdma_accept", self.describe())
    }

    /// Sets the traffic class of the connection to come: before its route is resolved.
    pub(super) fn set_traffic_class(&self, class: u8) -> Result<(), CmError> {
        let code = self.set_option(OPTION_TYPE_OF_SERVICE, class);
        CmError::check(code, "rdma_set_option", format!("traffic class {class}"))
    }

    /// Kernels before 5.10 or service types without acknowledgements refuse it; the kernel's choice then holds, unless
    /// another than the usual timeout was asked for.
    fn set_ack_timeout(&self, retries: Retries) -> Result<(), CmError> {
        let code = self.set_option(OPTION_ACK_TIMEOUT, retries.timeout);
        let wanted = retries.timeout != Retries::default().timeout;
        let object = || format!("acknowledgement timeout {}", retries.timeout);
        if wanted {
            CmError::check(code, "rdma_set_option", object())
        } else {
            Ok(())
        }
    }

    /// Sets an option of one byte.
    fn set_option(&self, option: i32, mut value: u8) -> i32 {
        // SAFETY: the id exists; one byte is read.
        unsafe {
            loaded::rdma_set_option(
                self.as_ptr(),
                OPTION_LEVEL_ID,
                option,
                (&raw mut value).cast(),
                size_of::<u8>(),
            )
        }
    }

    pub(super) fn disconnect(&self) {
        // SAFETY: the id exists. An error means that the connection has ended already.
        unsafe { loaded::rdma_disconnect(self.as_ptr()) };
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        let key = self.key();
        // SAFETY: owned here, its queue pair holds it by Arc, and all its events were acknowledged when they were read.
        unsafe { loaded::rdma_destroy_id(self.as_ptr()) };
        self.channel.forget(key);
    }
}

fn milliseconds(limit: Duration) -> i32 {
    i32::try_from(limit.as_millis()).unwrap_or(i32::MAX)
}

fn connection_parameters(retries: Retries, reads: OutstandingReads) -> sys::rdma_conn_param {
    sys::rdma_conn_param {
        private_data: std::ptr::null(),
        private_data_len: 0,
        // UC demands zero.
        responder_resources: reads.from_peer,
        initiator_depth: reads.to_peer,
        flow_control: 0,
        retry_count: retries.count,
        rnr_retry_count: retries.receiver_not_ready,
        srq: 0,
        qp_num: 0,
    }
}

fn advice_for(kind: EventKind) -> &'static str {
    match kind {
        EventKind::AddressError => ": the address is not reachable by an RDMA device of this host",
        EventKind::RouteError | EventKind::Unreachable => {
            ": check that the two ports reach each other (cable, subnet manager, and for addresses of one host the \
             policy routing that docs/prepare-host.md shows)"
        }
        EventKind::DeviceRemoval => ": the device was removed",
        _ => "",
    }
}
