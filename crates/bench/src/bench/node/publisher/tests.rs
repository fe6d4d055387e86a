use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::super::config::{
    BrokerChoice, LogPlace, MissPolicy, PublishingLength, TimerKind, VerbsConfig,
};
use super::super::sample::{Epoch, HEADER_WORDS};
use super::super::shared::SharedState;
use super::super::task::LogRoom;
use super::super::timer::{BusyTimer, Schedule};
use super::*;
use crate::buffer::HugePagePolicy;
use crate::node::settings::{Poll, Qos, RedisKind, SocketSettings};
use crate::node::{NodeError, Scenario, Wiring};
use crate::pacing::scripted::{self, Scripted};
use crate::rig::ports::UcRouteRequest;

const PERIOD: u64 = 1000;
const STEPS: u64 = 5;

/// A timer whose thread is away for a moment when the step is due, before it stamps.
struct AwayAfterWaiting {
    timer: BusyTimer,
    stall: u64,
}

impl Timer<Scripted> for AwayAfterWaiting {
    fn begin(&mut self, start: Ticks) -> Result<(), NodeError> {
        Timer::<Scripted>::begin(&mut self.timer, start)
    }

    fn wait(
        &mut self,
        clock: &Scripted,
        go_on: impl FnMut() -> bool,
    ) -> Result<Option<u64>, NodeError> {
        let step = self.timer.wait(clock, go_on);
        scripted::advance(self.stall);
        step
    }

    fn late(&self) -> u64 {
        Timer::<Scripted>::late(&self.timer)
    }

    fn schedule(&self) -> &Schedule {
        Timer::<Scripted>::schedule(&self.timer)
    }
}

/// A node that takes its time before it hands over, at once, to a subscriber that notes the latency.
struct SlowToWrite {
    epoch: Epoch,
    clock: Scripted,
    stall: u64,
    latencies: Vec<u64>,
}

impl Node for SlowToWrite {
    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        scripted::advance(self.stall);
        let received = self.epoch.at(&self.clock, Ticks(scripted::time()));
        let latency = |slot: &Slot| received - pool.word(slot, 0);
        self.latencies.extend(samples.iter().map(latency));
        Ok(samples.len())
    }
}

/// A timer at which these steps come.
struct Steps(std::vec::IntoIter<u64>, Schedule);

impl Timer<Scripted> for Steps {
    fn begin(&mut self, _start: Ticks) -> Result<(), NodeError> {
        Ok(())
    }

    fn wait(
        &mut self,
        _clock: &Scripted,
        _go_on: impl FnMut() -> bool,
    ) -> Result<Option<u64>, NodeError> {
        Ok(self.0.next())
    }

    fn late(&self) -> u64 {
        0
    }

    fn schedule(&self) -> &Schedule {
        &self.1
    }
}

/// What a publisher is told that has a warm-up of that many steps.
fn task(clock: Scripted, warm_up: u64) -> NodeTask<Scripted> {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    NodeTask {
        number: 0,
        clock,
        epoch: Epoch::of(&clock),
        config: Config {
            length: PublishingLength::Count(STEPS),
            warmup: Duration::from_nanos(warm_up * PERIOD),
            drain: Duration::ZERO,
            timeout: Duration::ZERO,
            timer: TimerKind::Counter,
            poll: Poll::Busy,
            after_miss: MissPolicy::Skip,
            vectorize: 1,
            send_queue: 2,
            receive_queue: 2,
            peer: None,
            verbs: VerbsConfig {
                sender: None,
                receiver: None,
                uc_route: UcRouteRequest::Auto,
                max_inline: 0,
                signal_every: 1,
                receive_threshold: None,
                fallback: None,
            },
            qos: Qos::AtMostOnce,
            redis_kind: RedisKind::PubSub,
            broker: BrokerChoice::Spawn,
            broker_process: None,
            zeromq_port: None,
            sockets: SocketSettings::default(),
            huge_pages: HugePagePolicy::Off,
            seed: 1,
            log: LogPlace::Memory,
            tells_progress: false,
            keep_samples: Vec::new(),
            hlog_interval: None,
        },
        shared: Arc::new(SharedState::new(wiring, &SharedState::memory(&wiring).unwrap()).unwrap()),
        rate_per_s: 1e9 / PERIOD as f64,
        words: HEADER_WORDS + 1,
        yields: false,
        log: LogRoom::Own(PathBuf::new()),
    }
}

/// The latencies of samples, and how long after they were due they were stamped.
fn times(before_stamp: u64, before_write: u64) -> (Vec<u64>, Vec<u64>) {
    let clock = scripted::set(0, 1);
    let task = task(clock, 0);
    let epoch = task.epoch;
    let mut timer = AwayAfterWaiting {
        timer: BusyTimer::new(Schedule::of_rate(&clock, task.rate_per_s), MissPolicy::Skip),
        stall: before_stamp,
    };
    timer.begin(Ticks(5000)).unwrap();
    let mut node = SlowToWrite {
        epoch,
        clock,
        stall: before_write,
        latencies: Vec::new(),
    };
    let mut pool = Pool::new(2, task.words, HugePagePolicy::Off).unwrap();
    let mut log = LogWriter::of_test(LogPlace::Memory, STEPS as usize);
    let mut samples = Vec::new();
    let logged = task
        .publish(&mut node, &mut pool, &mut samples, &mut timer, &mut log)
        .unwrap();
    assert_eq!((log.count(), logged.sent), (STEPS as usize, STEPS));
    assert!(pool.is_whole());
    let log = log.end().unwrap();
    let sent = log.iter().map(|entry| SentSample::of_words(entry.unwrap()));
    let behind = sent.map(|sent| sent.stamp.0 - timer.schedule().due(sent.step).0);
    (node.latencies, behind.collect())
}

#[test]
fn a_stall_before_the_stamp_is_no_latency_and_one_behind_it_is() {
    let (latencies, behind) = times(0, 0);
    assert_eq!(latencies, [0; STEPS as usize]);
    // The clock moves with each look at it: a few ticks.
    assert!(behind.iter().all(|&ticks| ticks < 10), "{behind:?}");

    let (latencies, behind) = times(300, 0);
    assert_eq!(latencies, [0; STEPS as usize]);
    let are_late = behind.iter().all(|&ticks| (300..310).contains(&ticks));
    assert!(are_late, "{behind:?}");

    let (latencies, behind) = times(0, 300);
    assert_eq!(latencies, [300; STEPS as usize]);
    assert!(behind.iter().all(|&ticks| ticks < 10), "{behind:?}");
}

#[test]
fn where_all_steps_that_count_are_missed_no_sample_of_the_warm_up_counts() {
    let clock = scripted::set(0, 1);
    let task = task(clock, 3);
    let steps = vec![0, 1, 3 + STEPS];
    let mut timer = Steps(steps.into_iter(), Schedule::of_rate(&clock, 1e6));
    let mut node = SlowToWrite {
        epoch: task.epoch,
        clock,
        stall: 0,
        latencies: Vec::new(),
    };
    let mut pool = Pool::new(2, task.words, HugePagePolicy::Off).unwrap();
    let mut log = LogWriter::of_test(LogPlace::Memory, STEPS as usize);
    let logged = task.publish(&mut node, &mut pool, &mut Vec::new(), &mut timer, &mut log);
    let logged = logged.unwrap();
    assert_eq!((log.count(), logged.sent, logged.first), (0, 0, 2));
    assert!(!task.shared.counts(Header::new(0, 1)));
    // The other host waits for as many as were sent.
    task.shared.end_publishing(0, logged.sent);
    assert_eq!(task.shared.published(), Some(vec![2]));
}
