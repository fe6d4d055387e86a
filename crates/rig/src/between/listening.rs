//! Who is served: one run at a time, with the processes of all its rounds. Others get that answer, and what is not
//! hcabench, or has another secret, is turned away, while the run goes on.

use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::error::PeerError;
use super::peer::{Greeting, Hello};
use crate::host::{interrupt, threads};
use crate::launch::entrance::{Arrival, Door, Entrance, raise_room};
use crate::launch::secret::Secret;
use crate::launch::wire::{Wire, listen_at};
use crate::results::document::Program;
use crate::rig::benchmark::Failure;
use crate::rig::workers::instead_of_dropping;

/// How long a process that connects may take to greet.
const GREETING: Duration = Duration::from_secs(5);
/// Connections at a time that have greeted, and of which it is not decided whether they are served.
const GREETED: usize = 64;
/// Connections of a run at a time: that of each round's process, and one that keeps others out between two rounds.
const OF_A_RUN: u32 = 64;
/// Connections that are turned away are reported one by one up to this number within this time.
const REPORTED: (u32, Duration) = (20, Duration::from_secs(10));
/// How often the wait for a connection ends, to look for signals.
const LOOK: u8 = 100;
/// How long connections that are served may take to end after a signal.
const LEAVING: Duration = Duration::from_millis(800);

/// Where it is served, and for how long.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where to listen.
    pub bind: Vec<SocketAddr>,
    /// What others have to show.
    pub secret: Option<Secret>,
    /// Whether it ends after one run.
    pub once: bool,
}

/// What is done for those that are let in.
pub trait Served: Send + Sync {
    /// Called before it listens.
    ///
    /// # Errors
    /// When nothing can be served here.
    fn check(&self) -> Result<(), Failure>;

    /// Why a run is not let in, if so.
    fn refusal(&self, hello: &Hello) -> Option<Failure>;

    /// Answers the greeting, and does what the other host asks until it closes the connection.
    ///
    /// # Errors
    /// When something fails here, which the other host has as an answer, or a signal comes.
    fn serve(&self, wire: &mut Wire, hello: &Hello) -> Result<(), Failure>;
}

/// What happens, for people.
#[derive(Debug)]
pub enum Event {
    /// It listens there.
    Listening(SocketAddr),
    /// A run of a host begins.
    Begun { host: String, peer: SocketAddr },
    /// It is over.
    Over { host: String },
    /// Somebody was turned away.
    Refused { peer: SocketAddr, reason: String },
    /// More were turned away than are reported.
    MoreRefused { count: u32 },
    /// A connection of the run failed.
    Failed { peer: SocketAddr, reason: String },
}

/// The run that is served.
#[derive(Debug, Default)]
struct ServedRun {
    run: Option<(String, String)>,
    connections: u32,
    served: u32,
    /// Why a connection of a run failed.
    failure: Option<String>,
}

impl ServedRun {
    fn serves_another_than(&self, run: &str) -> bool {
        self.run.as_ref().is_some_and(|(served, _)| served != run)
    }
}

/// Connections that were turned away since a moment.
#[derive(Debug)]
struct Refusals {
    since: Instant,
    count: u32,
}

impl Refusals {
    /// How many more than were reported, where the time is over.
    fn more(&mut self) -> Option<u32> {
        let (reported, time) = REPORTED;
        if self.since.elapsed() < time {
            return None;
        }
        let more = self.count.saturating_sub(reported);
        (self.since, self.count) = (Instant::now(), 0);
        (more > 0).then_some(more)
    }
}

/// A connection of the run; the run is over when the last one is dropped, however that comes about.
struct RunConnection<'a>(&'a ServiceState);

impl Drop for RunConnection<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

struct ServiceState {
    holder: Mutex<ServedRun>,
    /// Connections that have greeted and wait to be served.
    greeted: AtomicUsize,
    refusals: Mutex<Refusals>,
    work: Arc<dyn Served>,
    once: bool,
    report: Box<dyn Fn(Event) + Send + Sync>,
}

impl ServiceState {
    fn holder(&self) -> MutexGuard<'_, ServedRun> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a run in, if none is served but this one. A run that is over may take a moment to leave.
    fn enter(&self, hello: &Hello, peer: SocketAddr) -> Result<(), Failure> {
        if let Some(refusal) = self.work.refusal(hello) {
            return Err(refusal);
        }
        let until = Instant::now() + LEAVING;
        let mut holder = self.holder();
        while holder.serves_another_than(&hello.run) && Instant::now() < until {
            drop(holder);
            std::thread::sleep(Duration::from_millis(10));
            holder = self.holder();
        }
        match &holder.run {
            Some((_, host)) if holder.serves_another_than(&hello.run) => {
                return Err(Failure::Run(format!(
                    "busy: it serves a run of {host}; try again when that is over"
                )));
            }
            Some(_) if holder.connections >= OF_A_RUN => {
                let text = format!("the run has {OF_A_RUN} connections already");
                return Err(Failure::Run(text));
            }
            Some(_) => {}
            None => {
                holder.run = Some((hello.run.clone(), hello.host.clone()));
                if !self.once {
                    holder.failure = None;
                }
                let host = hello.host.clone();
                (self.report)(Event::Begun { host, peer });
            }
        }
        holder.connections += 1;
        Ok(())
    }

    fn refused(&self, peer: SocketAddr, reason: String) {
        self.report_more();
        let mut refusals = self.refusals();
        refusals.count += 1;
        let is_reported = refusals.count <= REPORTED.0;
        drop(refusals);
        if is_reported {
            (self.report)(Event::Refused { peer, reason });
        }
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        (self.refusals.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    fn report_more(&self) {
        let more = self.refusals().more();
        if let Some(count) = more {
            (self.report)(Event::MoreRefused { count });
        }
    }

    fn failed(&self, peer: SocketAddr, reason: String) {
        self.holder().failure = Some(reason.clone());
        (self.report)(Event::Failed { peer, reason });
    }

    fn leave(&self) {
        let mut holder = self.holder();
        holder.connections -= 1;
        if holder.connections == 0
            && let Some((_, host)) = holder.run.take()
        {
            holder.served += 1;
            (self.report)(Event::Over { host });
        }
    }
}

/// Serves other hosts until a signal comes, or one run is over. `report` is called with what happens, from any thread.
///
/// # Errors
/// When it cannot listen, or a signal ends it.
pub fn serve(
    service: &Service,
    work: Arc<dyn Served>,
    report: impl Fn(Event) + Send + Sync + 'static,
) -> Result<(), Failure> {
    // Before anybody waits for an answer.
    work.check()?;
    let listen = |address: &SocketAddr| {
        listen_at(*address).map_err(|error| {
            Failure::Usage(format!(
                "--bind {address}: {error}: allowed is an address of this host with a free port"
            ))
        })
    };
    let listeners: Vec<_> = (service.bind.iter().map(listen)).collect::<Result<_, _>>()?;
    let listening: Vec<SocketAddr> = (listeners.iter())
        .filter_map(|listener| listener.local_addr().ok())
        .collect();
    let door = Door {
        listeners,
        secret: service.secret.clone(),
    };
    let entrance = Entrance::new(door, raise_room(0), GREETING);
    let mut entrance =
        entrance.map_err(|error| Failure::Run(format!("setting up the port: {error}")))?;
    let shared = Arc::new(ServiceState {
        holder: Mutex::default(),
        greeted: AtomicUsize::new(0),
        refusals: Mutex::new(Refusals {
            since: Instant::now(),
            count: 0,
        }),
        work,
        once: service.once,
        report: Box::new(report),
    });
    for address in listening {
        (shared.report)(Event::Listening(address));
    }
    loop {
        if let Some(signal) = interrupt::requested() {
            if shared.holder().connections == 0 {
                return Ok(());
            }
            let until = Instant::now() + LEAVING;
            while shared.holder().connections > 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            let holder = shared.holder();
            // A run that was over, of which only the end of its connections had not been seen.
            if holder.connections == 0 && holder.failure.is_none() {
                return Ok(());
            }
            return Err(Failure::Interrupted(signal.to_string()));
        }
        if service.once && shared.holder().served > 0 {
            let failure = shared.holder().failure.take();
            return failure.map_or(Ok(()), |text| Err(Failure::Run(text)));
        }
        shared.report_more();
        let Ok(arrivals) = entrance.wait(LOOK) else {
            std::thread::sleep(Duration::from_millis(LOOK.into()));
            continue;
        };
        for arrival in arrivals {
            match arrival {
                Arrival::Refused(peer, reason) => shared.refused(peer, reason),
                Arrival::Greeting(wire, greeting) => receive(&shared, wire, greeting),
            }
        }
    }
}

/// Serves a connection that has greeted in a thread, if it may be served.
fn receive(shared: &Arc<ServiceState>, mut wire: Wire, greeting: Value) {
    let peer = wire.peer();
    let hello = match hello_of(&mut wire, greeting) {
        Ok(hello) => hello,
        Err(error) => return shared.refused(peer, error.to_string()),
    };
    if shared.greeted.load(Ordering::Relaxed) >= GREETED {
        return shared.refused(peer, "too many connect".to_owned());
    }
    shared.greeted.fetch_add(1, Ordering::Relaxed);
    let waits = Waiting(Arc::clone(shared));
    // One that cannot be started drops what it was to do, and the connection with it.
    let thread = std::thread::Builder::new().name("hcabench-served".to_owned());
    let _ = threads::start(thread, move || receive_guest(waits, wire, &hello));
}

/// A connection that has greeted; counted until it is dropped, however that comes about.
struct Waiting(Arc<ServiceState>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.greeted.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves a connection, if it may be served.
fn receive_guest(waits: Waiting, mut wire: Wire, hello: &Hello) {
    let (shared, peer) = (Arc::clone(&waits.0), wire.peer());
    // A panic ends this connection and no other.
    let copy = wire
        .as_fd()
        .try_clone_to_owned()
        .map(std::net::TcpStream::from);
    if let Err(failure) = shared.enter(hello, peer) {
        let error = refusal(&mut wire, failure);
        return shared.refused(peer, error.to_string());
    }
    drop(waits);
    let _guest = RunConnection(&shared);
    instead_of_dropping({
        let shared = Arc::clone(&shared);
        move || {
            if let Ok(copy) = copy {
                let _ = copy.shutdown(Shutdown::Both);
            }
            shared.failed(peer, "the thread that serves it panicked".to_owned());
            shared.leave();
        }
    });
    let done = shared.work.serve(&mut wire, hello);
    if let Err(error) = done {
        shared.failed(peer, error.to_string());
    }
}

/// Why a program is not served by another version or build, whose messages are others.
fn other_version(ours: &Program, theirs: &Program) -> Option<Failure> {
    let text = || {
        // It is what the other end sent, of whatever length.
        let theirs: String = theirs.to_string().chars().take(200).collect();
        format!("it is {ours}, and asked by {theirs}: install the same on both hosts")
    };
    (!ours.has_messages_of(theirs)).then(|| Failure::Run(text()))
}

/// Sends the other end the reason why it is not served, if it takes that at once: others wait. One that has disconnected
/// needs no answer.
fn refusal(wire: &mut Wire, failure: Failure) -> PeerError {
    let _ = wire.send(&Greeting::Failed(failure.clone()), Duration::ZERO);
    PeerError::Peer(wire.peer(), failure)
}

/// Who has connected, by its greeting.
fn hello_of(wire: &mut Wire, said: Value) -> Result<Hello, PeerError> {
    let (ours, peer) = (Program::this(), wire.peer());
    // Another version may have other messages: its version is looked at first.
    let theirs = said.pointer("/hello/program").cloned();
    let theirs = theirs.and_then(|theirs| serde_json::from_value::<Program>(theirs).ok());
    let Some(theirs) = theirs else {
        let failure = Failure::Run("sent a greeting that is not of hcabench".to_owned());
        return Err(PeerError::Peer(peer, failure));
    };
    if let Some(failure) = other_version(&ours, &theirs) {
        return Err(refusal(wire, failure));
    }
    match serde_json::from_value(said) {
        Ok(Greeting::Hello(hello)) => Ok(*hello),
        Ok(Greeting::Failed(failure)) => Err(PeerError::Peer(peer, failure)),
        Err(error) => {
            let failure = Failure::Run(format!("sent an invalid greeting: {error}"));
            Err(PeerError::Peer(peer, failure))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::super::peer::{PeerConfig, ServedBenchmark};
    use super::*;
    use crate::launch::secret::SecretSource;
    use crate::testing::Has as _;

    #[test]
    fn another_version_or_build_is_refused_by_both_names() {
        let program = |version: &str, commit: &str| Program {
            version: version.to_owned(),
            commit: Some(commit.to_owned()),
            ..Program::this()
        };
        let ours = program("0.1.0", "0123abc");
        let static_program = Program {
            c_library: "musl".to_owned(),
            ..ours.clone()
        };
        assert_eq!(other_version(&ours, &static_program), None);
        for (theirs, name) in [
            (
                program("0.0.9", "0123abc"),
                "hcabench 0.0.9 of commit 0123abc",
            ),
            (
                program("0.1.0", "4567def"),
                "hcabench 0.1.0 of commit 4567def",
            ),
        ] {
            let refused = other_version(&ours, &theirs).unwrap().to_string();
            refused.has(&["it is hcabench 0.1.0 of commit 0123abc", "asked by", name]);
        }
    }

    /// Nobody is let in before the gate is open.
    #[derive(Default)]
    struct Gate {
        is_open: Mutex<bool>,
        opened: Condvar,
    }

    impl Served for Gate {
        fn check(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn refusal(&self, _: &Hello) -> Option<Failure> {
            let is_open = self.is_open.lock().unwrap();
            let limit = Duration::from_secs(60);
            let opened = (self.opened).wait_timeout_while(is_open, limit, |is_open| !*is_open);
            let (is_open, _) = opened.unwrap();
            (!*is_open).then(|| Failure::Run("the gate stayed closed".to_owned()))
        }

        fn serve(&self, _: &mut Wire, _: &Hello) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn of_those_that_wait_to_be_served_there_are_so_many_at_the_most() {
        let gate = Arc::new(Gate::default());
        let service = Service {
            bind: vec!["127.0.0.1:0".parse().unwrap()],
            secret: None,
            once: true,
        };
        let (sender, events) = std::sync::mpsc::channel();
        let work = Arc::clone(&gate);
        let serving = std::thread::spawn(move || {
            serve(&service, work, move |event| drop(sender.send(event)))
        });
        let next = || events.recv_timeout(Duration::from_secs(30)).unwrap();
        let Event::Listening(address) = next() else {
            panic!("it does not listen");
        };
        let peer = PeerConfig {
            peer: address.to_string(),
            run: Some("a run".to_owned()),
            secret: SecretSource::default(),
            limit: None,
            probes: 1,
            uncertainty: None,
            drift: 0,
        };
        let connect = || {
            let reached = peer.reach(ServedBenchmark::Node, None, ("here", "boot id"));
            reached.unwrap()
        };
        let mut waiting: Vec<_> = (0..GREETED).map(|_| connect()).collect();
        let one_more = connect();
        match next() {
            Event::Refused { reason, .. } => assert_eq!(reason, "too many connect"),
            event => panic!("{event:?}"),
        }
        drop(one_more);
        *gate.is_open.lock().unwrap() = true;
        gate.opened.notify_all();
        assert!(matches!(next(), Event::Begun { .. }));
        serving.join().unwrap().unwrap();
        waiting.clear();
    }

    #[test]
    fn of_many_that_are_turned_away_the_rest_is_counted() {
        let (reported, time) = REPORTED;
        let mut refusals = Refusals {
            since: Instant::now(),
            count: reported + 7,
        };
        assert_eq!(refusals.more(), None, "the time is not over");
        refusals.since -= time;
        assert_eq!(refusals.more(), Some(7));
        refusals.since -= time;
        assert_eq!(refusals.more(), None);
    }
}
