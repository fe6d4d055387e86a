//! A queue with a fault, for tests of what finds it.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use super::config::{Config, Length};
use super::cpus::Cpus;
use super::plan::Point;
use super::result::made_up;
use super::threads::{self, MakeEnds};
use crate::host::pinning;
use crate::queues::element::{Element, Words};
use crate::queues::interface::{Queue, QueueError, Receiver, Sender};
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
/// Does not return from the thousandth enqueue for [`LONG`].
pub(super) const BLOCKS: u8 = 13;
/// The same, but it comes back.
pub(super) const BLOCKS_FOR_A_WHILE: u8 = 14;
/// Does not return from a dequeue behind the last element.
pub(super) const BLOCKS_AT_THE_END: u8 = 15;

/// A queue with a fault, which is its type.
pub(super) struct Faulty<const FAULT: u8>;

/// Makes its ends.
pub(super) fn make_of<const FAULT: u8>() -> MakeEnds {
    threads::make::<Faulty<FAULT>, Words<8>>
}

/// Makes the ends of round trips over one with a fault there and one with another fault back.
pub(super) fn make_of_round_trip<const THERE: u8, const BACK: u8>() -> MakeEnds {
    threads::make_round_trip::<Faulty<THERE>, Faulty<BACK>, Words<8>>
}

pub(super) struct End {
    fault: u8,
    queue: Arc<Mutex<VecDeque<Words<8>>>>,
    capacity: usize,
    count: usize,
    last: Option<Words<8>>,
    held: Vec<Words<8>>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.queue.lock().unwrap().extend(self.held.drain(..));
    }
}

impl Sender<Words<8>> for End {
    fn enqueue(&mut self, element: Words<8>) -> bool {
        match (self.fault, self.count) {
            (BLOCKS, 1000) => sleep(LONG),
            (BLOCKS_FOR_A_WHILE, 1000) => sleep(A_WHILE),
            (STALLS, MIDDLE) => sleep(STALL),
            (PANICS, 10) => panic!("a broken queue"),
            (MOVES, 10) => {
                pinning::pin_current_thread_to(&pinning::reachable_cpus().unwrap()).unwrap();
            }
            _ => {}
        }
        let mut queue = self.queue.lock().unwrap();
        if queue.len() >= self.capacity {
            return false;
        }
        self.count += 1;
        let is_hundredth = self.count.is_multiple_of(100);
        match self.fault {
            BELATES if self.count > COUNT - BELATED => self.held.push(element),
            DROPS if is_hundredth => {}
            _ => queue.push_back(element),
        }
        if self.fault == REORDERS && is_hundredth && queue.len() > 1 {
            let last = queue.len() - 1;
            queue.swap(last, last - 1);
        }
        true
    }
}

impl Receiver<Words<8>> for End {
    fn dequeue(&mut self) -> Option<Words<8>> {
        match (self.fault, self.count) {
            (BLOCKS_AT_THE_END, COUNT) => sleep(LONG),
            (WITHHOLDS, ALL_BUT_ONE) => return None,
            (DUPLICATES, count) if count % 100 == 99 && self.last.is_some() => {
                return self.last.take();
            }
            _ => {}
        }
        let Some(element) = self.queue.lock().unwrap().pop_front() else {
            return match self.fault {
                INVENTS => Some(Words::with_stamp(NonZeroU64::new(77).unwrap())),
                APPENDS if self.count >= COUNT => self.last,
                _ => None,
            };
        };
        self.count += 1;
        self.last = Some(element);
        if self.fault == DAMAGES && self.count.is_multiple_of(100) {
            let mut words = *element.words();
            words[7] ^= 1;
            return Some(Words::from_words(words));
        }
        Some(element)
    }
}

impl<const FAULT: u8> Queue<Words<8>> for Faulty<FAULT> {
    type Sender = End;
    type Receiver = End;

    fn starting_at(capacity: usize, _start: usize) -> Result<(End, End), QueueError> {
        if FAULT == IS_MADE_SLOWLY {
            sleep(LONG);
        }
        let queue = Arc::new(Mutex::new(VecDeque::with_capacity(capacity)));
        let end = || End {
            fault: FAULT,
            queue: Arc::clone(&queue),
            capacity,
            count: 0,
            last: None,
            held: Vec::new(),
        };
        Ok((end(), end()))
    }
}

pub(super) fn config() -> Config {
    Config {
        length: Length::Elements(COUNT as u64),
        timeout: Duration::from_millis(500),
        keep_elements: true,
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
