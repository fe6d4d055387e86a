//! The receiving loop.

use super::control::Control;
use super::port::{CompletionPort, Failure, PollMode, Polled};
use crate::buffer::Arrival;
use crate::time::Clock;

/// What the immediate data says: which message of which burst. A message that comes late, when its burst is over, is
/// told by it from those of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    burst: u32,
}

const SEQUENCE_BITS: u32 = 16;

impl Tag {
    /// The tag of burst number `burst` of a connection; it returns after 65536 bursts.
    pub fn new(burst: u32) -> Self {
        Tag {
            burst: burst << SEQUENCE_BITS,
        }
    }

    /// The immediate data of message `sequence`.
    #[inline(always)]
    pub fn immediate_data(self, sequence: u32) -> u32 {
        self.burst | sequence
    }

    /// Whether a message is of this burst.
    #[inline(always)]
    pub fn is_of(self, immediate_data: u32) -> bool {
        immediate_data >> SEQUENCE_BITS == self.burst >> SEQUENCE_BITS
    }

    /// The sequence number in immediate data.
    pub fn sequence(immediate_data: u32) -> u32 {
        immediate_data & ((1 << SEQUENCE_BITS) - 1)
    }
}

/// How a receiving loop ended.
#[derive(Debug, Default)]
pub struct ReceiveOutcome {
    /// Entries of the log that are filled.
    pub received: usize,
    /// Messages of an earlier burst that came late.
    pub late: u32,
    /// What ended the loop early.
    pub failure: Option<Failure>,
}

/// Takes completions until `arrivals` is full, or it is told to stop.
pub fn receive<C: Clock, P: CompletionPort, M: PollMode<P>>(
    clock: &C,
    port: &mut P,
    _mode: M,
    tag: Tag,
    arrivals: &mut [Arrival],
    control: &Control,
) -> ReceiveOutcome {
    let mut outcome = ReceiveOutcome::default();
    if let Err(failure) = M::start(port) {
        control.set_failed();
        outcome.failure = Some(failure);
        return outcome;
    }
    control.announce_ready();
    let mut received = 0;
    let mut stopping = false;
    while received < arrivals.len() {
        match port.poll() {
            Polled::Done(completion) => {
                let stamp = clock.now();
                arrivals[received] = Arrival {
                    stamp,
                    label: completion.immediate_data,
                    slot: completion.request as u32,
                    bytes: completion.bytes,
                };
                if tag.is_of(completion.immediate_data) {
                    received += 1;
                    control.set_received(received as u32);
                } else {
                    // It is overwritten by the next one.
                    outcome.late += 1;
                    if control.stopped() {
                        break;
                    }
                }
            }
            Polled::Empty => {
                // One more look after the word to stop: what came before it counts.
                if stopping {
                    break;
                }
                stopping = control.stopped();
                if !stopping && let Err(failure) = M::idle(port) {
                    control.set_failed();
                    outcome.failure = Some(failure);
                    break;
                }
            }
            Polled::Failed(failure) => {
                control.set_failed();
                outcome.failure = Some(failure);
                break;
            }
        }
    }
    outcome.received = received;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_bursts_and_keeps_the_sequence_number() {
        let tag = Tag::new(7);
        for sequence in [0, 1, 8191, 65_535] {
            let data = tag.immediate_data(sequence);
            assert!(tag.is_of(data));
            assert!(!Tag::new(6).is_of(data));
            assert_eq!(Tag::sequence(data), sequence);
        }
        assert_eq!(Tag::new(65_536), Tag::new(0));
    }
}
