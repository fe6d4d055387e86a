//! What every benchmark shares, whatever it measures.

pub mod flags;
pub mod named;
