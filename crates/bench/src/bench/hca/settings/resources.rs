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

/// One of the options of [`ResourceSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceOption {
    /// `--srq`
    Srq,
    /// `--relaxed-ordering`
    RelaxedOrdering,
    /// `--odp`
    Odp,
    /// `--thread-domain`
    ThreadDomain,
}

impl ResourceOption {
    /// All, in the order of the columns.
    pub const ALL: [Self; 4] = [
        ResourceOption::Srq,
        ResourceOption::RelaxedOrdering,
        ResourceOption::Odp,
        ResourceOption::ThreadDomain,
    ];

    /// Its name, without the hyphens.
    pub fn name(self) -> &'static str {
        match self {
            ResourceOption::Srq => "srq",
            ResourceOption::RelaxedOrdering => "relaxed-ordering",
            ResourceOption::Odp => "odp",
            ResourceOption::ThreadDomain => "thread-domain",
        }
    }
}

impl ResourceSettings {
    /// The value of an option.
    pub fn value(&self, option: ResourceOption) -> Switch {
        match option {
            ResourceOption::Srq => self.srq,
            ResourceOption::RelaxedOrdering => self.relaxed_ordering,
            ResourceOption::Odp => self.odp,
            ResourceOption::ThreadDomain => self.thread_domain,
        }
    }

    /// Its options that are on.
    pub fn chosen(&self) -> impl Iterator<Item = ResourceOption> + use<> {
        let settings = *self;
        let all = ResourceOption::ALL.into_iter();
        all.filter(move |option| settings.value(*option).is_on())
    }

    /// The same with only that one of its options, if it is on.
    pub fn only(&self, option: ResourceOption) -> Self {
        let value = self.value(option);
        let mut one = ResourceSettings::default();
        match option {
            ResourceOption::Srq => one.srq = value,
            ResourceOption::RelaxedOrdering => one.relaxed_ordering = value,
            ResourceOption::Odp => one.odp = value,
            ResourceOption::ThreadDomain => one.thread_domain = value,
        }
        one
    }
}
