//! TCP over the loopback, or between two hosts: [`connected`](super::connected) with sockets of TCP.
//!
//! Inside the latency of a sample: `send`, TCP over the kernel's loopback or the network, and `recv`. `TCP_NODELAY` is set unless the
//! settings rule it out: without it, a small sample waits for the acknowledgement of the one before it.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt,
};

use super::connected::Sockets;
use super::settings::SocketSettings;
use super::{NodeError, Settings, socket_option};

/// Sockets of TCP, with these options.
#[derive(Debug, Clone, Copy)]
pub struct TcpSockets {
    no_delay: bool,
    busy_poll: Duration,
    /// Where subscribers listen.
    address: Ipv4Addr,
}

impl TcpSockets {
    /// Those of the settings.
    pub fn of(settings: &Settings) -> Self {
        let SocketSettings {
            tcp_no_delay: no_delay,
            tcp_busy_poll: busy_poll,
            ..
        } = settings.sockets;
        TcpSockets {
            no_delay,
            busy_poll,
            address: match settings.address {
                IpAddr::V4(address) => address,
                IpAddr::V6(_) => Ipv4Addr::LOCALHOST,
            },
        }
    }
}

/// Why its sockets cannot have what is asked for, if so. Only this user and this kernel know.
pub fn refusal(settings: &Settings) -> Option<String> {
    let sockets = TcpSockets::of(settings);
    if sockets.busy_poll.is_zero() {
        return None;
    }
    match sockets.open(SockFlag::empty()) {
        Err(NodeError::Setting(reason)) => Some(reason),
        _ => None,
    }
}

/// The kernel has that time in whole microseconds: never less than asked for.
fn microseconds(time: Duration) -> libc::c_int {
    libc::c_int::try_from(time.as_nanos().div_ceil(1000)).unwrap_or(libc::c_int::MAX)
}

fn not_polled(time: Duration, error: Errno) -> NodeError {
    let fix = match error {
        Errno::EPERM => {
            "without CAP_NET_ADMIN it may be net.core.busy_read at most: run as root, or raise that with sysctl"
        }
        Errno::ENOPROTOOPT => "this kernel is built without CONFIG_NET_RX_BUSY_POLL: use 0",
        _ => "see man 7 socket",
    };
    NodeError::Setting(format!(
        "--tcp-busy-poll {time:?}: set SO_BUSY_POLL: {}: {fix}",
        error.desc()
    ))
}

impl Sockets for TcpSockets {
    type Address = SockaddrIn;
    type Told = SocketAddrV4;

    fn open(&self, flags: SockFlag) -> Result<OwnedFd, NodeError> {
        let advice = "see man 7 tcp";
        let flags = flags | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)
            .map_err(|error| NodeError::io("open", "a TCP socket", advice)(error.into()))?;
        // Those that a socket accepts inherit both.
        let set = setsockopt(&socket, sockopt::TcpNoDelay, &self.no_delay);
        set.map_err(|error| {
            NodeError::io("set TCP_NODELAY of", "a TCP socket", advice)(error.into())
        })?;
        if self.busy_poll > Duration::ZERO {
            let value = microseconds(self.busy_poll);
            let set = socket_option::set(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, value);
            set.map_err(|error| not_polled(self.busy_poll, error))?;
        }
        Ok(socket)
    }

    fn bind(&self, socket: &OwnedFd, _run: &str, _number: u32) -> Result<SocketAddrV4, NodeError> {
        let free = SocketAddrV4::new(self.address, 0);
        let bound = bind(socket.as_raw_fd(), &SockaddrIn::from(free));
        let found = bound.and_then(|()| getsockname::<SockaddrIn>(socket.as_raw_fd()));
        let advice = "check that the loopback is up (ip link)";
        let found = found.map_err(|error| NodeError::io("bind", free, advice)(error.into()))?;
        Ok(SocketAddrV4::new(found.ip(), found.port()))
    }

    fn address(&self, told: &SocketAddrV4) -> Result<SockaddrIn, NodeError> {
        Ok(SockaddrIn::from(*told))
    }

    fn keeps_messages(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;
    use nix::sys::socket::getsockopt;

    fn sockets(no_delay: bool, busy_poll: Duration) -> TcpSockets {
        let mut settings = Settings::of_words(3);
        settings.sockets.tcp_no_delay = no_delay;
        settings.sockets.tcp_busy_poll = busy_poll;
        TcpSockets::of(&settings)
    }

    fn busy_poll_of(socket: &OwnedFd) -> libc::c_int {
        let mut value: libc::c_int = -1;
        let mut bytes = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the socket is open, and there is room for the given number of bytes.
        let got = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_BUSY_POLL,
                (&raw mut value).cast(),
                &mut bytes,
            )
        };
        assert_eq!(got, 0);
        value
    }

    #[test]
    fn sockets_have_the_options_that_were_asked_for() {
        for no_delay in [true, false] {
            let socket = sockets(no_delay, Duration::ZERO).open(SockFlag::empty());
            let found = getsockopt(&socket.unwrap(), sockopt::TcpNoDelay);
            assert_eq!(found, Ok(no_delay));
        }
        // Whether the kernel allows it depends on the user and on its build.
        match sockets(true, Duration::from_micros(50)).open(SockFlag::empty()) {
            Ok(socket) => assert_eq!(busy_poll_of(&socket), 50),
            Err(error) => error.to_string().has(&["--tcp-busy-poll 50\u{b5}s"]),
        }
        let mut settings = Settings::of_words(3);
        assert_eq!(refusal(&settings), None);
        settings.sockets.tcp_busy_poll = Duration::from_micros(50);
        let opened = TcpSockets::of(&settings).open(SockFlag::empty());
        assert_eq!(refusal(&settings), opened.err().map(|it| it.to_string()));
        assert_eq!(microseconds(Duration::from_nanos(1500)), 2);
        assert_eq!(microseconds(Duration::from_micros(50)), 50);
    }

    #[test]
    fn a_time_that_the_kernel_refuses_is_named_with_what_allows_it() {
        let refused = |error| not_polled(Duration::from_millis(5), error).to_string();
        refused(Errno::EPERM).has(&["--tcp-busy-poll 5ms", "CAP_NET_ADMIN", "net.core.busy_read"]);
        refused(Errno::ENOPROTOOPT).has(&["--tcp-busy-poll 5ms", "CONFIG_NET_RX_BUSY_POLL"]);
    }
}
