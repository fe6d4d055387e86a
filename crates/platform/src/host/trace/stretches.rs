//! From records to stretches: times in which a thread did not have its CPU, and who had it for how long.
//!
//! At each moment the CPU is charged to one: to the innermost interrupt or softirq, or else to the thread that runs.
//! While that is the thread in question, no other thread takes anything. Behind records that are lost it is not known
//! which thread runs; the next switch shows which one it was since then.
//!
//! An interrupt ends before the softirqs and the switch that follow it on its way out of the kernel: they are one
//! stretch.

use std::ops::Range;

use super::{Interrupter, Record, RecordKind};

/// The threads that are distinguished in one stretch; the last place is for all others.
pub const PARTS: usize = 8;
/// Losses that are distinguished; of more, those closest together are joined.
const LOSSES: usize = 1 << 12;
/// From the end of an interrupt to what follows it on its way out, at most, in nanoseconds.
const WAY_OUT: u64 = 5_000;
/// Interrupts within softirqs within interrupts: the kernel nests fewer.
const NESTED: usize = 16;

/// How long each had the CPU, in nanoseconds, without those that interrupted it.
pub type Parts = [(Option<Interrupter>, u64); PARTS];

/// A time in which others had the CPU, in nanoseconds of the records' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    pub begin: u64,
    pub end: u64,
    pub parts: Parts,
}

/// Makes stretches of records.
#[derive(Debug)]
pub struct Stretches {
    /// The thread in question.
    watcher: i32,
    /// The thread that runs; `None` if that is not known.
    running: Option<i32>,
    inside: Vec<Interrupter>,
    /// The time up to this moment is charged.
    since: u64,
    /// When the stretch began that is under way.
    began: Option<u64>,
    parts: Parts,
    /// The stretch before, which may go on.
    last: Option<Stretch>,
    /// Since when the running thread is unknown, and for how long no other thread ran.
    unsure: (u64, u64),
    lost: Vec<(u64, u64)>,
    /// Records so far, from the first switch of the thread in question on.
    pub records: u64,
    /// The time of the first of them.
    first: u64,
    /// The time of the last.
    pub latest: u64,
}

impl Default for Stretches {
    /// None yet, with all memory.
    fn default() -> Self {
        Stretches {
            watcher: 0,
            running: None,
            inside: Vec::with_capacity(NESTED),
            since: 0,
            began: None,
            parts: Parts::default(),
            last: None,
            unsure: (0, 0),
            lost: Vec::with_capacity(LOSSES + 2),
            records: 0,
            first: 0,
            latest: 0,
        }
    }
}

impl Stretches {
    /// Sets the thread that is meant; records before a switch names it show nothing.
    pub fn of_thread(&mut self, thread: i32) {
        self.watcher = thread;
    }

    fn is_named(&self, what: RecordKind) -> bool {
        let thread = self.watcher;
        thread != 0
            && matches!(what, RecordKind::Switch { from, to } if [from, to].contains(&thread))
    }

    /// Takes the next record; `keep` gets each stretch that cannot go on any more.
    pub fn take(&mut self, record: Record, keep: &mut impl FnMut(Stretch)) {
        if self.records == 0 {
            if !self.is_named(record.what) {
                return;
            }
            (self.since, self.unsure.0, self.first) = (record.at, record.at, record.at);
        }
        self.records += 1;
        self.latest = self.latest.max(record.at);
        if record.what == RecordKind::Lost {
            return self.lose(record.at, keep);
        }
        self.charge(record.at);
        match record.what {
            RecordKind::Begin(source) if self.inside.len() < NESTED => self.inside.push(source),
            RecordKind::Begin(_) => {}
            RecordKind::End(source) => match self.inside.iter().rposition(|it| *it == source) {
                Some(at) => self.inside.truncate(at),
                // It began where records are lost.
                None if self.running.is_none() && self.inside.is_empty() => {
                    self.was(source, record.at, keep);
                }
                None => {}
            },
            RecordKind::Switch { from, to } => {
                if self.running.is_none() && from != self.watcher {
                    self.was(Interrupter::Thread(from), record.at, keep);
                }
                self.inside.clear();
                self.running = Some(to);
            }
            RecordKind::Lost => {}
        }
        let is_taken = self.taker().is_some();
        match self.began {
            None if is_taken => self.begin(record, keep),
            Some(began) if !is_taken => self.close(began, record.at, keep),
            _ => {}
        }
    }

    /// Who has the CPU, if it is another.
    fn taker(&self) -> Option<Interrupter> {
        let thread = self.running.filter(|thread| *thread != self.watcher);
        let inside = self.inside.last().copied();
        inside.or(thread.map(Interrupter::Thread))
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
    fn was(&mut self, source: Interrupter, end: u64, keep: &mut impl FnMut(Stretch)) {
        let (begin, length) = std::mem::replace(&mut self.unsure, (end, 0));
        let mut parts = Parts::default();
        add(&mut parts, source, length);
        if length > 0 {
            keep(Stretch { begin, end, parts });
        }
    }

    /// A stretch begins, or the one before goes on: a loop makes no system calls, so that a softirq or a switch right
    /// behind an interrupt comes before the loop goes on.
    fn begin(&mut self, record: Record, keep: &mut impl FnMut(Stretch)) {
        use Interrupter::{Interrupt, Vector};
        let is_new = matches!(record.what, RecordKind::Begin(Interrupt(_) | Vector(_)));
        match self.last.take() {
            Some(last) if !is_new && record.at.saturating_sub(last.end) <= WAY_OUT => {
                (self.began, self.parts) = (Some(last.begin), last.parts);
            }
            last => {
                last.into_iter().for_each(keep);
                self.began = Some(record.at);
            }
        }
    }

    fn close(&mut self, begin: u64, end: u64, keep: &mut impl FnMut(Stretch)) {
        self.began = None;
        let parts = std::mem::take(&mut self.parts);
        let last = self.last.replace(Stretch { begin, end, parts });
        last.into_iter().for_each(keep);
    }

    /// Records since the last one are lost: no thread is charged for that time.
    fn lose(&mut self, now: u64, keep: &mut impl FnMut(Stretch)) {
        let from = self.since;
        if let Some(began) = self.began {
            self.close(began, from, keep);
        }
        self.last.take().into_iter().for_each(keep);
        match self.lost.last_mut() {
            Some(last) if last.1 >= from => last.1 = now,
            _ => self.lost.push((from, now)),
        }
        if self.lost.len() > LOSSES {
            self.join_the_closest();
        }
        self.inside.clear();
        self.running = None;
        (self.since, self.unsure) = (now, (now, 0));
    }

    /// Two losses become one, where least lies between.
    fn join_the_closest(&mut self) {
        let between = |at: &usize| self.lost[at + 1].0 - self.lost[*at].1;
        if let Some(at) = (0..self.lost.len() - 1).min_by_key(between) {
            let (_, end) = self.lost.remove(at + 1);
            self.lost[at].1 = end;
        }
    }

    /// From when to when records are missing of what was measured in the time `watched`: if no record came since its
    /// end, it is not known what is missing, and so before the first switch of the thread in question.
    pub fn finish(
        mut self,
        watched: Range<u64>,
        keep: &mut impl FnMut(Stretch),
    ) -> Vec<(u64, u64)> {
        if self.records == 0 {
            self.first = watched.end;
        } else if self.latest < watched.end {
            self.since = self.latest;
            self.lose(watched.end, keep);
        }
        self.last.take().into_iter().for_each(keep);
        let first = self.first.min(watched.end);
        if watched.start < first {
            self.lost.insert(0, (watched.start, first));
        }
        let lost = self.lost.into_iter();
        let lost = lost.map(|(from, to)| (from.max(watched.start), to.min(watched.end)));
        lost.filter(|(from, to)| from < to).collect()
    }
}

fn add(parts: &mut Parts, taker: Interrupter, nanos: u64) {
    let place = |(of, _): &(Option<Interrupter>, u64)| of.is_none() || *of == Some(taker);
    match parts[..PARTS - 1].iter_mut().find(|part| place(part)) {
        Some(part) => *part = (Some(taker), part.1 + nanos),
        None => parts[PARTS - 1].1 += nanos,
    }
}

#[cfg(test)]
mod tests {
    use super::RecordKind::{Begin, End, Lost};
    use super::*;

    const TIMER: Interrupter = Interrupter::Vector(0);
    const DISK: Interrupter = Interrupter::Interrupt(36);
    const BLOCK: Interrupter = Interrupter::Softirq(4);
    const ME: i32 = 100;
    const OTHER: Interrupter = Interrupter::Thread(7);

    fn to(from: i32, to: i32) -> RecordKind {
        RecordKind::Switch { from, to }
    }

    fn found(records: &[(u64, RecordKind)], end: u64) -> (Vec<Stretch>, Vec<(u64, u64)>) {
        let (mut stretches, mut found) = (Stretches::default(), Vec::new());
        stretches.of_thread(ME);
        let mut keep = |stretch| found.push(stretch);
        for &(at, what) in records {
            stretches.take(Record { at, what }, &mut keep);
        }
        let lost = stretches.finish(records[0].0..end, &mut keep);
        (found, lost)
    }

    type Told = ((u64, u64), Vec<(Option<Interrupter>, u64)>);

    /// From when to when each lasted, with its parts.
    fn stretches(records: &[(u64, RecordKind)]) -> Vec<Told> {
        let parts = |parts: Parts| parts.into_iter().filter(|part| part.1 > 0).collect();
        let (found, _) = found(records, 0);
        let found = found.into_iter();
        found
            .map(|it| ((it.begin, it.end), parts(it.parts)))
            .collect()
    }

    #[test]
    fn each_moment_is_charged_to_the_innermost() {
        // A disk in a softirq in a thread; the timer alone.
        let records = [
            (0, to(1, ME)),
            (1000, Begin(TIMER)),
            (1400, End(TIMER)),
            (8000, to(ME, 7)),
            (9000, Begin(BLOCK)),
            (9100, Begin(DISK)),
            (9400, End(DISK)),
            (9600, End(BLOCK)),
            (12_000, to(7, ME)),
        ];
        let thread = vec![(Some(OTHER), 3400), (Some(BLOCK), 300), (Some(DISK), 300)];
        assert_eq!(
            stretches(&records),
            [
                ((1000, 1400), vec![(Some(TIMER), 400)]),
                ((8000, 12_000), thread)
            ]
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
        let threads = vec![(Some(OTHER), 2500), (Some(Interrupter::Thread(8)), 1000)];
        assert_eq!(
            stretches(&records),
            [
                ((1000, 4500), threads),
                ((4600, 4700), vec![(Some(TIMER), 100)])
            ]
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
        let (_, lost) = found(&records, 10_000);
        assert_eq!(lost, [(2000, 9000)]);
        // What is lost behind the end of what was measured is no matter.
        assert_eq!(found(&records, 8000).1, [(2000, 8000)]);
        assert_eq!(
            stretches(&records),
            [
                ((1000, 2000), vec![(Some(Interrupter::Thread(8)), 1000)]),
                ((9000, 9400), vec![(Some(DISK), 400)]),
                ((9400, 10_000), vec![(Some(OTHER), 500)]),
                ((9500, 9600), vec![(Some(TIMER), 100)]),
            ]
        );
        // Where it was the watching thread that ran, nobody took anything.
        let records = [
            (0, to(1, ME)),
            (2000, Lost),
            (9000, to(ME, 7)),
            (9300, to(7, ME)),
        ];
        let expected = [((9000, 9300), vec![(Some(OTHER), 300)])];
        assert_eq!(stretches(&records), expected);
    }

    #[test]
    fn what_ends_behind_the_last_record_has_lost_some() {
        let records = [(50, to(1, ME))];
        assert_eq!(found(&records, 90).1, [(50, 90)]);
        assert_eq!(found(&records, 50).1, []);
    }

    #[test]
    fn what_comes_before_a_switch_of_the_thread_is_lost() {
        let stranger = Record {
            at: 5,
            what: to(1, 7),
        };
        let own = Record {
            at: 60,
            what: to(1, ME),
        };
        let mut nothing = |stretch| panic!("{stretch:?}");
        let mut stretches = Stretches::default();
        // Not yet told who is meant, thread 0 is none.
        stretches.take(
            Record {
                what: to(1, 0),
                ..stranger
            },
            &mut nothing,
        );
        stretches.of_thread(ME);
        stretches.take(stranger, &mut nothing);
        assert_eq!(stretches.records, 0);
        stretches.take(own, &mut nothing);
        assert_eq!(stretches.finish(20..50, &mut nothing), [(20, 50)]);
        for (watched, lost) in [(20..60, &[(20, 60)][..]), (60..60, &[])] {
            let mut stretches = Stretches::default();
            stretches.of_thread(ME);
            stretches.take(stranger, &mut nothing);
            stretches.take(own, &mut nothing);
            assert_eq!(stretches.finish(watched, &mut nothing), lost);
        }
        let expected = [(20, 90)];
        assert_eq!(Stretches::default().finish(20..90, &mut nothing), expected);
    }

    #[test]
    fn an_interrupt_and_what_follows_on_its_way_out_are_one_stretch() {
        let tick = |at: u64, softirq: u64| {
            [
                (at, Begin(TIMER)),
                (at + 1000, End(TIMER)),
                (at + softirq, Begin(BLOCK)),
                (at + softirq + 500, End(BLOCK)),
            ]
        };
        let both = vec![(Some(TIMER), 1000), (Some(BLOCK), 500)];
        let mut records = vec![(0, to(1, ME))];
        records.extend(tick(10_000, 1000 + WAY_OUT));
        // An interrupt right behind the softirq is another one.
        records.extend(tick(10_000 + 1600 + WAY_OUT, 1001 + WAY_OUT));
        records.extend([(90_000, Begin(TIMER)), (90_400, End(TIMER))]);
        records.extend([(90_600, to(ME, 7)), (95_000, to(7, ME))]);
        let second = 10_000 + 1600 + WAY_OUT;
        assert_eq!(
            stretches(&records),
            [
                ((10_000, 11_500 + WAY_OUT), both),
                ((second, second + 1000), vec![(Some(TIMER), 1000)]),
                (
                    (second + 1001 + WAY_OUT, second + 1501 + WAY_OUT),
                    vec![(Some(BLOCK), 500)]
                ),
                (
                    (90_000, 95_000),
                    vec![(Some(TIMER), 400), (Some(OTHER), 4400)]
                ),
            ]
        );
        // Between the two records are lost.
        let records = [
            (0, to(1, ME)),
            (1000, Begin(TIMER)),
            (1400, End(TIMER)),
            (1500, Lost),
            (1600, to(ME, 7)),
            (2000, to(7, ME)),
        ];
        let found = stretches(&records);
        let times: Vec<(u64, u64)> = found.iter().map(|(times, _)| *times).collect();
        assert_eq!(times, [(1000, 1400), (1600, 2000)]);
    }

    #[test]
    fn of_too_many_losses_the_closest_are_joined() {
        let mut records = vec![(0, to(1, ME))];
        // A millisecond between two losses, but for one place.
        let far = 1_000_000;
        let begin = |at: u64| {
            if at > 7 {
                (at - 1) * far + 500
            } else {
                at * far
            }
        };
        for at in 1..=LOSSES as u64 + 1 {
            records.extend([(begin(at), to(ME, ME)), (begin(at) + 100, Lost)]);
        }
        let (end, _) = records[records.len() - 1];
        let (_, lost) = found(&records, end);
        assert_eq!(lost.len(), LOSSES);
        let lost_ns: u64 = lost.iter().map(|(from, to)| to - from).sum();
        assert_eq!(lost_ns, 100 * (LOSSES as u64 + 1) + 400);
        assert_eq!(lost[6], (begin(7), begin(7) + 600));
    }

    #[test]
    fn many_sources_share_the_last_place() {
        let threads = (1..12).map(|id: i32| (u64::from(id.unsigned_abs()) * 10, to(id, id + 1)));
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
