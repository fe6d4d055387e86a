//! What can be set: the lists of a sweep, and what is the same at all of its points.

pub mod background;
pub mod comp_vector;
pub mod config;
pub mod limits;
pub mod path;
pub mod resources;
pub mod switch;
pub mod warmup;
