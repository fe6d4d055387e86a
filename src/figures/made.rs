//! What comes of drawing a figure: the drawing with what must be said about it, or that there is too much in it.

use std::sync::Arc;

use serde::Serialize;

use crate::arguments::UsageError;
use crate::plot::Drawing;
use crate::results::read::ReadError;
use crate::terminal::output::print_json;

/// A figure, drawn, and what must be said about it.
pub(super) struct Made {
    pub drawing: Drawing,
    pub print: Box<dyn FnOnce() -> anyhow::Result<()>>,
    pub told: Told,
    /// Files that are left out, as they cannot be read.
    pub without: Vec<Arc<ReadError>>,
    /// What `print` prints.
    #[cfg(test)]
    pub data: serde_json::Value,
}

/// What is to be told beside a figure.
#[derive(Default)]
pub(super) struct Told {
    /// Names in a file that fit no line, where that is no mistake; and whatever else the user should know.
    pub hints: Vec<String>,
    /// All names that a file has for lines.
    pub asked: Vec<Asked>,
}

/// A name of a line that a file has other words or a place for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The file and the key in it.
    pub key: String,
    pub name: String,
    /// Whether a line has it.
    pub found: bool,
}

impl Made {
    pub(crate) fn new(figure: impl Serialize + 'static, drawing: Drawing, told: Told) -> Self {
        Made {
            #[cfg(test)]
            data: serde_json::to_value(&figure).unwrap(),
            drawing,
            // Only when it is asked for: of ten million samples it is long.
            print: Box::new(move || print_json(&figure)),
            told,
            without: Vec::new(),
        }
    }
}

/// There is more in a figure than can be shown in one; parts of it can.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct TooMuch {
    /// What is too much, and what to do.
    pub reason: UsageError,
    /// Settings of which one value each must be chosen; none where any may.
    pub by: Vec<String>,
}

/// All that would be in a figure is in files that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0[0])]
pub(super) struct NothingLeft(pub Vec<Arc<ReadError>>);

impl NothingLeft {
    /// The error where nothing is left, and files are left out.
    pub(super) fn check(is_nothing: bool, without: &[Arc<ReadError>]) -> Result<(), Self> {
        match is_nothing && !without.is_empty() {
            true => Err(NothingLeft(without.to_vec())),
            false => Ok(()),
        }
    }
}
