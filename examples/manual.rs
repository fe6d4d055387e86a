//! Writes the man pages and the completions of `hcabench`, made of its command line, into a folder: `man` with a page
//! for each command, and a file for each shell. Run by `ci/package`.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use clap::builder::Resettable;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use hcabench::cli::{CommandLine, EXIT_CODES};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1);
    let folder = folder.context("name the folder to write to")?;
    let folder = Path::new(&folder);
    let pages = folder.join("man");
    fs::create_dir_all(&pages)?;

    let mut command = without_hidden(&CommandLine::command()).version(VERSION);
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command, "hcabench", folder)?;
    }
    // The pages name no page of a command that only prints others' help.
    let mut command = CommandLine::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, &pages).with_context(|| format!("cannot write {}", pages.display()))
}

/// What completes of a command: `clap_complete` would offer hidden options, too.
fn without_hidden(command: &Command) -> Command {
    // clap takes static names only, and this program ends soon.
    Command::new(&*command.get_name().to_owned().leak())
        .about(command.get_about().cloned().unwrap_or_default())
        // They are among the arguments.
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(command.get_arguments().filter(|it| !it.is_hide_set()))
        .subcommands(below(command).map(without_hidden))
}

fn below(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set())
}

/// A page for the command, and for each below it.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    for inner in below(command) {
        write_pages(inner, folder)?;
    }
    let examples = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command.clone().after_help(Resettable::Reset))
        .source(format!("hcabench {VERSION}"))
        .manual("hcabench");
    let mut page = fs::File::create(folder.join(man.get_filename()))?;
    man.render(&mut page)?;
    page.write_all(section_of_exit_codes().as_bytes())?;
    if let Some(examples) = examples {
        page.write_all(section_of_examples(&examples).as_bytes())?;
    }
    Ok(())
}

fn section_of_exit_codes() -> String {
    let mut section = Roff::default();
    section.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_CODES {
        section.control("TP", []);
        section
            .text([bold(code.to_string())])
            .text([roman(meaning)]);
    }
    section.to_roff()
}

/// What stands below the help of a command, in its own lines: `clap_mangen` would make one paragraph of it.
fn section_of_examples(text: &str) -> String {
    let mut section = Roff::default();
    section.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in text.lines().filter(|line| *line != "Examples:") {
        section.text([roman(line)]);
    }
    section.control("fi", []);
    section.to_roff()
}
