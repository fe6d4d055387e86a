//! Ends that do not leave by themselves, and what the supervisor makes of them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::bench::queue::config::Measure;
use crate::bench::queue::notes::Notes;
use crate::bench::queue::patience::Ending;
use crate::bench::queue::round::tests::ONE_AT_A_TIME;
use crate::bench::queue::threads;
use crate::buffer::HugePagePolicy;
use crate::host::pinning;
use crate::pacing::{EndLoad, Load};
use crate::queues::element::Words;
use crate::queues::interface::{Ends as QueueEnds, Queue, QueueError, Receiver, Sender};
use crate::time::{AnyClock, ClockKind};

/// What is slow about a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slow {
    Nothing,
    /// Making it.
    Made,
    /// The thousandth enqueue, beyond all patience.
    Enqueue,
    /// The same, but it comes back.
    EnqueueForAWhile,
    /// A dequeue that finds nothing behind the last element.
    DequeueOfNothing,
}

const KINDS: [Slow; 5] = [
    Slow::Nothing,
    Slow::Made,
    Slow::Enqueue,
    Slow::EnqueueForAWhile,
    Slow::DequeueOfNothing,
];

/// A queue that is slow in one way, which is its type.
struct SlowQueue<const KIND: usize>;

struct End {
    slow: Slow,
    queue: Arc<Mutex<VecDeque<Words<1>>>>,
    capacity: usize,
    count: usize,
}

const COUNT: usize = 3000;
const LONG: Duration = Duration::from_secs(20);
const A_WHILE: Duration = Duration::from_millis(1500);

impl Sender<Words<1>> for End {
    fn enqueue(&mut self, element: Words<1>) -> bool {
        let mut queue = self.queue.lock().unwrap();
        if queue.len() >= self.capacity {
            return false;
        }
        self.count += 1;
        if self.count == 1000 {
            match self.slow {
                Slow::Enqueue => std::thread::sleep(LONG),
                Slow::EnqueueForAWhile => std::thread::sleep(A_WHILE),
                _ => {}
            }
        }
        queue.push_back(element);
        true
    }
}

impl Receiver<Words<1>> for End {
    fn dequeue(&mut self) -> Option<Words<1>> {
        if self.slow == Slow::DequeueOfNothing && self.count == COUNT {
            std::thread::sleep(LONG);
        }
        // Does not wait for a sender that sleeps with the lock.
        let element = self.queue.try_lock().ok()?.pop_front()?;
        self.count += 1;
        Some(element)
    }
}

impl<const KIND: usize> Queue<Words<1>> for SlowQueue<KIND> {
    type Sender = End;
    type Receiver = End;
    const NAME: &'static str = "slow";
    const SOURCE: &'static str = "these tests";
    const ENDS: QueueEnds = QueueEnds::Mpmc;

    fn with_capacity(capacity: usize) -> Result<(End, End), QueueError> {
        if KINDS[KIND] == Slow::Made {
            std::thread::sleep(LONG);
        }
        let queue = Arc::new(Mutex::new(VecDeque::with_capacity(capacity)));
        let end = || End {
            slow: KINDS[KIND],
            queue: Arc::clone(&queue),
            capacity,
            count: 0,
        };
        Ok((end(), end()))
    }
}

fn task(patience: Duration) -> Task {
    let allowed: Vec<usize> = pinning::reachable_cpus().unwrap().iter().collect();
    Task {
        clock: AnyClock::prepare(ClockKind::Monotonic).unwrap(),
        sender_cpu: allowed[0],
        receiver_cpu: *allowed.last().unwrap(),
        sender: EndLoad::NONE,
        receiver: EndLoad::NONE,
        capacity: 64,
        warmup: 0,
        count: COUNT,
        measure: Measure::Time,
        measure_failed: false,
        huge_pages: HugePagePolicy::Off,
        locks_memory: false,
        patience,
        limit: Duration::from_secs(600),
    }
}

/// A run, with a signal so long after its beginning, if one is to come.
fn run<const KIND: usize>(
    task: &Task,
    signal: Option<Duration>,
) -> (Result<PerEnd<EndReport>, RunError>, Duration) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = Instant::now();
    let requested = || {
        let delay = signal?;
        (begun.elapsed() >= delay).then_some(Signal::SIGTERM)
    };
    let start = threads::start::<SlowQueue<KIND>, Words<1>>;
    let ended = supervise(start, task, &requested);
    (ended, begun.elapsed())
}

#[test]
fn a_signal_does_not_wait_for_a_queue_to_be_made_or_an_operation_to_return() {
    let delay = Duration::from_millis(300);
    let task = task(LONG);
    for run in [run::<1>, run::<2>] {
        // Other work on this machine may take longer, but not each time.
        let mut slowest = Duration::ZERO;
        let in_time = (0..3).any(|_| {
            let (ended, took) = run(&task, Some(delay));
            assert!(
                matches!(
                    ended,
                    Err(RunError::Rig(RigError::Interrupted(Signal::SIGTERM)))
                ),
                "{ended:?}"
            );
            assert!(took >= delay, "no thread had begun: {took:?}");
            slowest = slowest.max(took);
            took < delay + Duration::from_secs(1)
        });
        assert!(in_time, "{slowest:?}");
    }
}

#[test]
fn an_operation_that_does_not_return_ends_the_run_after_the_timeout() {
    let task = task(Duration::from_millis(200));
    let stuck = |ended: &Result<_, RunError>| match ended {
        Err(RunError::Rig(RigError::Stuck { role, .. })) => Some(*role),
        _ => None,
    };
    let (ended, took) = run::<2>(&task, None);
    assert_eq!(stuck(&ended), Some(SENDER), "{ended:?}");
    let error = ended.unwrap_err();
    assert!(error.fails_its_point() && error.leaves_thread_behind());
    let text = error.as_failure_of_point();
    assert!(text.contains("this process has to end"), "{text}");
    assert!(
        took < longest_silence(&task) + 3 * PATIENCE.grace,
        "{took:?}"
    );
    let (ended, _) = run::<4>(&task, None);
    assert_eq!(stuck(&ended), Some(RECEIVER), "{ended:?}");
}

#[test]
fn an_operation_that_returns_too_late_is_told_from_one_that_blocks() {
    let task = task(Duration::from_millis(200));
    let (ended, _) = run::<3>(&task, None);
    let Err(RunError::Rig(RigError::Silent { role, .. })) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(role, SENDER);
}

#[test]
fn pauses_are_no_silence_however_many_follow_each_other() {
    let pause = Duration::from_millis(400);
    let wait = EndLoad {
        load: Load::ConstantWait { wait_ns: 4e8 },
        ..EndLoad::NONE
    };
    for at_sender in [true, false] {
        let mut task = Task {
            count: 6,
            ..task(Duration::from_millis(1200))
        };
        *(if at_sender {
            &mut task.sender
        } else {
            &mut task.receiver
        }) = wait;
        // The sender's last pause ends with the receiver.
        let pauses = if at_sender { 5 } else { 6 };
        assert!(longest_silence(&task) < 5 * pause);
        let (ended, took) = run::<0>(&task, None);
        let ends = ended.unwrap();
        assert_eq!(ends.receiver.tally.noted, 6);
        assert_eq!(ends.sender.tally.ending, Ending::Complete);
        assert_eq!(ends.receiver.tally.ending, Ending::Complete);
        assert!(took >= pauses * pause, "{took:?}");
        let paced = if at_sender {
            &ends.sender
        } else {
            &ends.receiver
        };
        let Notes::Times(records) = &paced.notes else {
            panic!("the clock was asked for");
        };
        for pair in records.windows(2) {
            let apart = pair[1][1].0 - pair[0][2].0;
            assert!(apart >= pause.as_nanos() as u64, "{apart}");
        }
    }
}

#[test]
fn what_goes_through_without_its_pauses_when_the_run_is_told_to_stop_is_no_result() {
    // All of it is in the queue at once, so that the receiver neither waits nor looks around until the end.
    let limit = Duration::from_millis(300);
    let mut task = Task {
        limit,
        capacity: COUNT,
        ..task(LONG)
    };
    task.receiver.load = Load::ConstantWait { wait_ns: 1e7 };
    let (ended, _) = run::<0>(&task, None);
    assert!(matches!(ended, Err(RunError::TooSlow { .. })), "{ended:?}");
}

#[test]
fn a_run_that_goes_on_and_on_is_told_from_one_that_is_silent() {
    let limit = Duration::from_millis(300);
    let mut task = Task {
        limit,
        ..task(LONG)
    };
    task.sender.load = Load::ConstantRate { rate_per_s: 100.0 };
    let (ended, _) = run::<0>(&task, None);
    assert!(matches!(ended, Err(RunError::TooSlow { .. })), "{ended:?}");
}
