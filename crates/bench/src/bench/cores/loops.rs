//! The hot loops of both ends of a pair.
//!
//! One end asks and has the clock of round trips, the other one answers. Each stage has numbers that no other stage of
//! the pair has, so that a number of an earlier stage is never taken for one of this.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::lines::{LINE_WORDS, RING, Way};
use crate::rig::exchange::Exchange;
use crate::rig::in_threads::SignalCheck;
use crate::time::{Clock, Ticks};

/// Round trips between two readings of the clock, which take next to nothing of that time.
pub const BATCH: u64 = 100;
/// Batches, and hand-overs with stamps, that count at least, whatever time they take: most of them are not interrupted.
const LEAST_BATCHES: usize = 5;
const LEAST_HANDOVERS: usize = 100;
/// Hand-overs with stamps by a line before the next one's turn.
const STAMPED_PER_LINE: usize = 16;
/// Lines of a stream between two notes of how far the reader is.
const LINES_PER_NOTE: u64 = 64;
/// Laps of the ring that a stream takes at least: the first one does not count.
const LEAST_LAPS: u32 = 3;
/// Looks that find nothing between two looks at what else there is.
const LOOKS: u32 = 256;
/// Hand-overs with stamps between two looks for a signal.
const HANDOVERS_PER_LOOK: usize = 256;

/// A part of the measurement of a pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage(u64);

impl Stage {
    pub(super) const ROUND_TRIPS: Stage = Stage(1);
    pub(super) const STAMPED: Stage = Stage(2);
    pub(super) const STREAM_THERE: Stage = Stage(3);
    pub(super) const STREAM_BACK: Stage = Stage(4);

    /// Its numbers are those behind this one.
    const fn base(self) -> u64 {
        self.0 << 48
    }

    /// Is in place of a number where the stage ends. A number of a later stage, which may be written over it before it is
    /// read, is greater.
    const fn end(self) -> u64 {
        self.base() + (1 << 47)
    }
}

/// How long a stage takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// What is at its beginning does not count.
    pub warm_up: Ticks,
    /// All of it.
    pub length: Ticks,
}

/// When an end gives up.
pub(super) struct Patience<'a, C> {
    clock: C,
    until: Ticks,
    over: &'a AtomicBool,
    stop: SignalCheck<'a>,
}

impl<'a, C: Clock> Patience<'a, C> {
    /// From now on.
    pub(super) fn new(
        clock: C,
        length: Ticks,
        over: &'a AtomicBool,
        stop: SignalCheck<'a>,
    ) -> Self {
        Patience {
            until: Ticks(clock.now().0.saturating_add(length.0)),
            clock,
            over,
            stop,
        }
    }

    #[cold]
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || (self.stop)() || self.clock.now() > self.until
    }
}

/// Looks at a line until it has that number. False where the stage has ended instead, or patience ends.
#[inline(always)]
fn wait_for<C: Clock>(word: &AtomicU64, number: u64, end: u64, patience: &Patience<'_, C>) -> bool {
    let mut looks = 0_u32;
    loop {
        // Acquire: what the writer stored before is there as well.
        let found = word.load(Ordering::Acquire);
        if found == number {
            return true;
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) && (found >= end || patience.is_over()) {
            return false;
        }
    }
}

/// Ticks from one reading to a later one.
fn between(before: Ticks, after: Ticks) -> u64 {
    after.0.saturating_sub(before.0)
}

/// Both ways between the ends, and the line that has the first turn: each direction has several, and a slow pair does
/// not get to all of them in a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ways<'a> {
    pub there: Way<'a>,
    pub back: Way<'a>,
    pub first_turn: usize,
}

/// Hands numbers over and waits for each to come back, in batches of [`BATCH`], each by the next line. The first batch
/// waits for the other end to begin, and the time of the stage counts from its end. Returns how many batches were kept;
/// `None` where it had to give up.
#[inline(never)]
pub(super) fn ask<C: Clock>(
    clock: &C,
    ways: Ways<'_>,
    span: Span,
    patience: &Patience<'_, C>,
    batches: &mut [Ticks],
) -> Option<usize> {
    let (mut number, end) = (Stage::ROUND_TRIPS.base(), Stage::ROUND_TRIPS.end());
    let (mut kept, mut done) = (0, 0);
    let mut begun = None;
    loop {
        let turn = ways.first_turn + done;
        let (asked, answered) = (ways.there.line(turn).number, ways.back.line(turn).number);
        let before = clock.now();
        for _ in 0..BATCH {
            number += 1;
            asked.store(number, Ordering::Release);
            if !wait_for(answered, number, end, patience) {
                return None;
            }
        }
        let after = clock.now();
        done += 1;
        let passed = between(*begun.get_or_insert(after), after);
        if done > 1 && passed >= span.warm_up.0 {
            // Of more than there is room for, the last ones stay.
            batches[kept % batches.len()] = Ticks(between(before, after));
            kept += 1;
        }
        if kept >= LEAST_BATCHES && passed >= span.length.0 {
            break;
        }
        if (patience.stop)() {
            return None;
        }
    }
    let next = ways.there.line(ways.first_turn + done);
    next.number.store(end, Ordering::Release);
    Some(kept.min(batches.len()))
}

/// The other end of [`ask`]. Returns whether that came to its end.
#[inline(never)]
pub(super) fn answer<C: Clock>(ways: Ways<'_>, patience: &Patience<'_, C>) -> bool {
    let (mut number, end) = (Stage::ROUND_TRIPS.base(), Stage::ROUND_TRIPS.end());
    let mut turn = ways.first_turn;
    loop {
        let (asked, answered) = (ways.there.line(turn).number, ways.back.line(turn).number);
        for _ in 0..BATCH {
            number += 1;
            if !wait_for(asked, number, end, patience) {
                return asked.load(Ordering::Acquire) >= end;
            }
            answered.store(number, Ordering::Release);
        }
        turn += 1;
    }
}

/// The same with a stamp before each store and after each load that finds a number. Returns how many exchanges were kept.
#[inline(never)]
pub(super) fn ask_with_stamps<C: Clock>(
    clock: &C,
    ways: Ways<'_>,
    span: Span,
    patience: &Patience<'_, C>,
    exchanges: &mut [Exchange],
) -> Option<usize> {
    let (mut number, end) = (Stage::STAMPED.base(), Stage::STAMPED.end());
    let (mut kept, mut done) = (0, 0);
    let mut begun = None;
    loop {
        let turn = ways.first_turn + done / STAMPED_PER_LINE;
        let (asking, answer) = (ways.there.line(turn).number, ways.back.line(turn));
        number += 1;
        let asked = clock.now();
        asking.store(number, Ordering::Release);
        if !wait_for(answer.number, number, end, patience) {
            return None;
        }
        let returned = clock.now();
        done += 1;
        let passed = between(*begun.get_or_insert(returned), returned);
        if done > 1 && passed >= span.warm_up.0 {
            exchanges[kept % exchanges.len()] = Exchange {
                asked: asked.0,
                answered: answer.stamp.load(Ordering::Relaxed),
                returned: returned.0,
            };
            kept += 1;
        }
        if kept >= LEAST_HANDOVERS && passed >= span.length.0 {
            break;
        }
        if done.is_multiple_of(HANDOVERS_PER_LOOK) && (patience.stop)() {
            return None;
        }
    }
    let next = (ways.there).line(ways.first_turn + done / STAMPED_PER_LINE);
    next.number.store(end, Ordering::Release);
    Some(kept.min(exchanges.len()))
}

/// The other end of [`ask_with_stamps`], which stamps each answer once: when the question was found, and before the
/// answer is stored.
#[inline(never)]
pub(super) fn answer_with_stamps<C: Clock>(
    clock: &C,
    ways: Ways<'_>,
    patience: &Patience<'_, C>,
) -> bool {
    let (mut number, end) = (Stage::STAMPED.base(), Stage::STAMPED.end());
    let mut done = 0;
    loop {
        let turn = ways.first_turn + done / STAMPED_PER_LINE;
        let (asked, answer) = (ways.there.line(turn).number, ways.back.line(turn));
        number += 1;
        if !wait_for(asked, number, end, patience) {
            return asked.load(Ordering::Acquire) >= end;
        }
        answer.stamp.store(clock.now().0, Ordering::Relaxed);
        answer.number.store(number, Ordering::Release);
        done += 1;
    }
}

/// Writes whole lines into the ring, as far as the reader has taken those before, for as long as the span has it.
/// Returns whether it came to its end.
#[inline(never)]
pub(super) fn write_stream<C: Clock>(
    clock: &C,
    way: Way<'_>,
    stage: Stage,
    span: Span,
    patience: &Patience<'_, C>,
) -> bool {
    let (base, end) = (stage.base(), stage.end());
    let (mut number, mut taken) = (base, base);
    let mut has_room = |number: u64| {
        let mut looks = 0_u32;
        while number - taken > RING as u64 {
            // Acquire: the reader has read the lines. What an earlier stage left there is less than any number of this.
            taken = way.taken.load(Ordering::Acquire).max(base);
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) && patience.is_over() {
                return false;
            }
        }
        true
    };
    let begun = clock.now();
    let mut laps = 0;
    while laps < LEAST_LAPS || between(begun, clock.now()) < span.length.0 {
        for line in way.ring.chunks_exact(LINE_WORDS) {
            number += 1;
            if !has_room(number) {
                return false;
            }
            for word in &line[1..] {
                word.store(number, Ordering::Relaxed);
            }
            line[0].store(number, Ordering::Release);
        }
        laps += 1;
        if (patience.stop)() {
            return false;
        }
    }
    let is_there = has_room(number + 1);
    if is_there {
        way.ring[0].store(end, Ordering::Release);
    }
    is_there
}

/// What came of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamEnd {
    /// Lines that count.
    pub lines: u64,
    /// How long they took.
    pub time: Ticks,
    /// Whether a line had other words than were written to it.
    pub is_damaged: bool,
}

/// The other end of [`write_stream`], which reads every word. The first lap does not count. `None` where it had to give
/// up.
#[inline(never)]
pub(super) fn read_stream<C: Clock>(
    clock: &C,
    way: Way<'_>,
    stage: Stage,
    patience: &Patience<'_, C>,
) -> Option<StreamEnd> {
    let (mut number, end) = (stage.base(), stage.end());
    let mut wrong = 0;
    let (mut first, mut last) = (None, None);
    'laps: loop {
        for line in way.ring.chunks_exact(LINE_WORDS) {
            number += 1;
            if !wait_for(&line[0], number, end, patience) {
                if line[0].load(Ordering::Acquire) < end {
                    return None;
                }
                break 'laps;
            }
            for word in &line[1..] {
                wrong |= word.load(Ordering::Relaxed) ^ number;
            }
            if number.is_multiple_of(LINES_PER_NOTE) {
                // Release: the writer may write to these lines again.
                way.taken.store(number, Ordering::Release);
            }
        }
        let here = (number, clock.now());
        first = first.or(Some(here));
        last = Some(here);
    }
    let (first, last) = first.zip(last)?;
    Some(StreamEnd {
        lines: last.0 - first.0,
        time: Ticks(between(first.1, last.1)),
        is_damaged: wrong != 0,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::super::lines::{NodeLines, PLACES};
    use super::*;
    use crate::rig::in_threads::{ThreadJob, in_threads};
    use crate::time::{Nanos, Posix};

    const CLOCK: Posix = Posix::MONOTONIC;
    /// Enough where two threads share a CPU as well, and each hand-over takes a time slice of the scheduler.
    const LONG: Duration = Duration::from_secs(600);

    fn never() -> bool {
        false
    }

    fn ticks(time: Duration) -> Ticks {
        CLOCK.ticks_in(Nanos::from(time))
    }

    fn ways_of(lines: &NodeLines) -> Ways<'_> {
        Ways {
            there: lines.way(false),
            back: lines.way(true),
            first_turn: 0,
        }
    }

    fn span(length: Duration) -> Span {
        Span {
            warm_up: Ticks(0),
            length: ticks(length),
        }
    }

    /// Runs both ends in threads that are pinned nowhere.
    fn both<T: Send>(
        length: Duration,
        one: impl FnOnce(&Patience<'_, Posix>) -> T + Send,
        other: impl FnOnce(&Patience<'_, Posix>) -> T + Send,
    ) -> Vec<T> {
        let over = AtomicBool::new(false);
        let patience = || Patience::new(CLOCK, ticks(length), &over, &never);
        let one: ThreadJob<'_, T> = Box::new(|| Ok(one(&patience())));
        let other: ThreadJob<'_, T> = Box::new(|| Ok(other(&patience())));
        let jobs = vec![("one".to_owned(), one), ("other".to_owned(), other)];
        in_threads(jobs, &over, &never).unwrap()
    }

    #[test]
    fn the_last_round_trips_are_kept_as_far_as_there_is_room_and_both_ends_come_to_the_end() {
        let lines = NodeLines::new(None).unwrap();
        let ways = ways_of(&lines);
        let mut batches = [Ticks(0); 3];
        let mut room = [Exchange::default(); 40];
        let (batches, room) = (&mut batches[..], &mut room[..]);
        let kept = both(
            LONG,
            |patience| {
                let brief = span(Duration::from_millis(5));
                let batches = ask(&CLOCK, ways, brief, patience, batches);
                [
                    batches,
                    ask_with_stamps(&CLOCK, ways, brief, patience, room),
                ]
            },
            |patience| {
                let has_ended = [
                    answer(ways, patience),
                    answer_with_stamps(&CLOCK, ways, patience),
                ];
                has_ended.map(|it| it.then_some(0))
            },
        );
        assert_eq!(kept, [[Some(3), Some(40)], [Some(0), Some(0)]]);
        assert!(batches.iter().all(|batch| batch.0 > 0), "{batches:?}");
        let in_order = |it: &Exchange| it.asked <= it.answered && it.answered <= it.returned;
        assert!(room.iter().all(in_order), "{room:?}");
        // One of them is the last one before the first.
        let later = room
            .windows(2)
            .filter(|two| two[0].returned <= two[1].asked);
        assert!(later.count() >= room.len() - 2, "{room:?}");
    }

    #[test]
    fn a_number_of_the_next_stage_is_the_end_of_one() {
        let lines = NodeLines::new(None).unwrap();
        let ways = ways_of(&lines);
        let over = AtomicBool::new(false);
        let patience = Patience::new(CLOCK, ticks(Duration::from_secs(2)), &over, &never);
        // The end was on this line, and the next stage began with it before the end was read.
        let next = Stage::STAMPED.base() + 1;
        ways.there.line(0).number.store(next, Ordering::Relaxed);
        assert!(answer(ways, &patience));
    }

    /// Adds a tick with each reading, or reads the time.
    #[derive(Debug, Clone, Copy)]
    enum CountedClock {
        Readings,
        Time,
    }

    impl Clock for CountedClock {
        fn now(&self) -> Ticks {
            thread_local! {
                static READINGS: Cell<u64> = const { Cell::new(0) };
            }
            match self {
                CountedClock::Readings => Ticks(READINGS.replace(READINGS.get() + 1)),
                CountedClock::Time => CLOCK.now(),
            }
        }
    }

    /// That number of batches, then hand-overs with stamps: whether each part came to its end, at both ends.
    fn batches_and_stamps(ways: Ways<'_>, batches: u64) -> [bool; 4] {
        let over = AtomicBool::new(false);
        let patience = || Patience::new(CountedClock::Time, ticks(LONG), &over, &never);
        // The time begins with the second reading of the first batch, and each batch has two.
        let length = Span {
            warm_up: Ticks(0),
            length: Ticks(2 * (batches - 1)),
        };
        let asks: ThreadJob<'_, [bool; 2]> = Box::new(|| {
            let (mut room, mut exchanges) = ([Ticks(0); 8], [Exchange::default(); 8]);
            let clock = CountedClock::Readings;
            let kept = ask(&clock, ways, length, &patience(), &mut room);
            let none = span(Duration::ZERO);
            let clock = CountedClock::Time;
            let stamped = ask_with_stamps(&clock, ways, none, &patience(), &mut exchanges);
            Ok([kept.is_some(), stamped.is_some()])
        });
        let answers: ThreadJob<'_, [bool; 2]> = Box::new(|| {
            let ended = answer(ways, &patience());
            let clock = CountedClock::Time;
            Ok([ended, answer_with_stamps(&clock, ways, &patience())])
        });
        let jobs = vec![("ask".to_owned(), asks), ("answer".to_owned(), answers)];
        let ended = in_threads(jobs, &over, &never).unwrap().concat();
        ended.try_into().unwrap()
    }

    #[test]
    fn a_stage_ends_on_the_line_that_the_next_one_begins_with() {
        // A lap of all lines, so that the end is on the line with which the next stage begins.
        let lines = NodeLines::new(None).unwrap();
        let ended = batches_and_stamps(ways_of(&lines), PLACES as u64);
        assert_eq!(ended, [true; 4]);
    }

    #[test]
    fn lines_take_turns_from_the_first_one_that_is_asked_for() {
        let lines = NodeLines::new(None).unwrap();
        let ways = Ways {
            first_turn: PLACES - 2,
            ..ways_of(&lines)
        };
        let clock = CountedClock::Readings;
        let over = AtomicBool::new(false);
        let patience = || Patience::new(CountedClock::Time, ticks(LONG), &over, &never);
        let none = span(Duration::ZERO);
        let asks: ThreadJob<'_, ()> = Box::new(|| {
            ask(&clock, ways, none, &patience(), &mut [Ticks(0); 8]).unwrap();
            Ok(())
        });
        let answers: ThreadJob<'_, ()> = Box::new(|| {
            assert!(answer(ways, &patience()));
            Ok(())
        });
        let jobs = vec![("ask".to_owned(), asks), ("answer".to_owned(), answers)];
        in_threads(jobs, &over, &never).unwrap();
        let last = |turn: usize| ways.back.line(turn).number.load(Ordering::Relaxed);
        let used: Vec<usize> = (0..PLACES).filter(|turn| last(*turn) > 0).collect();
        // The first batch does not count.
        assert_eq!(used, [0, 1, 2, 3, PLACES - 2, PLACES - 1]);
        assert_eq!(LEAST_BATCHES + 1, used.len());
    }

    #[test]
    fn every_word_of_a_stream_arrives_in_both_directions_by_one_ring() {
        let lines = NodeLines::new(None).unwrap();
        let way = lines.way(false);
        let streams = [Stage::STREAM_THERE, Stage::STREAM_BACK].map(|stage| {
            let length = span(Duration::from_millis(5));
            let ends = both(
                LONG,
                |patience| {
                    let whole = write_stream(&CLOCK, way, stage, length, patience);
                    assert!(whole);
                    None
                },
                |patience| read_stream(&CLOCK, way, stage, patience),
            );
            ends[1].unwrap()
        });
        for stream in streams {
            assert!(stream.lines >= 2 * RING as u64, "{stream:?}");
            assert!(stream.lines.is_multiple_of(RING as u64), "{stream:?}");
            assert!(stream.time.0 > 0 && !stream.is_damaged, "{stream:?}");
        }
    }

    #[test]
    fn a_line_with_other_words_is_found() {
        let lines = NodeLines::new(None).unwrap();
        let way = lines.way(false);
        let stage = Stage::STREAM_THERE;
        // A lap is there, of which one word is wrong, and the end is not.
        for (line, number) in way.ring.chunks_exact(LINE_WORDS).zip(stage.base() + 1..) {
            line.iter()
                .for_each(|word| word.store(number, Ordering::Relaxed));
        }
        way.ring[5 * LINE_WORDS + 3].store(0, Ordering::Relaxed);
        let over = AtomicBool::new(false);
        let patience = Patience::new(CLOCK, ticks(LONG), &over, &never);
        std::thread::scope(|scope| {
            let end = || {
                while way.taken.load(Ordering::Acquire) < stage.base() + RING as u64 {
                    std::thread::yield_now();
                }
                way.ring[0].store(stage.end(), Ordering::Release);
            };
            let builder = std::thread::Builder::new();
            crate::host::threads::start_scoped(scope, builder, end).unwrap();
            let found = read_stream(&CLOCK, way, stage, &patience).unwrap();
            assert!(found.is_damaged && found.lines == 0, "{found:?}");
        });
    }

    #[test]
    fn an_end_without_another_one_gives_up() {
        let lines = NodeLines::new(None).unwrap();
        let ways = ways_of(&lines);
        let over = AtomicBool::new(false);
        let brief = |stop| Patience::new(CLOCK, ticks(Duration::from_millis(20)), &over, stop);
        let long = |stop| Patience::new(CLOCK, ticks(LONG), &over, stop);
        let mut room = [Ticks(0); 1];
        assert_eq!(
            ask(&CLOCK, ways, span(LONG), &brief(&never), &mut room),
            None
        );
        lines.clear();
        assert!(!answer(ways, &brief(&never)));
        let stage = Stage::STREAM_BACK;
        assert_eq!(read_stream(&CLOCK, ways.there, stage, &brief(&never)), None);
        assert!(!write_stream(
            &CLOCK,
            ways.there,
            stage,
            span(LONG),
            &brief(&never)
        ));
        // A signal, and an end that failed.
        assert!(!answer(ways, &long(&|| true)));
        over.store(true, Ordering::Relaxed);
        assert!(!answer_with_stamps(&CLOCK, ways, &long(&never)));
    }
}
