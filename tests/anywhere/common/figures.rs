//! Figures that `hcabench plot` draws, and their texts.

use crate::testing::Has as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::ends;

pub(crate) const FIGURES: [&str; 9] = [
    "histogram",
    "median",
    "surface",
    "ecdf",
    "percentiles",
    "time",
    "load",
    "curves",
    "matrix",
];

#[derive(Debug)]
pub(crate) struct Texts(pub Vec<String>);

impl Texts {
    #[track_caller]
    pub(crate) fn has(&self, wanted: &[&str]) {
        for text in wanted {
            assert!(self.any(|found| found == *text), "{text:?}: {self:?}");
        }
    }

    pub(crate) fn any(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|text| is_it(text))
    }
}

pub(crate) const OUT: &str = "figure.svg";

/// Draws in that folder; returns the texts of the figure, and the data.
#[track_caller]
pub(crate) fn drawn(folder: &Path, words: &str) -> (Texts, Value) {
    let data = ends(folder, &format!("plot {words} --json --out {OUT}"), 0).json();
    let text = fs::read_to_string(folder.join(OUT)).unwrap();
    text.lacks(&["href", "<script", "<image", "NaN"]);
    let document = roxmltree::Document::parse(&text).unwrap();
    let nodes = document.descendants();
    let texts = nodes.filter(|node| node.has_tag_name("text"));
    let texts = texts.map(|node| node.text().unwrap().trim().to_owned());
    (Texts(texts.collect()), data)
}

/// Draws nothing, with this exit code and these parts on standard error.
#[track_caller]
pub(crate) fn not_drawn(folder: &Path, words: &str, code: i32, parts: &[&str]) {
    let _ = fs::remove_file(folder.join(OUT));
    let ended = ends(folder, &format!("plot {words} --out {OUT}"), code);
    ended.told().has(parts);
    assert!(!folder.join(OUT).exists());
}
