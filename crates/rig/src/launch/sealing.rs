//! What a connection with a secret carries: the handshake and the frames of the Noise protocol, by the crate `snow`.
//!
//! The end that connects sends the first message, which only the same secret can have made: any other end gets no
//! answer. A frame is two bytes with its length, and that many bytes. A recorded connection that is sent again gets an
//! answer to its first message, which cannot be read without the secret, and its first frame after that is refused.

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, TransportState};

use super::secret::Secret;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// What both ends must have in common besides.
const PROLOGUE: &[u8] = b"hcabench 1";
/// Bytes of the length of a frame.
const LENGTH: usize = 2;
/// Bytes by which what is sealed is longer.
const TAG: usize = 16;
/// Bytes of a message of the handshake: a key and a tag.
const MESSAGE: usize = 32 + TAG;
/// Bytes of a frame of the handshake.
pub(super) const GREETING: usize = LENGTH + MESSAGE;
/// The most that a frame carries, and that the first one does: until that is there, the other end may have sent a
/// recorded handshake, and is to take little memory.
const MOST_IN_FRAME: usize = u16::MAX as usize - TAG;
const MOST_IN_FIRST: usize = 1024;

/// What came cannot be of an end with the same secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forged;

fn builder(secret: &Secret) -> Builder<'_> {
    let params: NoiseParams = PATTERN.parse().expect("snow knows the pattern");
    let builder = Builder::new(params).psk(0, secret.key());
    let builder = builder.and_then(|builder| builder.prologue(PROLOGUE));
    builder.expect("each is set once")
}

/// Whether these bytes have the form of a message of the handshake.
pub(super) fn is_greeting(frame: &[u8; GREETING]) -> bool {
    frame.starts_with(&(MESSAGE as u16).to_be_bytes())
}

/// The next message of a handshake, as a frame.
fn write(handshake: &mut HandshakeState) -> [u8; GREETING] {
    let mut frame = [0; GREETING];
    let (length, message) = frame.split_at_mut(LENGTH);
    length.copy_from_slice(&(MESSAGE as u16).to_be_bytes());
    // Only the kernel's random numbers can fail here, and nothing is safe without them.
    let written = handshake.write_message(&[], message);
    assert_eq!(written, Ok(MESSAGE), "a handshake was not written");
    frame
}

fn read(handshake: &mut HandshakeState, frame: &[u8; GREETING]) -> Result<(), Forged> {
    if !is_greeting(frame) {
        return Err(Forged);
    }
    let read = handshake.read_message(&frame[LENGTH..], &mut []);
    read.map(drop).map_err(|_| Forged)
}

/// A handshake that was begun.
pub(super) struct Begun(HandshakeState);

/// Begins a handshake: what is to be sent.
pub(super) fn begin(secret: &Secret) -> (Begun, [u8; GREETING]) {
    let mut handshake = builder(secret)
        .build_initiator()
        .expect("the pattern takes no other key");
    let frame = write(&mut handshake);
    (Begun(handshake), frame)
}

impl Begun {
    /// Takes the answer.
    pub(super) fn conclude(mut self, answer: &[u8; GREETING]) -> Result<Sealed, Forged> {
        read(&mut self.0, answer)?;
        Ok(Sealed::of(self.0))
    }
}

/// Answers a handshake, with what is to be sent.
pub(super) fn answer(
    secret: &Secret,
    frame: &[u8; GREETING],
) -> Result<(Sealed, [u8; GREETING]), Forged> {
    let mut handshake = builder(secret)
        .build_responder()
        .expect("the pattern takes no other key");
    read(&mut handshake, frame)?;
    let answer = write(&mut handshake);
    Ok((Sealed::of(handshake), answer))
}

/// A connection whose ends have shaken hands.
pub(super) struct Sealed {
    keys: TransportState,
    /// The part of a frame that has come.
    came: Vec<u8>,
    /// Whether a frame was sent, and whether one has come.
    has_sent: bool,
    is_proven: bool,
}

impl std::fmt::Debug for Sealed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sealed")
    }
}

impl Sealed {
    fn of(handshake: HandshakeState) -> Self {
        let keys = handshake.into_transport_mode();
        Sealed {
            keys: keys.expect("both messages are there"),
            came: Vec::new(),
            has_sent: false,
            is_proven: false,
        }
    }

    /// Whether a frame has come: a recorded handshake is followed by none that can be opened.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// The most bytes that the next frame may carry.
    pub(super) fn most(&self) -> usize {
        match self.has_sent {
            true => MOST_IN_FRAME,
            false => MOST_IN_FIRST,
        }
    }

    /// The most bytes that may be taken in at once.
    pub(super) fn room(&self) -> usize {
        match self.is_proven {
            true => usize::MAX,
            false => LENGTH + MOST_IN_FIRST + TAG - self.came.len(),
        }
    }

    /// A frame with these bytes, at most [`most`](Self::most).
    pub(super) fn seal(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.has_sent = true;
        let mut frame = vec![0; LENGTH + bytes.len() + TAG];
        let (length, message) = frame.split_at_mut(LENGTH);
        length.copy_from_slice(&(message.len() as u16).to_be_bytes());
        let written = self.keys.write_message(bytes, message);
        assert_eq!(written, Ok(bytes.len() + TAG), "a frame was not written");
        frame
    }

    /// Opens what has come, as far as frames are whole, and has `take` take it.
    pub(super) fn open(&mut self, came: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), Forged> {
        self.came.extend_from_slice(came);
        let mut rest = self.came.as_slice();
        let mut opened = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<LENGTH>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if !self.is_proven && length > MOST_IN_FIRST + TAG {
                return Err(Forged);
            }
            let Some((frame, after)) = after.split_at_checked(length) else {
                break;
            };
            opened.resize(length, 0);
            match self.keys.read_message(frame, &mut opened) {
                // Frames without content could be sent without end.
                Ok(0) | Err(_) => return Err(Forged),
                Ok(count) => take(&opened[..count]),
            }
            self.is_proven = true;
            rest = after;
        }
        let taken = self.came.len() - rest.len();
        self.came.drain(..taken);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::of(text.as_bytes()).unwrap()
    }

    fn two() -> (Sealed, Sealed) {
        let secret = secret("the secret of this test");
        let (begun, greeting) = begin(&secret);
        let (there, back) = answer(&secret, &greeting).unwrap();
        (begun.conclude(&back).unwrap(), there)
    }

    fn opened(end: &mut Sealed, came: &[u8]) -> Result<Vec<u8>, Forged> {
        let mut all = Vec::new();
        end.open(came, |bytes| all.extend_from_slice(bytes))?;
        Ok(all)
    }

    #[test]
    fn both_ways_arrive_in_whatever_pieces() {
        let (mut here, mut there) = two();
        let large: Vec<u8> = (0..MOST_IN_FRAME).map(|at| at as u8).collect();
        assert_eq!((here.most(), there.room()), (1024, 2 + 1024 + TAG));
        let frames = [here.seal(b"one"), here.seal(&large), here.seal(b"end")].concat();
        let mut all = Vec::new();
        for piece in frames.chunks(977) {
            all.extend(opened(&mut there, piece).unwrap());
            assert!(there.came.len() < usize::from(u16::MAX) + LENGTH);
        }
        assert_eq!(all, [b"one", large.as_slice(), b"end"].concat());
        let back = there.seal(b"back");
        assert!(!back.windows(4).any(|bytes| bytes == b"back"));
        assert_eq!(opened(&mut here, &back).unwrap(), b"back");
    }

    #[test]
    fn another_secret_or_garbage_gets_no_answer() {
        let own = secret("the secret of this test");
        let (_, other) = begin(&secret("another secret than this"));
        assert_eq!(answer(&own, &other).err(), Some(Forged));
        let (begun, greeting) = begin(&own);
        for place in 0..GREETING {
            let mut changed = greeting;
            changed[place] ^= 1;
            assert_eq!(answer(&own, &changed).err(), Some(Forged), "{place}");
        }
        // The end that listens there has another secret.
        let (_, back) = answer(&own, &greeting).unwrap();
        let mut changed = back;
        changed[GREETING - 1] ^= 1;
        assert_eq!(begun.conclude(&changed).err(), Some(Forged));
    }

    #[test]
    fn frames_that_are_changed_repeated_left_out_or_sent_back_are_refused() {
        let (mut here, mut there) = two();
        let one = here.seal(b"one");
        assert_eq!(opened(&mut there, &one).unwrap(), b"one");
        assert_eq!(opened(&mut there, &one), Err(Forged), "repeated");
        assert_eq!(opened(&mut here, &one), Err(Forged), "sent back");
        let (mut here, mut there) = two();
        assert_eq!(
            opened(&mut there, &one),
            Err(Forged),
            "of another connection"
        );
        let [_left_out, second] = [b"one", b"two"].map(|bytes| here.seal(bytes));
        assert_eq!(opened(&mut there, &second), Err(Forged), "left out");
        for place in LENGTH..one.len() {
            let (mut here, mut there) = two();
            let mut changed = here.seal(b"one");
            changed[place] ^= 0x80;
            assert_eq!(opened(&mut there, &changed), Err(Forged), "{place}");
        }
        for short in 0..=TAG {
            let mut frame = vec![0; LENGTH + short];
            frame[1] = short as u8;
            assert_eq!(opened(&mut two().1, &frame), Err(Forged), "{short}");
        }
    }

    #[test]
    fn the_first_frame_is_small_so_that_a_recorded_handshake_gets_no_memory() {
        let (mut here, mut there) = two();
        let first = here.seal(&[7; MOST_IN_FIRST]);
        assert_eq!(first.len(), there.room());
        assert_eq!(opened(&mut there, &first[..9]), Ok(Vec::new()));
        assert_eq!(there.room(), first.len() - 9);
        assert!(!there.is_proven());
        assert_eq!(opened(&mut there, &first[9..]).unwrap(), [7; MOST_IN_FIRST]);
        assert!(there.is_proven() && there.room() > 1 << 16);
        assert_eq!(
            opened(&mut there, &here.seal(&[7; MOST_IN_FRAME]))
                .unwrap()
                .len(),
            MOST_IN_FRAME
        );
        let (mut here, mut there) = two();
        let longer = here.seal(&[7; MOST_IN_FIRST + 1]);
        assert_eq!(opened(&mut there, &longer[..LENGTH]), Err(Forged));
    }

    #[test]
    fn a_recorded_connection_that_is_sent_again_says_nothing() {
        let own = secret("the secret of this test");
        let (begun, greeting) = begin(&own);
        let (mut there, back) = answer(&own, &greeting).unwrap();
        let mut here = begun.conclude(&back).unwrap();
        let line = here.seal(b"a line");
        assert_eq!(opened(&mut there, &line).unwrap(), b"a line");
        let (mut again, other_back) = answer(&own, &greeting).unwrap();
        assert_ne!(back, other_back);
        assert_eq!(opened(&mut again, &line), Err(Forged));
    }
}
