//! From records to stretches: times in which the watching thread did not have its CPU, and who had it for how long.
//!
//! At each moment the CPU is charged to one: to the innermost interrupt or softirq, or else to the thread that runs.
//! While that is the watching thread nobody takes anything. Behind records that are lost it is not known which thread
//! runs; the next switch tells which one it was since then.

use std::collections::TryReserveError;

use crate::bench::clock::cause::Cause;
use crate::bench::clock::jump::{Jump, Longest};
use crate::host::trace::{Record, Source, What};

/// Who can be told apart in one stretch; the last place is for all others.
pub(super) const PARTS: usize = 8;
/// Losses that are told apart; later ones are one.
const LOSSES: usize = 1 << 12;
/// Interrupts within softirqs within interrupts: the kernel nests fewer.
const NESTED: usize = 16;

/// How long each had the CPU, in nanoseconds, without those that interrupted it.
pub(super) type Parts = [(Option<Source>, u64); PARTS];

#[derive(Debug)]
pub(super) struct Stretches {
    /// The thread that watches.
    watcher: i32,
    /// The thread that runs; `None` if that is not known.
    running: Option<i32>,
    inside: Vec<Source>,
    /// The time up to this moment is charged.
    since: u64,
    /// When the stretch began that is under way.
    began: Option<u64>,
    parts: Parts,
    /// Since when it is not known who runs, and how long that was nobody else.
    unsure: (u64, u64),
    done: Longest<Parts>,
    lost: Vec<(u64, u64)>,
    pub(super) records: u64,
    /// Of the last record.
    pub(super) latest: u64,
}

impl Stretches {
    /// The memory for so many, in bytes.
    pub(super) const fn bytes(room: usize) -> u64 {
        Longest::<Parts>::bytes(room)
    }

    /// None yet, with room for so many.
    pub(super) fn new(room: usize) -> Result<Self, TryReserveError> {
        let something = [(Some(Source::Softirq(1)), 1); PARTS];
        Ok(Stretches {
            watcher: 0,
            running: None,
            inside: Vec::with_capacity(NESTED),
            since: 0,
            began: None,
            parts: Parts::default(),
            unsure: (0, 0),
            done: Longest::new(room, something)?,
            lost: Vec::with_capacity(LOSSES),
            records: 0,
            latest: 0,
        })
    }

    /// Tells which thread watches; records before that tell nothing.
    pub(super) fn of_watcher(&mut self, thread: i32) {
        self.watcher = thread;
    }

    pub(super) fn take(&mut self, record: Record) {
        if self.watcher == 0 {
            return;
        }
        if self.records == 0 {
            (self.since, self.unsure.0) = (record.at, record.at);
        }
        self.records += 1;
        self.latest = self.latest.max(record.at);
        if record.what == What::Lost {
            return self.lose(record.at);
        }
        self.charge(record.at);
        match record.what {
            What::Begin(source) => {
                self.began.get_or_insert(record.at);
                if self.inside.len() < NESTED {
                    self.inside.push(source);
                }
            }
            What::End(source) => match self.inside.iter().rposition(|it| *it == source) {
                Some(at) => self.inside.truncate(at),
                // It began where records are lost.
                None if self.running.is_none() && self.inside.is_empty() => {
                    self.was(source, record.at);
                }
                None => {}
            },
            What::Switch { from, to } => {
                if self.running.is_none() && from != self.watcher {
                    self.was(Source::Thread(from), record.at);
                }
                self.inside.clear();
                self.running = Some(to);
            }
            What::Lost => {}
        }
        let is_taken = self.taker().is_some();
        match self.began {
            None if is_taken => self.began = Some(record.at),
            Some(began) if !is_taken => self.close(began, record.at),
            _ => {}
        }
    }

    /// Who has the CPU, if it is another.
    fn taker(&self) -> Option<Source> {
        let thread = self.running.filter(|thread| *thread != self.watcher);
        let inside = self.inside.last().copied();
        inside.or(thread.map(Source::Thread))
    }

    fn charge(&mut self, now: u64) {
        let passed = now.saturating_sub(self.since);
        match self.taker() {
            Some(taker) => add(&mut self.parts, taker, passed),
            None if self.running.is_none() => self.unsure.1 += passed,
            None => {}
        }
        self.since = self.since.max(now);
    }

    /// Since it is not known who runs, it was this one.
    fn was(&mut self, source: Source, now: u64) {
        let (began, length) = std::mem::replace(&mut self.unsure, (now, 0));
        let mut parts = Parts::default();
        add(&mut parts, source, length);
        self.push(began, now, parts);
    }

    fn close(&mut self, began: u64, now: u64) {
        self.began = None;
        let parts = std::mem::take(&mut self.parts);
        self.push(began, now, parts);
    }

    fn push(&mut self, began: u64, now: u64, parts: Parts) {
        let length = now.saturating_sub(began);
        self.done
            .push(Jump::new(began, length, Cause::NotSampled), parts);
    }

    /// Records since the last one are lost: nobody is charged for that time.
    fn lose(&mut self, now: u64) {
        let from = self.since;
        if let Some(began) = self.began {
            self.close(began, from);
        }
        let is_full = self.lost.len() >= LOSSES;
        match self.lost.last_mut() {
            Some(last) if is_full || last.1 >= from => last.1 = now,
            _ => self.lost.push((from, now)),
        }
        self.inside.clear();
        self.running = None;
        (self.since, self.unsure) = (now, (now, 0));
    }

    /// What was found. `end`: of the watch; if no record came since, it is not known what is missing.
    pub(super) fn finish(mut self, end: u64) -> Found {
        if self.latest < end {
            self.since = self.latest;
            self.lose(end);
        }
        let mut stretches: Vec<Stretch> = self
            .done
            .iter()
            .map(|(jump, parts)| Stretch {
                middle: jump.begin + jump.length / 2,
                parts: *parts,
            })
            .collect();
        stretches.sort_by_key(|stretch| stretch.middle);
        Found {
            stretches,
            lost: self.lost,
            kept_above: self.done.above(),
            records: self.records,
        }
    }
}

fn add(parts: &mut Parts, taker: Source, nanos: u64) {
    let place = |(of, _): &(Option<Source>, u64)| of.is_none() || *of == Some(taker);
    match parts[..PARTS - 1].iter_mut().find(|part| place(part)) {
        Some(part) => *part = (Some(taker), part.1 + nanos),
        None => parts[PARTS - 1].1 += nanos,
    }
}

/// A time in which others had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) middle: u64,
    pub(super) parts: Parts,
}

/// What the records of a watch come to. Times are nanoseconds of the trace's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// In the order of time.
    pub(super) stretches: Vec<Stretch>,
    /// From when to when records are missing.
    pub(super) lost: Vec<(u64, u64)>,
    /// Stretches longer than this are all kept.
    pub(super) kept_above: u64,
    pub(super) records: u64,
}

#[cfg(test)]
mod tests {
    use super::What::{Begin, End, Lost};
    use super::*;

    const TIMER: Source = Source::Vector(0);
    const DISK: Source = Source::Interrupt(36);
    const BLOCK: Source = Source::Softirq(4);
    const ME: i32 = 100;
    const OTHER: Source = Source::Thread(7);

    fn to(from: i32, to: i32) -> What {
        What::Switch { from, to }
    }

    /// What these records come to: the middle of each stretch with its parts.
    fn found(records: &[(u64, What)]) -> Found {
        let mut stretches = Stretches::new(16).unwrap();
        stretches.of_watcher(ME);
        for &(at, what) in records {
            stretches.take(Record { at, what });
        }
        stretches.finish(0)
    }

    fn stretches(records: &[(u64, What)]) -> Vec<(u64, Vec<(Option<Source>, u64)>)> {
        let parts = |parts: &Parts| parts.iter().copied().filter(|part| part.1 > 0).collect();
        let found = found(records).stretches;
        found
            .iter()
            .map(|it| (it.middle, parts(&it.parts)))
            .collect()
    }

    #[test]
    fn each_moment_is_charged_to_the_innermost() {
        // A disk in a softirq in a thread; the timer alone.
        let records = [
            (0, to(1, ME)),
            (1000, Begin(TIMER)),
            (1400, End(TIMER)),
            (5000, to(ME, 7)),
            (6000, Begin(BLOCK)),
            (6100, Begin(DISK)),
            (6400, End(DISK)),
            (6600, End(BLOCK)),
            (9000, to(7, ME)),
        ];
        let thread = vec![(Some(OTHER), 3400), (Some(BLOCK), 300), (Some(DISK), 300)];
        assert_eq!(
            stretches(&records),
            [(1200, vec![(Some(TIMER), 400)]), (7000, thread)]
        );
    }

    #[test]
    fn a_switch_in_the_middle_ends_one_thread_and_begins_the_next() {
        let records = [
            (0, to(1, ME)),
            (1000, to(ME, 7)),
            (3000, to(7, 8)),
            (4000, to(8, 7)),
            (4500, to(7, ME)),
            (4600, Begin(TIMER)),
            (4700, End(TIMER)),
        ];
        let threads = vec![(Some(OTHER), 2500), (Some(Source::Thread(8)), 1000)];
        assert_eq!(
            stretches(&records),
            [(2750, threads), (4650, vec![(Some(TIMER), 100)])]
        );
    }

    #[test]
    fn nobody_is_charged_for_time_whose_records_are_lost() {
        // In another thread, which the next switch names; the disk began where records are lost.
        let records = [
            (0, to(1, ME)),
            (1000, to(ME, 8)),
            (2000, Begin(TIMER)),
            (9000, Lost),
            (9400, End(DISK)),
            (9500, Begin(TIMER)),
            (9600, End(TIMER)),
            (10_000, to(7, ME)),
        ];
        let all = found(&records);
        assert_eq!(all.lost, [(2000, 9000)]);
        assert_eq!(
            stretches(&records),
            [
                (1500, vec![(Some(Source::Thread(8)), 1000)]),
                (9200, vec![(Some(DISK), 400)]),
                (9550, vec![(Some(TIMER), 100)]),
                (9700, vec![(Some(OTHER), 500)]),
            ]
        );
        // Where it was the watching thread that ran, nobody took anything.
        let records = [
            (0, to(1, ME)),
            (2000, Lost),
            (9000, to(ME, 7)),
            (9300, to(7, ME)),
        ];
        assert_eq!(stretches(&records), [(9150, vec![(Some(OTHER), 300)])]);
    }

    #[test]
    fn a_watch_that_ends_behind_the_last_record_has_lost_some() {
        let mut stretches = Stretches::new(16).unwrap();
        stretches.of_watcher(ME);
        stretches.take(Record {
            at: 50,
            what: to(1, ME),
        });
        assert_eq!(stretches.finish(90).lost, [(50, 90)]);
    }

    #[test]
    fn memory_stays_and_the_shorter_are_given_up_while_many_sources_share_the_last_place() {
        let mut records = vec![(0, to(1, ME))];
        for at in 1..100 {
            records.push((at * 1000, Begin(TIMER)));
            records.push((at * 1000 + at, End(TIMER)));
        }
        let found = found(&records);
        assert!(found.stretches.len() <= 16 && found.kept_above > 0);
        let least = found.stretches.iter().map(|it| it.parts[0].1).min();
        assert!(least > Some(found.kept_above), "{found:?}");
        let threads = (1..12).map(|id| (u64::from(id as u32) * 10, to(id, id + 1)));
        let records: Vec<_> = [(0, to(1, ME)), (5, to(ME, 1))]
            .into_iter()
            .chain(threads)
            .chain([(200, to(12, ME))])
            .collect();
        let [(_, parts)] = &stretches(&records)[..] else {
            panic!()
        };
        assert_eq!(parts.len(), PARTS);
        assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), 195);
        assert_eq!(parts[PARTS - 1].0, None);
    }
}
