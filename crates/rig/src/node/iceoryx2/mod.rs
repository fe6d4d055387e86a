//! iceoryx2: its publish-subscribe in shared memory, between threads and between processes.
//!
//! A subscriber has a service, to which its publishers send; with fan-out all subscribers share one, and so each of
//! them gets the same sample. Round-robin is up to the publisher, which chooses the service. Each end has a node of the
//! library.
//!
//! Inside the latency of a sample: copying it into memory that the publisher has lent from the library, handing its
//! place to each subscriber by a queue without locks, taking it from there, and copying it out. A subscriber has as
//! many places as the setting of the receive queue for each publisher. A sample that finds none is refused; where some
//! of several subscribers have one, the others lose it. The library allocates memory once for each copy.
//!
//! The library keeps files, which [`RunFiles`] puts into a separate folder for each run, and removes.

mod files;
mod signals;

use std::fmt::Display;
use std::io;

use iceoryx2::config::Config;
use iceoryx2::node::NodeBuilder;
use iceoryx2::port::backpressure_strategy::BackpressureStrategy;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::{DegradationAction, LoanError, SendError};
use iceoryx2::prelude::{FileName, LogLevel, Path, SemanticString as _, set_log_level};
use iceoryx2::service::ipc::Service;
use iceoryx2::service::port_factory::PortFactory as _;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use iceoryx2::signal_handling_mode::SignalHandlingMode;
use nix::sys::statvfs::statvfs;

pub use files::RunFiles;

use super::pool::WORD;
use super::settings::Poll;
use super::wiring::Distribution;
use super::{Maker, Node, NodeError, Pool, Scenario, Settings, Slot, Wiring, fill};

/// Where the library has its shared memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// Bytes of a sample beside its values: the library's header.
const HEADER: u64 = 64;
/// Bytes of a sample in each connection: its place in two queues, and who has it.
const IN_CONNECTION: u64 = 32;
/// Bytes of a port and of a service beside their samples: pages of a few files.
const OF_PORT: u64 = 16 << 12;
const ADVICE: &str = "check that /tmp and /dev/shm can be written, and have room (df)";

type Channel = PortFactory<Service, [u8], ()>;

/// The end that sends.
#[derive(Debug)]
pub struct Iceoryx2Publisher {
    targets: Vec<Target>,
    distribution: Distribution,
    /// Subscribers of each service.
    subscribers: usize,
    /// Of the run.
    name: String,
}

/// A service, and the way to send to it.
#[derive(Debug)]
struct Target {
    port: Publisher<Service, [u8], ()>,
    channel: Channel,
}

/// The end that receives.
#[derive(Debug)]
pub struct Iceoryx2Subscriber {
    port: Subscriber<Service, [u8], ()>,
    /// Of the run.
    name: String,
}

// SAFETY: what keeps both from being `Send` are reference-counted pointers of the library to the state of a port. All
// counts of an end belong to the end itself: it has its own node, and the samples that it borrows are returned within
// the call. So they go to another thread together.
unsafe impl Send for Iceoryx2Publisher {}
// SAFETY: as above.
unsafe impl Send for Iceoryx2Subscriber {}

/// Makes nodes of the library. Their files are where [`RunFiles`] of the same name has made room.
#[derive(Debug)]
pub struct Iceoryx2<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A name that no other run has.
    pub name: &'a str,
}

fn failed<E: Display>(
    operation: &'static str,
    object: &'static str,
) -> impl FnOnce(E) -> NodeError {
    move |error| NodeError::io(operation, object, ADVICE)(io::Error::other(error.to_string()))
}

impl Iceoryx2<'_> {
    /// Subscribers of a service.
    fn subscribers(&self) -> usize {
        match self.wiring.scenario {
            Scenario::FanOut => self.wiring.subscribers as usize,
            _ => 1,
        }
    }

    fn config(&self) -> Result<Config, NodeError> {
        let (folder, prefix) = (files::folder(self.name), files::prefix(self.name));
        let folder = Path::new(folder.as_os_str().as_encoded_bytes());
        let prefix = FileName::new(prefix.as_bytes());
        let mut config = Config::default();
        config
            .global
            .set_root_path(&folder.map_err(failed("name", "a folder of iceoryx2"))?);
        config.global.prefix = prefix.map_err(failed("name", "the files of iceoryx2"))?;
        config.global.creation_timeout = self.settings.timeout;
        // All nodes in the folder are of this run.
        config.global.node.cleanup_dead_nodes_on_creation = false;
        config.global.node.cleanup_dead_nodes_on_destruction = false;
        config.global.service.cleanup_dead_nodes_on_open = false;
        Ok(config)
    }

    /// The service of that subscriber, for a separate node.
    fn channels(&self, subscribers: impl Iterator<Item = u32>) -> Result<Vec<Channel>, NodeError> {
        signals::keep()?;
        set_log_level(LogLevel::Fatal);
        let builder = NodeBuilder::new()
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .config(&self.config()?);
        let node = builder.create::<Service>();
        let node = node.map_err(failed("make", "a node of iceoryx2"))?;
        let wiring = self.wiring;
        let channel = |subscriber| {
            let name = format!("{}/{subscriber}", self.name);
            let name = name.as_str().try_into();
            let name = name.map_err(failed("name", "a service of iceoryx2"))?;
            let publishers = wiring.publishers_of(subscriber).count();
            node.service_builder(&name)
                .publish_subscribe::<[u8]>()
                .enable_safe_overflow(false)
                .history_size(0)
                .max_publishers(publishers)
                .max_subscribers(self.subscribers())
                .max_nodes(publishers + self.subscribers())
                .subscriber_max_buffer_size(self.settings.receive_queue as usize)
                .subscriber_max_borrowed_samples(1)
                .open_or_create()
                .map_err(failed("open", "a service of iceoryx2"))
        };
        match wiring.scenario {
            Scenario::FanOut => Ok(vec![channel(0)?]),
            _ => subscribers.map(channel).collect(),
        }
    }
}

/// Shared memory that it takes, of which most is for the samples of all publishers.
pub fn bytes(wiring: &Wiring, settings: &Settings) -> u64 {
    let services: u64 = match wiring.scenario {
        Scenario::FanOut => wiring.publishers.into(),
        _ => (0..wiring.subscribers)
            .map(|subscriber| wiring.publishers_of(subscriber).count() as u64)
            .sum(),
    };
    let sample =
        (settings.words * WORD) as u64 + HEADER + IN_CONNECTION.saturating_mul(wiring.copies());
    let samples = wiring
        .copies()
        .saturating_mul(u64::from(settings.receive_queue) + 1)
        + 1;
    let ports = (services.saturating_mul(1 + wiring.copies()))
        .saturating_add(u64::from(wiring.publishers) + u64::from(wiring.subscribers));
    (services.saturating_mul(samples).saturating_mul(sample))
        .saturating_add(ports.saturating_mul(OF_PORT))
}

/// Why its ends cannot wait so, or have no room, if so.
pub fn refusal(wiring: &Wiring, settings: &Settings) -> Option<String> {
    if settings.poll == Poll::Event {
        return Some(
            "--poll event is impossible with --type iceoryx2: its publish-subscribe wakes no thread; use --poll busy"
                .to_owned(),
        );
    }
    let free = statvfs(SHARED_MEMORY).map(|it| it.blocks_available() * it.fragment_size());
    refusal_of(bytes(wiring, settings), free.ok())
}

fn refusal_of(needed: u64, free: Option<u64>) -> Option<String> {
    let Some(free) = free else {
        return Some(format!(
            "--type iceoryx2 is impossible: there is no {SHARED_MEMORY}, where its shared memory lies: mount it (mount \
             -t tmpfs tmpfs {SHARED_MEMORY})"
        ));
    };
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    (needed > free).then(|| {
        format!(
            "--type iceoryx2 is impossible: its samples take {} MiB of {SHARED_MEMORY}, which has {} MiB left: lower \
             --receive-queue, --values, --publishers or --subscribers, or enlarge it (mount -o remount,size=SIZE \
             {SHARED_MEMORY})",
            mib(needed),
            free >> 20
        )
    })
}

impl Maker for Iceoryx2<'_> {
    type Publisher = Iceoryx2Publisher;
    type Subscriber = Iceoryx2Subscriber;
    type Address = ();

    fn publisher(&self, number: u32, _: &[()]) -> Result<Iceoryx2Publisher, NodeError> {
        let channels = self.channels(self.wiring.subscribers_of(number))?;
        let bytes = self.settings.words * WORD;
        let target = |channel: Channel| {
            let port = channel
                .publisher_builder()
                .initial_max_slice_len(bytes)
                .max_loaned_samples(1)
                .backpressure_strategy(BackpressureStrategy::DiscardData)
                .set_degradation_handler(|_, _| DegradationAction::DegradeAndFail)
                .create();
            let port = port.map_err(failed("make", "a publisher of iceoryx2"))?;
            Ok(Target { port, channel })
        };
        Ok(Iceoryx2Publisher {
            targets: channels
                .into_iter()
                .map(target)
                .collect::<Result<_, NodeError>>()?,
            distribution: match self.wiring.scenario {
                Scenario::FanOut => Distribution::to_one(),
                _ => Distribution::new(self.wiring, number),
            },
            subscribers: self.subscribers(),
            name: self.name.to_owned(),
        })
    }

    fn subscriber(&self, number: u32) -> Result<(Iceoryx2Subscriber, ()), NodeError> {
        let channels = self.channels(std::iter::once(number))?;
        let port = channels[0]
            .subscriber_builder()
            .set_degradation_handler(|_, _| DegradationAction::DegradeAndFail)
            .create();
        let port = port.map_err(failed("make", "a subscriber of iceoryx2"))?;
        let name = self.name.to_owned();
        Ok((Iceoryx2Subscriber { port, name }, ()))
    }
}

impl Target {
    /// Sends a sample; returns how many subscribers took it.
    #[inline]
    fn send(&self, sample: &[u8]) -> Result<usize, SendError> {
        let room = match self.port.loan_slice_uninit(sample.len()) {
            Ok(room) => room,
            Err(LoanError::OutOfMemory | LoanError::ExceedsMaxLoans) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        room.write_from_slice(sample).send()
    }

    /// Whether subscribers have left.
    #[cold]
    fn check(&self, subscribers: usize) -> Result<(), NodeError> {
        if self.channel.dynamic_config().number_of_subscribers() < subscribers {
            let name = self.channel.name();
            return Err(NodeError::PeerEnded(format!(
                "a subscriber of the service {name} has left it"
            )));
        }
        Ok(())
    }
}

impl Node for Iceoryx2Publisher {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        files::reserve(&self.name, go_on)
    }

    #[inline]
    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        for (taken, slot) in samples.iter().enumerate() {
            for target in &self.targets[self.distribution.next_targets()] {
                let sent = target.send(pool.bytes(slot));
                let sent = sent.map_err(failed("send to", "a service of iceoryx2"))?;
                if sent < self.subscribers {
                    target.check(self.subscribers)?;
                }
                if sent == 0 {
                    return Ok(taken);
                }
            }
        }
        Ok(samples.len())
    }
}

impl Node for Iceoryx2Subscriber {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        files::reserve(&self.name, go_on)
    }

    #[inline]
    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |end: &mut Self, free: &[Slot], _: bool| {
            let sample = end.port.receive();
            let sample = sample.map_err(failed("receive from", "a service of iceoryx2"))?;
            Ok(sample.map(|sample| pool.copy_in(&free[0], sample.payload()).into()))
        };
        fill(self, samples, go_on, look, |_| std::hint::spin_loop())
    }
}

#[cfg(test)]
mod tests;
