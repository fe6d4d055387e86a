//! What can go wrong at the verbs.

use std::io;
use std::ptr::NonNull;

use nix::errno::Errno;

use crate::host::library::{reason, remedy_of_limit};

/// A verb failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} on {object} failed: {source}{advice}")]
pub struct VerbsError {
    /// The verb.
    operation: &'static str,
    /// What it was called on, and with which numbers.
    object: String,
    /// The errno.
    source: io::Error,
    /// What to do, with its own separator, or nothing.
    advice: &'static str,
}

impl VerbsError {
    /// What a verb creates, or the error that errno holds after it. Not every driver sets it (rdma-core,
    /// providers/bnxt_re/verbs.c: `bnxt_re_create_qp_ex`): what an earlier call left there is taken away before.
    pub(crate) fn created<T, S: Into<String>>(
        create: impl FnOnce() -> *mut T,
        operation: &'static str,
        object: impl FnOnce() -> S,
    ) -> Result<NonNull<T>, Self> {
        Errno::clear();
        NonNull::new(create()).ok_or_else(|| Self::last(operation, object()))
    }

    /// The error that a verb returned as its value, unless that is zero.
    #[inline]
    pub(crate) fn check<S: Into<String>>(
        code: i32,
        operation: &'static str,
        object: impl FnOnce() -> S,
    ) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            _ => Err(Self::code(operation, object(), code)),
        }
    }

    /// The error that errno holds now. Where it is 0, what failed has not set it.
    pub(crate) fn last(operation: &'static str, object: impl Into<String>) -> Self {
        let source = match io::Error::last_os_error() {
            unset if unset.raw_os_error() == Some(0) => {
                io::Error::other("refused by the driver without a reason")
            }
            error => error,
        };
        Self::with(operation, object, source)
    }

    /// An error that a verb returned as its value.
    pub fn code(operation: &'static str, object: impl Into<String>, errno: i32) -> Self {
        Self::with(operation, object, io::Error::from_raw_os_error(errno.abs()))
    }

    /// The libraries cannot be loaded.
    pub(crate) fn not_loaded(error: &libloading::Error) -> Self {
        let mut reason = reason(error);
        let limit = remedy_of_limit(&reason);
        let advice = match error {
            _ if limit.is_some() => "",
            libloading::Error::DlSym { .. } => {
                ": they are too old: rdma-core 44 or later is needed"
            }
            _ => {
                ": install them (Debian: libibverbs1, librdmacm1 and ibverbs-providers; Fedora: libibverbs and \
                 librdmacm). Commands that use no RDMA device run without them"
            }
        };
        if let Some(limit) = limit {
            reason += &format!(": {limit}");
        }
        VerbsError {
            operation: "dlopen",
            object: "libibverbs and librdmacm".to_owned(),
            source: io::Error::other(reason),
            advice,
        }
    }

    fn with(operation: &'static str, object: impl Into<String>, source: io::Error) -> Self {
        let advice = match source.raw_os_error() {
            Some(libc::ENOMEM | libc::EAGAIN) => {
                ": raise the memlock limit (ulimit -l), or ask for less (--burst, --size)"
            }
            Some(libc::EACCES | libc::EPERM) => {
                ": the devices below /dev/infiniband must be readable and writable for this user"
            }
            Some(libc::ENODEV | libc::EIO) => ": the device was removed",
            _ => "",
        };
        VerbsError {
            operation,
            object: object.into(),
            source,
            advice,
        }
    }

    /// The errno.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_sets_no_errno_has_no_reason() {
        Errno::EPERM.set();
        let refuses = || std::ptr::null_mut::<u8>();
        let error = VerbsError::created(refuses, "ibv_create_qp", || "bnxt_re0").unwrap_err();
        let text = error.to_string();
        assert_eq!(
            text,
            "ibv_create_qp on bnxt_re0 failed: refused by the driver without a reason"
        );
        assert_eq!(error.errno(), None);
    }
}
