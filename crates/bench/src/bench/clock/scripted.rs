//! A clock that reads what a test has written.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::time::{Reading, Ticks};

thread_local! {
    static SCRIPT: RefCell<Option<ScriptedReadings>> = const { RefCell::new(None) };
}

/// The readings to come on this thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptedReadings {
    now: u64,
    differences: VecDeque<u64>,
    /// What each reading adds when the script has ended; without it, that is an error of the test.
    idle: Option<u64>,
}

impl ScriptedReadings {
    /// Starts at `now`, and moves on by one of the differences at each reading behind the first.
    pub(crate) fn of_differences(now: u64, differences: &[u64]) -> Self {
        ScriptedReadings {
            now,
            differences: std::iter::once(0)
                .chain(differences.iter().copied())
                .collect(),
            idle: None,
        }
    }

    /// The same behind other readings, the first of which lies `before[0]` behind the start.
    pub(crate) fn behind(mut self, before: &[u64]) -> Self {
        let start = self.differences.pop_front();
        let before = before.iter().copied();
        self.differences = start
            .into_iter()
            .chain(before)
            .chain(self.differences)
            .collect();
        self
    }

    /// Goes on for ever by `step` behind the end.
    pub(crate) fn then_steps_of(mut self, step: u64) -> Self {
        self.idle = Some(step);
        self
    }

    /// Runs `work` with this script under [`Scripted`] on this thread; all of it must be read.
    pub(crate) fn play<R>(self, work: impl FnOnce() -> R) -> R {
        SCRIPT.set(Some(self));
        let result = work();
        let rest = SCRIPT.take().expect("it was put there");
        assert!(
            rest.differences.is_empty(),
            "not read: {:?}",
            rest.differences
        );
        result
    }
}

/// Lets time pass on the clock of this thread's script, without a reading.
pub(crate) fn pass(ticks: u64) {
    SCRIPT.with_borrow_mut(|script| {
        let script = script.as_mut().expect("a script is played");
        script.now = script.now.wrapping_add(ticks);
    });
}

/// Reads the script of the thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scripted;

impl Reading for Scripted {
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        let now = SCRIPT.with_borrow_mut(|script| {
            let script = script.as_mut().expect("a script is played");
            let step = script
                .differences
                .pop_front()
                .or(script.idle)
                .expect("the script is long enough");
            script.now = script.now.wrapping_add(step);
            script.now
        });
        (Ticks(now), work())
    }
}
