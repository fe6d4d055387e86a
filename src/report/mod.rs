//! `hcabench report`: a run as one HTML file.

pub(crate) mod content;
mod fabric;
mod figures;
mod headline;
mod reading;
mod warnings;

use std::path::PathBuf;

use clap::Args;

use crate::arguments::UsageError;
use crate::figures::capital;
use crate::findings;
use crate::page::{self, Page};
use crate::results::finding::{Finding, Severity};
use crate::results::read::{Fabric, Run};
use crate::results::text::printable_path;

/// Arguments of `hcabench report`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportArguments {
    /// Report this results folder, or that of one of its points
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Write or replace this file; its name ends in .html or .htm
    #[arg(long, value_name = "FILE.html", value_parser = html_file)]
    pub out: PathBuf,

    /// Set the title [default: the benchmark and when it was measured]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,

    /// Do not print the path of the report
    #[arg(long)]
    pub quiet: bool,
}

fn html_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("html" | "htm") => Ok(path),
        _ => Err(format!("{text:?} does not end in .html or .htm")),
    }
}

/// Writes the report. Returns the exit code.
///
/// # Errors
/// When results cannot be read, or the file cannot be written.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<u8> {
    // A place where no file can be is bad input.
    if arguments.out.is_dir() {
        let out = printable_path(&arguments.out);
        return Err(UsageError(format!("--out {out}: is a folder; name a file in it")).into());
    }
    let page = match Fabric::is_one(&arguments.folder) {
        true => fabric::page(&Fabric::open(&arguments.folder)?, arguments)?,
        false => page_of(&Run::open(&arguments.folder)?, arguments)?,
    };
    page::write(&arguments.out, &page)?;
    if !arguments.quiet {
        eprintln!("report:   {}", printable_path(&arguments.out));
    }
    Ok(0)
}

/// The settings of points with the texts that they have, each once.
pub(crate) fn settings_of(run: &Run) -> Vec<(&str, Vec<&str>)> {
    let texts = |name: &str| {
        let mut texts: Vec<&str> = Vec::new();
        for point in &run.points {
            let text = point.setting(name).unwrap_or_default();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    };
    let settings = run.points.iter().take(1).flat_map(|point| &point.settings);
    settings
        .map(|(name, _)| (name.as_str(), texts(name)))
        .collect()
}

fn page_of(run: &Run, arguments: &ReportArguments) -> anyhow::Result<Page> {
    let found = findings::of(run)?;
    let points = run.points.len();
    let (advice, serious): (Vec<&Finding>, Vec<&Finding>) =
        (found.all().into_iter()).partition(|found| found.severity == Severity::Advice);
    let sentence = |found: &&Finding| capital(&found.line(points)) + ".";
    let mut warnings: Vec<String> = serious.iter().map(sentence).collect();
    let opening = headline::of(run, warnings.len());
    let (figures, mut notes) = figures::of(run, &arguments.folder, &mut warnings);
    notes.extend(advice.iter().map(sentence));
    let title = arguments.title.clone();
    Ok(Page {
        title: title.unwrap_or_else(|| content::title(run)),
        opening,
        facts: content::facts(run),
        incomplete: content::incomplete(run),
        warnings,
        summary: content::summary(run),
        tables: Vec::new(),
        figures,
        notes,
        instrument: content::instrument(run),
        reading: reading::of(run.schema),
        more: content::more(run)?,
    })
}

#[cfg(test)]
mod tests;
