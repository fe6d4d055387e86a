//! The benchmarks. They do not know each other and never print; what they find leaves as data.

pub mod clock;
pub mod fabric;
pub mod hca;
pub mod memory;
pub mod node;
#[allow(missing_docs)]
pub mod presentation;
pub mod queue;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::presentation::Presentation;
use crate::results::schema::Schema;
use crate::rig::benchmark::Benchmark;
use crate::time::ReadingKind;

/// What is to be measured: what a process is started with that measures a round of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Assignment {
    /// Between two ports of this host.
    #[cfg(feature = "rdma")]
    OneHost(hca::config::Config),
    /// To another host.
    #[cfg(feature = "rdma")]
    TwoHosts(hca::config::Config, hca::between::PeerConfig),
    /// Queues.
    Queue(queue::config::Config, queue::plan::Sweep),
    /// Node-types.
    Node(node::config::Config, node::plan::Sweep),
    /// Memory under load.
    Memory(memory::config::Config, memory::config::Sweep),
    /// A watch of clocks.
    Clock {
        /// Its CPUs do not count.
        config: clock::config::Config,
        /// A point each; that of `config` does not count.
        clocks: Vec<ReadingKind>,
        /// Whether clocks that cannot be read are left out.
        lenient: bool,
        /// Those that are watched.
        cpus: clock::benchmark::Cpus,
        /// How often the progress is told. Each time the supervisor wakes up for it; without, it sleeps to the end.
        look: Option<Duration>,
    },
}

impl Assignment {
    /// The benchmark that measures it.
    pub fn benchmark(self) -> Box<dyn Benchmark> {
        match self {
            #[cfg(feature = "rdma")]
            Assignment::OneHost(config) => Box::new(hca::benchmark::HcaBenchmark::new(
                config,
                hca::one_host::OneHost,
            )),
            #[cfg(feature = "rdma")]
            Assignment::TwoHosts(config, peer) => {
                Box::new(hca::benchmark::HcaBenchmark::new(config, peer))
            }
            Assignment::Queue(config, sweep) => {
                Box::new(queue::benchmark::QueueBenchmark::new(config, sweep))
            }
            Assignment::Node(config, sweep) => {
                Box::new(node::benchmark::NodeBenchmark::new(config, sweep))
            }
            Assignment::Memory(config, sweep) => {
                Box::new(memory::benchmark::MemoryBenchmark::new(config, sweep))
            }
            Assignment::Clock {
                config,
                clocks,
                lenient,
                cpus,
                look,
            } => Box::new(clock::benchmark::ClockBenchmark::new(
                config,
                (clocks, lenient),
                cpus,
                look,
            )),
        }
    }
}

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
