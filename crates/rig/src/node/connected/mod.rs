//! Ends over connected sockets: what `tcp` and `unix` share.
//!
//! Each publisher has a connection to each of its subscribers, and distributes its samples itself. A connection begins
//! with the name of the run; one that begins otherwise is closed. On a stream a sample is a frame: its length in 4
//! bytes, little-endian, and its bytes. A subscriber passes on whole frames alone, and keeps what has come of the next
//! one. On sockets that keep messages apart, a sample is a message.
//!
//! A sample for which there is no room is refused. Where there is room for the beginning of a frame, or for the copy of
//! some subscribers alone, the publisher keeps the rest, and refuses further samples until it has sent that. So no
//! sample is lost as long as both ends run, and each goes to all of its subscribers or to none.
//!
//! A subscriber with several connections finds those that have something by `epoll_wait`, and reads from them in turn.

mod publisher;
mod subscriber;

use std::fmt;
use std::os::fd::{AsFd as _, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Backlog, SockFlag, SockaddrLike, listen};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use publisher::ConnectedPublisher;
pub use subscriber::ConnectedSubscriber;

use super::pool::WORD;
use super::wiring::Distribution;
use super::{LONGEST_SLEEP_MS, Maker, NodeError, Settings, Wiring};

/// Bytes of the length before a sample.
const LENGTH: usize = size_of::<u32>();

/// The sockets of a node-type.
pub trait Sockets: fmt::Debug + Copy + Send + 'static {
    /// The place to connect to.
    type Address: SockaddrLike + fmt::Debug + fmt::Display + Send + 'static;
    /// The same as a subscriber reports it.
    type Told: Serialize + DeserializeOwned;

    /// Opens a socket, with its options.
    ///
    /// # Errors
    /// When the system has none, or refuses an option.
    fn open(&self, flags: SockFlag) -> Result<OwnedFd, NodeError>;

    /// Binds the socket of that subscriber of the run, and returns its address.
    ///
    /// # Errors
    /// When the system refuses it.
    fn bind(&self, socket: &OwnedFd, run: &str, number: u32) -> Result<Self::Told, NodeError>;

    /// The place to connect to.
    ///
    /// # Errors
    /// When the report is not an address.
    fn address(&self, told: &Self::Told) -> Result<Self::Address, NodeError>;

    /// Whether messages are received as they were sent.
    fn keeps_messages(&self) -> bool;
}

/// Opens sockets: subscribers listen, and publishers connect.
#[derive(Debug)]
pub struct Connected<'a, S> {
    /// The sockets.
    pub sockets: S,
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A name that no other run has.
    pub name: &'a str,
}

impl<S: Sockets> Connected<'_, S> {
    /// Bytes of a sample.
    fn sample_bytes(&self) -> usize {
        self.settings.words * WORD
    }

    /// Bytes before a sample.
    fn length_bytes(&self) -> usize {
        if self.sockets.keeps_messages() {
            0
        } else {
            LENGTH
        }
    }
}

impl<S: Sockets> Maker for Connected<'_, S> {
    type Publisher = ConnectedPublisher<S>;
    type Subscriber = ConnectedSubscriber;
    type Address = S::Told;

    fn publisher(
        &self,
        number: u32,
        addresses: &[S::Told],
    ) -> Result<ConnectedPublisher<S>, NodeError> {
        let targets = self.wiring.subscribers_of(number);
        let targets = targets.map(|target| self.sockets.address(&addresses[target as usize]));
        let addresses = targets.collect::<Result<_, _>>()?;
        let distribution = Distribution::new(self.wiring, number);
        Ok(ConnectedPublisher::new(self, addresses, distribution))
    }

    fn subscriber(&self, number: u32) -> Result<(ConnectedSubscriber, S::Told), NodeError> {
        let listener = self.sockets.open(SockFlag::SOCK_NONBLOCK)?;
        let address = self.sockets.bind(&listener, self.name, number)?;
        listen(&listener, Backlog::MAXCONN).map_err(failed(
            "listen at",
            "a socket",
            "see dmesg",
        ))?;
        let publishers = self.wiring.publishers_of(number).count();
        let subscriber = ConnectedSubscriber::new(self, listener, publishers);
        Ok((subscriber, address))
    }
}

fn failed(
    operation: &'static str,
    object: impl ToString,
    advice: &'static str,
) -> impl FnOnce(Errno) -> NodeError {
    let failed = NodeError::io(operation, object, advice);
    move |errno| failed(errno.into())
}

/// Sleeps until a socket is ready, or for so long; an interrupted wait is like one that was in vain.
fn sleep_until(socket: &OwnedFd, flags: PollFlags) {
    let mut fds = [PollFd::new(socket.as_fd(), flags)];
    let _ = poll(&mut fds, PollTimeout::from(LONGEST_SLEEP_MS));
}

#[cfg(test)]
mod tests;
