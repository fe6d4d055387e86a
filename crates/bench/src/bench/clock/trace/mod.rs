//! Who took a CPU and for how long exactly, by the kernel's tracepoints.
//!
//! While the threads watch, another reads the records (`reader`). The stretches that they come to are kept in constant
//! memory. Afterwards each is given to the jump that is nearest to its middle, on the trace's clock, and the jumps'
//! causes are told by that.
//!
//! Of a jump's length the records explain what interrupts, softirqs and threads took, and the way into and out of the
//! kernel for it: what is left, but at most [`ENTRY`] for each stretch, and what nobody had within it. What is beyond is unexplained, and so is the
//! jump if that is the larger part of it. Where stretches were given up, and few of them would fill it, it is not
//! sampled instead.

mod reader;

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use crate::host::running::ThreadRun;
use crate::host::trace::{Interrupter, PARTS, Parts, Stretch, Stretches, TraceError, Tracer};
use crate::sorting::sort_by_key;
use crate::time::Anchors;

use super::cause::{Cause, CauseTally, CounterNames, NAMED};
use super::jump::{Jump, JumpStore, Longest};
pub(super) use reader::{Reader, WatchState};

/// The way into and out of the kernel takes no longer, in nanoseconds.
const ENTRY: u64 = 5_000;
/// So many stretches of one jump may have been given up.
const GIVEN_UP: u64 = 4;
/// Stretches that are kept of all CPUs together, and of each at the least.
const ROOM: usize = 1 << 14;
const LEAST_ROOM: usize = 1 << 10;
/// The rings of all CPUs together, and each at the least and at the most, in bytes.
const RINGS: usize = 8 << 20;
const RING: Range<usize> = 64 << 10..2 << 20;

fn room(cpus: usize) -> usize {
    (ROOM / cpus.max(1)).max(LEAST_ROOM)
}

fn ring(cpus: usize) -> usize {
    let bytes = (RINGS / cpus.max(1)).clamp(RING.start, RING.end);
    1 << bytes.ilog2()
}

/// The memory that the trace of so many CPUs takes, in bytes.
pub(super) fn bytes(cpus: usize) -> u64 {
    (Longest::<Parts>::bytes(room(cpus)) + ring(cpus) as u64) * cpus as u64
}

/// What touches the memory of the stretches.
const SOMETHING: Parts = [(Some(Interrupter::Softirq(1)), 1); PARTS];

/// Keeps a stretch, where it is among the longest.
fn keep(kept: &mut Longest<Parts>, stretch: Stretch) {
    let length = stretch.end.saturating_sub(stretch.begin);
    kept.push(
        Jump::new(stretch.begin, length, Cause::NotSampled),
        stretch.parts,
        &mut || (),
    );
}

/// What the records of a watch come to, on the trace's clock.
#[derive(Debug, Default)]
struct TraceRecords {
    /// The middle of each stretch with its parts, and what nobody had of it, in the order of time.
    stretches: Vec<(u64, Parts, u64)>,
    lost: Vec<(u64, u64)>,
    /// Stretches longer than this are all kept.
    kept_above: u64,
    records: u64,
}

/// Whether these CPUs can be traced, all at once. Nothing is kept open: it would write while other things are measured.
pub(super) fn permitted(cpus: &[usize]) -> Result<(), TraceError> {
    Tracer::open(cpus, ring(cpus.len())).map(drop)
}

/// The trace of a CPU.
#[derive(Debug)]
pub(super) struct Trace {
    found: TraceRecords,
    anchors: Anchors,
    /// Of all sources in it, ascending.
    names: Vec<(Interrupter, String)>,
}

/// What the trace tells of a jump, in nanoseconds.
#[derive(Debug, Default, PartialEq, Eq)]
struct JumpTrace {
    /// How long each had the CPU, the longest first; `None` are all beyond those that can be told apart.
    parts: Vec<(Option<Interrupter>, u64)>,
    /// Of the jump, the time whose records are lost.
    lost: u64,
    /// What is left of it: the way into and out of the kernel, and what is beyond.
    entering: u64,
    beyond: u64,
}

/// A trace that was matched with the jumps of its CPU.
#[derive(Debug)]
pub(super) struct MatchedTrace {
    trace: Trace,
    /// When each jump began to which records belong, in ticks, and which stretches are its.
    owned: Vec<(u64, Range<usize>)>,
    epoch: u64,
    /// What took the kept jumps, in nanoseconds, and the way into and out of the kernel for it.
    times: Vec<(Cause, CauseTally, u64)>,
}

impl Trace {
    /// Of a watch that lasted so, on the trace's clock.
    fn new(
        stretches: Stretches,
        watched: Range<u64>,
        mut kept: Longest<Parts>,
        tracer: &Tracer,
        anchors: &Anchors,
    ) -> Self {
        let records = stretches.records;
        let lost = stretches.finish(watched, &mut |stretch| keep(&mut kept, stretch));
        let middles = kept.iter().map(|(at, parts)| {
            let taken: u64 = parts.iter().map(|part| part.1).sum();
            let gaps = at.length.saturating_sub(taken);
            (at.begin + at.length / 2, *parts, gaps)
        });
        let mut middles: Vec<_> = middles.collect();
        sort_by_key(&mut middles, |(middle, ..)| *middle);
        let found = TraceRecords {
            stretches: middles,
            lost,
            kept_above: kept.above(),
            records,
        };
        Trace::named(found, anchors.clone(), |source| tracer.name(source))
    }

    fn named(found: TraceRecords, anchors: Anchors, name: impl Fn(Interrupter) -> String) -> Self {
        let parts = found.stretches.iter().flat_map(|(_, parts, _)| *parts);
        let sources = parts.filter_map(|(source, _)| source);
        let names: BTreeMap<Interrupter, String> =
            sources.map(|source| (source, name(source))).collect();
        Trace {
            found,
            anchors,
            names: names.into_iter().collect(),
        }
    }

    /// Tells the causes of the jumps by this trace. `epoch`: the reading from which on their time counts, in ticks.
    pub(super) fn matched(self, jumps: &mut JumpStore, epoch: u64) -> MatchedTrace {
        let owned = self.owned(jumps, epoch);
        let mut traced = MatchedTrace {
            trace: self,
            owned,
            epoch,
            times: Vec::new(),
        };
        let mut times = Vec::new();
        jumps.reassign_causes(|jump| {
            let told = traced.of(jump);
            traced.add(&mut times, &told);
            let alone = told.parts.len() == 1 && told.lost == 0 && told.beyond == 0;
            (traced.cause(&told), alone)
        });
        sort_by_key(&mut times, |(_, tally, _)| std::cmp::Reverse(tally.total));
        traced.times = times;
        traced
    }

    /// When each jump began to which stretches belong, in ticks, and which: those to which it is the nearest.
    fn owned(&self, jumps: &JumpStore, epoch: u64) -> Vec<(u64, Range<usize>)> {
        let (stretches, slack) = (&self.found.stretches, self.anchors.error());
        let stops = jumps.iter().filter(|jump| jump.cause != Cause::Backward);
        let stops = stops.map(|jump| (jump.begin, self.span(epoch, jump)));
        let (mut stops, mut last) = (stops.peekable(), None);
        let before = |limit: u64| stretches.partition_point(|(middle, ..)| *middle < limit);
        let mut owned = Vec::new();
        while let Some((jump, (begin, end))) = stops.next() {
            // Halfway to its neighbours is nearer to them.
            let from = last.map_or(0, |last: u64| last.midpoint(begin));
            let to = stops.peek();
            let to = to.map_or(u64::MAX, |(_, (next, _))| end.midpoint(*next));
            last = Some(end);
            let from = before(from.max(begin.saturating_sub(slack)));
            let to = before(to.min(end + slack));
            if from < to {
                owned.push((jump, from..to));
            }
        }
        owned
    }

    /// From when to when a jump lasted, on the trace's clock.
    fn span(&self, epoch: u64, jump: &Jump) -> (u64, u64) {
        let nanos = |ticks: u64| self.anchors.nanos(epoch.wrapping_add(ticks));
        (nanos(jump.begin), nanos(jump.begin + jump.length))
    }

    /// Its row in the names.
    fn row(&self, source: Interrupter) -> Option<u16> {
        let at = self.names.binary_search_by_key(&source, |(of, _)| *of);
        u16::try_from(at.ok()?).ok()
    }

    fn cause_of(&self, source: Option<Interrupter>) -> Cause {
        let Some(source) = source else {
            return Cause::NotToldApart;
        };
        let row = self.row(source);
        let mut rows = [None; NAMED];
        rows[0] = row;
        match source {
            Interrupter::Interrupt(_) | Interrupter::Vector(_) => Cause::Interrupts(rows),
            Interrupter::Softirq(_) => Cause::Softirqs(rows),
            // While the CPU idles, the watching thread was not allowed to run.
            Interrupter::Thread(0) => Cause::VoluntarySwitch,
            Interrupter::Thread(_) => row.map_or(Cause::InvoluntarySwitch, Cause::Thread),
        }
    }

    fn name(&self, source: Interrupter) -> String {
        let row = self.row(source).map_or(0, usize::from);
        let name = self.names.get(row).map_or("?", |(_, name)| name.as_str());
        match source {
            Interrupter::Thread(thread) if thread != 0 => format!("{name} ({thread})"),
            _ => name.to_owned(),
        }
    }
}

impl MatchedTrace {
    fn of(&self, jump: &Jump) -> JumpTrace {
        let (begin, end) = self.trace.span(self.epoch, jump);
        let at = self
            .owned
            .binary_search_by_key(&jump.begin, |(begin, _)| *begin);
        let range = at.map_or(0..0, |at| self.owned[at].1.clone());
        let stretches = &self.trace.found.stretches[range];
        let mut parts: Vec<(Option<Interrupter>, u64)> = Vec::new();
        let taken = stretches.iter().flat_map(|(_, parts, _)| *parts);
        for (source, nanos) in taken.filter(|part| part.1 > 0) {
            match parts.iter_mut().find(|(of, _)| *of == source) {
                Some(part) => part.1 += nanos,
                None => parts.push((source, nanos)),
            }
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.1));
        let taken: u64 = parts.iter().map(|part| part.1).sum();
        let left = (end - begin).saturating_sub(taken);
        let lost = &self.trace.found.lost;
        let lost = lost[lost.partition_point(|(_, to)| *to <= begin)..].iter();
        let lost = lost.take_while(|(from, _)| *from < end);
        let times = (stretches.len() + lost.clone().count()) as u64;
        let gaps: u64 = stretches.iter().map(|(.., gaps)| gaps).sum();
        let lost = lost.map(|&(from, to)| to.min(end) - from.max(begin));
        let lost = lost.sum::<u64>().min(left);
        let entering = (left - lost).min(ENTRY * times + gaps);
        JumpTrace {
            parts,
            lost,
            entering,
            beyond: left - lost - entering,
        }
    }

    fn cause(&self, told: &JumpTrace) -> Cause {
        let taken: u64 = told.parts.iter().map(|part| part.1).sum();
        let explained = taken + told.lost;
        if explained == 0 || told.beyond > explained + told.entering {
            self.cause_beyond(told)
        } else {
            self.main_cause(told)
        }
    }

    /// Who had most of what is explained.
    fn main_cause(&self, told: &JumpTrace) -> Cause {
        match told.parts.first() {
            Some(&(source, nanos)) if nanos >= told.lost => self.trace.cause_of(source),
            _ => Cause::RecordsLost,
        }
    }

    /// Of what is not explained: it may be among the stretches that were given up.
    fn cause_beyond(&self, told: &JumpTrace) -> Cause {
        let above = self.trace.found.kept_above;
        match above > 0 && told.beyond <= GIVEN_UP * (above + ENTRY) {
            true => Cause::NotSampled,
            false => Cause::Unexplained,
        }
    }

    /// Adds up what took a jump.
    fn add(&self, times: &mut Vec<(Cause, CauseTally, u64)>, told: &JumpTrace) {
        let mut add = |cause: Cause, nanos: u64, entering: u64| {
            let at = times.iter().position(|(of, ..)| *of == cause);
            let at = at.unwrap_or_else(|| {
                times.push((cause, CauseTally::default(), 0));
                times.len() - 1
            });
            if nanos > 0 {
                times[at].1.add(nanos, false);
            }
            times[at].2 += entering;
        };
        for &(source, nanos) in &told.parts {
            add(self.trace.cause_of(source), nanos, 0);
        }
        for (cause, nanos) in [
            (Cause::RecordsLost, told.lost),
            (self.cause_beyond(told), told.beyond),
        ] {
            if nanos > 0 {
                add(cause, nanos, 0);
            }
        }
        if told.entering > 0 {
            add(self.main_cause(told), 0, told.entering);
        }
    }

    /// What the rows of the causes are called.
    pub(super) fn names(&self) -> CounterNames {
        let names = self.trace.names.iter();
        let all: Vec<String> = names.map(|(source, _)| self.trace.name(*source)).collect();
        CounterNames {
            interrupts: all.clone(),
            softirqs: all.clone(),
            threads: all,
        }
    }

    /// How long each took in all kept jumps, the way into and out of the kernel with it, in nanoseconds.
    pub(super) fn shares(&self) -> impl Iterator<Item = (Cause, u64)> {
        let times = self.times.iter();
        times.map(|(cause, tally, entering)| (*cause, tally.total + entering))
    }

    /// The threads that ran instead in the kept jumps, the longest first.
    pub(super) fn ran(&self) -> Vec<ThreadRun> {
        let ran = self.times.iter().filter_map(|(cause, tally, _)| {
            let Cause::Thread(row) = *cause else {
                return None;
            };
            let (source, name) = self.trace.names.get(usize::from(row))?;
            let Interrupter::Thread(thread) = *source else {
                return None;
            };
            Some(ThreadRun {
                name: name.clone(),
                thread,
                ran_ns: tally.total,
                only_here: true,
            })
        });
        ran.collect()
    }

    /// Of a jump: who had the CPU for how many nanoseconds, as `sshd (812):40125;LOC local timer:1920`, and how many
    /// are nobody's.
    pub(super) fn in_words(&self, jump: &Jump) -> Option<(String, u64)> {
        if jump.cause == Cause::Backward {
            return None;
        }
        let told = self.of(jump);
        let name = |source: Option<Interrupter>| match source {
            Some(source) => self.trace.name(source),
            None => "others".to_owned(),
        };
        let parts = told.parts.into_iter();
        let parts = parts.map(|(source, nanos)| format!("{}:{nanos}", name(source)));
        let lost = (told.lost > 0).then(|| format!("records lost:{}", told.lost));
        let words: Vec<String> = parts.chain(lost).collect();
        Some((words.join(";"), told.entering + told.beyond))
    }

    /// Times in which records are lost, together, in nanoseconds, and how many.
    pub(super) fn lost(&self) -> (u64, usize) {
        let lost = &self.trace.found.lost;
        (lost.iter().map(|(from, to)| to - from).sum(), lost.len())
    }

    /// By how much the clocks can be mismatched, in nanoseconds.
    pub(super) fn error(&self) -> u64 {
        self.trace.anchors.error()
    }

    /// All stretches longer than this were kept, in nanoseconds.
    pub(super) fn kept_above(&self) -> u64 {
        self.trace.found.kept_above
    }

    pub(super) fn details(&self, names: &CounterNames) -> Value {
        let (lost_ns, lost) = self.lost();
        let times = self.times.iter().map(|(cause, tally, entering)| {
            json!({
                "what": cause.describe(names),
                "jumps": tally.count,
                "total_ns": tally.total,
                "largest_ns": tally.largest,
                "entering_ns": entering,
            })
        });
        json!({
            "records": self.trace.found.records,
            "clock": "CLOCK_MONOTONIC_RAW",
            "clock_error_ns": self.error(),
            "records_lost_times": lost,
            "records_lost_ns": lost_ns,
            "all_longer_than_this_are_kept_ns": self.kept_above(),
            "times": times.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
