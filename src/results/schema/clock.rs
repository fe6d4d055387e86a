//! The clock benchmark.

use super::{Column, ROUNDS, Schema};

/// The settings of a point.
pub const POINT: [Column; 0] = [];

/// What is found of a point.
pub const FIGURES: [Column; 0] = [];

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "clock",
    title: "clock",
    point: &POINT,
    figures: &FIGURES,
    samples: &[],
    headline: [ROUNDS, ROUNDS, ROUNDS],
};
