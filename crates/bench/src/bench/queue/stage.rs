//! What the threads of a run share: who is at which end, whether an end is done, and the start.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::control::QueueControl;
use super::notes::Notes;
use super::result::EndResult;
use super::roles::{CONSUMER, PRODUCER, RECEIVER, SENDER};
use super::task::Task;
use crate::pacing::{AnyPacing, EndLoad, MissPolicy, Pacing, SplitMix64};
use crate::rig::control::{self, Heartbeat};
use crate::rig::role::Role;
use crate::time::Ticks;

/// Which thread it is: its end, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadPosition {
    Sender(usize),
    Receiver(usize),
}

impl ThreadPosition {
    /// The end that it is at.
    pub(super) fn end(self) -> Role {
        match self {
            ThreadPosition::Sender(_) => SENDER,
            ThreadPosition::Receiver(_) => RECEIVER,
        }
    }

    /// What it is called in messages.
    pub(super) fn role(self, task: &Task) -> Role {
        match (self, task.point.wiring) {
            (_, None) => self.end(),
            (ThreadPosition::Sender(_), Some(_)) => PRODUCER,
            (ThreadPosition::Receiver(_), Some(_)) => CONSUMER,
        }
    }

    pub(super) fn pulse(self, control: &QueueControl) -> &Heartbeat {
        match self {
            ThreadPosition::Sender(_) => &control.sender,
            ThreadPosition::Receiver(_) => &control.receiver,
        }
    }

    /// How much it can note.
    pub(super) fn room(self, task: &Task) -> usize {
        let room = task.count as usize;
        match (self, task.point.wiring) {
            (ThreadPosition::Receiver(_), Some(wiring)) => {
                Task::room_of_receiver(room, wiring.publishers as usize, task.point.capacity)
            }
            _ => Notes::room(self.end(), &task.config, room),
        }
    }

    /// What it does between two elements. Threads of an end differ in what is random.
    pub(super) fn waiter(self, task: &Task) -> AnyPacing {
        let (load, number, after_miss) = match self {
            ThreadPosition::Sender(number) => (&task.point.sender, number, MissPolicy::CatchUp),
            ThreadPosition::Receiver(number) => {
                (&task.point.receiver, number, MissPolicy::StartOver)
            }
        };
        let seed = SplitMix64::new(load.seed.wrapping_add(number as u64)).draw();
        let load = EndLoad {
            seed: if number == 0 { load.seed } else { seed },
            ..*load
        };
        load.waiter(&task.clock, after_miss)
    }

    /// When its elements that count were due, if it had a schedule; by what it reports.
    pub(super) fn intended_starts(self, task: &Task, end: &EndResult) -> Option<Vec<Ticks>> {
        let (passed, noted) = (&end.passed, end.tally.noted);
        let warmed_up = passed.warmed_up.elements as usize;
        self.waiter(task)
            .intended_starts(passed.started, warmed_up, noted)
    }
}

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) run: Arc<control::Control>,
    /// Of each thread, with its signs of life; two threads that have a queue alone have one in common. All threads of
    /// an end learn at once that the other end is done.
    senders: Vec<Arc<QueueControl>>,
    receivers: Vec<Arc<QueueControl>>,
    sending: AtomicUsize,
    receiving: AtomicUsize,
    began: OnceLock<Instant>,
}

impl Stage {
    /// For a run; under memory load the supervisor starts together with the threads, once it has begun that.
    pub(super) fn new(task: &Task, under_load: bool) -> Self {
        let run = Arc::default();
        let [senders, receivers] = task.cpus.each_ref().map(Vec::len);
        let together = senders + receivers + usize::from(under_load);
        let control = || Arc::new(QueueControl::of(&run, together as u32));
        let all = |count| (0..count).map(|_| control()).collect::<Vec<_>>();
        let of_senders = all(senders);
        let of_receivers = match task.point.wiring {
            Some(_) => all(receivers),
            None => of_senders.clone(),
        };
        Stage {
            senders: of_senders,
            receivers: of_receivers,
            sending: AtomicUsize::new(senders),
            receiving: AtomicUsize::new(receivers),
            began: OnceLock::new(),
            run,
        }
    }

    pub(super) fn control(&self, place: ThreadPosition) -> &QueueControl {
        match place {
            ThreadPosition::Sender(number) => &self.senders[number],
            ThreadPosition::Receiver(number) => &self.receivers[number],
        }
    }

    /// When the first thread began, once all are here.
    pub(super) fn began(&self) -> Instant {
        *self.began.get_or_init(Instant::now)
    }

    /// Whether the warm-up is over, as far as is known.
    pub(super) fn has_warmed_up(&self, task: &Task) -> bool {
        match task.point.wiring {
            None => self.senders[0].warm_up.is_over(),
            Some(_) => (self.began.get()).is_some_and(|at| at.elapsed() >= task.config.warmup),
        }
    }

    /// The run is over: no sender goes on, not even one whose queue is full.
    pub(super) fn end_sending(&self) {
        self.senders.iter().for_each(|it| it.set_receiver_done());
    }

    /// A sender has put in all it will.
    pub(super) fn sender_is_done(&self) {
        // Of the last one, whoever sees it sees all that any of them put in.
        if self.sending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.receivers.iter().for_each(|it| it.set_sender_done());
        }
    }

    /// Waits until all senders are done, but no longer than so long.
    pub(super) fn wait_for_senders(&self, most: Duration, pulse: &Heartbeat) {
        let since = Instant::now();
        while self.sending.load(Ordering::Acquire) > 0 && since.elapsed() < most {
            if self.run.stopped() {
                return;
            }
            pulse.beat();
            std::thread::sleep(Duration::from_micros(100).min(most));
        }
    }

    /// A receiver takes nothing more.
    pub(super) fn receiver_is_done(&self) {
        self.receiving.fetch_sub(1, Ordering::AcqRel);
    }

    /// Waits until nobody puts anything in or takes anything out any more.
    pub(super) fn wait_for_all(&self, pulse: &Heartbeat) {
        let are_at_work = || {
            self.sending.load(Ordering::Acquire) > 0 || self.receiving.load(Ordering::Acquire) > 0
        };
        while are_at_work() && !self.run.stopped() {
            pulse.beat();
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}
