//! The commands that the documentation shows are ones that the program takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};

use super::CommandLine;

/// The pages that show commands.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [".", "docs", "notebooks", "listings", "rdma-cm-patch"];
    let entries = folders.map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect()
}

/// The commands of `hcabench` in the blocks of code of a page, each on one line.
fn commands(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        let line = line.strip_prefix("ci/").unwrap_or(line);
        line.starts_with("hcabench ").then(|| line.to_owned())
    });
    lines.collect()
}

/// Whether it stands for many: with words to be replaced, such as `DIR`, or to be left out.
fn is_pattern(words: &[String]) -> bool {
    let is_to_be_replaced = |word: &String| {
        let first = word.split([' ', '.']).next().unwrap_or_default();
        !first.is_empty() && first.chars().all(|letter| letter.is_ascii_uppercase())
    };
    words
        .iter()
        .any(|word| is_to_be_replaced(word) || word.starts_with('['))
}

fn check_taken(place: &str, command: &str) {
    let words = shlex::split(command).unwrap_or_else(|| panic!("{place}: {command}: quotes"));
    if is_pattern(&words) {
        return;
    }
    // --help and --version end by what clap calls an error.
    if let Err(error) = CommandLine::try_parse_from(&words)
        && error.exit_code() != 0
    {
        panic!("{place}: {command}: {error}");
    }
}

#[test]
fn each_command_of_the_documentation_is_taken() {
    let mut found = 0;
    for path in pages() {
        for command in commands(&fs::read_to_string(&path).unwrap()) {
            check_taken(&path.display().to_string(), &command);
            found += 1;
        }
    }
    assert!(found >= 40, "only {found} commands were found");
}

#[test]
fn the_help_of_each_command_ends_with_examples_that_are_taken() {
    let whole = CommandLine::command();
    for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
        let name = command.get_name();
        let help = command
            .get_after_help()
            .unwrap_or_else(|| panic!("{name}: no examples"));
        let help = help.to_string();
        let examples = help
            .lines()
            .filter_map(|line| line.strip_prefix("  hcabench "));
        let examples: Vec<String> = examples.map(|rest| format!("hcabench {rest}")).collect();
        assert!(examples.len() >= 2, "{name}: {examples:?}");
        for example in examples {
            check_taken(name, &example);
        }
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{name}"
        );
    }
}
