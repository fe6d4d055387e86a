//! The commands that the documentation shows are ones that the program takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;

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

#[test]
fn each_command_of_the_documentation_is_taken() {
    let mut taken = 0;
    for path in pages() {
        for command in commands(&fs::read_to_string(&path).unwrap()) {
            let words = shlex::split(&command).unwrap_or_else(|| panic!("{command}: quotes"));
            if is_pattern(&words) {
                continue;
            }
            match CommandLine::try_parse_from(&words) {
                Ok(_) => taken += 1,
                Err(error) if error.exit_code() == 0 => taken += 1,
                Err(error) => panic!("{}: {command}: {error}", path.display()),
            }
        }
    }
    assert!(taken >= 40, "only {taken} commands were found");
}
