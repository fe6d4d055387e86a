//! `hcabench plot`: figures of results.

mod config;
mod draw;
pub(crate) mod embedded;
mod figure;
mod made;
mod metric;
mod options;
mod published;
mod settings;
mod source;
mod sources;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::config::damaged_settings;
use self::made::{Made, TooMuch};
pub(crate) use self::options::PlotArguments;
use self::options::{Figure, Settings, Size};
pub(crate) use self::settings::{
    apart, axis, capital, goes_without_saying, in_words, is_told, tick,
};
use crate::arguments::UsageError;
use crate::findings::print_damaged;
use crate::host::resources;
use crate::plot::{Format, PlotError, memory_of, write};
use crate::results::read::{ReadError, Run};
use crate::results::text::{printable, printable_path};
use crate::terminal::output::{say, warning};

impl PlotArguments {
    /// The figure, by its options and a file. Where the program chose what is in it, not each name that the file has
    /// other words for can be there.
    fn made(&self, chosen_here: bool) -> anyhow::Result<Made> {
        let mut settings = config::settings(self, chosen_here)?;
        let made = self.drawn_without(&mut settings).or_else(|error| {
            // The columns of a paper say how wide a figure is, not how high; a page has room below.
            match error.downcast_ref() {
                Some(PlotError::TooMuch {
                    room: Some(size), ..
                }) if chosen_here || settings.size.is_some_and(|size| size.may_grow) => {
                    settings.size = Some(Size {
                        sides: *size,
                        may_grow: false,
                    });
                    self.drawn_without(&mut settings)
                }
                _ => Err(error),
            }
        });
        made.map_err(|error| sorted(error, &settings))
    }

    /// The figure of the files that can be read.
    fn drawn_without(&self, settings: &mut Settings) -> anyhow::Result<Made> {
        loop {
            let error = match self.drawn(settings) {
                Ok(made) => {
                    let mut without = settings.without.clone();
                    without.extend(made.without);
                    return Ok(Made { without, ..made });
                }
                Err(error) => error.downcast::<ReadError>()?,
            };
            let is_known = settings
                .without
                .iter()
                .any(|known| known.path == error.path);
            if is_known || !error.is_damage() {
                return Err(error.into());
            }
            settings.without.push(Arc::new(error));
        }
    }

    fn drawn(&self, settings: &Settings) -> anyhow::Result<Made> {
        let from = &self.common.from;
        match self.figure {
            Figure::Histogram => draw::histogram(from, settings),
            Figure::Median => draw::median(from, settings),
            Figure::Surface => draw::surface(from, settings),
            Figure::Ecdf | Figure::Percentiles => draw::curves(from, settings, self.figure),
            Figure::Time => draw::time(from, settings),
            Figure::Load => draw::load(from, settings),
            Figure::Curves => draw::family(from, settings),
            Figure::Matrix => draw::matrix(from, settings),
        }
    }
}

/// Draws a figure. Returns the exit code, which is 1 where files are left out.
///
/// # Errors
/// [`UsageError`] for options and settings that are wrong; others when results cannot be read or the file cannot be
/// written.
pub(crate) fn run(arguments: &PlotArguments) -> anyhow::Result<u8> {
    let options = &arguments.common;
    let format = Format::of(&options.out).ok_or_else(|| {
        UsageError(format!(
            "--out {}: its ending must be .svg, .png or .pdf",
            printable_path(&options.out)
        ))
    })?;
    resources::require_memory(resources::LEAST_TO_DRAW)?;
    let made = (arguments.made(false)).map_err(|error| match error.downcast::<TooMuch>() {
        Ok(much) => much.reason.into(),
        Err(error) => error,
    });
    let runs = options.from.iter();
    let runs = runs.filter_map(|path| Run::salvage(path).ok());
    let damaged: Vec<_> = runs.flat_map(|run| run.damaged).collect();
    let made = made.or_else(|error| without_what_is_damaged(error, &damaged))?;
    resources::require_memory(memory_of(format, &made.drawing))?;
    write(&options.out, format, &made.drawing)?;
    if options.json {
        (made.print)()?;
    }
    if !options.quiet {
        for hint in &made.told.hints {
            say(warning(&printable(hint)));
        }
        say(format_args!("figure:  {}", printable_path(&options.out)));
    }
    let damaged = damaged.iter().chain(&made.without);
    Ok(print_damaged(damaged.map(AsRef::as_ref)))
}

/// Where files are damaged, that may be why there is no figure, unless an option is wrong: then they are named first.
fn without_what_is_damaged(
    error: anyhow::Error,
    damaged: &[Arc<ReadError>],
) -> anyhow::Result<Made> {
    let reason = error.to_string();
    let Some((first, others)) = damaged.split_first() else {
        return Err(error);
    };
    if reason.starts_with("--") {
        return Err(error);
    }
    print_damaged(others.iter().map(AsRef::as_ref));
    if reason == first.to_string() {
        return Err(error);
    }
    anyhow::bail!("{first}; without it: {error:#}")
}

/// What the options can mend is a usage error.
fn sorted(error: anyhow::Error, settings: &Settings) -> anyhow::Error {
    let also = settings
        .file
        .path
        .as_ref()
        .map_or_else(String::new, |path| {
            format!("; settings are also in {}", printable_path(path))
        });
    let reason = UsageError(format!("{error}{also}"));
    match error.downcast_ref::<PlotError>() {
        Some(PlotError::TooMuch { .. }) => TooMuch {
            reason,
            by: Vec::new(),
        }
        .into(),
        Some(PlotError::Outside { on_any_range, .. }) => {
            // A logarithmic axis has no place for zero and what is below.
            let id = if settings.range_given().is_some() && !on_any_range {
                "range"
            } else {
                "scale"
            };
            UsageError(format!("--{id}: {reason}")).into()
        }
        _ if error.is::<UsageError>() => reason.into(),
        _ => match error.downcast::<TooMuch>() {
            Ok(much) => TooMuch { reason, ..much }.into(),
            Err(error) => error,
        },
    }
}
