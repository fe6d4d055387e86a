//! What the tests of several commands check alike.

use std::fmt::Debug;

use clap::{Args, Command, Error};

use crate::testing::Has as _;

/// The options of a command.
pub(crate) fn parse<A: Args>(words: &str) -> Result<A, Error> {
    parse_words(words.split_ascii_whitespace().map(str::to_owned))
}

pub(crate) fn parse_words<A: Args>(words: impl IntoIterator<Item = String>) -> Result<A, Error> {
    let command = A::augment_args(Command::new("hcabench").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// That each of these arguments is refused with exit code 2, by a text that names the option, the value and what is
/// allowed.
pub(crate) fn assert_refused<T: Debug>(
    parse: impl Fn(&str) -> Result<T, Error>,
    table: &[(&str, [&str; 3])],
) {
    for (words, expected) in table {
        let error = parse(words).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.has(expected);
    }
}
