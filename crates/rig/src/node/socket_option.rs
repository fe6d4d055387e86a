//! Options of sockets that `nix` does not have.

use std::os::fd::{AsFd, AsRawFd as _};

use nix::errno::Errno;

/// Sets an option of a socket to a value without pointers.
pub(super) fn set<T: Copy>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: T,
) -> Result<(), Errno> {
    // SAFETY: the socket is open, and the value is as long as stated; the kernel copies it.
    let set = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    Errno::result(set).map(drop)
}
