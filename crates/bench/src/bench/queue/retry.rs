//! What an end does after an attempt that failed, before the next: the benchmark decides that, for all queues alike.

use crate::rig::named::named;

named! {
    /// Between two attempts.
    #[derive(clap::ValueEnum)]
    Retry {
        /// The next follows at once.
        None = "none",
        /// The processor's hint that a loop waits, once: `pause` on x86-64.
        Pause = "pause",
        /// That hint once, then twice, and so on up to [`MOST_PAUSES`] times, until an attempt succeeds.
        Backoff = "backoff",
    }
}

/// The most pauses in a row.
pub const MOST_PAUSES: u32 = 64;

impl Retry {
    /// The most pauses between two attempts.
    pub const fn most_pauses(self) -> u32 {
        match self {
            Retry::None => 0,
            Retry::Pause => 1,
            Retry::Backoff => MOST_PAUSES,
        }
    }
}

/// Pauses `next` times, but at most `most`; `next` is doubled and begins with 1 for each element.
#[inline(always)]
pub fn pause(next: &mut u32, most: u32) {
    let pauses = (*next).min(most);
    for _ in 0..pauses {
        std::hint::spin_loop();
    }
    // Beyond the most it need not grow.
    *next = pauses.max(1) * 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most() {
        let steps = |retry: Retry| {
            let mut next = 1;
            let mut step = || {
                let pauses = next.min(retry.most_pauses());
                pause(&mut next, retry.most_pauses());
                pauses
            };
            std::array::from_fn::<_, 9, _>(|_| step())
        };
        assert_eq!(steps(Retry::None), [0; 9]);
        assert_eq!(steps(Retry::Pause), [1; 9]);
        assert_eq!(steps(Retry::Backoff), [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }
}
