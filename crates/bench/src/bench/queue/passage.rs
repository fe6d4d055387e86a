//! How the elements of a run go through an end: those that count, behind the warm-up, and what is left behind them.

use super::control::{Ending, QueueControl};
use super::counters::LoopCounters;
use super::error::ThreadError;
use super::loops::Loop;
use super::patience::ELEMENTS_PER_LOOK;
use super::per_second::intervals;
use super::result::PassageResult;
use super::roles::SENDER;
use super::runner::EndTally;
use super::task::Task;
use super::warm_up;
use crate::host::counters::ThreadUsage;
use crate::rig::control::Heartbeat;
use crate::rig::role::Role;
use crate::time::Clock;

/// What the queue still gives out to this end, at most so many. A large queue takes a while to be emptied.
pub(super) fn take_leftovers(
    end: &mut dyn Loop,
    most: usize,
    pulse: &Heartbeat,
    control: &QueueControl,
) -> Vec<u64> {
    let mut taken = Vec::new();
    // Nobody asks what was left where a run was told to stop.
    while taken.len() < most && !control.stopped() {
        pulse.beat();
        let asked = ELEMENTS_PER_LOOK.min(most - taken.len());
        let found = end.leftovers(asked);
        let is_empty = found.len() < asked;
        taken.extend(found);
        if is_empty {
            break;
        }
    }
    taken
}

/// Waits for the other end and lets all elements through. Page faults and counters are those of the elements that
/// count: not the wait, which would be charged to the queue, nor the warm-up. They are read between the warm-up and the
/// first element that counts, by one to three system calls. The sender's schedule begins anew behind them, so that
/// neither they nor a stall in the warm-up make an element late. Beside that, what was counted without the warm-up.
pub(super) fn let_through(
    end: &mut dyn Loop,
    role: Role,
    task: &Task,
    control: &QueueControl,
    mut counters: Option<&mut dyn LoopCounters>,
) -> Result<(PassageResult, EndTally), ThreadError> {
    if !control.start_together() {
        return Err(ThreadError::Alone);
    }
    let mut started = end.start();
    let carried = match role == SENDER {
        true => warm_up::of_sender(end, task, control),
        false => warm_up::of_receiver(end, task, control),
    };
    let warmed_up = end.tally();
    // Here and not before: the first elements bring the loop's own code into memory.
    let before = ThreadUsage::now();
    if let Some(counters) = &mut counters {
        counters.start()?;
    }
    let (count, intervals) = (task.count as usize, intervals(&task.point, task.count));
    // A sender's rate is from start to start, a receiver's from end to end.
    let first = usize::from(role != SENDER).min(count);
    if role == SENDER {
        started = end.start();
    }
    let mut run = |elements: usize| {
        // Who gave up does not wait a second time.
        if elements > 0 && end.tally().ending == Ending::Complete {
            end.run(elements);
        }
        task.clock.now()
    };
    let began = match role == SENDER {
        true => started,
        false => run(first),
    };
    let span = [began, run(intervals)];
    run(count - first - intervals);
    end.flush();
    let counts = counters.map(|counters| counters.stop()).transpose()?;
    let passed = PassageResult {
        started,
        warmed_up: carried,
        span,
        intervals: intervals as u64,
        faults: ThreadUsage::now().since(before).faults(),
        counts,
    };
    let mut tally = end.tally().since(&warmed_up);
    // The last pause of a sender ends with the receiver, when nothing is left to be cut short.
    if tally.ending == Ending::OtherDone && tally.noted == count {
        tally.ending = Ending::Complete;
    }
    Ok((passed, tally))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::bench::queue::config::Config;
    use crate::bench::queue::counters::{CounterError, CounterValues};
    use crate::bench::queue::faulty;
    use crate::bench::queue::measurer::CarriedElements;
    use crate::bench::queue::result::made_up;
    use crate::time::Ticks;

    type Log = Rc<RefCell<Vec<String>>>;

    /// Counts a failed attempt and a miss for each element, and writes down what it is told.
    struct Written(Log, u64);

    const LEFT: usize = 2 * ELEMENTS_PER_LOOK + 7;

    impl Loop for Written {
        fn start(&mut self) -> Ticks {
            self.0.borrow_mut().push("begin".to_owned());
            Ticks(0)
        }
        fn run(&mut self, count: usize) {
            self.0.borrow_mut().push(format!("run {count}"));
            self.1 += count as u64;
        }
        fn forget(&mut self) -> CarriedElements {
            CarriedElements::default()
        }
        fn flush(&mut self) {
            self.0.borrow_mut().push("flush".to_owned());
        }
        fn tally(&self) -> EndTally {
            EndTally {
                noted: self.1 as usize,
                failed: self.1,
                missed: self.1,
                ..EndTally::default()
            }
        }
        fn leftovers(&mut self, most: usize) -> Vec<u64> {
            let from = self.1;
            self.1 = (LEFT as u64).min(from + most as u64);
            (from..self.1).collect()
        }
    }

    #[test]
    fn a_large_queue_is_emptied_with_signs_of_life() {
        let all: Vec<u64> = (0..LEFT as u64).collect();
        for (most, signs) in [(1 << 40, 3), (LEFT, 3), (ELEMENTS_PER_LOOK, 1), (64, 1)] {
            let control = QueueControl::default();
            let mut end = Written(Log::default(), 0);
            let taken = take_leftovers(&mut end, most, &control.receiver, &control);
            assert_eq!(taken, all[..most.min(LEFT)]);
            assert_eq!(control.receiver.beats(), Some(signs), "{most}");
        }
    }

    struct LoopCounts(Log);

    impl LoopCounters for LoopCounts {
        fn start(&mut self) -> Result<(), CounterError> {
            self.0.borrow_mut().push("count".to_owned());
            Ok(())
        }
        fn stop(&mut self) -> Result<CounterValues, CounterError> {
            self.0.borrow_mut().push("count no more".to_owned());
            Ok(CounterValues::default())
        }
    }

    #[test]
    fn neither_the_wait_for_the_other_end_nor_the_warm_up_is_counted() {
        let config = Config {
            warmup: Duration::from_millis(1),
            ..made_up::config()
        };
        let task = Task::new(
            faulty::clock(),
            false,
            &made_up::point("written"),
            &config,
            10,
        );
        let control = QueueControl::default();
        let log = Log::default();
        let mut end = Written(Rc::clone(&log), 0);
        let (_, tally) = std::thread::scope(|scope| {
            scope.spawn(|| {
                // The other end is late.
                std::thread::sleep(Duration::from_millis(20));
                control.start_together()
            });
            let mut counters = LoopCounts(Rc::clone(&log));
            let_through(&mut end, SENDER, &task, &control, Some(&mut counters)).unwrap()
        });
        let log = log.borrow();
        let (warm_up, counted) = log.split_at(log.iter().position(|word| word == "count").unwrap());
        assert_eq!(warm_up[0], "begin");
        assert!(warm_up.len() > 1 && warm_up[1..].iter().all(|word| word == "run 1024"));
        // The schedule of those that count begins with the first of them.
        let expected = ["count", "begin", "run 9", "run 1", "flush", "count no more"];
        assert_eq!(counted, expected);
        assert_eq!((tally.failed, tally.missed), (10, 10));
    }
}
