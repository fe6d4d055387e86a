//! Values of options that several commands take, from text.

use std::time::Duration;

use crate::rig::named::Named;

/// One value of a fixed set.
pub fn one<T: Named>(text: &str) -> Result<T, String> {
    let found = T::ALL
        .iter()
        .copied()
        .find(|value| value.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let names: Vec<_> = T::ALL.iter().map(|value| value.name()).collect();
        format!("{text:?} is not one of {}", names.join(", "))
    })
}

/// A length of time from a millisecond to a year, with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is no time from 1ms to 1year with its unit, such as 10s or 5m");
    let length = humantime::parse_duration(text).map_err(|_| wrong())?;
    let allowed = Duration::from_millis(1)..=Duration::from_secs(366 * 86_400);
    allowed
        .contains(&length)
        .then_some(length)
        .ok_or_else(wrong)
}
