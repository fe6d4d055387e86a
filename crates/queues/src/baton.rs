//! Baton: our own queue. Which of our two it is follows from what is known before it is made, so that no operation
//! asks.
//!
//! | it is | where |
//! | --- | --- |
//! | [`demoting`](super::demoting) | the processor has `cldemote`, the ends share no second-level cache, and the slots are few enough |
//! | [`batching`](super::batching) | everywhere else |
//!
//! The registry hands out the one or the other as a type: a loop over `baton` has the instructions of a loop over
//! `baton-demoting` or `baton-batching`, which stay in the list, to compare with. `ci/measure sweep-batons` measures
//! both over capacities and sizes, and prints where they cross.

use hcabench_platform::host::CoreCaches;

use super::demoting::{LARGEST_DEMOTED_KIB, LINE};

/// What is known of a queue before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec {
    /// Elements that it holds.
    pub capacity: usize,
    /// Words of an element.
    pub words: usize,
    /// The CPUs of its sender and its receiver.
    pub cpus: [usize; 2],
    /// Whether its receiver runs on the same core, or on one that shares the second-level cache with it.
    pub shares_cache: bool,
}

impl From<usize> for QueueSpec {
    /// A queue of this capacity, for elements of one word, from CPU 0 to another core like it.
    fn from(capacity: usize) -> Self {
        QueueSpec {
            capacity,
            words: 1,
            cpus: [0; 2],
            shares_cache: false,
        }
    }
}

/// Which of our queues `baton` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baton {
    /// The one that fills batches.
    Batching,
    /// The one that demotes lines.
    Demoting,
}

/// A queue that was chosen, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Its name in the registry.
    pub queue: &'static str,
    /// What decided, beside the size of elements and the capacity.
    pub grounds: Grounds,
}

/// What is known of the cores of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Grounds {
    /// The smaller of their first-level caches.
    pub first_level_bytes: u64,
    /// Whether the system does not report it for both, so that the one of the processor that was measured is assumed.
    pub is_assumed: bool,
    /// Whether the processor has the instruction `cldemote`.
    pub can_demote: bool,
    /// Whether both ends run on one core, or on cores that share the second-level cache.
    pub shares_cache: bool,
}

impl Grounds {
    fn new(caches: [CoreCaches; 2], shares_cache: bool) -> Self {
        let [of_sender, of_receiver] = caches.map(|of| of.first_level_bytes);
        let smaller = of_sender
            .zip(of_receiver)
            .map(|(one, other)| one.min(other));
        Grounds {
            first_level_bytes: smaller.unwrap_or(MEASURED_FIRST_LEVEL),
            is_assumed: smaller.is_none(),
            can_demote: caches.iter().all(|of| of.can_demote),
            shares_cache,
        }
    }

    /// Those of this machine.
    fn of(spec: &QueueSpec) -> Self {
        // Interpreters and model checkers have no such files, and try both by their own names.
        let caches = match cfg!(any(miri, loom)) {
            true => [CoreCaches::default(); 2],
            false => spec.cpus.map(CoreCaches::of_cpu),
        };
        Self::new(caches, spec.shares_cache)
    }
}

/// The first-level cache of the processors that the constants below are from, Xeons with `cldemote`.
const MEASURED_FIRST_LEVEL: u64 = 48 << 10;

// `ci/measure sweep-batons --rounds 15` on two cores of an Emerald Rapids, 1 December 2026: the throughput of demoting,
// in its ratio to filling batches, is 1.38 with 64 elements of 8 B and 0.47 with 256; 1.16 with 256 of 64 B and 0.71 with
// 1024; 1.47 with 256 of 256 B and 0.34 with 1024. The borders are where the lines between these, of logarithms, cross 1.

/// Lines of a ring up to which demoting pays where a line has several elements. With so few the ends meet on the same one
/// most of the time. With more, a batch keeps them apart, and a demoted line still has to come back for its other
/// elements.
const FEW_LINES: usize = 12;
/// Slots of a ring up to which it pays where an element fills its lines: by that rule 389 of 64 B and 369 of 256 B. In
/// larger ones a batch keeps the ends apart.
const FEW_SLOTS: usize = 384;

impl Baton {
    /// All that it can be.
    pub const ALL: [Baton; 2] = [Baton::Batching, Baton::Demoting];

    /// The one for a queue on this machine, and by what.
    pub fn choice(spec: &QueueSpec) -> Choice {
        let grounds = Grounds::of(spec);
        Choice {
            queue: Self::on(spec, &grounds).name(),
            grounds,
        }
    }

    /// The one for a queue on such cores. No larger ring than that of which [`demoting`](super::demoting) demotes lines,
    /// 128 KiB where the first-level cache has 48, and in proportion where it is smaller, which is assumed. Between two
    /// threads of a core nothing moves, so that demoting would only send it away.
    fn on(spec: &QueueSpec, grounds: &Grounds) -> Self {
        let first_level = grounds.first_level_bytes.min(MEASURED_FIRST_LEVEL);
        let scaled = ((LARGEST_DEMOTED_KIB as u64) << 10) * first_level / MEASURED_FIRST_LEVEL;
        let most_words = match spec.words < LINE {
            true => FEW_LINES * LINE,
            false => (scaled as usize / size_of::<u64>()).min(FEW_SLOTS * spec.words),
        };
        let has_few = spec.capacity.saturating_mul(spec.words) <= most_words;
        match grounds.can_demote && !grounds.shares_cache && has_few {
            true => Baton::Demoting,
            false => Baton::Batching,
        }
    }

    /// Its name in the registry.
    pub const fn name(self) -> &'static str {
        match self {
            Baton::Batching => "baton-batching",
            Baton::Demoting => "baton-demoting",
        }
    }

    /// Whether it is the one that demotes.
    pub(super) fn demotes(spec: &QueueSpec) -> bool {
        Self::on(spec, &Grounds::of(spec)) == Baton::Demoting
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const XEON: CoreCaches = CoreCaches {
        first_level_bytes: Some(48 << 10),
        can_demote: true,
    };

    fn made(capacity: usize, bytes: usize, caches: &CoreCaches) -> Baton {
        let spec = QueueSpec {
            words: bytes / 8,
            ..QueueSpec::from(capacity)
        };
        Baton::on(&spec, &Grounds::new([*caches; 2], false))
    }

    #[test]
    fn each_is_made_where_it_won() {
        let found = |capacity, bytes| made(capacity, bytes, &XEON);
        for (capacity, bytes) in [(64, 8), (64, 64), (256, 64), (256, 256)] {
            assert_eq!(found(capacity, bytes), Baton::Demoting);
        }
        for (capacity, bytes) in [(256, 8), (1024, 8), (1024, 64), (1024, 256), (65536, 64)] {
            assert_eq!(found(capacity, bytes), Baton::Batching);
        }
        // The borders.
        let is = [
            (96, 8),
            (97, 8),
            (384, 64),
            (385, 64),
            (256, 512),
            (257, 512),
        ]
        .map(|(capacity, bytes)| found(capacity, bytes) == Baton::Demoting);
        assert_eq!(is, [true, false, true, false, true, false]);
        assert_eq!(found(usize::MAX, 256), Baton::Batching);
    }

    #[test]
    fn nothing_is_demoted_without_the_instruction_or_within_a_core() {
        let without = CoreCaches {
            can_demote: false,
            ..XEON
        };
        assert_eq!(made(64, 64, &without), Baton::Batching);
        let on = |caches, shares_cache| {
            Baton::on(&QueueSpec::from(64), &Grounds::new(caches, shares_cache))
        };
        assert_eq!(on([XEON; 2], false), Baton::Demoting);
        assert_eq!(on([XEON; 2], true), Baton::Batching);
        assert_eq!(on([XEON, without], false), Baton::Batching);
    }

    #[test]
    fn a_smaller_first_level_cache_keeps_less() {
        let of = |bytes| CoreCaches {
            first_level_bytes: bytes,
            ..XEON
        };
        assert_eq!(made(256, 512, &of(Some(32 << 10))), Baton::Batching);
        assert_eq!(made(128, 512, &of(Some(32 << 10))), Baton::Demoting);
        // No more than was measured, and that where nothing is known.
        assert_eq!(made(257, 512, &of(Some(96 << 10))), Baton::Batching);
        assert_eq!(made(256, 512, &of(None)), Baton::Demoting);
        // The smaller one decides, whichever end has it, and what is assumed is stated.
        let both = [of(Some(32 << 10)), XEON];
        for caches in [both, [both[1], both[0]]] {
            let grounds = Grounds::new(caches, false);
            assert_eq!(
                (grounds.first_level_bytes, grounds.is_assumed),
                (32 << 10, false)
            );
        }
        let grounds = Grounds::new([XEON, of(None)], false);
        assert_eq!(
            (grounds.first_level_bytes, grounds.is_assumed),
            (48 << 10, true)
        );
    }
}
