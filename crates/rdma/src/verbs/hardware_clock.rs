//! The clock of an adapter, by which it stamps completions.

use std::mem::{MaybeUninit, offset_of};
use std::sync::Arc;

use rdma_sys as sys;

use super::{Context, HardwareClock, StampedQueue, VerbsError};

/// Why completions cannot be stamped, or the stamps not be converted.
#[derive(Debug, thiserror::Error)]
pub enum NoHardwareClock {
    /// It is not in the driver.
    #[error("{0} does not stamp completions (completion_timestamp_mask is 0)")]
    NoStamps(String),
    /// Without a reading of it stamps have no time.
    #[error(
        "{0} stamps completions by a clock that its driver does not read (ibv_query_rt_values_ex)"
    )]
    NotReadable(String),
    /// The driver has no way to ask.
    #[error("the driver of {0} is too old to ask for time stamps (no query_device_ex)")]
    Unknown(String),
    /// What is needed for it is refused.
    #[error(transparent)]
    Refused(#[from] VerbsError),
}

impl Context {
    /// What the driver reports of the clock.
    ///
    /// # Errors
    /// When it has none, or it cannot be read.
    pub fn hardware_clock(&self) -> Result<HardwareClock, NoHardwareClock> {
        let clock = self.reported_hardware_clock(self.extended_attributes().as_ref())?;
        match clock.readable {
            true => Ok(clock),
            false => Err(NoHardwareClock::NotReadable(self.device_name().to_owned())),
        }
    }

    /// The same of one that cannot be read, with what the driver reports of the device.
    pub(super) fn reported_hardware_clock(
        &self,
        reported: Option<&sys::ibv_device_attr_ex>,
    ) -> Result<HardwareClock, NoHardwareClock> {
        let name = || self.device_name().to_owned();
        let clock = reported.map(|all| (all.completion_timestamp_mask, all.hca_core_clock));
        let (mask, khz) = clock.ok_or_else(|| NoHardwareClock::Unknown(name()))?;
        if mask == 0 {
            return Err(NoHardwareClock::NoStamps(name()));
        }
        let khz = Some(khz).filter(|khz| *khz > 0);
        Ok(HardwareClock {
            mask,
            khz,
            readable: self.read_hardware_clock().is_ok(),
        })
    }

    /// The same, once a completion queue with stamps on trial has succeeded.
    ///
    /// # Errors
    /// When any of this is refused.
    pub fn tried_hardware_clock(self: &Arc<Self>) -> Result<HardwareClock, NoHardwareClock> {
        let clock = self.hardware_clock()?;
        StampedQueue::create(self, 1, false, 0)?;
        Ok(clock)
    }

    /// Reads the clock.
    ///
    /// # Errors
    /// When the driver refuses.
    #[inline]
    pub fn read_hardware_clock(&self) -> Result<u64, VerbsError> {
        const VERB: &str = "ibv_query_rt_values_ex";
        let asked = sys::ibv_values_mask::IBV_VALUES_MASK_RAW_CLOCK.0;
        let mut values = MaybeUninit::<sys::ibv_values_ex>::zeroed();
        let extended = self.extended(offset_of!(sys::verbs_context, query_rt_values));
        // SAFETY: the provider has this member.
        let query = extended.and_then(|extended| unsafe { (*extended).query_rt_values });
        let query =
            query.ok_or_else(|| VerbsError::code(VERB, self.device_name(), libc::EOPNOTSUPP))?;
        // SAFETY: the context is open, zero is a value of the structure, and the mask names what is asked for.
        let (code, values) = unsafe {
            (*values.as_mut_ptr()).comp_mask = asked;
            let code = query(self.as_ptr(), values.as_mut_ptr());
            (code, values.assume_init())
        };
        VerbsError::check(code, VERB, || self.device_name())?;
        if values.comp_mask & asked == 0 {
            return Err(VerbsError::code(VERB, self.device_name(), libc::EOPNOTSUPP));
        }
        // rdma-core, providers/mlx5/verbs.c and providers/mlx4/verbs.c, *_query_rt_values: counts, in the field of
        // nanoseconds, and no seconds.
        Ok(values.raw_clock.tv_nsec as u64)
    }
}
