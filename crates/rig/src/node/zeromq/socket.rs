//! A socket of libzmq, in a separate context.

use std::ffi::{CStr, CString, c_int, c_long, c_void};
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr::NonNull;

use super::library::*;
use crate::node::NodeError;

/// The first of its additional numbers of errors.
const ZMQ_HAUSNUMERO: c_int = 156_384_712;
/// How long a socket that is closed tries to deliver what it still has, in milliseconds.
const LINGER_MS: c_int = 200;
/// What endpoints begin with.
const TRANSPORT: &str = "tcp://";
/// The longest endpoint that is asked for, with its terminating zero.
const LONGEST_ENDPOINT: usize = 256;

/// A socket, and the context with its I/O thread.
#[derive(Debug)]
pub(super) struct Socket {
    socket: NonNull<c_void>,
    context: NonNull<c_void>,
}

// SAFETY: zmq_socket(3): a socket may be migrated from one thread to another with a full fence, which is what it takes
// to hand a value over in Rust. It is not `Sync`, and a context may be used by any thread.
unsafe impl Send for Socket {}

fn failed(operation: &'static str, object: &str) -> NodeError {
    NodeError::io(operation, object, "see its manual page")(last_error())
}

/// Of the calling thread.
fn errno() -> c_int {
    // SAFETY: it has no conditions.
    unsafe { zmq_errno() }
}

/// libzmq has additional numbers of errors beside those of the system, and texts for them.
fn last_error() -> io::Error {
    let errno = errno();
    if errno < ZMQ_HAUSNUMERO {
        return io::Error::from_raw_os_error(errno);
    }
    // SAFETY: it returns a text that is never freed, for any number.
    let text = unsafe { CStr::from_ptr(zmq_strerror(errno)) };
    io::Error::other(text.to_string_lossy().into_owned())
}

fn endpoint(address: impl Display) -> CString {
    CString::new(format!("{TRANSPORT}{address}")).expect("there is no zero in an address")
}

/// The version that is loaded.
pub fn version() -> String {
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: all three point to numbers of ours.
    unsafe { zmq_version(&mut major, &mut minor, &mut patch) };
    format!("{major}.{minor}.{patch}")
}

impl Socket {
    /// A socket of that kind that holds this many messages for each peer. libzmq must have been loaded.
    ///
    /// # Errors
    /// When there is no memory or no file left.
    pub(super) fn new(kind: c_int, send_queue: u32, receive_queue: u32) -> Result<Self, NodeError> {
        // SAFETY: it has no conditions.
        let context = NonNull::new(unsafe { zmq_ctx_new() });
        let context = context.ok_or_else(|| failed("zmq_ctx_new", "a node"))?;
        // SAFETY: the context is live.
        let Some(socket) = NonNull::new(unsafe { zmq_socket(context.as_ptr(), kind) }) else {
            let error = failed("zmq_socket", "a node");
            // SAFETY: the context is live, has no socket, and is not used again.
            unsafe { zmq_ctx_term(context.as_ptr()) };
            return Err(error);
        };
        let socket = Socket { socket, context };
        let number = |number: u32| c_int::try_from(number).unwrap_or(c_int::MAX);
        socket.set(ZMQ_LINGER, &LINGER_MS.to_ne_bytes())?;
        socket.set(ZMQ_SNDHWM, &number(send_queue).to_ne_bytes())?;
        socket.set(ZMQ_RCVHWM, &number(receive_queue).to_ne_bytes())?;
        if kind == ZMQ_SUB {
            // All messages: their beginning is nothing.
            socket.set(ZMQ_SUBSCRIBE, &[])?;
        }
        Ok(socket)
    }

    fn set(&self, option: c_int, value: &[u8]) -> Result<(), NodeError> {
        // SAFETY: the socket is live, and the value has the given length; it is copied.
        let set = unsafe {
            zmq_setsockopt(
                self.socket.as_ptr(),
                option,
                value.as_ptr().cast(),
                value.len(),
            )
        };
        match set {
            0 => Ok(()),
            _ => Err(failed("zmq_setsockopt", "a node")),
        }
    }

    /// Binds to a port of an address of IPv4, or to a free one, and returns both.
    ///
    /// # Errors
    /// When the port is in use.
    pub(super) fn bind(&self, address: IpAddr, port: Option<u16>) -> Result<SocketAddr, NodeError> {
        let number = port.map_or_else(|| "*".to_owned(), |port| port.to_string());
        let endpoint = endpoint(format_args!("{address}:{number}"));
        // SAFETY: the socket is live, and the text ends with a zero; it is copied.
        if unsafe { zmq_bind(self.socket.as_ptr(), endpoint.as_ptr()) } != 0 {
            if port.is_none() {
                return Err(failed("zmq_bind", &endpoint.to_string_lossy()));
            }
            let told = format!(
                "--zeromq-port: cannot bind to {}: {}: name another port, or leave the option out for a free one",
                endpoint.to_string_lossy(),
                last_error()
            );
            return Err(NodeError::Setting(told));
        }
        let mut found = [0; LONGEST_ENDPOINT];
        let mut bytes = found.len();
        // SAFETY: the socket is live, and there is room for the given number of bytes.
        let got = unsafe {
            zmq_getsockopt(
                self.socket.as_ptr(),
                ZMQ_LAST_ENDPOINT,
                found.as_mut_ptr().cast(),
                &mut bytes,
            )
        };
        let found = CStr::from_bytes_until_nul(&found);
        let address = found.ok().and_then(|found| found.to_str().ok());
        let address = address.and_then(|found| found.strip_prefix(TRANSPORT)?.parse().ok());
        match (got, address) {
            (0, Some(address)) => Ok(address),
            _ => Err(failed("zmq_getsockopt", "a node")),
        }
    }

    /// Connects to an address, at once or later: the library goes on trying.
    ///
    /// # Errors
    /// When there is no file left.
    pub(super) fn connect(&self, address: SocketAddr) -> Result<(), NodeError> {
        let endpoint = endpoint(address);
        // SAFETY: the socket is live, and the text ends with a zero; it is copied.
        match unsafe { zmq_connect(self.socket.as_ptr(), endpoint.as_ptr()) } {
            0 => Ok(()),
            _ => Err(failed("zmq_connect", &endpoint.to_string_lossy())),
        }
    }

    /// Sends a message, if there is room for it; returns whether there was.
    #[inline]
    pub(super) fn send(&mut self, message: &[u8]) -> Result<bool, NodeError> {
        loop {
            // SAFETY: the socket is live and used by this thread alone; the bytes are copied before it returns.
            let sent = unsafe {
                zmq_send(
                    self.socket.as_ptr(),
                    message.as_ptr().cast(),
                    message.len(),
                    ZMQ_DONTWAIT,
                )
            };
            if sent >= 0 {
                return Ok(true);
            }
            match errno() {
                libc::EAGAIN => return Ok(false),
                libc::EINTR => {}
                _ => return Err(failed("zmq_send", "a node")),
            }
        }
    }

    /// Receives a message, if there is one, and returns how long it is. What does not fit is cut off.
    #[inline]
    pub(super) fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, NodeError> {
        loop {
            // SAFETY: the socket is live and used by this thread alone; no more is written than there is room for.
            let received = unsafe {
                zmq_recv(
                    self.socket.as_ptr(),
                    message.as_mut_ptr().cast(),
                    message.len(),
                    ZMQ_DONTWAIT,
                )
            };
            if let Ok(bytes) = usize::try_from(received) {
                return Ok(Some(bytes));
            }
            match errno() {
                libc::EAGAIN => return Ok(None),
                libc::EINTR => {}
                _ => return Err(failed("zmq_recv", "a node")),
            }
        }
    }

    /// Sleeps until there is a message, or for so long.
    pub(super) fn wait(&mut self, limit_ms: u16) {
        let mut item = PollItem {
            socket: self.socket.as_ptr(),
            fd: 0,
            events: ZMQ_POLLIN,
            revents: 0,
        };
        // An interrupted wait is like one that was in vain. SAFETY: the number of items is one, and there is one; its
        // socket is live and used by this thread alone.
        unsafe { zmq_poll(&mut item, 1, c_long::from(limit_ms)) };
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: both are live, and are not used again. The context ends once its only socket is closed.
        unsafe {
            zmq_close(self.socket.as_ptr());
            while zmq_ctx_term(self.context.as_ptr()) != 0 && zmq_errno() == libc::EINTR {}
        }
    }
}
