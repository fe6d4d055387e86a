//! Ends of the node-type infiniband, used as an application does.

use std::thread::scope;
use std::time::Duration;

use hcabench::buffer::HugePagePolicy;
use hcabench::node::fallback::Fallback;
use hcabench::node::infiniband::{
    Fabric, FabricRequest, InfiniBand, InfiniBandPublisher, InfiniBandSubscriber,
};
use hcabench::node::settings::Verbs;
use hcabench::node::{self, Node, Pool, Scenario, Settings, Slot, Wiring};
use hcabench::rig::ports::{Service, UcRouteRequest};

pub(crate) const WORDS: usize = 8;

pub(crate) fn fabric() -> Fabric {
    Fabric::open(&FabricRequest {
        sender: None,
        receiver: None,
        uc_route: UcRouteRequest::Auto,
    })
    .unwrap()
}

pub(crate) fn wiring(scenario: Scenario, publishers: u32, subscribers: u32) -> Wiring {
    Wiring::new(scenario, publishers, subscribers)
}

pub(crate) fn settings(service: Service, inline: bool) -> Settings {
    Settings {
        vectorize: 4,
        send_queue: 64,
        receive_queue: 128,
        timeout: Duration::from_secs(20),
        verbs: Verbs {
            service,
            max_inline: if inline { 128 } else { 0 },
            signal_every: 16,
            receive_threshold: None,
            fallback: Fallback::Fatal,
        },
        ..Settings::of_words(WORDS)
    }
}

pub(crate) struct End<N> {
    pub node: N,
    pub pool: Pool,
    samples: Vec<Slot>,
}

impl<N: Node> End<N> {
    pub(crate) fn new(node: N, slots: usize) -> Self {
        let pool = Pool::new(slots, WORDS, HugePagePolicy::Off).unwrap();
        let samples = Vec::with_capacity(pool.count());
        End {
            node,
            pool,
            samples,
        }
    }

    pub(crate) fn start(&mut self) {
        self.node.start(&mut self.pool, &mut || true).unwrap();
    }

    /// Writes so many samples by one call; how many of them were taken. Allocates nothing.
    pub(crate) fn write(&mut self, count: usize) -> usize {
        self.try_write(count).unwrap()
    }

    pub(crate) fn try_write(&mut self, count: usize) -> Result<usize, hcabench::node::NodeError> {
        self.pool.fill(&mut self.samples, count);
        let taken = self.node.write(&mut self.pool, &mut self.samples);
        self.pool.release_all(&mut self.samples);
        taken
    }

    /// Reads what one call brings. Allocates nothing.
    pub(crate) fn read(&mut self, go_on: impl FnMut() -> bool) -> usize {
        self.try_read(go_on).unwrap()
    }

    pub(crate) fn try_read(
        &mut self,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, hcabench::node::NodeError> {
        self.pool.fill(&mut self.samples, 4);
        let received = self.node.read(&mut self.pool, &mut self.samples, go_on);
        self.pool.release_all(&mut self.samples);
        received
    }

    /// Stops it, and returns whether all samples have come back.
    pub(crate) fn stop(mut self) -> bool {
        self.node.stop(&mut self.pool).unwrap();
        drop(self.node);
        self.pool.is_whole()
    }
}

pub(crate) struct Ends {
    pub publishers: Vec<End<InfiniBandPublisher>>,
    pub subscribers: Vec<End<InfiniBandSubscriber>>,
}

/// Subscribers have posted all that they post before they look for samples.
pub(crate) fn started(wiring: &Wiring, settings: &Settings) -> Ends {
    let fabric = fabric();
    let maker = InfiniBand::new(&fabric, wiring, settings, None).unwrap();
    let ends = node::Ends::of(&maker, wiring).unwrap();
    let (sends, receives) = (settings.send_queue, settings.receive_queue);
    let publisher = |node| End::new(node, sends as usize + 8);
    let subscriber = |node| End::new(node, receives as usize + 8);
    let mut ends = Ends {
        publishers: ends.publishers.into_iter().map(publisher).collect(),
        subscribers: ends.subscribers.into_iter().map(subscriber).collect(),
    };
    scope(|scope| {
        for end in &mut ends.publishers {
            scope.spawn(|| end.start());
        }
        for end in &mut ends.subscribers {
            scope.spawn(|| end.start());
        }
    });
    for end in &mut ends.subscribers {
        for _ in 0..receives {
            assert_eq!(end.read(|| false), 0);
        }
    }
    ends
}
