//! The stamps that the adapter of an end makes by its clock (`--hw-timestamps`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bench::hca::error::RunError;
use crate::buffer::{AtomicWords, HugePagePolicy, PageKind};
use crate::rdma::verbs::{Context, NoHardwareClock, StampedQueue, VerbsError};
use crate::time::CounterKind;

/// Reads the clock of an adapter.
type ReadClock = Box<dyn Fn() -> Result<u64, VerbsError> + Send + Sync>;

/// The stamps of an end: as its adapter counts, and where they are stored.
pub struct HardwareStamps {
    kind: CounterKind,
    read: ReadClock,
    kept: AtomicWords,
    /// None in tests, whose ports are made up.
    queue: Option<StampedQueue>,
}

impl std::fmt::Debug for HardwareStamps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "HardwareStamps({:?})", self.kind)
    }
}

impl HardwareStamps {
    /// With room for the stamps of `messages`, which is first touched here.
    pub(super) fn new(
        context: &Arc<Context>,
        queue: StampedQueue,
        messages: usize,
        huge_pages: HugePagePolicy,
    ) -> Result<Self, RunError> {
        let clock = context.hardware_clock().map_err(refused)?;
        let context = Arc::clone(context);
        Ok(HardwareStamps {
            kind: CounterKind {
                mask: clock.mask,
                hertz: clock.khz.map(|khz| khz as f64 * 1e3),
            },
            read: Box::new(move || context.read_hardware_clock()),
            kept: AtomicWords::new(messages, huge_pages)?,
            queue: Some(queue),
        })
    }

    #[cfg(test)]
    pub(crate) fn made_up(
        kind: CounterKind,
        messages: usize,
        read: impl Fn() -> Result<u64, VerbsError> + Send + Sync + 'static,
    ) -> Self {
        HardwareStamps {
            kind,
            read: Box::new(read),
            kept: AtomicWords::new(messages, HugePagePolicy::Off).unwrap(),
            queue: None,
        }
    }

    pub(super) fn stamped_queue(&self) -> &StampedQueue {
        self.queue.as_ref().expect("made of one")
    }

    /// Where stamps are stored.
    pub(crate) fn words(&self) -> &AtomicWords {
        &self.kept
    }

    /// The pages of that.
    pub(crate) fn page_kind(&self) -> PageKind {
        self.kept.page_kind()
    }

    /// How the adapter counts.
    pub(crate) fn kind(&self) -> CounterKind {
        self.kind
    }

    /// What its clock shows now.
    pub(crate) fn read_clock(&self) -> Result<u64, VerbsError> {
        (self.read)()
    }

    /// What was stored at a place; 0 is no stamp.
    pub(crate) fn at(&self, place: usize) -> u64 {
        self.kept
            .get(place)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// A port has no stamps of its adapter.
pub(crate) fn refused(why: NoHardwareClock) -> RunError {
    RunError::Usage(format!(
        "--hw-timestamps: {why}: leave it out, or name ports of other adapters with --sender and --receiver (those \
         with bits and a clock under 'completion stamps' in hcabench devices)"
    ))
}
