//! Figures: from plain data to SVG and PNG.
//!
//! A figure is made from series with labels, the words around them and the ranges of its axes; it knows nothing of
//! benchmarks, folders or files. It becomes a [`Drawing`], a list of shapes, which can be looked at in tests, and which
//! [`write()`] turns into a file.
//!
//! | module | the figure |
//! | --- | --- |
//! | [`histogram`] | distributions over each other, with medians, share above the range, and maxima |
//! | [`median`] | medians over a setting, with bars for the middle 80 % |
//! | [`surface`] | medians over two settings in space, with a share as colour |
//! | [`ecdf`] | the share of samples up to each value |
//! | [`percentiles`] | values up to high percentiles, on a scale that spreads the tail |
//! | [`time`] | samples over time, as marks |
//!
//! Below them: [`scale`] (axes and ticks), `frame` (what stands around the data), [`palette`], [`font`], [`drawing`] and
//! [`render`]. Left out: anything that moves or answers the mouse.

pub mod drawing;
pub mod ecdf;
pub mod font;
pub mod histogram;
pub mod median;
pub mod palette;
pub mod percentiles;
pub mod render;
pub mod scale;
pub mod surface;
pub mod time;

mod frame;
#[cfg(test)]
mod tests;

pub use drawing::Drawing;
pub use frame::Words;
pub use palette::Looks;
pub use render::{Format, png, svg, write};

use crate::results::ReportError;

/// The size of a figure unless another is asked for: 9.4 by 5.8 inches.
pub const DEFAULT_SIZE: (u32, u32) = (900, 560);
/// The smallest and the largest side of a figure.
pub const SIDES: std::ops::RangeInclusive<u32> = 300..=4000;

/// A figure that cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// There is no data in it.
    #[error("there is nothing to draw: {0}")]
    Nothing(String),
    /// There is more in it than can be told apart.
    #[error(
        "{found} {what} cannot be told apart or leave no room, {most} can: choose some by --only{}",
        room.map_or(String::new(), |(width, height)| format!(", or ask for --size {width}x{height}"))
    )]
    TooMuch {
        /// How many there are.
        found: usize,
        /// How many can be drawn.
        most: usize,
        /// Of what.
        what: &'static str,
        /// A size that has room for all, where one has.
        room: Option<(u32, u32)>,
    },
    /// Nothing of it is in the range that was asked for.
    #[error("none of the {what} is in it, they are {from} to {to}")]
    Outside {
        /// What there is.
        what: &'static str,
        /// The least, in words.
        from: String,
        /// The largest, in words.
        to: String,
        /// Whether the scale has no place for them, whatever the range: a logarithmic one ends above zero.
        on_any_range: bool,
    },
    /// The drawing library failed.
    #[error("the figure cannot be drawn: {0}")]
    Drawing(String),
    /// The file cannot be written.
    #[error(transparent)]
    Report(ReportError),
}

/// Refuses more than can be told apart.
pub(crate) fn at_most(found: usize, most: usize, what: &'static str) -> Result<(), PlotError> {
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
