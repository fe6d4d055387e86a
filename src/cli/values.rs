//! Values of options that several commands take, from text.

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
