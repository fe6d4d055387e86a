//! Whether threads that spin can have a real-time priority where they are placed.

use super::error::RigError;
use crate::host::Compromise;
use crate::host::priority::is_throttled;

/// What is known of the places of threads that spin.
#[derive(Debug, Clone, Copy)]
pub struct SpinPlacement {
    /// Whether two of them have one CPU.
    pub shares_cpu: bool,
    /// Whether this process has another CPU beside theirs.
    pub leaves_cpu: bool,
    /// The options that give them CPUs.
    pub options: &'static str,
}

impl SpinPlacement {
    /// Those of a placement.
    pub fn of(warnings: &[Compromise], shares_cpu: bool, options: &'static str) -> Self {
        SpinPlacement {
            shares_cpu,
            leaves_cpu: !warnings.contains(&Compromise::SupervisorShares),
            options,
        }
    }

    /// Refuses a priority with which threads would keep each other, or all else, from running.
    ///
    /// # Errors
    /// [`RigError::NoneLeft`] and [`RigError::PriorityShared`].
    pub fn permit(&self, priority: Option<u8>) -> Result<(), RigError> {
        self.permit_if(priority, is_throttled())
    }

    fn permit_if(&self, priority: Option<u8>, is_throttled: bool) -> Result<(), RigError> {
        match priority {
            Some(priority) if !self.leaves_cpu && !is_throttled => {
                Err(RigError::NoneLeft(priority))
            }
            Some(priority) if self.shares_cpu => Err(RigError::PriorityShared {
                priority,
                options: self.options,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn threads_that_spin_may_keep_neither_each_other_nor_all_else_from_running() {
        let places = |shares_cpu, leaves_cpu| SpinPlacement {
            shares_cpu,
            leaves_cpu,
            options: "--sender-cpu",
        };
        for (place, is_throttled) in [
            (places(false, true), false),
            (places(false, true), true),
            (places(false, false), true),
        ] {
            place.permit_if(Some(50), is_throttled).unwrap();
        }
        places(false, false)
            .permit_if(Some(50), false)
            .refused(&["--priority 50", "sched_rt_runtime_us"]);
        for is_throttled in [false, true] {
            places(true, true)
                .permit_if(Some(50), is_throttled)
                .refused(&["--priority 50", "share a CPU", "--sender-cpu"]);
        }
        places(true, false).permit_if(None, false).unwrap();
    }
}
