//! What can go wrong while connecting.

use std::io;
use std::time::Duration;

use super::EventKind;
use crate::verbs::VerbsError;

/// Connecting failed.
#[derive(Debug, thiserror::Error)]
pub enum CmError {
    /// A call of librdmacm returned an error.
    #[error("{operation} ({object}) failed: {source}{advice}")]
    Call {
        /// The function.
        operation: &'static str,
        /// What it was to work on.
        object: String,
        /// The errno.
        source: io::Error,
        /// What to do, with its own separator, or nothing.
        advice: &'static str,
    },
    /// An event came that ends the attempt.
    #[error("{step} ({object}) failed: {event:?}, status {status}{advice}")]
    Event {
        /// What was being done.
        step: &'static str,
        /// On what.
        object: String,
        /// The event that came.
        event: EventKind,
        /// Its status: an errno, or the peer's reason for a rejection.
        status: i32,
        /// What to do, with its own separator, or nothing.
        advice: &'static str,
    },
    /// Nothing came in time.
    #[error(
        "{step} ({object}): no answer within {} s: check that the two ports reach each other \
         (cable, subnet manager, and for addresses of one host the policy routing that docs/prepare-host.md shows)",
        limit.as_secs_f64()
    )]
    TimedOut {
        /// What was being done.
        step: &'static str,
        /// On what.
        object: String,
        /// The event that would have been its end.
        awaited: EventKind,
        /// How long was waited.
        limit: Duration,
    },
    /// Another host was asked, and refuses.
    #[error("the other host: {0}")]
    Far(String),
    /// A signal asked to end.
    #[error("interrupted while {step}")]
    Interrupted {
        /// What was being done.
        step: &'static str,
    },
    /// The address belongs to another device than the one asked for.
    #[error(
        "the address {address} leads to {found}, not to {wanted}: give the address of {wanted} after an @, or, if that is \
         it, set up the routes between two ports of one host that docs/prepare-host.md shows, or use --connect direct"
    )]
    WrongDevice {
        /// The address.
        address: String,
        /// Device and port that were asked for.
        wanted: String,
        /// Device and port that the connection manager chose.
        found: String,
    },
    /// The librdmacm in use is not a patched one.
    #[error(
        "{library} does not export rdma_create_id2: build a librdmacm that does with rdma-cm-patch/build (ci/hcabench \
         finds it; elsewhere name its folder in LD_LIBRARY_PATH), or use --uc-route endpoint"
    )]
    NoCreateId2 {
        /// The library's file.
        library: String,
    },
    /// A verb failed on the way.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
}

impl CmError {
    /// The error that errno holds, unless a call returned zero.
    pub(super) fn check(code: i32, operation: &'static str, object: String) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            _ => Err(CmError::last(operation, object)),
        }
    }

    pub(super) fn last(operation: &'static str, object: impl Into<String>) -> Self {
        let source = io::Error::last_os_error();
        let advice = match source.raw_os_error() {
            Some(libc::ENODEV) => ": no RDMA device carries this address",
            Some(libc::EADDRNOTAVAIL) => ": this host does not have the address",
            Some(libc::ENOENT) => ": load the module rdma_ucm",
            Some(libc::EACCES | libc::EPERM) => {
                ": /dev/infiniband/rdma_cm must be readable and writable for this user"
            }
            Some(libc::ENOMEM) => {
                ": raise the memlock limit (ulimit -l), or ask for less (--burst, --size)"
            }
            _ => "",
        };
        CmError::Call {
            operation,
            object: object.into(),
            source,
            advice,
        }
    }
}
