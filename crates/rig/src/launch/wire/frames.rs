//! Lines in frames: how both ends show the secret, and what comes is decrypted.

use std::time::{Duration, Instant};

use nix::poll::PollFlags;

use super::{Wire, WireError};
use crate::launch::sealing::{self, GREETING, Sealed};
use crate::launch::secret::Secret;

/// How lines are carried.
#[derive(Debug)]
pub(super) enum Carrier {
    /// As they are.
    Plain,
    /// Not yet: the other end is to greet with the secret, and these bytes of that have come.
    Expecting(Secret, Vec<u8>),
    /// In frames.
    Sealed(Box<Sealed>),
}

impl Wire {
    /// Shows the secret, if there is one, to the end that was connected to.
    ///
    /// # Errors
    /// When that has another secret, or does not answer in time.
    pub fn show(&mut self, secret: Option<&Secret>, limit: Duration) -> Result<(), WireError> {
        let Some(secret) = secret else {
            return Ok(());
        };
        let deadline = self.deadline(limit);
        self.shows_secret = true;
        let (begun, greeting) = sealing::begin(secret);
        self.write(&greeting, limit, deadline)?;
        let mut answer = [0; GREETING];
        let mut came = 0;
        while came < GREETING {
            match self.receive_into(&mut answer[came..])? {
                Some(count) => came += count,
                None if self.wait(PollFlags::POLLIN, deadline)? => {}
                None => return Err(self.unanswered(limit)),
            }
        }
        let sealed = begun.conclude(&answer);
        let sealed =
            sealed.map_err(|_| self.other_secret("has another secret, or is not hcabench"))?;
        self.carrier = Carrier::Sealed(Box::new(sealed));
        self.is_answered = true;
        Ok(())
    }

    /// Lets the other end, which has connected, do nothing before it has shown this secret.
    pub(in super::super) fn expect(&mut self, secret: &Secret) {
        self.carrier = Carrier::Expecting(secret.clone(), Vec::new());
    }

    /// Whether the other end has shown the secret.
    pub fn is_sealed(&self) -> bool {
        matches!(self.carrier, Carrier::Sealed(_))
    }

    /// Whether the other end has shown that it has the secret itself, and not a recorded handshake.
    pub(in super::super) fn is_proven(&self) -> bool {
        matches!(&self.carrier, Carrier::Sealed(sealed) if sealed.is_proven())
    }

    /// Takes what is there; whether there was something.
    pub(super) fn read(&mut self) -> Result<bool, WireError> {
        if let Carrier::Plain = self.carrier {
            let read = self.lines.read_from(&self.stream);
            return self.taken(read).map(|count| count.is_some());
        }
        // An end that is not known gets no more room than its greeting and its first frame take.
        let mut part = [0; 1 << 16];
        let room = match &self.carrier {
            Carrier::Expecting(_, came) => GREETING - came.len(),
            Carrier::Sealed(sealed) => sealed.room().min(part.len()),
            Carrier::Plain => part.len(),
        };
        let Some(count) = self.receive_into(&mut part[..room])? else {
            return Ok(false);
        };
        let part = &part[..count];
        match &mut self.carrier {
            Carrier::Sealed(sealed) => {
                let lines = &mut self.lines;
                let opened = sealed.open(part, |bytes| lines.extend(bytes));
                opened.map_err(|_| WireError::Forged(self.peer.to_string()))?;
            }
            Carrier::Expecting(_, came) => {
                came.extend_from_slice(part);
                self.meet()?;
            }
            Carrier::Plain => {}
        }
        Ok(true)
    }

    /// Answers the greeting, once it is whole. The first bytes of a wrong one show no stranger that they are wrong.
    fn meet(&mut self) -> Result<(), WireError> {
        let Carrier::Expecting(secret, came) = &self.carrier else {
            return Ok(());
        };
        let Some(greeting) = came.first_chunk::<GREETING>() else {
            return Ok(());
        };
        let answered = sealing::answer(secret, greeting);
        let Ok((sealed, answer)) = answered else {
            let what = match greeting.first() {
                _ if sealing::is_greeting(greeting) => "has another secret",
                Some(b'{') => "shows no secret, and there is one here",
                _ => "does not greet as hcabench with a secret does",
            };
            return Err(self.other_secret(what));
        };
        // It has room in any buffer of the kernel.
        self.write(&answer, Duration::ZERO, Instant::now())?;
        self.carrier = Carrier::Sealed(Box::new(sealed));
        Ok(())
    }
}
