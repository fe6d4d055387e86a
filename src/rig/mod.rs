//! What every benchmark shares, whatever it measures.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`benchmark`] | the trait of a benchmark, its plan and its outcome |
//! | [`flags`] | what threads of a run share |
//! | [`named`] | settings with a fixed set of named values |

pub mod benchmark;
pub mod flags;
pub mod named;
