//! Ports and a clock that follow a script, for tests of the loops: no thread, no time, no device.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use proptest::prelude::*;

use super::{Completion, CompletionPort, EventPort, Failure, PollResult};
use crate::bench::hca::loops::control::Control;
use crate::time::{Clock, Ticks};

thread_local! {
    static READINGS: Cell<u64> = const { Cell::new(0) };
    static JOURNAL: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// What a loop did, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Prepare(u32, bool),
    Clock(u64),
    Stamp(u64),
    Post,
    Look,
}

/// Writes down what happened on this thread.
pub(crate) fn note(entry: Entry) {
    JOURNAL.with_borrow_mut(|journal| journal.push(entry));
}

/// What happened on this thread since the last time it was asked.
pub(crate) fn journal() -> Vec<Entry> {
    JOURNAL.take()
}

/// A clock that moves on by one at each reading; each test has its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counting;

impl Clock for Counting {
    fn now(&self) -> Ticks {
        READINGS.set(READINGS.get() + 1);
        note(Entry::Clock(READINGS.get()));
        Ticks(READINGS.get())
    }
}

/// A failure that calls itself by its code.
pub(crate) fn failure(code: i64, consequence: bool) -> Failure {
    Failure {
        request: None,
        code,
        vendor_error: 0,
        consequence,
        foreign: false,
        describe: |code, _| format!("failure {code}"),
    }
}

fn completed(request: u64, immediate_data: u32, source_queue_pair: u32) -> PollResult {
    PollResult::Done(Completion {
        request,
        immediate_data,
        bytes: 8,
        source_queue_pair,
    })
}

/// What one look into a [`Script`] brings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Look {
    Empty,
    /// A completion of this request, with this immediate data.
    Done(u64, u32),
    /// A completion with this immediate data of a message from this queue pair.
    From(u32, u32),
    /// A receive request that was used up by a message of somebody else, which did not fit.
    Misfit,
    /// A request that failed with this code, and whether that only follows from another.
    Failed(i64, bool),
    /// A queue that is broken, with this code.
    Broken(i64),
    /// Tells the loops to stop, then the next look.
    Stop,
}

/// Looks, of which about half bring `something`, and the one that is repeated after them.
pub(crate) fn any_looks(
    something: impl Strategy<Value = Look> + 'static,
) -> impl Strategy<Value = (Vec<Look>, Look)> {
    let look = prop_oneof![
        4 => Just(Look::Empty),
        8 => something,
        1 => any::<bool>().prop_map(|consequence| Look::Failed(3, consequence)),
        1 => Just(Look::Broken(4)),
        1 => Just(Look::Stop),
    ]
    .boxed();
    (prop::collection::vec(look.clone(), 0..60), look)
}

/// A completion port that plays a list of looks, then tells the loops to stop and repeats the last one for ever. A loop
/// that is not out after [`PATIENCE`] more looks hangs.
pub(crate) struct Script<'a> {
    looks: VecDeque<Look>,
    afterwards: Look,
    after_stop: u32,
    control: &'a Control,
    /// What asking for an event and sleeping bring, if not success: at which call, counted from zero.
    pub(crate) arming_fails_at: Option<u32>,
    pub(crate) sleeping_fails_at: Option<u32>,
    armed: u32,
    slept: u32,
}

/// Looks that a loop may take after it was told to stop, beside those it takes because there is still room.
pub(crate) const PATIENCE: u32 = 1000;

impl<'a> Script<'a> {
    pub(crate) fn new(
        looks: impl IntoIterator<Item = Look>,
        afterwards: Look,
        control: &'a Control,
    ) -> Self {
        Script {
            looks: looks.into_iter().collect(),
            afterwards,
            after_stop: 0,
            control,
            arming_fails_at: None,
            sleeping_fails_at: None,
            armed: 0,
            slept: 0,
        }
    }
}

impl CompletionPort for Script<'_> {
    fn poll(&mut self) -> PollResult {
        note(Entry::Look);
        let look = loop {
            match self.looks.pop_front() {
                Some(Look::Stop) => self.control.stop(),
                Some(look) => break look,
                None => {
                    self.control.stop();
                    break self.afterwards;
                }
            }
        };
        if self.control.stopped() {
            self.after_stop += 1;
            let patient = self.after_stop < PATIENCE;
            assert!(patient, "the loop hangs after it was stopped");
        }
        match look {
            Look::Empty | Look::Stop => PollResult::Empty,
            Look::Done(request, immediate_data) => completed(request, immediate_data, 0),
            Look::From(source, immediate_data) => completed(0, immediate_data, source),
            Look::Misfit => PollResult::Failed(Failure {
                request: Some(7),
                foreign: true,
                ..failure(1, false)
            }),
            Look::Failed(code, consequence) => PollResult::Failed(Failure {
                request: Some(7),
                ..failure(code, consequence)
            }),
            Look::Broken(code) => PollResult::Failed(failure(code, false)),
        }
    }
}

/// Fails with `code` once there were more than `at` calls.
fn fails(at: Option<u32>, calls: u32, code: i64) -> Result<(), Failure> {
    match at {
        Some(at) if at < calls => Err(failure(code, false)),
        _ => Ok(()),
    }
}

impl EventPort for Script<'_> {
    fn arm(&mut self) -> Result<(), Failure> {
        self.armed += 1;
        fails(self.arming_fails_at, self.armed, 100)
    }

    fn sleep(&mut self) -> Result<(), Failure> {
        self.slept += 1;
        fails(self.sleeping_fails_at, self.slept, 200)
    }
}

/// A completion queue with events as ibv_req_notify_cq(3) promises them and no better: an event comes for the first
/// completion that is added after the queue was armed, none for those that are there already, and arming holds for one
/// event. Each completion arrives right before a given call of the loop, whichever call that is.
pub(crate) struct Eventful<'a> {
    /// Before which call each one arrives, ascending.
    arrivals: VecDeque<u32>,
    waiting: VecDeque<u32>,
    calls: u32,
    arrived: u32,
    armed: bool,
    events: u32,
    control: &'a Control,
    /// How often it was slept through the arrival of a completion that was there.
    pub(crate) sleeps: u32,
}

impl<'a> Eventful<'a> {
    pub(crate) fn new(arrivals: &[u32], control: &'a Control) -> Self {
        Eventful {
            arrivals: arrivals.iter().copied().collect(),
            waiting: VecDeque::new(),
            calls: 0,
            arrived: 0,
            armed: false,
            events: 0,
            control,
            sleeps: 0,
        }
    }

    fn arrive(&mut self) {
        self.arrivals.pop_front();
        self.waiting.push_back(self.arrived);
        self.arrived += 1;
        self.events += u32::from(std::mem::take(&mut self.armed));
    }

    fn call(&mut self) {
        assert!(self.calls < PATIENCE, "the loop hangs");
        let due = self.arrivals.iter().filter(|call| **call <= self.calls);
        for _ in 0..due.count() {
            self.arrive();
        }
        self.calls += 1;
    }
}

impl CompletionPort for Eventful<'_> {
    fn poll(&mut self) -> PollResult {
        self.call();
        let next = self.waiting.pop_front();
        next.map_or(PollResult::Empty, |number| {
            completed(number.into(), number, 0)
        })
    }
}

impl EventPort for Eventful<'_> {
    fn arm(&mut self) -> Result<(), Failure> {
        self.call();
        self.armed = true;
        Ok(())
    }

    fn sleep(&mut self) -> Result<(), Failure> {
        self.call();
        self.sleeps += 1;
        while self.events == 0 {
            if self.arrivals.is_empty() {
                assert!(self.waiting.is_empty(), "a completion is slept through");
                // Nothing will come any more: whoever watches over the burst ends it.
                self.control.stop();
                return Ok(());
            }
            self.arrive();
        }
        self.events -= 1;
        Ok(())
    }
}

/// All ways in which `count` completions can arrive before calls 0 to `latest`.
pub(crate) fn arrival_orders(count: usize, latest: u32) -> Vec<Vec<u32>> {
    let mut orders = vec![vec![]];
    for _ in 0..count {
        let one_more = |order: Vec<u32>| {
            let first = order.last().copied().unwrap_or(0);
            (first..=latest).map(move |call| [&order[..], &[call]].concat())
        };
        orders = orders.into_iter().flat_map(one_more).collect();
    }
    orders
}
