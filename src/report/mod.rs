//! `hcabench report`: a run as one HTML file.

mod answer;
pub(crate) mod content;
mod fabric;
mod figures;
mod headline;
mod notices;
mod reading;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::arguments::UsageError;
use crate::figures::{apart, damaged_settings, in_words, is_told};
use crate::findings::{self, add_damaged, print_damaged};
use crate::host::resources;
use crate::page::{self, Page};
use crate::results::read::{Fabric, Point, ReadError, Run};
use crate::results::schema::{hca, node, queue};
use crate::results::text::printable_path;
use crate::terminal::output::say;

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

/// The name of a page.
pub(crate) fn html_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("html" | "htm") => Ok(path),
        _ => Err(format!("{text:?} does not end in .html or .htm")),
    }
}

/// Writes the report. Returns the exit code, which is 1 where files are left out.
///
/// # Errors
/// When results cannot be read, or the file cannot be written.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<u8> {
    // A place where no file can be is bad input.
    if arguments.out.is_dir() {
        let out = printable_path(&arguments.out);
        return Err(UsageError(format!("--out {out}: is a folder; name a file in it")).into());
    }
    resources::require_memory(resources::LEAST_TO_DRAW)?;
    let (page, mut damaged) = match Fabric::is_one(&arguments.folder) {
        true => {
            let fabric = Fabric::salvage(&arguments.folder)?;
            (fabric::page(&fabric, arguments)?, fabric.damaged())
        }
        false => page_of(&Run::salvage(&arguments.folder)?, arguments),
    };
    damaged.extend(damaged_settings(&arguments.folder).map(Arc::new));
    page::write(&arguments.out, &page)?;
    if !arguments.quiet {
        say(format_args!("report:   {}", printable_path(&arguments.out)));
    }
    Ok(print_damaged(damaged.iter().map(AsRef::as_ref)))
}

/// The settings of points with the texts that they have, each once.
pub(crate) fn settings_of(run: &Run) -> Vec<Texts<'_>> {
    let texts = |name: &str| {
        let mut texts: Vec<&str> = Vec::new();
        for point in run.points.iter().filter(|it| !it.is_measured(name)) {
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
        .filter(|(_, texts)| !texts.is_empty())
        .collect()
}

/// A setting with the texts that it has.
pub(crate) type Texts<'a> = (&'a str, Vec<&'a str>);

/// The settings that differ from point to point and are worth telling.
fn varying(run: &Run) -> Vec<Texts<'_>> {
    let mut varying = settings_of(run);
    varying.retain(|(name, texts)| texts.len() > 1 && texts.iter().any(|text| is_told(name, text)));
    varying
}

/// The settings that vary of a point, in words; where none does, those that every reader asks for first.
fn name_of(varying: &[Texts<'_>], point: &Point) -> String {
    const FIRST: [&str; 4] = [
        hca::SERVICE.name,
        hca::SIZE.name,
        queue::QUEUE.name,
        node::TYPE.name,
    ];
    let named = |name: &str| {
        let varies = varying.iter().any(|(it, _)| *it == name);
        varies || varying.is_empty() && FIRST.contains(&name)
    };
    let settings = point.settings.iter().filter(|(name, _)| named(name));
    let settings = settings.map(|(name, text)| (name.as_str(), text.as_str()));
    in_words_apart(varying, settings)
}

/// Settings in words, as they are in the file where the words of two values of a setting are the same.
fn in_words_apart<'a>(
    varying: &[Texts<'_>],
    settings: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let told = settings.filter(|(name, text)| is_told(name, text));
    let words = told.map(|(name, text)| {
        let others = varying.iter().find(|(it, _)| *it == name);
        let others = others
            .into_iter()
            .flat_map(|(_, texts)| texts.iter().copied());
        apart(in_words, name, text, others).unwrap_or_else(|| format!("{name} {text}"))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Settings in words.
fn in_all_words<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    in_words_apart(&[], settings)
}

/// The page of a run, and the files of it that are damaged.
fn page_of(run: &Run, arguments: &ReportArguments) -> (Page, Vec<Arc<ReadError>>) {
    let figures = figures::of(run, &arguments.folder);
    let mut found = findings::of(run);
    add_damaged(
        &mut found,
        &run.path,
        figures.without.iter().map(AsRef::as_ref),
    );
    let damaged = run.damaged.iter().cloned().chain(figures.without);
    let (verdict, sound) = headline::verdict(run, &found);
    let mut facts = content::facts(run);
    // What the title and the opening state.
    facts.retain(|(label, text)| match label.as_str() {
        "Measured" => arguments.title.is_some(),
        "Rounds" => text != "1",
        _ => true,
    });
    let title = arguments.title.clone();
    let page = Page {
        title: title.unwrap_or_else(|| content::title(run)),
        verdict,
        opening: headline::opening(run),
        same: headline::same(run),
        answer: answer::of(run),
        figures: figures.drawn,
        notes: figures.notes,
        points: content::points(run),
        tables: Vec::new(),
        findings: notices::of(run, &found),
        sound,
        facts,
        instrument: content::instrument(run),
        reading: reading::of(run.schema),
        more: content::more(run),
    };
    (page, damaged.collect())
}

#[cfg(test)]
pub(crate) use fabric::FIGURES as FABRIC_FIGURES;

#[cfg(test)]
mod tests;
