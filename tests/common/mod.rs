//! What several tests of the program read of it.
// Each of them takes its part.
#![allow(dead_code)]

pub mod listings;
pub mod node;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Output;

/// A row of a CSV file, by its columns.
pub type Row = HashMap<String, String>;

pub fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What it wrote to standard error.
pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
