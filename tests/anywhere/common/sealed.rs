//! An end of a control connection with a secret, by the crate `snow` alone: as docs/two-hosts.md describes it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use snow::{Builder, TransportState};

/// What hangs takes longer.
const LIMIT: Duration = Duration::from_secs(30);

/// The key of a secret: as docs/two-hosts.md has it.
fn key(secret: &str) -> [u8; 32] {
    use snow::resolvers::{CryptoResolver as _, DefaultResolver};
    let blake2s = &snow::params::HashChoice::Blake2s;
    let mut hash = DefaultResolver.resolve_hash(blake2s).unwrap();
    hash.reset();
    hash.input(b"hcabench control connection, key of the secret\0");
    hash.input(secret.as_bytes());
    let mut key = [0; 32];
    hash.result(&mut key);
    key
}

/// An end of a sealed connection.
pub(crate) struct Sealed {
    pub(crate) stream: TcpStream,
    keys: TransportState,
    /// All that this end has sent, as it is on the wire.
    pub(crate) sent: Vec<u8>,
}

fn frame_of(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

fn read_frame(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

impl Sealed {
    /// Shakes hands over a connection, as the end that connects or the other one.
    pub(crate) fn over(
        mut stream: TcpStream,
        secret: &str,
        connects: bool,
    ) -> std::io::Result<Self> {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let params = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s".parse().unwrap();
        let key = key(secret);
        let builder = Builder::new(params)
            .psk(0, &key)
            .unwrap()
            .prologue(b"hcabench 1")
            .unwrap();
        let mut handshake = match connects {
            true => builder.build_initiator(),
            false => builder.build_responder(),
        }
        .unwrap();
        let mut sent = Vec::new();
        while !handshake.is_handshake_finished() {
            let mut message = [0; 48];
            if handshake.is_my_turn() {
                handshake.write_message(&[], &mut message).unwrap();
                let frame = frame_of(&message);
                stream.write_all(&frame)?;
                sent.extend(frame);
            } else {
                let frame = read_frame(&mut stream)?;
                let read = handshake.read_message(&frame, &mut message);
                read.map_err(|_| std::io::Error::other("another secret"))?;
            }
        }
        let keys = handshake.into_transport_mode().unwrap();
        Ok(Sealed { stream, keys, sent })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        for part in bytes.chunks(65_000) {
            let mut message = vec![0; part.len() + 16];
            self.keys.write_message(part, &mut message).unwrap();
            let frame = frame_of(&message);
            self.stream.write_all(&frame)?;
            self.sent.extend(frame);
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self) -> std::io::Result<Vec<u8>> {
        let frame = read_frame(&mut self.stream)?;
        let mut message = vec![0; frame.len()];
        let count = self.keys.read_message(&frame, &mut message);
        message.truncate(count.map_err(|_| std::io::Error::other("a frame does not decrypt"))?);
        Ok(message)
    }
}
