//! Unix sockets, of streams or of messages in sequence: [`connected`](super::connected) with sockets of the host.
//!
//! Inside the latency of a sample: `send`, which copies it to the queue of the other socket, and `recv`. Sockets listen
//! at abstract names, so that no file is left behind.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};

use super::connected::Sockets;
use super::settings::UnixSocket;
use super::{NodeError, Settings};

/// Unix sockets of that kind.
#[derive(Debug, Clone, Copy)]
pub struct UnixSockets {
    kind: UnixSocket,
}

impl UnixSockets {
    /// Those of the settings.
    pub fn of(settings: &Settings) -> Self {
        UnixSockets {
            kind: settings.sockets.unix_socket,
        }
    }
}

impl Sockets for UnixSockets {
    type Address = UnixAddr;
    type Told = String;

    fn open(&self, flags: SockFlag) -> Result<OwnedFd, NodeError> {
        let kind = match self.kind {
            UnixSocket::Stream => SockType::Stream,
            UnixSocket::SeqPacket => SockType::SeqPacket,
        };
        let opened = socket(
            AddressFamily::Unix,
            kind,
            flags | SockFlag::SOCK_CLOEXEC,
            None,
        );
        opened
            .map_err(|error| NodeError::io("open", "a Unix socket", "see man 7 unix")(error.into()))
    }

    fn bind(&self, socket: &OwnedFd, run: &str, number: u32) -> Result<String, NodeError> {
        let name = format!("{run}-{number}");
        let bound = bind(socket.as_raw_fd(), &self.address(&name)?);
        bound.map_err(|error| {
            let object = format!("the Unix socket @{name}");
            NodeError::io("bind", object, "check which process has it: ss -xlp")(error.into())
        })?;
        Ok(name)
    }

    fn address(&self, told: &String) -> Result<UnixAddr, NodeError> {
        let address = UnixAddr::new_abstract(told.as_bytes());
        address.map_err(|error| {
            let object = format!("a Unix socket @{told}");
            NodeError::io("name", object, "this is a bug: the name is too long")(error.into())
        })
    }

    fn keeps_messages(&self) -> bool {
        self.kind == UnixSocket::SeqPacket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_listen_at_names_that_no_other_has_and_leave_no_file() {
        let sockets = UnixSockets::of(&Settings::of_words(3));
        assert!(!sockets.keeps_messages());
        let run = format!("hcabench-unix-{}", std::process::id());
        let [one, other] = [0, 1].map(|_| sockets.open(SockFlag::empty()).unwrap());
        let name = sockets.bind(&one, &run, 7).unwrap();
        assert_eq!(name, format!("{run}-7"));
        assert!(!std::path::Path::new(&name).exists());
        let error = sockets.bind(&other, &run, 7).unwrap_err().to_string();
        assert!(error.contains(&format!("@{name}")), "{error}");
        sockets.bind(&other, &run, 8).unwrap();
    }
}
