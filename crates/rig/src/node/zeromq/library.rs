//! libzmq, loaded when it is first needed: the functions and constants of `zmq.h` (4.3) that are used here.

use std::ffi::{c_char, c_int, c_long, c_short, c_void};
use std::sync::LazyLock;

use libloading::os::unix::Library;

use crate::host::library::{functions, open, reason, remedy_of_limit};

/// The file of version 4, whose interface has not changed since.
const FILE: &str = "libzmq.so.5";

static LIBZMQ: LazyLock<Result<Libzmq, libloading::Error>> = LazyLock::new(|| {
    let file = open(FILE)?;
    Ok(Libzmq {
        table: Table::of(&file)?,
        _file: file,
    })
});

/// It is never unloaded.
struct Libzmq {
    table: Table,
    _file: Library,
}

fn table() -> &'static Table {
    let loaded = LIBZMQ.as_ref();
    &loaded
        .expect("load() is called before any function, and has not failed")
        .table
}

/// Loads libzmq, if it is not loaded yet. To be called before anything else here.
///
/// # Errors
/// Why it cannot be loaded, and what to do.
pub fn load() -> Result<(), String> {
    let loaded = LIBZMQ.as_ref().map(drop);
    loaded.map_err(|error| {
        let reason = reason(error);
        let advice = remedy_of_limit(&reason)
            .unwrap_or_else(|| "install it (Debian: libzmq5, Fedora: zeromq)".to_owned());
        format!("the library of ZeroMQ cannot be loaded ({reason}): {advice}")
    })
}

functions! {
    Table of table();
    zmq_bind(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    zmq_close(socket: *mut c_void) -> c_int;
    zmq_connect(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    zmq_ctx_new() -> *mut c_void;
    zmq_ctx_term(context: *mut c_void) -> c_int;
    zmq_errno() -> c_int;
    zmq_getsockopt(socket: *mut c_void, option: c_int, value: *mut c_void, bytes: *mut usize) -> c_int;
    zmq_poll(items: *mut PollItem, count: c_int, timeout_ms: c_long) -> c_int;
    zmq_recv(socket: *mut c_void, buffer: *mut c_void, bytes: usize, flags: c_int) -> c_int;
    zmq_send(socket: *mut c_void, buffer: *const c_void, bytes: usize, flags: c_int) -> c_int;
    zmq_setsockopt(socket: *mut c_void, option: c_int, value: *const c_void, bytes: usize) -> c_int;
    zmq_socket(context: *mut c_void, kind: c_int) -> *mut c_void;
    zmq_strerror(errno: c_int) -> *const c_char;
    zmq_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int);
}

/// `zmq_pollitem_t`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct PollItem {
    pub socket: *mut c_void,
    pub fd: c_int,
    pub events: c_short,
    pub revents: c_short,
}

pub(super) const ZMQ_PAIR: c_int = 0;
pub(super) const ZMQ_PUB: c_int = 1;
pub(super) const ZMQ_SUB: c_int = 2;
pub(super) const ZMQ_PULL: c_int = 7;
pub(super) const ZMQ_PUSH: c_int = 8;

pub(super) const ZMQ_SUBSCRIBE: c_int = 6;
pub(super) const ZMQ_LINGER: c_int = 17;
pub(super) const ZMQ_SNDHWM: c_int = 23;
pub(super) const ZMQ_RCVHWM: c_int = 24;
pub(super) const ZMQ_LAST_ENDPOINT: c_int = 32;

pub(super) const ZMQ_POLLIN: c_short = 1;
pub(super) const ZMQ_DONTWAIT: c_int = 1;
