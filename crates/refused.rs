//! For tests of what is refused.

use std::fmt::Display;

/// Asserts that there is an error, and that it says all these words.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T, impl Display>, words: &[&str]) {
    let error = result.err().expect("an error").to_string();
    for words in words {
        assert!(error.contains(words), "{words:?} is not in {error:?}");
    }
}
