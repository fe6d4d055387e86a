//! What the hot loops see of the fabric: a way to send, and queues of completions.
//!
//! The loops are written once, over these traits. The verbs are one implementation; memory shared by two threads is
//! another, which gives the instrument's floor and lets the loops be tested without a device.

#[cfg(test)]
pub(crate) mod scripted;

use crate::time::Ticks;

/// A completion, as the loops need it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Completion {
    /// The work request's number: a slot for receives, a sequence number for sends.
    pub request: u64,
    /// Immediate data of a received message.
    pub immediate_data: u32,
    /// Bytes of a received message, without headers.
    pub bytes: u32,
    /// The queue pair that sent a received message; told on UD only.
    pub source_queue_pair: u32,
}

/// Why a port fails.
#[derive(Clone, Copy)]
pub struct Failure {
    /// The work request in question, if it was one.
    pub request: Option<u64>,
    /// A status or errno, for `describe`.
    pub code: i64,
    /// The vendor's own code, for `describe`.
    pub vendor_error: u32,
    /// Whether it only follows from an earlier failure.
    pub consequence: bool,
    /// Whether a message of somebody else caused it, which did not fit: the queue pair goes on.
    pub foreign: bool,
    /// Puts the two codes in words.
    pub describe: fn(code: i64, vendor_error: u32) -> String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&(self.describe)(self.code, self.vendor_error))
    }
}

impl std::fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Failure({self}, request {:?})", self.request)
    }
}

/// What a look into a completion queue brought.
#[derive(Debug, Clone, Copy)]
pub enum PollResult {
    /// Nothing was there.
    Empty,
    /// A work request ended well.
    Done(Completion),
    /// A work request failed.
    Failed(Failure),
}

/// Where messages are sent.
pub trait SendPort: Send {
    /// Makes message `sequence` ready but for its time stamp: all work that need not stand between stamp and posting.
    fn prepare(&mut self, sequence: u32, signaled: bool);

    /// Writes the time stamp into the prepared message.
    fn stamp(&mut self, stamp: Ticks);

    /// Posts the prepared message.
    fn post(&mut self) -> Result<(), Failure>;
}

/// Where completions are found.
pub trait CompletionPort: Send {
    /// Takes one completion if there is one; never blocks.
    fn poll(&mut self) -> PollResult;

    /// Keeps the adapter's stamp of the completion that was taken last, at a place, if adapters stamp completions here.
    #[inline(always)]
    fn keep_stamp(&mut self, _place: usize) {}

    /// Looks at the `slots` behind the next one too, where a message before them may be lost without a trace. Returns
    /// whether the next look finds a message.
    #[inline(always)]
    fn finds_behind(&mut self, _slots: usize) -> bool {
        false
    }
}

/// A completion port of several queue pairs.
pub trait QueuePairPort: CompletionPort {
    /// The number of the queue pair of the completion that was taken last.
    fn queue_pair(&self) -> u32;
}

/// A completion port that a thread can sleep on.
pub trait EventPort: CompletionPort {
    /// Asks for an event at the next completion.
    fn arm(&mut self) -> Result<(), Failure>;

    /// Sleeps until the event, or until the thread is woken.
    fn sleep(&mut self) -> Result<(), Failure>;
}

/// How a thread waits for completions.
pub trait PollMode<P: CompletionPort> {
    /// Called before the first look.
    fn start(&mut self, port: &mut P) -> Result<(), Failure>;

    /// Called when a look brought nothing; afterwards the next one is due.
    fn idle(&mut self, port: &mut P) -> Result<(), Failure>;
}

/// Looks again at once.
#[derive(Debug)]
pub struct BusyPolling;

impl<P: CompletionPort> PollMode<P> for BusyPolling {
    #[inline(always)]
    fn start(&mut self, _port: &mut P) -> Result<(), Failure> {
        Ok(())
    }

    #[inline(always)]
    fn idle(&mut self, _port: &mut P) -> Result<(), Failure> {
        Ok(())
    }
}

/// Sleeps until there is an event.
#[derive(Debug, Default)]
pub struct WaitForEvent {
    /// Whether an event was asked for, and a look taken since.
    armed: bool,
}

impl<P: EventPort> PollMode<P> for WaitForEvent {
    #[inline(always)]
    fn start(&mut self, port: &mut P) -> Result<(), Failure> {
        self.armed = true;
        port.arm()
    }

    // Awake, it looks first and asks for the next event only when nothing is left, so that asking does not stand
    // between an event and the stamp of its completion. Between asking and sleeping there is one more look: what came
    // before it is seen by that look, what comes after it makes an event, so none is slept through.
    #[inline(always)]
    fn idle(&mut self, port: &mut P) -> Result<(), Failure> {
        if self.armed {
            self.armed = false;
            port.sleep()
        } else {
            self.armed = true;
            port.arm()
        }
    }
}
