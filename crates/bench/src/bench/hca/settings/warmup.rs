//! What comes before the measured messages of a point: whole bursts, so that each slot and each request was used before.

use std::time::Duration;

use super::limits::LARGEST_BURST;
use serde::{Deserialize, Serialize};

/// How long a point is warmed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Warmup {
    /// At least so many messages; with 0 the first message is measured.
    Messages(u32),
    /// At least so long.
    Time(Duration),
}

impl Warmup {
    /// The most messages that can be asked for.
    pub const MOST: u32 = LARGEST_BURST;

    /// The messages of whole bursts that it takes; `None` where that is known afterwards only.
    pub fn messages(self, burst: u32) -> Option<u32> {
        match self {
            Warmup::Messages(messages) => Some(messages.next_multiple_of(burst)),
            Warmup::Time(_) => None,
        }
    }

    /// The time that is asked for, if it is one.
    pub fn time(self) -> Option<Duration> {
        match self {
            Warmup::Messages(_) => None,
            Warmup::Time(time) => Some(time),
        }
    }

    /// Whether a burst is still to come after so many messages and so long. By time there is at least one.
    #[cfg(feature = "rdma")]
    pub(crate) fn goes_on(self, messages: u64, since_start: Duration) -> bool {
        match self {
            Warmup::Messages(wanted) => messages < u64::from(wanted),
            Warmup::Time(wanted) => messages == 0 || since_start < wanted,
        }
    }
}

#[cfg(all(test, feature = "rdma"))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(2);

    #[test]
    fn a_count_is_raised_to_whole_bursts() {
        let raised = |messages, burst| Warmup::Messages(messages).messages(burst).unwrap();
        assert_eq!([raised(100, 1000), raised(1000, 1000)], [1000, 1000]);
        assert_eq!(
            [raised(100, 1), raised(100, 64), raised(0, 64)],
            [100, 128, 0]
        );
        // The loop stops where the count says.
        for (messages, burst) in [(100, 1000), (100, 64), (100, 1), (0, 64)] {
            let warmup = Warmup::Messages(messages);
            let mut done = 0;
            while warmup.goes_on(u64::from(done), LONG) {
                done += burst;
            }
            assert_eq!(Some(done), warmup.messages(burst));
        }
    }

    #[test]
    fn a_time_is_at_least_one_burst() {
        let warmup = Warmup::Time(Duration::from_secs(1));
        assert_eq!(warmup.messages(64), None);
        assert!(warmup.goes_on(0, LONG) && !warmup.goes_on(64, LONG));
        assert!(warmup.goes_on(64, Duration::from_millis(999)));
    }
}
