//! What the tests of several commands check alike.

use std::fmt::Debug;

/// That each of these arguments is refused with exit code 2, by a text that names the option, the value and what is
/// allowed.
pub(crate) fn assert_refused<T: Debug>(
    parse: impl Fn(&str) -> Result<T, clap::Error>,
    table: &[(&str, [&str; 3])],
) {
    for (words, expected) in table {
        let error = parse(words).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(
            expected.iter().all(|part| text.contains(part)),
            "{words}: {text}"
        );
    }
}
