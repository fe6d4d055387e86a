//! From records to stretches: times in which a thread did not have its CPU, and who had it for how long.
//!
//! At each moment the CPU is charged to one: to the innermost interrupt or softirq, or else to the thread that runs.
//! While that is the thread in question nobody takes anything. Behind records that are lost it is not known which
//! thread runs; the next switch tells which one it was since then.

use super::{Record, Source, What};

/// Who can be told apart in one stretch; the last place is for all others.
pub const PARTS: usize = 8;
/// Losses that are told apart; later ones are one.
const LOSSES: usize = 1 << 12;
/// Interrupts within softirqs within interrupts: the kernel nests fewer.
const NESTED: usize = 16;

/// How long each had the CPU, in nanoseconds, without those that interrupted it.
pub type Parts = [(Option<Source>, u64); PARTS];

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
    inside: Vec<Source>,
    /// The time up to this moment is charged.
    since: u64,
    /// When the stretch began that is under way.
    began: Option<u64>,
    parts: Parts,
    /// Since when it is not known who runs, and how long that was nobody else.
    unsure: (u64, u64),
    lost: Vec<(u64, u64)>,
    /// Records so far.
    pub records: u64,
    /// The time of the last.
    pub latest: u64,
}

impl Stretches {
    /// None yet, with all memory.
    pub fn new() -> Self {
        Stretches {
            watcher: 0,
            running: None,
            inside: Vec::with_capacity(NESTED),
            since: 0,
            began: None,
            parts: Parts::default(),
            unsure: (0, 0),
            lost: Vec::with_capacity(LOSSES),
            records: 0,
            latest: 0,
        }
    }

    /// Tells which thread is meant; records before that tell nothing.
    pub fn of_thread(&mut self, thread: i32) {
        self.watcher = thread;
    }

    /// Takes the next record; `keep` gets each stretch that it ends.
    pub fn take(&mut self, record: Record, keep: &mut impl FnMut(Stretch)) {
        if self.watcher == 0 {
            return;
        }
        if self.records == 0 {
            (self.since, self.unsure.0) = (record.at, record.at);
        }
        self.records += 1;
        self.latest = self.latest.max(record.at);
        if record.what == What::Lost {
            return self.lose(record.at, keep);
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
                    self.was(source, record.at, keep);
                }
                None => {}
            },
            What::Switch { from, to } => {
                if self.running.is_none() && from != self.watcher {
                    self.was(Source::Thread(from), record.at, keep);
                }
                self.inside.clear();
                self.running = Some(to);
            }
            What::Lost => {}
        }
        let is_taken = self.taker().is_some();
        match self.began {
            None if is_taken => self.began = Some(record.at),
            Some(began) if !is_taken => self.close(began, record.at, keep),
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
    fn was(&mut self, source: Source, end: u64, keep: &mut impl FnMut(Stretch)) {
        let (begin, length) = std::mem::replace(&mut self.unsure, (end, 0));
        let mut parts = Parts::default();
        add(&mut parts, source, length);
        if length > 0 {
            keep(Stretch { begin, end, parts });
        }
    }

    fn close(&mut self, begin: u64, end: u64, keep: &mut impl FnMut(Stretch)) {
        self.began = None;
        let parts = std::mem::take(&mut self.parts);
        keep(Stretch { begin, end, parts });
    }

    /// Records since the last one are lost: nobody is charged for that time.
    fn lose(&mut self, now: u64, keep: &mut impl FnMut(Stretch)) {
        let from = self.since;
        if let Some(began) = self.began {
            self.close(began, from, keep);
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

    /// From when to when records are missing. `end`: what was measured ended then; if no record came since, it is not
    /// known what is missing.
    pub fn finish(mut self, end: u64, keep: &mut impl FnMut(Stretch)) -> Vec<(u64, u64)> {
        if self.latest < end {
            self.since = self.latest;
            self.lose(end, keep);
        }
        self.lost
    }
}

fn add(parts: &mut Parts, taker: Source, nanos: u64) {
    let place = |(of, _): &(Option<Source>, u64)| of.is_none() || *of == Some(taker);
    match parts[..PARTS - 1].iter_mut().find(|part| place(part)) {
        Some(part) => *part = (Some(taker), part.1 + nanos),
        None => parts[PARTS - 1].1 += nanos,
    }
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

    /// The stretches that these records come to, and what is lost until `end`.
    fn found(records: &[(u64, What)], end: u64) -> (Vec<Stretch>, Vec<(u64, u64)>) {
        let (mut stretches, mut found) = (Stretches::new(), Vec::new());
        stretches.of_thread(ME);
        let mut keep = |stretch| found.push(stretch);
        for &(at, what) in records {
            stretches.take(Record { at, what }, &mut keep);
        }
        let lost = stretches.finish(end, &mut keep);
        (found, lost)
    }

    type Told = ((u64, u64), Vec<(Option<Source>, u64)>);

    /// From when to when each lasted, with its parts.
    fn stretches(records: &[(u64, What)]) -> Vec<Told> {
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
            [
                ((1000, 1400), vec![(Some(TIMER), 400)]),
                ((5000, 9000), thread)
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
        let threads = vec![(Some(OTHER), 2500), (Some(Source::Thread(8)), 1000)];
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
        let (_, lost) = found(&records, 0);
        assert_eq!(lost, [(2000, 9000)]);
        assert_eq!(
            stretches(&records),
            [
                ((1000, 2000), vec![(Some(Source::Thread(8)), 1000)]),
                ((9000, 9400), vec![(Some(DISK), 400)]),
                ((9500, 9600), vec![(Some(TIMER), 100)]),
                ((9400, 10_000), vec![(Some(OTHER), 500)]),
            ]
        );
        // Where it was the watching thread that ran, nobody took anything.
        let records = [
            (0, to(1, ME)),
            (2000, Lost),
            (9000, to(ME, 7)),
            (9300, to(7, ME)),
        ];
        assert_eq!(
            stretches(&records),
            [((9000, 9300), vec![(Some(OTHER), 300)])]
        );
    }

    #[test]
    fn what_ends_behind_the_last_record_has_lost_some() {
        let records = [(50, to(1, ME))];
        assert_eq!(found(&records, 90).1, [(50, 90)]);
        assert_eq!(found(&records, 50).1, []);
        // Records before it is known who is meant tell nothing.
        let mut stretches = Stretches::new();
        let nothing = |record| panic!("{record:?}");
        stretches.take(
            Record {
                at: 5,
                what: to(ME, 7),
            },
            &mut { nothing },
        );
        assert_eq!(stretches.records, 0);
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
