//! The loop of the background: posts in turn over its channels at a pace, and takes completions while it waits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::port::{Completion, CompletionPort, Failure, PollResult, SendPort};
use crate::pacing::Pacing;
use crate::rig::control::StopFlag;
use crate::time::Clock;

/// How long messages in flight are waited for at the end.
const LAST_COMPLETIONS: Duration = Duration::from_millis(200);

/// Where messages of the background go.
pub trait Channel {
    /// Posts the message of a slot.
    fn post(&mut self, slot: u32) -> Result<(), Failure>;
    /// Takes a completion, if there is one.
    fn poll(&mut self) -> PollResult;
}

/// A queue pair, and where its completions are found.
impl<S: SendPort, C: CompletionPort> Channel for (S, C) {
    #[inline(always)]
    fn post(&mut self, slot: u32) -> Result<(), Failure> {
        self.0.prepare(slot, true);
        self.0.post()
    }

    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        self.1.poll()
    }
}

/// Copies each message in memory, and sends nothing.
#[derive(Debug)]
pub struct Copies {
    from: Vec<u8>,
    to: Vec<u8>,
    size: usize,
    done: u32,
}

impl Copies {
    /// Of messages of so many bytes, in so many slots. The memory is touched.
    pub fn new(size: u32, slots: u32) -> Self {
        let bytes = size as usize * slots as usize;
        Copies {
            from: vec![1; bytes],
            to: vec![2; bytes],
            size: size as usize,
            done: 0,
        }
    }
}

impl Channel for Copies {
    #[inline(always)]
    fn post(&mut self, slot: u32) -> Result<(), Failure> {
        let at = slot as usize * self.size;
        let place = at..at + self.size;
        self.to[place.clone()].copy_from_slice(std::hint::black_box(&self.from[place]));
        std::hint::black_box(&mut self.to);
        self.done += 1;
        Ok(())
    }

    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        match self.done.checked_sub(1) {
            None => PollResult::Empty,
            Some(left) => {
                self.done = left;
                PollResult::Done(Completion::default())
            }
        }
    }
}

/// How far the background is. The loop counts, the supervisor reads.
#[derive(Debug, Default)]
pub struct BackgroundProgress {
    posted: CachePadded<AtomicU64>,
    completed: CachePadded<AtomicU64>,
    missed: CachePadded<AtomicU64>,
    /// What ended it, in words.
    pub failure: OnceLock<String>,
}

/// What the background did while bursts were measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BackgroundTraffic {
    /// How long that was.
    pub time: Duration,
    /// Its messages.
    pub messages: Messages,
}

impl BackgroundTraffic {
    /// Completed messages a second, of a time that neither begins nor ends with a message: as many as intervals.
    pub fn rate(&self) -> f64 {
        self.messages.completed as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Messages of the background.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Messages {
    /// Posted.
    pub posted: u64,
    /// Of these, completed.
    pub completed: u64,
    /// Not posted, because as many were in flight as may be.
    pub missed: u64,
}

impl BackgroundProgress {
    /// The counts now.
    pub fn read(&self) -> Messages {
        let [completed, posted, missed] = [&self.completed, &self.posted, &self.missed]
            .map(|count| count.load(Ordering::Relaxed));
        Messages {
            posted,
            completed,
            missed,
        }
    }
}

/// Counts one more. A load and a store, because nobody else stores.
#[inline(always)]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// A channel with its messages in flight.
struct BackgroundQueue<C> {
    channel: C,
    in_flight: u32,
    slot: u32,
}

impl<C: Channel> BackgroundQueue<C> {
    /// Posts a message, unless `most` are in flight.
    #[inline(always)]
    fn offer(&mut self, most: u32, progress: &BackgroundProgress) -> Result<(), Failure> {
        if self.in_flight == most {
            count(&progress.missed);
            return Ok(());
        }
        self.channel.post(self.slot)?;
        self.in_flight += 1;
        self.slot = if self.slot + 1 == most {
            0
        } else {
            self.slot + 1
        };
        count(&progress.posted);
        Ok(())
    }

    /// Takes a completion, if there is one.
    #[inline(always)]
    fn reap(&mut self, progress: &BackgroundProgress) -> Result<(), Failure> {
        match self.channel.poll() {
            PollResult::Empty => Ok(()),
            PollResult::Done(_) => {
                self.in_flight -= 1;
                count(&progress.completed);
                Ok(())
            }
            PollResult::Failed(failure) => Err(failure),
        }
    }
}

/// Posts by `pacing`, in turn over `channels`, each of which may have `most` in flight, until the flag is raised. Then
/// waits a moment for what is in flight.
///
/// # Errors
/// The first failure of a channel.
pub fn run<C: Clock>(
    clock: &C,
    mut pacing: impl Pacing,
    channels: Vec<impl Channel>,
    most: u32,
    progress: &BackgroundProgress,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let queue = |channel| BackgroundQueue {
        channel,
        in_flight: 0,
        slot: 0,
    };
    let mut queues: Vec<_> = channels.into_iter().map(queue).collect();
    let count = queues.len();
    let after = |place: usize| (place + 1) % count;
    let (mut turn, mut look) = (0, 0);
    pacing.start_at(clock.now());
    while !stop.is_raised() {
        queues[turn].offer(most, progress)?;
        turn = after(turn);
        let mut failed = None;
        pacing.pause(clock, || {
            failed = queues[look].reap(progress).err();
            look = after(look);
            failed.is_none() && !stop.is_raised()
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
    }
    let since = Instant::now();
    while since.elapsed() < LAST_COMPLETIONS && queues.iter().any(|queue| queue.in_flight > 0) {
        // What fails now is of no matter to what was measured.
        let _ = queues[look].reap(progress);
        look = after(look);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::bench::hca::loops::port::scripted::failure;
    use crate::pacing::scripted;
    use crate::pacing::{ConstantRate, Interval, MissPolicy};
    use crate::time::Nanos;

    /// What was done, in order: posts by channel and slot.
    type Journal = Rc<RefCell<Vec<(usize, u32)>>>;

    /// Its messages complete at the next look, or never; it stops the loop after so many posts of all channels.
    struct Scripted<'a> {
        number: usize,
        journal: Journal,
        completes: bool,
        fails: bool,
        waiting: u32,
        stop_after: usize,
        stop: &'a StopFlag,
        looks: u32,
    }

    impl Channel for Scripted<'_> {
        fn post(&mut self, slot: u32) -> Result<(), Failure> {
            self.journal.borrow_mut().push((self.number, slot));
            self.waiting += 1;
            if self.journal.borrow().len() == self.stop_after {
                self.stop.raise();
            }
            Ok(())
        }

        fn poll(&mut self) -> PollResult {
            self.looks += 1;
            if self.looks == 10_000 {
                self.stop.raise();
            }
            if self.waiting == 0 || !self.completes {
                return PollResult::Empty;
            }
            self.waiting -= 1;
            if self.fails {
                return PollResult::Failed(failure(12, false));
            }
            PollResult::Done(Completion::default())
        }
    }

    fn ran(
        channels: usize,
        completes: bool,
        fails: bool,
    ) -> (Vec<(usize, u32)>, Messages, Result<(), Failure>) {
        let clock = scripted::set(0, 1);
        let rate = ConstantRate::new(Interval::new(&clock, Nanos(100)), MissPolicy::CatchUp);
        let (progress, stop, journal) = (
            BackgroundProgress::default(),
            StopFlag::default(),
            Journal::default(),
        );
        let channel = |number| Scripted {
            number,
            journal: Rc::clone(&journal),
            completes,
            fails,
            waiting: 0,
            stop_after: 7,
            stop: &stop,
            looks: 0,
        };
        let channels = (0..channels).map(channel).collect();
        let result = run(&clock, rate, channels, 3, &progress, &stop);
        (journal.take(), progress.read(), result)
    }

    #[test]
    fn it_posts_in_turn_and_each_channel_uses_its_slots_in_turn() {
        let (posts, messages, result) = ran(2, true, false);
        result.unwrap();
        let expected = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 0)];
        assert_eq!(posts, expected);
        let all = Messages {
            posted: 7,
            completed: 7,
            missed: 0,
        };
        assert_eq!(messages, all);
    }

    #[test]
    fn what_cannot_be_posted_because_the_queue_is_full_is_missed() {
        let (posts, messages, result) = ran(1, false, false);
        result.unwrap();
        assert_eq!(posts, [(0, 0), (0, 1), (0, 2)]);
        assert_eq!((messages.posted, messages.completed), (3, 0));
        // A look takes a nanosecond of the clock, and a message is due each hundred.
        assert!((90..=100).contains(&messages.missed), "{messages:?}");
    }

    #[test]
    fn a_failed_message_ends_it_with_its_reason() {
        let (posts, messages, result) = ran(1, true, true);
        assert_eq!(result.unwrap_err().to_string(), "failure 12");
        assert_eq!((posts.len(), messages.completed), (1, 0));
    }

    #[test]
    fn copies_complete_at_once_and_are_as_long_as_a_message() {
        let mut copies = Copies::new(16, 2);
        assert!(matches!(copies.poll(), PollResult::Empty));
        copies.post(1).unwrap();
        assert_eq!(copies.to, [[2; 16], [1; 16]].concat());
        assert!(matches!(copies.poll(), PollResult::Done(_)));
        assert!(matches!(copies.poll(), PollResult::Empty));
    }
}
