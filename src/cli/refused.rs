//! What the tests of several commands check alike.

use std::fmt::Debug;

use clap::{Args, Command, CommandFactory as _, Error};

use super::CommandLine;
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

#[test]
fn what_is_no_number_is_refused_by_what_is_allowed() {
    let line = CommandLine::command();
    let mut checked = 0;
    for command in std::iter::once(&line).chain(line.get_subcommands()) {
        let options = command
            .get_arguments()
            .filter(|it| it.get_action().takes_values());
        for option in options.filter_map(clap::Arg::get_long) {
            let mut words = vec!["hcabench".to_owned(), format!("--{option}=12q")];
            if command.get_name() != line.get_name() {
                words.insert(1, command.get_name().to_owned());
            }
            if let Err(error) = line.clone().try_get_matches_from(words) {
                assert_eq!(error.exit_code(), 2);
                error.lacks(&["invalid digit"]);
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "{checked}");
}
