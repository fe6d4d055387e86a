//! Messages of a benchmark over the control connection, a line of JSON each.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::PeerError;
use crate::launch::wire::{Wire, WireError};
use crate::rig::benchmark::Failure;

/// How long an answer may take that needs no work.
pub const ANSWER: Duration = Duration::from_secs(10);
/// How long an answer may take for which memory is touched, or something is connected.
pub const WORK: Duration = Duration::from_secs(120);

/// All that the processes of a benchmark send each other.
pub trait PeerMessage: Serialize + DeserializeOwned {
    /// What keeps the other end from going on, if this reports it.
    ///
    /// # Errors
    /// Itself, if it is another message.
    fn failure(self) -> Result<Failure, Self>;
}

/// Sends a message.
///
/// # Errors
/// When it is not taken in time.
pub fn send_message(wire: &mut Wire, message: &impl PeerMessage) -> Result<(), WireError> {
    wire.send(message, ANSWER)
}

/// How often a wait for the next message ends, to look for signals.
const IDLE: Duration = Duration::from_millis(500);

/// The next message, however long it takes.
///
/// # Errors
/// When none will come.
pub fn next<M: PeerMessage>(wire: &mut Wire) -> Result<M, PeerError> {
    loop {
        if let Some(message) = wire.poll(IDLE)? {
            return Ok(message);
        }
    }
}

/// Waits for a message that `wanted` takes.
///
/// # Errors
/// When none comes in time, the other end has failed, or it sends something else.
pub fn receive_message<M: PeerMessage, T>(
    wire: &mut Wire,
    limit: Duration,
    wanted: impl FnOnce(M) -> Result<T, Box<M>>,
) -> Result<T, PeerError> {
    let message = wire.receive(limit)?;
    take(wire, message, wanted)
}

/// Takes a message apart.
///
/// # Errors
/// When the other end has failed, or sends something else.
pub fn take<M: PeerMessage, T>(
    wire: &Wire,
    message: M,
    wanted: impl FnOnce(M) -> Result<T, Box<M>>,
) -> Result<T, PeerError> {
    wanted(message).map_err(|message| {
        let failure = (*message).failure().unwrap_or_else(|other| {
            let text = serde_json::to_string(&other).unwrap_or_default();
            let said: String = text.chars().take(80).collect();
            Failure::Run(format!("sent {said} at the wrong time"))
        });
        PeerError::Peer(wire.peer(), failure)
    })
}

/// Waits so long while nothing is asked: whatever comes is an error, and so is the end of the connection.
///
/// # Errors
/// When something comes.
pub fn expect_nothing<M: PeerMessage>(wire: &mut Wire, limit: Duration) -> Result<(), PeerError> {
    match wire.poll::<M>(limit)? {
        Some(message) => take(wire, message, |other| Err(Box::new(other))),
        None => Ok(()),
    }
}

/// What takes a message of one kind.
#[macro_export]
#[doc(hidden)]
macro_rules! only_message {
    ($pattern:pat => $value:expr) => {
        |message| match message {
            $pattern => Ok($value),
            other => Err(Box::new(other)),
        }
    };
}
pub use only_message as only;
