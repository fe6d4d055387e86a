//! The benchmarks. They do not know each other and never print; what they find leaves as data.

pub mod clock;
pub mod cores;
pub mod fabric;
pub mod hca;
pub mod memory;
pub mod node;
#[allow(missing_docs)]
pub mod presentation;
pub mod queue;

use serde::{Deserialize, Serialize};

use self::clock::benchmark::ClockBenchmark;
use self::cores::benchmark::CoresBenchmark;
#[cfg(feature = "rdma")]
use self::hca::run::{benchmark::HcaBenchmark, one_host::OneHost};
use self::memory::benchmark::MemoryBenchmark;
use self::node::benchmark::NodeBenchmark;
use self::presentation::Presentation;
use self::queue::benchmark::QueueBenchmark;
#[cfg(feature = "rdma")]
use crate::between::peer::PeerConfig;
use crate::results::schema::Schema;
use crate::rig::benchmark::Benchmark;

/// What is to be measured: what a process is started with that measures a round of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Assignment {
    /// Between two ports of this host.
    #[cfg(feature = "rdma")]
    OneHost(hca::settings::config::Config),
    /// To another host.
    #[cfg(feature = "rdma")]
    TwoHosts(hca::settings::config::Config, PeerConfig),
    /// Queues.
    Queue(queue::config::Config, queue::plan::Sweep),
    /// Node-types.
    Node(Box<node::config::Config>, node::plan::Sweep),
    /// Memory under load.
    Memory(memory::config::Config, memory::config::Sweep),
    /// Cache lines between CPUs.
    Cores(cores::config::Config),
    /// A watch of clocks.
    Clock(clock::config::Config, clock::benchmark::Sweep),
}

impl Assignment {
    /// The same for a process of a round: what `prepared` has found out by a trial is known there.
    pub fn of_round(&self, prepared: &dyn Benchmark) -> Self {
        match (self, prepared.direct_services()) {
            #[cfg(feature = "rdma")]
            (Assignment::OneHost(config), direct_services) => {
                Assignment::OneHost(hca::settings::config::Config {
                    direct_services,
                    ..config.clone()
                })
            }
            (other, _) => other.clone(),
        }
    }

    /// The benchmark that measures it.
    pub fn benchmark(self) -> Box<dyn Benchmark> {
        match self {
            #[cfg(feature = "rdma")]
            Assignment::OneHost(config) => Box::new(HcaBenchmark::new(config, OneHost)),
            #[cfg(feature = "rdma")]
            Assignment::TwoHosts(config, peer) => Box::new(HcaBenchmark::new(config, peer)),
            Assignment::Queue(config, sweep) => Box::new(QueueBenchmark::new(config, sweep)),
            Assignment::Node(config, sweep) => Box::new(NodeBenchmark::new(*config, sweep)),
            Assignment::Memory(config, sweep) => Box::new(MemoryBenchmark::new(config, sweep)),
            Assignment::Cores(config) => Box::new(CoresBenchmark::new(config)),
            Assignment::Clock(config, sweep) => Box::new(ClockBenchmark::new(config, sweep)),
        }
    }
}

/// What plots and reports show of each benchmark.
pub static PRESENTATIONS: [&Presentation; 8] = [
    &hca::presentation::PRESENTATION,
    &hca::between_presentation::PRESENTATION,
    &queue::presentation::PRESENTATION,
    &clock::presentation::PRESENTATION,
    &node::presentation::PRESENTATION,
    &node::between::presentation::PRESENTATION,
    &memory::presentation::PRESENTATION,
    &cores::presentation::PRESENTATION,
];

/// That of the benchmark with these results.
pub fn presentation_of(schema: &Schema) -> &'static Presentation {
    let is_of = |it: &&Presentation| it.schema.benchmark == schema.benchmark;
    let found = PRESENTATIONS.into_iter().find(is_of);
    found.expect("each schema has one")
}
