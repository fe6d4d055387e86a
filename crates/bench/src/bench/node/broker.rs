//! The broker of a run: started for it, or one that runs; what it takes while samples are sent.

use super::config::{BrokerChoice, Config};
use super::error::RunError;
use super::point::Point;
use crate::host::interrupt;
use crate::node::NodeError;
use crate::node::broker::{Broker, Usage};
use crate::node::loopback_interface;
use crate::node::settings::BrokerAddress;
use crate::rig::error::RigError;
use crate::rig::named::Named as _;

/// Why there is no broker for a point, if so.
pub(super) fn refusal(point: &Point, config: &Config) -> Option<String> {
    let program = point.node_type.broker()?;
    match &config.broker {
        BrokerChoice::Spawn if config.peer.is_some() => Some(format!(
            "--type {} is impossible with --peer and --broker spawn, whose broker listens for its own host: start one \
             that both hosts reach, and name it by --broker HOST:PORT",
            point.node_type.name()
        )),
        BrokerChoice::Spawn => {
            (program.refusal()).or_else(|| loopback_interface::refusal("--broker spawn"))
        }
        BrokerChoice::At(_) => None,
    }
}

/// Why the process of a broker is none, if so, whatever is measured.
pub fn refusal_of_process(config: &Config) -> Option<String> {
    let process = config.broker_process?;
    match &config.broker {
        BrokerChoice::Spawn => Some(format!(
            "--broker-process {process} is impossible with --broker spawn, whose process is known: name the broker that \
             runs by --broker HOST:PORT"
        )),
        BrokerChoice::At(_) if Usage::of(process).is_none() => Some(format!(
            "--broker-process {process}: no process of this host has this number: find it by pidof, or of a container \
             by docker inspect -f {{{{.State.Pid}}}} NAME"
        )),
        BrokerChoice::At(_) => None,
    }
}

/// What a broker took while samples that count were sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct BrokerUsage {
    /// Of one CPU.
    pub(super) cpu_percent: f64,
    /// Right before these, after the warm-up.
    pub(super) baseline_bytes: u64,
    pub(super) resident_bytes: u64,
    pub(super) peak_bytes: u64,
}

#[derive(Debug)]
pub(super) struct RunBroker {
    address: Option<BrokerAddress>,
    spawned: Option<Broker>,
    /// Its process, where that is known.
    process: Option<u32>,
    /// The last look before samples counted.
    baseline: Option<Usage>,
    /// The first and the last look.
    looks: Option<(Usage, Usage)>,
    most_resident: u64,
}

impl RunBroker {
    /// Starts one, if it is needed and none runs.
    pub(super) fn start(point: &Point, config: &Config) -> Result<Self, RunError> {
        let mut broker = RunBroker {
            address: None,
            spawned: None,
            process: None,
            baseline: None,
            looks: None,
            most_resident: 0,
        };
        let Some(program) = point.node_type.broker() else {
            return Ok(broker);
        };
        match &config.broker {
            BrokerChoice::At(address) => {
                broker.address = Some(address.clone());
                broker.process = config.broker_process;
            }
            BrokerChoice::Spawn => {
                let spawned = Broker::spawn(program, || interrupt::requested().is_none());
                let spawned = spawned.map_err(|error| match (error, interrupt::requested()) {
                    (NodeError::GivenUp, Some(signal)) => RigError::Interrupted(signal).into(),
                    (error, _) => RunError::from(error),
                })?;
                broker.address = Some(spawned.address().clone());
                broker.process = Some(spawned.id());
                broker.spawned = Some(spawned);
            }
        }
        Ok(broker)
    }

    pub(super) fn address(&self) -> Option<&BrokerAddress> {
        self.address.as_ref()
    }

    /// Whether it was started for the run.
    pub(super) fn is_ours(&self) -> bool {
        self.spawned.is_some()
    }

    /// Notes what it has taken, as a baseline until that is to count. Why it has ended, if it has.
    pub(super) fn look(&mut self, counts: bool) -> Option<String> {
        if let Some(reason) = self.spawned.as_mut().and_then(Broker::gone) {
            return Some(reason);
        }
        let usage = self.process.and_then(Usage::of)?;
        if counts {
            let (first, _) = self.looks.unwrap_or((usage, usage));
            self.looks = Some((first, usage));
            self.most_resident = self.most_resident.max(usage.resident_bytes);
        } else if self.looks.is_none() {
            self.baseline = Some(usage);
        }
        None
    }

    /// What it has taken from the first look to the last.
    pub(super) fn spent(&self) -> Option<BrokerUsage> {
        let (first, last) = self.looks?;
        let time = last.at.duration_since(first.at).as_secs_f64();
        let cpu = last.cpu.saturating_sub(first.cpu).as_secs_f64();
        (time > 0.0).then(|| BrokerUsage {
            cpu_percent: 100.0 * cpu / time,
            baseline_bytes: self.baseline.unwrap_or(first).resident_bytes,
            resident_bytes: self.most_resident,
            peak_bytes: last.peak_bytes,
        })
    }
}
