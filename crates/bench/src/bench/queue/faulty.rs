//! A queue with a fault, for tests of what finds it.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use super::config::{Config, RoundLength};
use super::cpus::Cpus;
use super::ends::{self, EndsMaker};
use super::plan::Point;
use super::result::made_up;
use super::tagging::ElementTag;
use crate::host::pinning;
use crate::queues::element::{Element, Words};
use crate::queues::interface::{NewEnds, Queue, Receiver, Sender, SharedEnds, alone};
use crate::queues::parameters::Parameters;
use crate::time::{AnyClock, ClockKind};

/// Held by each test with a run: two at a time would wait for each other's CPUs.
pub(super) fn turn() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Elements of a run of these tests.
pub(super) const COUNT: usize = 5_000;
const MIDDLE: usize = COUNT / 2;
const ALL_BUT_ONE: usize = COUNT - 1;
/// Elements that are handed over too late.
pub(super) const BELATED: usize = 10;
/// Before the element in the middle.
pub(super) const STALL: Duration = Duration::from_millis(5);
/// Longer than anyone waits.
pub(super) const LONG: Duration = Duration::from_secs(20);
const A_WHILE: Duration = Duration::from_millis(1500);

pub(super) const NOTHING: u8 = 0;
/// Takes each hundredth element and forgets it.
pub(super) const DROPS: u8 = 1;
/// Gives each hundredth element before the one in front of it.
pub(super) const REORDERS: u8 = 2;
/// Always has an element; where there is none it makes one up.
pub(super) const INVENTS: u8 = 3;
/// Gives each hundredth element twice.
pub(super) const DUPLICATES: u8 = 4;
/// Never gives the last element.
pub(super) const WITHHOLDS: u8 = 5;
/// Changes a word of each hundredth element.
pub(super) const DAMAGES: u8 = 6;
/// Panics at the tenth element.
pub(super) const PANICS: u8 = 7;
/// Gives out more at the end than was put in.
pub(super) const APPENDS: u8 = 8;
/// Hands the last elements over only when its sender is dropped.
pub(super) const BELATES: u8 = 9;
/// Stalls once in an enqueue, for [`STALL`].
pub(super) const STALLS: u8 = 10;
/// Lets its sender run on all CPUs from the tenth element on, as `taskset -a -p` does from outside.
pub(super) const MOVES: u8 = 11;
/// Takes [`LONG`] to be made.
pub(super) const IS_MADE_SLOWLY: u8 = 12;
/// Does not return from an enqueue behind the thousandth for [`LONG`].
pub(super) const BLOCKS: u8 = 13;
/// The same, but it comes back.
pub(super) const BLOCKS_FOR_A_WHILE: u8 = 14;
/// Does not return from a dequeue behind the last element.
pub(super) const BLOCKS_AT_THE_END: u8 = 15;

/// Is always full for its first sender.
pub(super) const STARVES_A_SENDER: u8 = 16;
/// Is always empty for its first receiver.
pub(super) const STARVES_A_RECEIVER: u8 = 17;
/// Takes no more after some elements.
pub(super) const STOPS: u8 = 18;
/// Takes the very first element, of the warm-up of several threads, and forgets it.
pub(super) const FORGETS_THE_FIRST: u8 = 19;

/// A queue with a fault, which is its type.
pub(super) struct Faulty<const FAULT: u8>;

/// Makes its ends.
pub(super) fn make_of<const FAULT: u8>() -> EndsMaker {
    ends::make::<Faulty<FAULT>, Words<8>>
}

/// Makes the ends of round trips over one with a fault there and one with another fault back.
pub(super) fn make_of_round_trip<const THERE: u8, const BACK: u8>() -> EndsMaker {
    ends::make_round_trip::<Faulty<THERE>, Faulty<BACK>, Words<8>>
}

#[derive(Default)]
struct FaultyState {
    elements: VecDeque<Words<8>>,
    put_in: usize,
    taken: usize,
    last: Option<Words<8>>,
    /// Comes out once more.
    again: Option<Words<8>>,
}

pub(super) struct FaultyEnd {
    fault: u8,
    is_first: bool,
    capacity: usize,
    queue: Arc<Mutex<FaultyState>>,
    held: Vec<Words<8>>,
}

impl Drop for FaultyEnd {
    fn drop(&mut self) {
        let mut queue = self.queue.lock().unwrap();
        queue.elements.extend(self.held.drain(..));
    }
}

impl FaultyEnd {
    fn put_in(&self) -> usize {
        self.queue.lock().unwrap().put_in
    }

    fn taken(&self) -> usize {
        self.queue.lock().unwrap().taken
    }
}

impl Sender<Words<8>> for FaultyEnd {
    fn enqueue(&mut self, element: Words<8>) -> bool {
        match (self.fault, self.put_in()) {
            (BLOCKS, 1000..) => sleep(LONG),
            (BLOCKS_FOR_A_WHILE, 1000) => sleep(A_WHILE),
            (STALLS, MIDDLE) => sleep(STALL),
            (PANICS, 10) => panic!("a broken queue"),
            (MOVES, 10) => {
                pinning::pin_current_thread_to(&pinning::reachable_cpus().unwrap()).unwrap();
            }
            (STOPS, 1001..) => return false,
            (STARVES_A_SENDER, _) if self.is_first => return false,
            _ => {}
        }
        let mut queue = self.queue.lock().unwrap();
        let FaultyState {
            elements, put_in, ..
        } = &mut *queue;
        if elements.len() >= self.capacity {
            return false;
        }
        *put_in += 1;
        let is_hundredth = put_in.is_multiple_of(100);
        match self.fault {
            BELATES if *put_in > COUNT - BELATED => self.held.push(element),
            DROPS if is_hundredth => {}
            FORGETS_THE_FIRST if *put_in == 1 && ElementTag(element.stamp()).is_warm_up() => {}
            _ => elements.push_back(element),
        }
        if self.fault == REORDERS && is_hundredth {
            // Two of one sender change places, wherever they are.
            let last = elements.len() - 1;
            let is_same = |it: &Words<8>| {
                ElementTag(it.stamp()).parts().0 == ElementTag(element.stamp()).parts().0
            };
            if let Some(before) = elements.range(..last).rposition(is_same) {
                elements.swap(last, before);
            }
        }
        true
    }
}

impl Receiver<Words<8>> for FaultyEnd {
    fn dequeue(&mut self) -> Option<Words<8>> {
        match (self.fault, self.taken()) {
            (BLOCKS_AT_THE_END, COUNT) => sleep(LONG),
            (WITHHOLDS, ALL_BUT_ONE) => return None,
            (STARVES_A_RECEIVER, _) if self.is_first => return None,
            _ => {}
        }
        let mut queue = self.queue.lock().unwrap();
        if let Some(again) = queue.again.take() {
            return Some(again);
        }
        let Some(element) = queue.elements.pop_front() else {
            return match self.fault {
                INVENTS => Some(Words::with_stamp(NonZeroU64::new(77).unwrap())),
                APPENDS if queue.taken >= COUNT => queue.last,
                _ => None,
            };
        };
        queue.taken += 1;
        queue.last = Some(element);
        let is_hundredth = queue.taken.is_multiple_of(100);
        match self.fault {
            DUPLICATES if is_hundredth => queue.again = Some(element),
            DAMAGES if is_hundredth => {
                let mut words = *element.words();
                words[7] ^= 1;
                return Some(Words::from_words(words));
            }
            _ => {}
        }
        Some(element)
    }
}

impl<const FAULT: u8> Queue<Words<8>> for Faulty<FAULT> {
    type Sender = FaultyEnd;
    type Receiver = FaultyEnd;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<8>> {
        Self::shared(capacity, &Parameters::default(), 1, 1).map(alone)
    }

    fn shared(
        capacity: usize,
        _given: &Parameters,
        senders: usize,
        receivers: usize,
    ) -> SharedEnds<Self, Words<8>> {
        if FAULT == IS_MADE_SLOWLY {
            sleep(LONG);
        }
        let queue = Arc::new(Mutex::new(FaultyState::default()));
        let end = |number| FaultyEnd {
            fault: FAULT,
            is_first: number == 0,
            capacity,
            queue: Arc::clone(&queue),
            held: Vec::new(),
        };
        let ends = |count| (0..count).map(end).collect();
        Ok((ends(senders), ends(receivers)))
    }
}

pub(super) fn config() -> Config {
    Config {
        length: RoundLength::Elements(COUNT as u64),
        timeout: Duration::from_millis(500),
        keep_elements: true,
        hlog_interval: None,
        ..made_up::config()
    }
}

pub(super) fn point() -> Point {
    let allowed: Vec<usize> = pinning::reachable_cpus().unwrap().iter().collect();
    Point {
        payload: 64,
        cpus: Cpus {
            sender: allowed[0],
            receiver: *allowed.last().unwrap(),
            cores: None,
        },
        ..made_up::point("faulty")
    }
}

pub(super) fn clock() -> AnyClock {
    AnyClock::prepare(ClockKind::Monotonic).unwrap()
}
