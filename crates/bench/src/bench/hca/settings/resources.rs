//! What the driver is asked for beside queues of some length and memory: how receive requests are kept, how memory is
//! registered, who uses the queue pairs.

use serde::{Deserialize, Serialize};

use super::switch::Switch;

/// What the two ends of a point are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceSettings {
    /// Whether all queue pairs of the receiving end take receive requests from one shared receive queue.
    pub srq: Switch,
    /// Whether PCI Express may change the order of writes to the messages' memory.
    pub relaxed_ordering: Switch,
    /// Whether the messages' memory is paged on demand.
    pub odp: Switch,
    /// Whether the queue pairs of each end belong to a thread domain.
    pub thread_domain: Switch,
}

impl Default for ResourceSettings {
    /// All off.
    fn default() -> Self {
        let off = Switch::Off;
        ResourceSettings {
            srq: off,
            relaxed_ordering: off,
            odp: off,
            thread_domain: off,
        }
    }
}

impl ResourceSettings {
    /// The names of its options, with their values.
    pub fn all(&self) -> [(&'static str, Switch); 4] {
        [
            ("srq", self.srq),
            ("relaxed-ordering", self.relaxed_ordering),
            ("odp", self.odp),
            ("thread-domain", self.thread_domain),
        ]
    }

    /// The names of its options that are on.
    pub fn chosen(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = self.all().into_iter();
        all.filter_map(|(name, value)| value.is_on().then_some(name))
    }

    /// The same with only that one of its options, if it is on.
    pub fn only(&self, name: &str) -> Self {
        let mut one = ResourceSettings::default();
        match name {
            "srq" => one.srq = self.srq,
            "relaxed-ordering" => one.relaxed_ordering = self.relaxed_ordering,
            "odp" => one.odp = self.odp,
            _ => one.thread_domain = self.thread_domain,
        }
        one
    }
}
