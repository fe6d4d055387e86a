//! What may have caused a jump, as far as the kernel's counters tell.
//!
//! Counters are read after a jump, outside of the loop; the loop then starts anew, and the time in between is blind.
//! What a reading tells is what was added since the reading before, over the *window* between the two. Its *rivals* are
//! all other differences of the window that can have been interrupts, jumps or not, and stops while the clock was not
//! watched. Context switches, faults and SMIs are given to the longest of them, to others only as "not told apart".
//! Interrupts and softirqs explain a jump only if there were more of them than rivals: else each may belong to a rival.
//! Where the baseline is so high that an interrupt need not show as a difference at all, they explain a jump only if the
//! window is at most [`FAR`] times as long as the jump.
//!
//! What that cannot tell: an interrupt that came while counters were being read, and was too short to show in the time
//! that this took, is found at the next reading, and may be given to a jump that it did not cause; what a hypervisor did
//! while it handled an interrupt is taken for the interrupt.

use serde::Serialize;

use crate::host::counters::{CpuCounters, Deltas, Risen};

/// Reads counters of the CPU and the thread.
pub trait Sampler {
    /// What was added to each since the last time.
    fn read(&mut self) -> Deltas;
}

impl<S: Sampler> Sampler for &mut S {
    fn read(&mut self) -> Deltas {
        S::read(self)
    }
}

impl Sampler for CpuCounters {
    fn read(&mut self) -> Deltas {
        CpuCounters::read(self)
    }
}

/// Interrupts that a cause names, at most.
pub const NAMED: usize = 4;

/// What is known of a jump's cause. Where several counters rose, it is the first of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The clock was set back; the thread need not have been stopped.
    Backward,
    /// A system management interrupt was counted.
    Smi,
    /// Another thread ran (involuntary context switch).
    InvoluntarySwitch,
    /// The thread was stopped or had to wait (voluntary context switch).
    VoluntarySwitch,
    /// A page had to be read from a disk.
    MajorFault,
    /// The hypervisor gave the CPU's time to others; at most twice that time, and a millisecond or more, was lost.
    Steal,
    /// A page fault.
    MinorFault,
    /// Interrupts, by row.
    Interrupts([Option<u16>; NAMED]),
    /// Softirqs without an interrupt, by row.
    Softirqs([Option<u16>; NAMED]),
    /// Counters rose, and another difference that was not sampled may be why.
    NotToldApart,
    /// The stop fell into the time between two passes of the loop; counters cannot be told from those of the reading.
    NotWatched,
    /// No counter rose that could be read.
    Unexplained,
    /// No counter was read.
    NotSampled,
}

/// A jump, as far as its cause depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Jumped {
    /// Its length in nanoseconds.
    pub nanos: u64,
    /// Whether a longer one of the same window was not sampled.
    pub longer_in_window: bool,
    /// Other differences of the window to which an interrupt can belong.
    pub rivals: u64,
    /// Whether there may be more that did not show, in a window far longer than the jump.
    pub hidden_rivals: bool,
}

/// A window is far longer than a jump when it is more than so many times as long.
pub const FAR: u64 = 100;

/// The length of a tick of the steal time, and from where on it is looked at.
const STEAL_TICK_NS: u64 = 10_000_000;
const STEAL_FROM_NS: u64 = 1_000_000;

impl Cause {
    /// What the counters say of a jump.
    pub fn of(deltas: &Deltas, jumped: Jumped) -> Self {
        if deltas.is_empty() {
            return Cause::Unexplained;
        }
        if jumped.longer_in_window {
            return Cause::NotToldApart;
        }
        let named = |rows: &[(u16, u32)]| {
            let mut names = [None; NAMED];
            for (name, (row, _)) in names.iter_mut().zip(rows) {
                *name = Some(*row);
            }
            names
        };
        let told_apart = |rows: &Risen| !jumped.hidden_rivals && rows.total() > jumped.rivals;
        // Ticks add up over many short thefts: one alone says little of a short jump.
        let stolen = u64::from(deltas.steal_ticks) * STEAL_TICK_NS * 2 >= jumped.nanos
            && deltas.steal_ticks > 0
            && jumped.nanos >= STEAL_FROM_NS;
        if deltas.smis > 0 {
            Cause::Smi
        } else if deltas.involuntary_switches > 0 {
            Cause::InvoluntarySwitch
        } else if deltas.voluntary_switches > 0 {
            Cause::VoluntarySwitch
        } else if deltas.major_faults > 0 {
            Cause::MajorFault
        } else if stolen {
            Cause::Steal
        } else if deltas.minor_faults > 0 {
            Cause::MinorFault
        } else if !deltas.interrupts.is_empty() {
            if told_apart(&deltas.interrupts) {
                Cause::Interrupts(named(deltas.interrupts.rows()))
            } else {
                Cause::NotToldApart
            }
        } else if !deltas.softirqs.is_empty() {
            if told_apart(&deltas.softirqs) {
                Cause::Softirqs(named(deltas.softirqs.rows()))
            } else {
                Cause::NotToldApart
            }
        } else {
            Cause::Unexplained
        }
    }

    /// In words, with the rows' names.
    pub fn describe(&self, names: &Names) -> String {
        let list = |of: &[String], rows: &[Option<u16>; NAMED], kind: &str| {
            let found: Vec<&str> = rows
                .iter()
                .flatten()
                .map(|&row| of.get(usize::from(row)).map_or("?", String::as_str))
                .collect();
            match found[..] {
                [] => format!("{kind}s of other kinds"),
                [one] => format!("{kind} {one}"),
                _ => {
                    // The labels alone, or the line gets long.
                    let labels: Vec<&str> = found
                        .iter()
                        .map(|name| name.split(' ').next().unwrap_or(name))
                        .collect();
                    format!("{kind}s {}", labels.join(", "))
                }
            }
        };
        match self {
            Cause::Backward => "clock set back".to_owned(),
            Cause::Smi => "SMI".to_owned(),
            Cause::InvoluntarySwitch => "another thread ran".to_owned(),
            Cause::VoluntarySwitch => "stopped or made to wait".to_owned(),
            Cause::MajorFault => "page fault with disk access".to_owned(),
            Cause::Steal => "hypervisor ran others (steal time)".to_owned(),
            Cause::MinorFault => "page fault".to_owned(),
            Cause::Interrupts(rows) => list(&names.interrupts, rows, "interrupt"),
            Cause::Softirqs(rows) => list(&names.softirqs, rows, "softirq"),
            Cause::NotToldApart => "not told apart".to_owned(),
            Cause::NotWatched => "while not watched".to_owned(),
            Cause::Unexplained => "unexplained".to_owned(),
            Cause::NotSampled => "not sampled".to_owned(),
        }
    }
}

/// What the rows of the kernel's tables are called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Interrupts.
    pub interrupts: Vec<String>,
    /// Softirqs.
    pub softirqs: Vec<String>,
}

/// Jumps of one cause, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Of these, those in whose window no other difference of their kind, and no stop of the reading before, went without
    /// a sample: the counters are theirs alone, but for interrupts too short to show while counters were read.
    pub alone: u64,
    /// Their lengths together.
    pub total: u64,
    /// The longest.
    pub largest: u64,
}

impl Tally {
    /// Both together.
    pub(super) fn and(self, other: &Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            alone: self.alone + other.alone,
            total: self.total + other.total,
            largest: self.largest.max(other.largest),
        }
    }

    /// Adds a jump.
    pub fn add(&mut self, length: u64, alone: bool) {
        self.count += 1;
        self.alone += u64::from(alone);
        self.total += length;
        self.largest = self.largest.max(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const LONG: Jumped = Jumped {
        nanos: 5_000_000,
        longer_in_window: false,
        rivals: 0,
        hidden_rivals: false,
    };

    fn timer() -> Deltas {
        let mut interrupts = Risen::default();
        interrupts.push(1, 2);
        Deltas {
            interrupts,
            ..Deltas::default()
        }
    }

    #[test]
    fn a_context_switch_outranks_the_interrupts_that_came_with_it() {
        let deltas = Deltas {
            voluntary_switches: 1,
            ..timer()
        };
        assert_eq!(Cause::of(&deltas, LONG), Cause::VoluntarySwitch);
        let deltas = Deltas {
            involuntary_switches: 1,
            ..deltas
        };
        assert_eq!(Cause::of(&deltas, LONG), Cause::InvoluntarySwitch);
        assert_eq!(Cause::of(&Deltas { smis: 1, ..deltas }, LONG), Cause::Smi);
    }

    #[test]
    fn interrupts_are_named() {
        let names = Names {
            interrupts: vec![
                "24 disk".to_owned(),
                "LOC Local timer interrupts".to_owned(),
            ],
            softirqs: vec!["TIMER".to_owned()],
        };
        let one = Cause::of(&timer(), LONG);
        assert_eq!(one.describe(&names), "interrupt LOC Local timer interrupts");
        let mut both = timer();
        both.interrupts.push(0, 1);
        assert_eq!(
            Cause::of(&both, LONG).describe(&names),
            "interrupts LOC, 24"
        );
        let mut softirqs = Risen::default();
        softirqs.push(0, 1);
        let only = Deltas {
            softirqs,
            ..Deltas::default()
        };
        assert_eq!(Cause::of(&only, LONG).describe(&names), "softirq TIMER");
    }

    #[test]
    fn interrupts_must_be_more_than_the_differences_that_they_can_belong_to() {
        let beside = |rivals, hidden_rivals| Jumped {
            rivals,
            hidden_rivals,
            ..LONG
        };
        // Two timer interrupts.
        for (jumped, told) in [
            (beside(1, false), true),
            (beside(2, false), false),
            (beside(0, true), false),
        ] {
            let cause = Cause::of(&timer(), jumped);
            assert_eq!(matches!(cause, Cause::Interrupts(_)), told, "{jumped:?}");
            assert_eq!(cause == Cause::NotToldApart, !told);
        }
        let switched = Deltas {
            voluntary_switches: 1,
            ..timer()
        };
        assert_eq!(
            Cause::of(&switched, beside(5, false)),
            Cause::VoluntarySwitch
        );
    }

    #[test]
    fn what_rose_for_a_longer_jump_is_not_given_to_a_shorter_one() {
        let shorter = Jumped {
            longer_in_window: true,
            ..LONG
        };
        assert_eq!(Cause::of(&timer(), shorter), Cause::NotToldApart);
        assert_eq!(Cause::of(&Deltas::default(), shorter), Cause::Unexplained);
        assert_eq!(Cause::of(&Deltas::default(), LONG), Cause::Unexplained);
    }

    #[test]
    fn steal_time_must_be_of_the_jumps_size() {
        let stolen = Deltas {
            steal_ticks: 1,
            ..timer()
        };
        assert_eq!(Cause::of(&stolen, LONG), Cause::Steal);
        for nanos in [3_000, 25_000_000] {
            let jumped = Jumped { nanos, ..LONG };
            assert!(matches!(Cause::of(&stolen, jumped), Cause::Interrupts(_)));
        }
        let only = Deltas {
            steal_ticks: 1,
            ..Deltas::default()
        };
        let short = Jumped {
            nanos: 3000,
            ..LONG
        };
        assert_eq!(Cause::of(&only, short), Cause::Unexplained);
    }
}
