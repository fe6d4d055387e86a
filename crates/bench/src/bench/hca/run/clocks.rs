//! The clocks of a process, each prepared once: for some, a rate is measured.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::time::{AnyClock, ClockError, ClockKind, TscKilohertz};

#[derive(Debug)]
pub(crate) struct Clocks {
    tsc_khz: Option<TscKilohertz>,
    known: Mutex<HashMap<ClockKind, AnyClock>>,
}

impl Clocks {
    /// `tsc_khz`: the rate that is said to be that of the TSC.
    pub(crate) fn new(tsc_khz: Option<TscKilohertz>) -> Self {
        Clocks {
            tsc_khz,
            known: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, kind: ClockKind) -> Result<AnyClock, ClockError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(clock) = known.get(&kind) {
            return Ok(*clock);
        }
        let clock = AnyClock::prepare_with(kind, self.tsc_khz)?;
        known.insert(kind, clock);
        Ok(clock)
    }
}
