//! What the commands with results share: where results go, how wide they may be shown, and how they are printed.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::table_options::TableOptions;
use crate::arguments::UsageError;
use crate::host::standard_output::was_closed;
use crate::results::schema::split_unit;
use crate::results::text::printable;
use crate::results::{ReportError, ResultsFolder};

/// Where the results of a benchmark go, and how they are shown.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArguments {
    /// Write the results to this folder; refused if it holds any, unless --force [default: results/DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace the results in --out
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// Print no table
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,

    /// Print warnings as they come, and below the tables all findings with cause and fix
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,

    /// Print the results as JSON instead of the tables
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// How much of the tables is shown, and in which order.
    #[command(flatten)]
    pub table: TableOptions,
}

impl OutputArguments {
    /// Finds out whether the folder can be made, before hardware is touched.
    pub(crate) fn check_folder(&self, needed_bytes: u64) -> anyhow::Result<()> {
        match &self.out {
            Some(out) => ResultsFolder::check(out, self.force, needed_bytes)
                .map_err(|error| bad_folder(out, &error)),
            None => ResultsFolder::check_numbered(&default_folder(SystemTime::now()), needed_bytes)
                .map_err(|error| bad_default_folder(&error)),
        }
    }

    /// Makes the folder that was asked for, or a new one with the time in its name.
    pub(crate) fn create_folder(
        &self,
        started_at: SystemTime,
        needed_bytes: u64,
    ) -> anyhow::Result<ResultsFolder> {
        match &self.out {
            Some(out) => ResultsFolder::create(out, self.force, needed_bytes)
                .map_err(|error| bad_folder(out, &error)),
            None => ResultsFolder::create_numbered(&default_folder(started_at), needed_bytes)
                .map_err(|error| bad_default_folder(&error)),
        }
    }
}

/// `results/DATE-TIME`, which may exist already.
pub(crate) fn default_folder(now: SystemTime) -> PathBuf {
    let stamp = humantime::format_rfc3339_seconds(now).to_string();
    let stamp = stamp.replace(['-', ':', 'Z'], "").replace('T', "-");
    Path::new("results").join(stamp)
}

/// Columns of the terminal; `None` when standard output is not a terminal and its width is unknown.
pub(crate) fn terminal_width() -> Option<usize> {
    let told = || {
        std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok())
            // A terminal that does not know its size reports 0.
            .filter(|width| *width > 0)
    };
    let found =
        terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    found.or_else(told)
}

/// A results folder that cannot be used, as bad input.
pub(crate) fn bad_folder(out: &Path, error: &ReportError) -> anyhow::Error {
    UsageError(format!("--out {}: {error}", out.display())).into()
}

/// A folder that cannot be made where `--out` was not given.
pub(crate) fn bad_default_folder(error: &ReportError) -> anyhow::Error {
    UsageError(format!("no --out was given: {error}")).into()
}

/// Why an earlier run cannot go on, as bad input.
pub(crate) fn cannot_resume(folder: &Path, reason: &str) -> anyhow::Error {
    UsageError(format!("--resume {}: {reason}", folder.display())).into()
}

/// A text with a word in front, in lines that fit, the later ones indented. What others wrote into it steers no
/// terminal.
pub(crate) fn labelled(label: &str, text: &str) -> String {
    let lines = super::wrap(&format!("{label}: {text}"), super::text_width() - 2);
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    lines.join("\n  ")
}

/// Writes a line to standard error. There is no place to report that this failed.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints on standard error what ended the program, in the lines that it has.
pub(crate) fn print_error(error: &str) {
    let lines: Vec<_> = error.lines().map(printable).collect();
    say(format_args!("hcabench: {}", lines.join("\n")));
}

/// A warning, in lines that fit.
pub(crate) fn warning(text: &str) -> String {
    labelled("warning", text)
}

/// What a column of a file is called in a table, and its unit: `size_bytes` is `size` in `B`.
pub(crate) fn heading_of(column: &str) -> (String, &'static str) {
    let (name, unit) = split_unit(column);
    (name.replace('_', " "), unit)
}

/// Writes a text to standard output.
///
/// # Errors
/// When it cannot be written; a reader that has seen enough (head, a pager) is not a failure.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    print(|out| out.write_all(text.as_bytes()))
}

/// Writes a document to standard output, as JSON.
pub(crate) fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, document)?;
        writeln!(out)
    })
}

/// Writes a document as JSON, or the same as text.
pub(crate) fn print_as(
    json: bool,
    document: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    match json {
        true => print_json(document),
        false => print_text(&text()),
    }
}

/// Writes what clap answers to `--help` and `--version`, or its error. Returns the exit code.
pub(crate) fn print_answer(answer: &clap::Error) -> anyhow::Result<u8> {
    if answer.use_stderr() {
        let _ = answer.print();
    } else {
        print(|_| answer.print())?;
    }
    Ok(u8::try_from(answer.exit_code()).unwrap_or(1))
}

fn print(write: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) -> anyhow::Result<()> {
    if was_closed() {
        anyhow::bail!("cannot write to standard output: it is closed");
    }
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
