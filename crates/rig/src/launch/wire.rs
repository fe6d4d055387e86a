//! Lines of JSON over TCP: the messages between processes, each step with a time limit. Where there is a secret they are
//! in frames that only who has it can read or make (`sealing`).
//!
//! A line holds one message. Nothing in it is trusted: it may be too long, no JSON, or another message than the expected
//! one, and each is an error that names it.

mod frames;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, listen,
    setsockopt, socket, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host::interrupt;
use crate::rig::json_lines::{LineBuffer, line_of};
use frames::Carrier;

/// The longest line, in bytes: the stamps of a whole burst have room in it.
pub const MAX_LINE: usize = 16 << 20;

/// How often a wait looks whether a signal has come.
const LOOK: Duration = Duration::from_millis(100);

/// The seconds without a packet after which the kernel probes the other host, their interval, and the number of probes.
const KEEP_ALIVE: (u32, u32, u32) = (10, 5, 4);

/// How long, in ms, what was sent may stay without an acknowledgement: a host without power gives none.
const UNACKNOWLEDGED: u32 = 30_000;

/// How much of a line that cannot be read is shown.
const EXCERPT: usize = 80;

/// Why a message was not sent, or none came.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Nothing, or not enough, came or went in time.
    #[error("{peer} did not {what} within {} s", limit.as_secs_f64())]
    Late {
        /// Who.
        peer: String,
        /// `answer`, `take what was sent`, or `acknowledge anything`.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The other end has closed the connection.
    #[error("{0} has closed the connection")]
    Closed(String),
    /// The other end has closed the connection before it answered: so does one that is shown no secret, or another one.
    #[error(
        "{0} has closed the connection before it answered: the secrets differ, or it has none: give both the same secret \
         by --secret-file or HCABENCH_SECRET"
    )]
    NotAdmitted(String),
    /// The same where this end has no secret to show.
    #[error(
        "{0} has closed the connection before it answered: if it has a secret, give this end the same by --secret-file or \
         HCABENCH_SECRET"
    )]
    Unanswered(String),
    /// The other end has another secret, or none.
    #[error("{peer} {what}: give both the same secret by --secret-file or HCABENCH_SECRET")]
    Secret {
        /// Who.
        peer: String,
        /// What it did.
        what: &'static str,
    },
    /// A frame that the other end did not send at this place.
    #[error("{0} sent a frame that does not decrypt: it was changed or sent again on its way")]
    Forged(String),
    /// A line that is not the message that was expected.
    #[error("{peer} sent an invalid message: {reason}: {excerpt}")]
    Unfit {
        /// Who.
        peer: String,
        /// What is wrong.
        reason: String,
        /// How the line begins.
        excerpt: String,
    },
    /// A line above [`MAX_LINE`], or above what was allowed, in KiB.
    #[error("{0} sent a line of more than {1} KiB")]
    TooLong(String, usize),
    /// A signal came.
    #[error("interrupted by {0}")]
    Interrupted(Signal),
    /// The kernel refuses.
    #[error("{operation} {peer}: {source}")]
    Io {
        /// What was refused.
        operation: &'static str,
        /// With whom.
        peer: String,
        /// Why.
        source: io::Error,
    },
}

impl WireError {
    /// Whether the other end did not take the secret that this one has shown.
    pub fn is_of_secret(&self) -> bool {
        matches!(self, WireError::NotAdmitted(_) | WireError::Secret { .. })
    }
}

/// A TCP connection that carries lines of JSON.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    peer: SocketAddr,
    carrier: Carrier,
    /// Whether the other end has answered; at the end that accepts it need not.
    is_answered: bool,
    /// Whether this end, which has connected, has a secret.
    shows_secret: bool,
    /// Whether processes of other hosts can connect where this connection was accepted.
    is_open: bool,
    /// What came and was not taken.
    lines: LineBuffer,
    /// The longest line that is taken.
    longest: usize,
    /// When all waits end, however long each may take.
    end: Option<Instant>,
}

/// Listens at an address. A socket at all addresses of IPv6 listens at those of IPv4 as well, with any
/// `net.ipv6.bindv6only`.
///
/// # Errors
/// When it is not an address of this host, or the port is taken.
pub fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
    // As the standard library does: a port that was used a moment ago may be used again.
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    if address.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &false)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(TcpListener::from(socket))
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Wire {
    /// Connects within `limit`.
    ///
    /// # Errors
    /// When no process listens there, or not in time.
    pub fn connect(to: SocketAddr, limit: Duration) -> Result<Self, WireError> {
        let failed = |source| WireError::Io {
            operation: "connecting to",
            peer: to.to_string(),
            source,
        };
        let mut wire = Wire::of(TcpStream::connect_timeout(&to, limit).map_err(failed)?)?;
        wire.is_answered = false;
        Ok(wire)
    }

    /// Notes that processes of other hosts can connect where this connection was accepted.
    pub fn set_open(&mut self) {
        self.is_open = true;
    }

    /// Whether processes of other hosts could read what is sent, or take part.
    pub fn is_exposed(&self) -> bool {
        let is_far = !self.peer.ip().to_canonical().is_loopback();
        !self.is_sealed() && (self.is_open || is_far)
    }

    /// Takes over a connection.
    ///
    /// # Errors
    /// When it is none any more.
    pub fn of(stream: TcpStream) -> Result<Self, WireError> {
        let failed = |source| WireError::Io {
            operation: "setting up the connection to",
            peer: "the other end".to_owned(),
            source,
        };
        let peer = stream.peer_addr().map_err(failed)?;
        stream.set_nonblocking(true).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let (idle, every, count) = KEEP_ALIVE;
        let kept = setsockopt(&stream, sockopt::KeepAlive, &true)
            .and_then(|()| setsockopt(&stream, sockopt::TcpKeepIdle, &idle))
            .and_then(|()| setsockopt(&stream, sockopt::TcpKeepInterval, &every))
            .and_then(|()| setsockopt(&stream, sockopt::TcpKeepCount, &count))
            .and_then(|()| setsockopt(&stream, sockopt::TcpUserTimeout, &UNACKNOWLEDGED));
        kept.map_err(|errno| failed(errno.into()))?;
        Ok(Wire {
            stream,
            peer,
            carrier: Carrier::Plain,
            is_answered: true,
            shows_secret: false,
            is_open: false,
            lines: LineBuffer::default(),
            longest: MAX_LINE,
            end: None,
        })
    }

    /// Takes lines of at most this many bytes from here on: who is not known yet is to take little memory.
    pub fn limit_lines(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address of this end.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn local(&self) -> Result<SocketAddr, WireError> {
        self.stream
            .local_addr()
            .map_err(|source| self.refused("asking for the address towards", source))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When it is not taken in time.
    pub fn send(&mut self, message: &impl Serialize, limit: Duration) -> Result<(), WireError> {
        let line =
            line_of(message).map_err(|error| self.refused("writing a message to", error.into()))?;
        if line.len() > MAX_LINE {
            let error = io::Error::other("the message is too long");
            return Err(self.refused("writing a message to", error));
        }
        let deadline = self.deadline(limit);
        if let Carrier::Plain = self.carrier {
            return self.write(&line, limit, deadline);
        }
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            let Carrier::Sealed(sealed) = &mut self.carrier else {
                let error = io::Error::other("it has not shown the secret");
                return Err(self.refused("writing a message to", error));
            };
            let (part, after) = rest.split_at(sealed.most().min(rest.len()));
            let frame = sealed.seal(part);
            self.write(&frame, limit, deadline)?;
            rest = after;
        }
        Ok(())
    }

    fn write(
        &mut self,
        mut rest: &[u8],
        limit: Duration,
        deadline: Instant,
    ) -> Result<(), WireError> {
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(0) => return Err(self.closed()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait(PollFlags::POLLOUT, deadline)? {
                        return Err(self.late("take what was sent", limit));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("sending to", error)),
            }
        }
        Ok(())
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// When none comes in time, or another one.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<T, WireError> {
        let message = self.poll(limit)?;
        message.ok_or_else(|| self.unanswered(limit))
    }

    /// Waits for a message; `None`: none came in time.
    ///
    /// # Errors
    /// When another one came, or none will.
    pub fn poll<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<Option<T>, WireError> {
        let deadline = self.deadline(limit);
        loop {
            // No line begins with it, and what follows may hold an end of a line.
            if self.lines.first() == Some(0) && !self.is_sealed() {
                return Err(self.other_secret("shows a secret, and there is none here"));
            }
            if let Some(line) = self.lines.take() {
                self.is_answered = true;
                return self.parse(&line).map(Some);
            }
            if self.lines.len() > self.longest {
                return Err(WireError::TooLong(
                    self.peer.to_string(),
                    self.longest >> 10,
                ));
            }
            if !self.read()? && !self.wait(PollFlags::POLLIN, deadline)? {
                return Ok(None);
            }
        }
    }

    /// Ends the connection, also where a copy of it is kept open.
    pub fn close(&self) {
        // One that has ended is as wanted.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Nothing is waited for beyond this, however long each wait may take.
    pub fn end_at(&mut self, end: Instant) {
        self.end = Some(end);
    }

    fn deadline(&self, limit: Duration) -> Instant {
        let deadline = Instant::now() + limit;
        self.end.map_or(deadline, |end| deadline.min(end))
    }

    fn parse<T: DeserializeOwned>(&self, line: &[u8]) -> Result<T, WireError> {
        serde_json::from_slice(line).map_err(|error| {
            let text = String::from_utf8_lossy(&line[..line.len().min(EXCERPT)]);
            WireError::Unfit {
                peer: self.peer.to_string(),
                reason: error.to_string(),
                excerpt: text.escape_default().to_string(),
            }
        })
    }

    /// Receives what is there; `None`: nothing.
    fn receive_into(&self, buffer: &mut [u8]) -> Result<Option<usize>, WireError> {
        self.taken((&self.stream).read(buffer))
    }

    fn taken(&self, read: io::Result<usize>) -> Result<Option<usize>, WireError> {
        match read {
            Ok(0) => Err(self.closed()),
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Some(0)),
            Err(error) => Err(self.failed("receiving from", error)),
        }
    }

    fn closed(&self) -> WireError {
        let peer = self.peer.to_string();
        match (self.is_answered, self.shows_secret) {
            (true, _) => WireError::Closed(peer),
            (false, true) => WireError::NotAdmitted(peer),
            (false, false) => WireError::Unanswered(peer),
        }
    }

    fn other_secret(&self, what: &'static str) -> WireError {
        WireError::Secret {
            peer: self.peer.to_string(),
            what,
        }
    }

    /// Waits until the connection is ready; false: it is not in time.
    fn wait(&self, flags: PollFlags, deadline: Instant) -> Result<bool, WireError> {
        loop {
            if let Some(signal) = interrupt::requested() {
                return Err(WireError::Interrupted(signal));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // Whole milliseconds, and none of them lost.
            let slice = left.min(LOOK).as_micros().div_ceil(1000);
            let mut what = [PollFd::new(self.stream.as_fd(), flags)];
            match poll(&mut what, PollTimeout::from(slice as u8)) {
                Ok(0) if left.is_zero() => return Ok(false),
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => return Err(self.refused("waiting for", errno.into())),
            }
        }
    }

    /// That the other end did not answer within a limit.
    pub fn unanswered(&self, limit: Duration) -> WireError {
        self.late("answer", limit)
    }

    fn late(&self, what: &'static str, limit: Duration) -> WireError {
        WireError::Late {
            peer: self.peer.to_string(),
            what,
            limit,
        }
    }

    fn failed(&self, operation: &'static str, source: io::Error) -> WireError {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match source.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset => self.closed(),
            // Of a host without power, or behind a cable that was pulled.
            io::ErrorKind::TimedOut => self.late(
                "acknowledge anything",
                Duration::from_millis(UNACKNOWLEDGED.into()),
            ),
            _ => self.refused(operation, source),
        }
    }

    fn refused(&self, operation: &'static str, source: io::Error) -> WireError {
        WireError::Io {
            operation,
            peer: self.peer.to_string(),
            source,
        }
    }
}

#[cfg(test)]
mod tests;
