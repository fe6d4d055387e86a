//! The other host, as a run of this one sees it: it makes the subscribers, and sends what they have noted.

use std::cell::RefMut;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::message::{HostName, NodeMessage, Order, PreparedHost, PreparedPoint, RunOver};
use super::probing::{MakeReceiver, MakeSender, ProbeEnds, by_number, of_probes};
use crate::bench::node::config::{BrokerChoice, Config};
use crate::bench::node::ends::Setup;
use crate::bench::node::error::RunError;
use crate::bench::node::log::{Log, LogWriter};
use crate::bench::node::point::Point;
use crate::bench::node::result::{PublisherReport, ReceivedSample, SubscriberReport};
use crate::bench::node::sample::Epoch;
use crate::bench::node::shared::{FarSubscribers, SharedState};
use crate::bench::node::subscriber::entries;
use crate::between::error::PeerError;
use crate::between::message::{ANSWER, WORK, only, receive_message, send_message, take};
use crate::between::peer::{PeerConfig, ServedBenchmark};
use crate::between::probe::NumberedProbe;
use crate::between::time_of_day::TimeOfDayOffset;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::machine_name::machine_name;
use crate::host::pinning::on_cpu;
use crate::launch::wire::{Wire, WireError};
use crate::node::NodeType;
use crate::results::finding::Finding;
use crate::rig::benchmark::Failure;
use crate::rig::error::unless_interrupted;
use crate::rig::findings::of_throttling;
use crate::rig::named::Named as _;
use crate::time::between::{Phase, Probe};
use crate::time::{Clock, Nanos};

/// How often the other host is told that this one is there.
const BEAT: Duration = Duration::from_secs(1);
/// How long the other host may take to say that it has gone, where an end here has failed.
const ROOT_CAUSE: Duration = Duration::from_millis(300);

/// The other host, greeted.
#[derive(Debug)]
pub(in crate::bench::node) struct Remote {
    asked: PeerConfig,
    pub(in crate::bench::node) here: HostName,
    pub(in crate::bench::node) there: HostName,
    /// The names of the node-types that it has.
    types: Vec<String>,
    /// None where a point has failed: the next one connects again.
    wire: Option<Wire>,
}

impl Remote {
    /// Greets the other host.
    ///
    /// # Errors
    /// When it is not reached, serves another host, or is another version.
    pub(in crate::bench::node) fn connect(asked: &PeerConfig) -> Result<Self, RunError> {
        let (host, boot_id) = machine_name();
        let here = HostName { host, boot_id };
        let (wire, there, types) = greet(asked, &here)?;
        Ok(Remote {
            asked: asked.clone(),
            here,
            there,
            types,
            wire: Some(wire),
        })
    }

    /// Why a point cannot be measured with this host at that address of this one, if so.
    pub(in crate::bench::node) fn refusal(
        &self,
        point: &Point,
        address: IpAddr,
        broker: &BrokerChoice,
    ) -> Option<String> {
        let (node_type, peer) = (point.node_type, &self.asked.peer);
        let name = node_type.name();
        if !self.types.iter().any(|it| it == name) {
            let lacks = match node_type {
                NodeType::InfiniBand => "that host has no RDMA device, or the hcabench there",
                _ => "the hcabench there is built without it, or",
            };
            return Some(format!(
                "--type {name} is impossible with --peer {peer}: {lacks} does not find its library: install a package \
                 (.deb, .rpm or .whl) with what it recommends there"
            ));
        }
        if node_type.is_of_ipv4() && address.is_ipv6() {
            return Some(format!(
                "--type {name} is impossible with --peer {peer}: it takes addresses of IPv4: name one of that host"
            ));
        }
        let BrokerChoice::At(broker) = broker else {
            return None;
        };
        let is_of_each = node_type.broker().is_some()
            && self.here.boot_id != self.there.boot_id
            && is_loopback(&broker.host);
        is_of_each.then(|| {
            format!(
                "--broker {broker} is impossible with --peer {peer}: each host would look for it at its own loopback: \
                 name it by an address that both reach"
            )
        })
    }

    /// Has the other host make ready for points, and returns what it has for each.
    ///
    /// # Errors
    /// When it cannot.
    pub(in crate::bench::node) fn prepare(
        &mut self,
        config: &Config,
        points: &[Point],
    ) -> Result<Vec<PreparedHost>, RunError> {
        let wire = self.wire()?;
        let mut all = Vec::with_capacity(points.len());
        for point in points {
            let prepare = NodeMessage::Prepare(Box::new(config.clone()), Box::new(*point));
            send_message(wire, &prepare)?;
            let prepared = only!(NodeMessage::Prepared(prepared) => *prepared);
            all.push(receive_message(wire, WORK, prepared)?);
        }
        Ok(all)
    }

    /// The address of this host that the other one reaches.
    pub(in crate::bench::node) fn address(&mut self) -> Result<IpAddr, RunError> {
        Ok(self.wire()?.local()?.ip().to_canonical())
    }

    /// Whether strangers could take part in what is sent.
    pub(in crate::bench::node) fn is_exposed(&self) -> bool {
        self.wire.as_ref().is_some_and(Wire::is_exposed)
    }

    fn wire(&mut self) -> Result<&mut Wire, RunError> {
        if self.wire.is_none() {
            let (wire, there, types) = greet(&self.asked, &self.here)?;
            (self.wire, self.there, self.types) = (Some(wire), there, types);
        }
        Ok(self.wire.as_mut().expect("it was connected"))
    }
}

/// Whether a host is the one that looks for it.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn greet(asked: &PeerConfig, here: &HostName) -> Result<(Wire, HostName, Vec<String>), RunError> {
    let names = (here.host.as_str(), here.boot_id.as_str());
    let mut wire = asked.reach(ServedBenchmark::Node, None, names)?;
    let welcomed = only!(NodeMessage::Welcome(there, is_open, types) => (there, is_open, types));
    let (there, is_open, types) = receive_message(&mut wire, ANSWER, welcomed)?;
    if is_open {
        wire.set_open();
    }
    Ok((wire, there, types))
}

/// That the other host sent another number of something than it was to.
fn invalid(peer: SocketAddr, what: &str, wanted: impl Display, sent: usize) -> PeerError {
    let text = format!(
        "sent {sent} {what} instead of {wanted}: it is another version of hcabench, or this is a bug: end \
         `hcabench serve` there, start it again from the same build, and report it if this happens again"
    );
    PeerError::Peer(peer, Failure::Run(text))
}

/// What is known of the other host's part of a run.
#[derive(Debug)]
pub(in crate::bench::node) struct FarEnd {
    pub(in crate::bench::node) cpus: Vec<Option<usize>>,
    /// The least pages that any log got there.
    pub(in crate::bench::node) pages: Option<PageKind>,
    /// Stamps are moved as those of samples.
    pub(in crate::bench::node) probes: Vec<NumberedProbe>,
    pub(in crate::bench::node) unanswered: u64,
    /// How far the time of day is ahead of the clock, here and there.
    pub(in crate::bench::node) times_of_day: [TimeOfDayOffset; 2],
    pub(in crate::bench::node) findings: Vec<Finding>,
}

/// A run whose subscribers are on the other host. The connection is closed when this is dropped before it has finished.
pub(in crate::bench::node) struct FarRun<'a> {
    remote: RefMut<'a, Remote>,
    epoch: Epoch,
    made: PreparedPoint,
    node_type: NodeType,
    ends: ProbeEnds,
    /// Where probes are sent from.
    cpu: usize,
    probes: Vec<NumberedProbe>,
    unanswered: u64,
    /// What the subscribers have passed on, and when the other host was heard last.
    far: FarSubscribers,
    heard: Instant,
    beaten: Instant,
    has_published: bool,
    over: Option<RunOver>,
    is_finished: bool,
}

impl Drop for FarRun<'_> {
    fn drop(&mut self) {
        if !self.is_finished
            && let Some(wire) = self.remote.wire.take()
        {
            wire.close();
        }
    }
}

impl<'a> FarRun<'a> {
    /// Has the other host make the subscribers of a point, and exchanges the first probes.
    ///
    /// # Errors
    /// When it cannot, or not in time.
    pub(in crate::bench::node) fn make<C: Clock>(
        mut remote: RefMut<'a, Remote>,
        setup: &Setup<'_>,
        clock: C,
        cpu: usize,
    ) -> Result<Self, RunError> {
        let [there, back] = ["there", "back"].map(|way| of_probes(setup.common, way));
        let (receives, answer_to) = Setup {
            common: &back,
            ..*setup
        }
        .visit(MakeReceiver {
            clock,
            probes: &back,
        })?;
        let order = Order {
            common: setup.common.clone(),
            answer_to,
        };
        let wire = remote.wire()?;
        let made = send_message(wire, &NodeMessage::Point(Box::new(order)))
            .map_err(PeerError::from)
            .and_then(|()| receive_message(wire, WORK, only!(NodeMessage::Made(made) => *made)));
        let peer = wire.peer();
        let ready = made.map_err(RunError::from).and_then(|made| {
            let subscribers = setup.common.point.wiring.subscribers;
            if made.subscribers.len() != subscribers as usize {
                return Err(invalid(peer, "addresses", subscribers, made.subscribers.len()).into());
            }
            let sends = Setup {
                common: &there,
                ..*setup
            }
            .visit(MakeSender {
                clock,
                probes: &there,
                to: made.probes.clone(),
            })?;
            Ok((made, sends))
        });
        let (made, sends) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                // It waits for what this run sends next, and so can do nothing for another one.
                let wire = remote.wire.take();
                wire.iter().for_each(Wire::close);
                return Err(error);
            }
        };
        let mut run = FarRun {
            remote,
            epoch: setup.common.epoch,
            node_type: setup.common.point.node_type,
            made,
            ends: ProbeEnds::new(sends, receives),
            cpu,
            probes: Vec::new(),
            unanswered: 0,
            far: FarSubscribers::default(),
            heard: Instant::now(),
            beaten: Instant::now(),
            has_published: false,
            over: None,
            is_finished: false,
        };
        run.exchange(Phase::Before, setup.shared)?;
        Ok(run)
    }

    /// The addresses of the subscribers.
    pub(in crate::bench::node) fn subscribers(&self) -> &[Value] {
        &self.made.subscribers
    }

    fn wire(&mut self) -> &mut Wire {
        self.remote
            .wire
            .as_mut()
            .expect("it is open until the run ends")
    }

    /// Exchanges the probes of a phase.
    fn exchange(&mut self, phase: Phase, shared: &SharedState) -> Result<(), RunError> {
        let place = u32::from(phase == Phase::After);
        let count = self.remote.asked.probes;
        let (first, count) = (place * count, count);
        send_message(self.wire(), &NodeMessage::Probe { first, count })?;
        receive_message(self.wire(), ANSWER, only!(NodeMessage::Answering => ()))?;
        let (cpu, ends) = (self.cpu, &mut self.ends);
        let asked = on_cpu(cpu, || ends.ask((first, count)))?;
        unless_interrupted()?;
        let (here, asked) = asked.map_err(|error| {
            // The end here may only have noticed that the other host failed.
            let cause = self.root_cause(shared);
            cause.unwrap_or_else(|| RunError::from(error))
        })?;
        send_message(self.wire(), &NodeMessage::ProbesOver)?;
        let there = only!(NodeMessage::Probed(stamped) => stamped);
        let there = receive_message(self.wire(), ANSWER, there)?;
        let there = by_number(there);
        let epoch = self.epoch;
        let moved = |nanos| Nanos(epoch.of_nanos(nanos));
        let before = self.probes.len();
        self.probes.extend(here.iter().filter_map(|one| {
            let other = there.get(&one.number)?;
            Some(NumberedProbe {
                number: one.number,
                phase,
                place,
                stamps: Probe {
                    a_sent: moved(one.sent),
                    b_received: moved(other.received),
                    b_sent: moved(other.sent),
                    a_received: moved(one.received),
                },
            })
        }));
        unless_interrupted()?;
        let answered = self.probes.len() - before;
        if answered == 0 {
            let name = self.node_type.name();
            let text = match self.node_type.broker() {
                Some(_) => format!(
                    "no probe was answered: the hosts may have reached two brokers: check that --broker of --type \
                     {name} is the same one for both"
                ),
                None => format!(
                    "no probe was answered: a firewall between the hosts may stop samples, or the path loses them: let \
                     --type {name} through both ways, on all ports, or take another type"
                ),
            };
            return Err(PeerError::Here(text).into());
        }
        self.unanswered += u64::from(asked).saturating_sub(answered as u64);
        Ok(())
    }

    /// Samples that have come there, those of the warm-up included.
    pub(in crate::bench::node) fn received(&self) -> u64 {
        self.far.received()
    }

    /// Has the subscribers start.
    pub(in crate::bench::node) fn begin(&mut self) -> Result<(), RunError> {
        self.heard = Instant::now();
        Ok(send_message(self.wire(), &NodeMessage::Begin)?)
    }

    /// Passes on what there is to pass on, either way. A reason to end the run, if there is one.
    pub(in crate::bench::node) fn look(&mut self, shared: &SharedState) -> Option<RunError> {
        self.pass_on(shared).err().map(RunError::from)
    }

    fn pass_on(&mut self, shared: &SharedState) -> Result<(), PeerError> {
        while self.over.is_none()
            && let Some(message) = self.wire().poll(Duration::ZERO)?
        {
            self.hear(message, shared)?;
        }
        if self.heard.elapsed() > ANSWER && self.over.is_none() {
            return Err(self.wire().unanswered(ANSWER).into());
        }
        if !self.has_published
            && let Some(sent) = shared.published()
        {
            self.has_published = true;
            send_message(self.wire(), &NodeMessage::Published(sent))?;
        }
        let kept = self.ends.keep();
        kept.map_err(|error| PeerError::Here(format!("the probes: {error}")))?;
        if self.beaten.elapsed() > BEAT {
            self.beaten = Instant::now();
            send_message(self.wire(), &NodeMessage::Waiting)?;
        }
        Ok(())
    }

    fn hear(&mut self, message: NodeMessage, shared: &SharedState) -> Result<(), PeerError> {
        self.heard = Instant::now();
        match message {
            NodeMessage::Far(far) => {
                self.far.take_over(far, shared);
            }
            other => {
                let over = take(self.wire(), other, only!(NodeMessage::Over(over) => *over))?;
                self.over = Some(over);
            }
        }
        Ok(())
    }

    /// That the other host has gone, or cannot go on, where an end here has failed by it.
    pub(in crate::bench::node) fn root_cause(&mut self, shared: &SharedState) -> Option<RunError> {
        let until = Instant::now() + ROOT_CAUSE;
        while Instant::now() < until && self.over.is_none() {
            let heard = match self.wire().poll(Duration::from_millis(20)) {
                Ok(None) => Ok(()),
                Ok(Some(message)) => self.hear(message, shared),
                Err(error) => Err(error.into()),
            };
            match heard {
                Err(error @ (PeerError::Wire(WireError::Closed(_)) | PeerError::Peer(..))) => {
                    return Some(error.into());
                }
                Err(_) => return None,
                Ok(()) => {}
            }
        }
        None
    }

    /// Exchanges the last probes, and fetches what the subscribers have noted: of that, what counts.
    ///
    /// # Errors
    /// When the other host does not answer in time.
    pub(in crate::bench::node) fn finish<C: Clock>(
        mut self,
        setup: &Setup<'_>,
        clock: C,
        publishers: &[PublisherReport],
        folder: &Path,
    ) -> Result<(Vec<SubscriberReport>, FarEnd), RunError> {
        let over = loop {
            if let Some(over) = self.over.take() {
                break over;
            }
            let message = self.wire().receive(ANSWER)?;
            self.hear(message, setup.shared)?;
        };
        self.exchange(Phase::After, setup.shared)?;
        let subscribers = setup.common.point.wiring.subscribers;
        if over.subscribers.len() != subscribers as usize {
            let sent = over.subscribers.len();
            return Err(invalid(self.wire().peer(), "reports", subscribers, sent).into());
        }
        let mut reports = Vec::new();
        for (subscriber, noted) in (0..subscribers).zip(&over.subscribers) {
            let config = &setup.common.config;
            // Without the warm-up there is as much as on one host.
            let steps = config.steps(setup.common.point.rate_per_s);
            let limit = entries(&setup.common.point.wiring, steps, subscriber).min(noted.count);
            let room = Log::new(config.log, limit, HugePagePolicy::Off, folder)?;
            let mut log = LogWriter::new(Arc::new(room), limit);
            let mut overflown = noted.overflown;
            let mut from = 0;
            while from < noted.count {
                send_message(self.wire(), &NodeMessage::Fetch { subscriber, from })?;
                let entries = only!(NodeMessage::Noted(entries) => entries);
                let entries = receive_message(self.wire(), ANSWER, entries)?;
                if entries.is_empty() || entries.len() > noted.count - from {
                    let wanted = format!("1 to {}", noted.count - from);
                    let peer = self.wire().peer();
                    return Err(invalid(peer, "noted samples", wanted, entries.len()).into());
                }
                from += entries.len();
                for entry in entries {
                    let header = ReceivedSample::of_words(entry).header;
                    let publisher = publishers.get(header.publisher() as usize);
                    if publisher.is_none_or(|it| header.number() >= it.first) {
                        overflown += u64::from(!log.push(entry)?);
                    }
                }
            }
            reports.push(SubscriberReport {
                log: log.end()?,
                overflown,
                pool_is_whole: noted.pool_is_whole,
            });
        }
        send_message(self.wire(), &NodeMessage::PointOver)?;
        self.is_finished = true;
        let host = self.remote.there.host.clone();
        let throttled = of_throttling(&over.throttled, None).into_iter();
        let findings = self.made.findings.iter().cloned().chain(throttled);
        let far = FarEnd {
            cpus: std::mem::take(&mut self.made.cpus),
            pages: over.subscribers.iter().map(|noted| noted.pages).min(),
            probes: std::mem::take(&mut self.probes),
            unanswered: self.unanswered,
            times_of_day: [TimeOfDayOffset::of(&clock), self.made.time_of_day],
            findings: findings.map(|found| found.on(&*host)).collect(),
        };
        Ok((reports, far))
    }
}
