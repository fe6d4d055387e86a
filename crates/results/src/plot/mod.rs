//! Figures: from plain data to SVG, PNG and PDF.
//!
//! A figure is made from series with labels, the words around them and the ranges of its axes; it knows nothing of
//! benchmarks, folders or files. It becomes a [`Drawing`], a list of shapes, which can be looked at in tests, and which
//! [`write()`] turns into a file.
//!
//! Each figure has a module; below them are [`scale`] (axes and ticks), `frame` (the parts around the data),
//! [`palette`], [`font`], [`drawing`] and [`render`]. Left out: anything that moves or answers the mouse.

pub mod curves;
pub mod drawing;
pub mod family;
pub mod font;
pub mod histogram;
pub mod history;
pub mod intervals;
pub mod load;
pub mod matrix;
pub mod median;
pub mod palette;
pub mod pdf;
pub mod render;
pub mod scale;
pub mod surface;
pub mod time;

mod frame;
#[cfg(test)]
mod tests;

pub use drawing::Drawing;
pub use frame::{Chart, FigureTexts, both};
pub use render::{Format, memory_of, svg, write};

use crate::results::ReportError;

/// The size of a figure unless another is asked for: 9.4 by 5.8 inches.
pub const DEFAULT_SIZE: (u32, u32) = (900, 560);
/// Figures over one column of a paper of two (3.5 inches wide), and over both (7.16 inches).
pub const ONE_COLUMN: (u32, u32) = (336, 300);
pub const TWO_COLUMNS: (u32, u32) = (687, 400);
/// The smallest and the largest side of a figure.
pub const SIDES: std::ops::RangeInclusive<u32> = 300..=4000;

#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    #[error("there is nothing to draw: {0}")]
    Nothing(String),
    #[error(
        "{found} {what} cannot be distinguished or leave no room, {most} can; choose some by --only{}",
        room.map_or(String::new(), |(width, height)| format!(", or ask for --size {width}x{height}"))
    )]
    TooMuch {
        found: usize,
        most: usize,
        what: &'static str,
        /// A size that has room for all, where one has.
        room: Option<(u32, u32)>,
    },
    #[error("none of the {what} is in it, they are {from} to {to}")]
    Outside {
        what: &'static str,
        /// The least and the largest, in words.
        from: String,
        to: String,
        /// Whether the scale has no place for them, whatever the range: a logarithmic one ends above zero.
        on_any_range: bool,
    },
    #[error("the figure cannot be drawn: {0}")]
    Drawing(String),
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl PlotError {
    fn no_samples() -> Self {
        PlotError::Nothing("no samples".to_owned())
    }

    fn failed(cause: impl std::fmt::Display) -> Self {
        PlotError::Drawing(cause.to_string())
    }

    fn no_median() -> Self {
        PlotError::Nothing("no point has a median".to_owned())
    }
}

pub fn at_most(found: usize, most: usize, what: &'static str) -> Result<(), PlotError> {
    if found <= most {
        return Ok(());
    }
    Err(PlotError::TooMuch {
        found,
        most,
        what,
        room: None,
    })
}

/// Why the numbers of a figure may be of a part only; added to labels.
pub const INCOMPLETE: &str = " (incomplete)";
