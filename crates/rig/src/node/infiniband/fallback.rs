//! Which of the connection manager's errors keeps an end from connecting, and how its peer learns where it listens
//! instead.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::{AtomicWords, BufferError, HugePagePolicy, SharedMemory};
use crate::node::Wiring;
use crate::node::fallback::{ConnectFailure, Fallback};
use crate::rdma::cm::{CmError, EventKind};

impl ConnectFailure {
    /// That of an active end's error, if it is one of the five: by the event that came or, if none came in time, by the
    /// one that was waited for. The kernel reports some by the call already.
    pub(super) fn of(error: &CmError) -> Option<Self> {
        match error {
            CmError::Event { event, .. } => match event {
                EventKind::AddressError => Some(ConnectFailure::Address),
                EventKind::RouteError => Some(ConnectFailure::Route),
                EventKind::ConnectError => Some(ConnectFailure::Connect),
                EventKind::Rejected => Some(ConnectFailure::Rejected),
                EventKind::Unreachable => Some(ConnectFailure::Unreachable),
                _ => None,
            },
            CmError::TimedOut { awaited, .. } => match awaited {
                EventKind::AddressResolved => Some(ConnectFailure::Address),
                EventKind::RouteResolved => Some(ConnectFailure::Route),
                EventKind::Established => Some(ConnectFailure::Unreachable),
                _ => None,
            },
            CmError::Call {
                operation, source, ..
            } => match (*operation, source.raw_os_error()?) {
                ("rdma_resolve_addr", errno) if leads_nowhere(errno) => {
                    Some(ConnectFailure::Address)
                }
                ("rdma_resolve_route", errno) if leads_nowhere(errno) => {
                    Some(ConnectFailure::Route)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether an errno is about the way to the peer, not about this process.
fn leads_nowhere(errno: i32) -> bool {
    [
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::ENETDOWN,
        libc::ENODEV,
        libc::ETIMEDOUT,
    ]
    .contains(&errno)
}

/// Whether an end that accepts a request goes on to the next one after this error. Of a request whose sender has given
/// up anything can become, and that one listens by now.
pub(super) fn passes_over(error: &CmError, fallback: Fallback) -> bool {
    fallback == Fallback::Listen && !matches!(error, CmError::Interrupted { .. })
}

/// Where publishers listen that could not connect to their subscribers: the port number, which with the address of the
/// publishers' port is all that a subscriber needs. Each has a place for each pair, in the memory of this process or in
/// memory that the processes of all ends share.
#[derive(Debug, Clone)]
pub struct Notices {
    subscribers: usize,
    /// 0: nothing was reported.
    ports: AtomicWords,
}

impl Notices {
    /// Between threads.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(wiring: &Wiring) -> Result<Self, BufferError> {
        Ok(Self::over(
            wiring,
            AtomicWords::new(pairs(wiring), HugePagePolicy::Off)?,
        ))
    }

    /// Between processes, in this memory, which [`shared`](Self::shared) has made.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn in_shared(memory: &SharedMemory, wiring: &Wiring) -> Result<Self, BufferError> {
        Ok(Self::over(
            wiring,
            AtomicWords::in_shared(memory, pairs(wiring))?,
        ))
    }

    /// Memory for processes.
    ///
    /// # Errors
    /// When there is none.
    pub fn shared(wiring: &Wiring) -> Result<SharedMemory, BufferError> {
        AtomicWords::shared(pairs(wiring), HugePagePolicy::Off)
    }

    fn over(wiring: &Wiring, ports: AtomicWords) -> Self {
        Notices {
            subscribers: wiring.subscribers as usize,
            ports,
        }
    }

    fn place(&self, publisher: u32, subscriber: u32) -> &AtomicU64 {
        &self.ports[publisher as usize * self.subscribers + subscriber as usize]
    }

    /// A publisher has a subscriber connect to this port.
    pub(super) fn post(&self, publisher: u32, subscriber: u32, port: u16) {
        (self.place(publisher, subscriber)).store(port.into(), Ordering::Release);
    }

    /// The notice of a publisher to a subscriber, once.
    pub(super) fn take(&self, publisher: u32, subscriber: u32) -> Option<u16> {
        let port = self.place(publisher, subscriber).swap(0, Ordering::Acquire);
        u16::try_from(port).ok().filter(|port| *port > 0)
    }
}

fn pairs(wiring: &Wiring) -> usize {
    wiring.publishers as usize * wiring.subscribers as usize
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;
    use crate::node::Scenario;

    fn event(event: EventKind) -> CmError {
        CmError::Event {
            step: "",
            object: String::new(),
            event,
            status: 0,
            advice: "",
        }
    }

    fn silence(awaited: EventKind) -> CmError {
        CmError::TimedOut {
            step: "",
            object: String::new(),
            awaited,
            limit: Duration::ZERO,
        }
    }

    fn call(operation: &'static str, errno: i32) -> CmError {
        CmError::Call {
            operation,
            object: String::new(),
            source: io::Error::from_raw_os_error(errno),
            advice: "",
        }
    }

    #[test]
    fn each_of_the_five_errors_is_told_apart_and_others_are_none_of_them() {
        use ConnectFailure as of;
        for (error, failure) in [
            (event(EventKind::AddressError), Some(of::Address)),
            (event(EventKind::RouteError), Some(of::Route)),
            (event(EventKind::ConnectError), Some(of::Connect)),
            (event(EventKind::Rejected), Some(of::Rejected)),
            (event(EventKind::Unreachable), Some(of::Unreachable)),
            (event(EventKind::DeviceRemoval), None),
            (event(EventKind::Disconnected), None),
            (silence(EventKind::AddressResolved), Some(of::Address)),
            (silence(EventKind::RouteResolved), Some(of::Route)),
            (silence(EventKind::Established), Some(of::Unreachable)),
            (silence(EventKind::ConnectRequest), None),
            (
                call("rdma_resolve_addr", libc::ENETUNREACH),
                Some(of::Address),
            ),
            (call("rdma_resolve_route", libc::ENODEV), Some(of::Route)),
            (call("rdma_resolve_addr", libc::ENOMEM), None),
            (call("rdma_create_id", libc::ENODEV), None),
            (CmError::Interrupted { step: "" }, None),
        ] {
            assert_eq!(ConnectFailure::of(&error), failure, "{error:?}");
        }
    }

    #[test]
    fn a_request_that_was_given_up_is_passed_over_whatever_becomes_of_it() {
        for error in [
            event(EventKind::Rejected),
            event(EventKind::Disconnected),
            event(EventKind::Other(99)),
            silence(EventKind::Established),
            call("rdma_accept", libc::EINVAL),
            call("rdma_create_qp", libc::ENOMEM),
        ] {
            assert!(passes_over(&error, Fallback::Listen), "{error:?}");
            assert!(!passes_over(&error, Fallback::Fatal), "{error:?}");
        }
        let interrupted = CmError::Interrupted { step: "" };
        assert!(!passes_over(&interrupted, Fallback::Listen));
    }

    #[test]
    fn what_a_publisher_tells_comes_to_its_subscriber_once() {
        let wiring = Wiring::new(Scenario::FanOut, 2, 3);
        let memory = Notices::shared(&wiring).unwrap();
        let process = || Notices::in_shared(&memory, &wiring).unwrap();
        let threads = Notices::new(&wiring).unwrap();
        for (publishers, subscribers) in [(threads.clone(), threads), (process(), process())] {
            publishers.post(1, 2, 4711);
            publishers.post(0, 1, 7);
            assert_eq!(subscribers.take(1, 1), None);
            assert_eq!(subscribers.take(1, 2), Some(4711));
            assert_eq!(subscribers.take(1, 2), None);
            assert_eq!(subscribers.take(0, 1), Some(7));
        }
    }
}
