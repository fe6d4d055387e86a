//! What may have caused a jump, as far as the kernel's counters tell.
//!
//! Counters are read after a jump, outside of the loop; the loop then starts anew, and the time in between is blind.
//! What a reading tells is what was added since the reading before, over the *window* between the two. Its *rivals* are
//! all other differences of the window that can have been interrupts, jumps or not, and stops while the clock was not
//! watched. Context switches, faults and SMIs are given to the longest of them, to others only as "not told apart".
//! Interrupts and softirqs explain a jump only if there were more of them than rivals: else each may belong to a rival.
//! Where the baseline is so high that an interrupt need not show as a difference at all, they explain a jump only if
//! the window is at most [`FAR`] times as long as the jump.
//!
//! What that cannot tell: an interrupt that came while counters were being read, and was too short to show in the time
//! that this took, is found at the next reading, and may be given to a jump that it did not cause; what a hypervisor
//! did while it handled an interrupt is taken for the interrupt.

use serde::Serialize;

use crate::host::counters::{Deltas, RisenCounters};

/// Interrupts that a cause names, at most.
pub(super) const NAMED: usize = 4;

/// What is known of a jump's cause. Where several counters rose, it is the first of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cause {
    /// The clock was set back; the thread need not have been stopped.
    Backward,
    /// A system management interrupt was counted.
    Smi,
    /// A CPU quota stopped the control group for at least half of that time, and the thread was switched out.
    Throttled,
    /// Another thread ran (involuntary context switch).
    InvoluntarySwitch,
    /// The thread was stopped or had to wait (voluntary context switch).
    VoluntarySwitch,
    /// A page had to be read from a disk.
    MajorFault,
    /// The hypervisor gave the CPU's time to others; at most twice that time, and a millisecond or more, was lost.
    Steal,
    MinorFault,
    /// Interrupts, by row.
    Interrupts([Option<u16>; NAMED]),
    /// Softirqs without an interrupt, by row.
    Softirqs([Option<u16>; NAMED]),
    /// A thread that the trace names, by row.
    Thread(u16),
    /// The trace has lost the records of most of it.
    RecordsLost,
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
pub(super) struct JumpEvidence {
    pub nanos: u64,
    /// Whether a longer one of the same window was not sampled.
    pub longer_in_window: bool,
    /// Other differences of the window to which an interrupt can belong.
    pub rivals: u64,
    /// Whether there may be more that did not show, in a window far longer than the jump.
    pub hidden_rivals: bool,
}

/// A window is far longer than a jump when it is more than so many times as long.
pub(super) const FAR: u64 = 100;

/// The length of a tick of the steal time, and from where on it is looked at.
pub(super) const STEAL_TICK_NS: u64 = 10_000_000;
const STEAL_FROM_NS: u64 = 1_000_000;
/// Shorter jumps are no throttling: groups are stopped until the end of a period.
const THROTTLED_FROM_NS: u64 = 100_000;

impl Cause {
    /// What the counters say of a jump.
    pub(super) fn of(deltas: &Deltas, jumped: JumpEvidence) -> Self {
        if deltas.is_empty() {
            return Cause::Unexplained;
        }
        if jumped.longer_in_window {
            return Cause::NotToldApart;
        }
        // Ticks add up over many short thefts: one alone says little of a short jump.
        let stolen = u64::from(deltas.steal_ticks) * STEAL_TICK_NS * 2 >= jumped.nanos
            && jumped.nanos >= STEAL_FROM_NS;
        let steal_ticks = if stolen { deltas.steal_ticks } else { 0 };
        // The counter is one of all threads of the group; one that was not switched out was not stopped.
        let throttled = deltas.throttled_ns.saturating_mul(2) >= jumped.nanos
            && jumped.nanos >= THROTTLED_FROM_NS
            && deltas.involuntary_switches > 0;
        let risen = [
            (deltas.smis, Cause::Smi),
            // Whatever runs meanwhile.
            (u32::from(throttled), Cause::Throttled),
            (deltas.involuntary_switches, Cause::InvoluntarySwitch),
            (deltas.voluntary_switches, Cause::VoluntarySwitch),
            (deltas.major_faults, Cause::MajorFault),
            (steal_ticks, Cause::Steal),
            (deltas.minor_faults, Cause::MinorFault),
        ];
        if let Some((_, cause)) = risen.into_iter().find(|(count, _)| *count > 0) {
            return cause;
        }
        let (rows, cause) = if deltas.interrupts.is_empty() {
            (&deltas.softirqs, Cause::Softirqs(named(&deltas.softirqs)))
        } else {
            (
                &deltas.interrupts,
                Cause::Interrupts(named(&deltas.interrupts)),
            )
        };
        if rows.is_empty() {
            Cause::Unexplained
        } else if jumped.hidden_rivals || rows.total() <= jumped.rivals {
            Cause::NotToldApart
        } else {
            cause
        }
    }

    /// Whether it is told from a sample, one that had to be taken for it.
    pub(super) fn is_of_a_sample(self) -> bool {
        !matches!(
            self,
            Cause::Backward
                | Cause::NotWatched
                | Cause::NotSampled
                | Cause::Thread(_)
                | Cause::RecordsLost
        )
    }

    /// Whether a stop by a CPU quota can look like it.
    pub(super) fn may_be_throttling(self) -> bool {
        matches!(
            self,
            Cause::InvoluntarySwitch
                | Cause::VoluntarySwitch
                | Cause::Thread(_)
                | Cause::Steal
                | Cause::Unexplained
        ) || self == Cause::Throttled
            || self.tells_nothing()
    }

    /// Whether it says nothing of who caused it.
    pub(super) fn tells_nothing(self) -> bool {
        matches!(
            self,
            Cause::NotToldApart | Cause::NotWatched | Cause::NotSampled
        )
    }

    /// In words, with the rows' names.
    pub(super) fn describe(&self, names: &CounterNames) -> String {
        let text = match self {
            Cause::Interrupts(rows) => return in_words("interrupt", rows, &names.interrupts),
            Cause::Softirqs(rows) => return in_words("softirq", rows, &names.softirqs),
            Cause::Thread(row) => return in_words("thread", &[Some(*row)], &names.threads),
            Cause::RecordsLost => "records of the trace lost",
            Cause::Backward => "clock set back",
            Cause::Smi => "SMI",
            Cause::Throttled => "throttled by a CPU quota",
            Cause::InvoluntarySwitch => "another thread ran",
            Cause::VoluntarySwitch => "stopped or made to wait",
            Cause::MajorFault => "page fault with disk access",
            Cause::Steal => "hypervisor ran others (steal time)",
            Cause::MinorFault => "page fault",
            Cause::NotToldApart => "not told apart",
            Cause::NotWatched => "while not watched",
            Cause::Unexplained => "unexplained",
            Cause::NotSampled => "not sampled",
        };
        text.to_owned()
    }
}

/// The rows that rose, the first of them.
fn named(risen: &RisenCounters) -> [Option<u16>; NAMED] {
    let mut names = [None; NAMED];
    for (name, (row, _)) in names.iter_mut().zip(risen.rows()) {
        *name = Some(*row);
    }
    names
}

/// One row by its whole name, several by their labels, or the line gets long.
fn in_words(kind: &str, rows: &[Option<u16>], names: &[String]) -> String {
    let name = |row: u16| names.get(usize::from(row)).map_or("?", String::as_str);
    let found: Vec<&str> = rows.iter().flatten().map(|&row| name(row)).collect();
    match found[..] {
        [] => format!("{kind}s of other kinds"),
        [one] => format!("{kind} {one}"),
        _ => {
            let labels = found
                .iter()
                .map(|name| name.split(' ').next().unwrap_or(name));
            format!("{kind}s {}", labels.collect::<Vec<_>>().join(", "))
        }
    }
}

/// What the rows of the kernel's tables are called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CounterNames {
    pub interrupts: Vec<String>,
    pub softirqs: Vec<String>,
    /// Of a trace.
    pub threads: Vec<String>,
}

/// Jumps of one cause, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct CauseTally {
    pub count: u64,
    /// Of these, those in whose window no other difference of their kind, and no stop of the reading before, went
    /// without a sample: the counters are theirs alone, but for interrupts too short to show while counters were read.
    pub alone: u64,
    pub total: u64,
    pub largest: u64,
}

impl CauseTally {
    pub(super) fn and(self, other: &CauseTally) -> CauseTally {
        CauseTally {
            count: self.count + other.count,
            alone: self.alone + other.alone,
            total: self.total + other.total,
            largest: self.largest.max(other.largest),
        }
    }

    pub(super) fn add(&mut self, length: u64, alone: bool) {
        self.count += 1;
        self.alone += u64::from(alone);
        self.total += length;
        self.largest = self.largest.max(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: JumpEvidence = JumpEvidence {
        nanos: 5_000_000,
        longer_in_window: false,
        rivals: 0,
        hidden_rivals: false,
    };

    fn risen(rows: &[(u16, u32)]) -> RisenCounters {
        let mut risen = RisenCounters::default();
        rows.iter().for_each(|&(row, by)| risen.push(row, by));
        risen
    }

    type Change = fn(&mut Deltas, &mut JumpEvidence);

    #[test]
    fn the_heaviest_counter_that_rose_is_the_cause_where_it_can_be_told() {
        use Cause::*;
        let timer = Interrupts([Some(1), None, None, None]);
        // Of two timer interrupts, and what else rose.
        let cases: [(Change, Cause); 19] = [
            (|_, _| (), timer),
            (|it, _| it.voluntary_switches = 1, VoluntarySwitch),
            (|it, _| it.involuntary_switches = 1, InvoluntarySwitch),
            (|it, _| (it.smis, it.major_faults) = (1, 1), Smi),
            (
                |it, _| (it.major_faults, it.minor_faults) = (1, 1),
                MajorFault,
            ),
            (|_, jump| jump.rivals = 1, timer),
            // Each may belong to a rival; those that do not show can be any number.
            (|_, jump| jump.rivals = 2, NotToldApart),
            (|_, jump| jump.hidden_rivals = true, NotToldApart),
            (|_, jump| jump.longer_in_window = true, NotToldApart),
            (
                |it, jump| (it.minor_faults, jump.rivals) = (1, 5),
                MinorFault,
            ),
            // A quota goes before threads and the hypervisor. It must have stopped threads for half of the jump.
            (
                |it, _| (it.throttled_ns, it.involuntary_switches) = (2_500_000, 1),
                Throttled,
            ),
            (
                |it, _| {
                    (it.throttled_ns, it.steal_ticks) = (70_000_000, 1);
                    it.involuntary_switches = 1;
                },
                Throttled,
            ),
            // Another thread of the group was stopped.
            (
                |it, _| (it.throttled_ns, it.steal_ticks) = (70_000_000, 1),
                Steal,
            ),
            (
                |it, _| (it.throttled_ns, it.involuntary_switches) = (2_400_000, 1),
                InvoluntarySwitch,
            ),
            (
                |it, jump| {
                    (it.throttled_ns, jump.nanos) = (70_000_000, 3_000);
                    it.involuntary_switches = 1;
                },
                InvoluntarySwitch,
            ),
            // Steal time must be of the jump's size.
            (|it, _| it.steal_ticks = 1, Steal),
            (|it, jump| (it.steal_ticks, jump.nanos) = (1, 3_000), timer),
            (
                |it, jump| (it.steal_ticks, jump.nanos) = (1, 25_000_000),
                timer,
            ),
            (
                |it, jump| {
                    (it.interrupts, it.steal_ticks) = (RisenCounters::default(), 1);
                    jump.nanos = 3_000;
                },
                Unexplained,
            ),
        ];
        for (at, (change, cause)) in cases.into_iter().enumerate() {
            let (mut deltas, mut jump) = (Deltas::default(), LONG);
            deltas.interrupts = risen(&[(1, 2)]);
            change(&mut deltas, &mut jump);
            assert_eq!(Cause::of(&deltas, jump), cause, "case {at}");
        }
        let longer = JumpEvidence {
            longer_in_window: true,
            ..LONG
        };
        assert_eq!(Cause::of(&Deltas::default(), longer), Unexplained);
    }

    #[test]
    fn interrupts_are_named() {
        let names = CounterNames {
            interrupts: ["24 disk", "LOC Local timer interrupts"]
                .map(str::to_owned)
                .into(),
            softirqs: vec!["TIMER".to_owned()],
            threads: vec!["sshd (812)".to_owned()],
        };
        for (interrupts, softirqs, words) in [
            (
                &[(1, 2)][..],
                &[(0, 1)][..],
                "interrupt LOC Local timer interrupts",
            ),
            (&[(1, 2), (0, 1)], &[], "interrupts LOC, 24"),
            (&[], &[(0, 1)], "softirq TIMER"),
        ] {
            let deltas = Deltas {
                interrupts: risen(interrupts),
                softirqs: risen(softirqs),
                ..Deltas::default()
            };
            assert_eq!(Cause::of(&deltas, LONG).describe(&names), words);
        }
        assert_eq!(Cause::Thread(0).describe(&names), "thread sshd (812)");
    }
}
