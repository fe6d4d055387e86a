//! The benchmarks. They do not know each other and never print; what they find leaves as data.

pub mod clock;
pub mod fabric;
pub mod hca;
pub mod memory;
pub mod node;
#[allow(missing_docs)]
pub mod presentation;
pub mod queue;

use self::presentation::Presentation;
use crate::results::schema::Schema;

/// What plots and reports show of each benchmark.
pub static PRESENTATIONS: [&Presentation; 6] = [
    &hca::presentation::PRESENTATION,
    &hca::between_presentation::PRESENTATION,
    &queue::presentation::PRESENTATION,
    &clock::presentation::PRESENTATION,
    &node::presentation::PRESENTATION,
    &memory::presentation::PRESENTATION,
];

/// That of the benchmark with these results.
pub fn presentation_of(schema: &Schema) -> &'static Presentation {
    let is_of = |it: &&Presentation| it.schema.benchmark == schema.benchmark;
    let found = PRESENTATIONS.into_iter().find(is_of);
    found.expect("each schema has one")
}
