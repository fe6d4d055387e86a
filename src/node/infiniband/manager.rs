//! The thread that connects an end and then watches its connections.
//!
//! It is there from the beginning, works once the end is started, and sleeps in between: in the connection manager's
//! event channel, of which it looks up every 100 ms. An end that has addresses to connect to is active, one without
//! listens.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::fabric::{End, failed};
use crate::node::NodeError;
use crate::rdma::cm::{
    ActiveEndpoint, CmError, Connection, EventChannel, IdService, PassiveEndpoint,
};
use crate::rdma::verbs::{
    Capabilities, CompletionQueue, Context, OutstandingReads, ProtectionDomain,
    QueuePairAttributes, Retries, ServiceType,
};
use crate::rig::ports::Service;

/// How often an end that waits for its connections looks whether it is to go on.
const LOOK: Duration = Duration::from_millis(20);
/// Header and values.
const ELEMENTS: u32 = 2;

/// What connects an end.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) service: Service,
    pub(super) id_service: IdService,
    pub(super) end: End,
    pub(super) capabilities: Capabilities,
    /// Whether somebody sleeps until samples have come.
    pub(super) receive_events: bool,
    /// How long each step may take.
    pub(super) limit: Duration,
}

/// Active or passive.
#[derive(Debug)]
pub(super) enum Role {
    /// It connects to each of these.
    Active(Vec<SocketAddr>),
    /// It is connected to so often.
    Passive(PassiveEndpoint, usize),
}

impl Role {
    fn connections(&self) -> usize {
        match self {
            Role::Active(targets) => targets.len(),
            Role::Passive(_, count) => *count,
        }
    }
}

/// What an end is made of, once it is connected.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) domain: Arc<ProtectionDomain>,
    pub(super) send_queue: Arc<CompletionQueue>,
    pub(super) receive_queue: Arc<CompletionQueue>,
    pub(super) connections: Arc<Vec<Connection>>,
}

/// What the thread tells of the connections.
#[derive(Debug, Default)]
pub(super) struct State {
    is_gone: AtomicBool,
    reason: Mutex<String>,
}

impl State {
    /// That a connection has ended, if one has.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<(), NodeError> {
        match self.is_gone.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.error()),
        }
    }

    #[cold]
    fn error(&self) -> NodeError {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        NodeError::Gone(reason.clone())
    }

    fn set_gone(&self, reason: String) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        self.is_gone.store(true, Ordering::Release);
    }
}

/// The thread, as its end has it.
#[derive(Debug)]
pub(super) struct Manager {
    channel: Arc<EventChannel>,
    state: Arc<State>,
    start: Option<Sender<()>>,
    connected: Receiver<Result<Connected, NodeError>>,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    /// Starts the thread, which waits until it is told to connect.
    pub(super) fn new(channel: Arc<EventChannel>, way: Way, role: Role) -> Result<Self, NodeError> {
        let (start, started) = self::channel();
        let (tell, connected) = self::channel();
        let state = Arc::new(State::default());
        let work = {
            let (channel, state) = (Arc::clone(&channel), Arc::clone(&state));
            move || {
                // Without a word the end has gone before it was started.
                if started.recv().is_ok() {
                    manage(&channel, &way, &role, &state, &tell);
                }
            }
        };
        let thread = std::thread::Builder::new().name("hcabench-cm".to_owned());
        let thread = thread.spawn(work).map_err(NodeError::io(
            "start",
            "the thread of the connection manager",
            "raise the limit of processes (ulimit -u)",
        ))?;
        Ok(Manager {
            channel,
            state,
            start: Some(start),
            connected,
            thread: Some(thread),
        })
    }

    /// Has it connect, and waits for it while `go_on` says yes.
    pub(super) fn connect(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Connected, NodeError> {
        // It waits for this, or has ended, which shows below.
        let _ = self.start.as_ref().map(|start| start.send(()));
        loop {
            match self.connected.recv_timeout(LOOK) {
                Ok(connected) => return connected,
                Err(RecvTimeoutError::Timeout) if go_on() => {}
                Err(_) => {
                    self.end();
                    return Err(NodeError::GivenUp);
                }
            }
        }
    }

    /// What it has told.
    #[inline(always)]
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Ends the thread, wherever it is.
    pub(super) fn end(&mut self) {
        self.channel.give_up();
        self.start = None;
        // A panic of it was told as it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread does.
fn manage(
    channel: &Arc<EventChannel>,
    way: &Way,
    role: &Role,
    state: &State,
    tell: &Sender<Result<Connected, NodeError>>,
) {
    let connected = connect(channel, way, role);
    let connections = connected.as_ref().map(|it| Arc::clone(&it.connections));
    let connections = connections.unwrap_or_default();
    // If nobody hears it, the end has been given up.
    let _ = tell.send(connected);
    while channel.wait() {
        let ended = connections.iter().find_map(Connection::ending);
        if let Some(event) = ended {
            let device = &way.end.device;
            state.set_gone(format!(
                "the connection of {device} ended: {:?}, status {}",
                event.kind, event.status
            ));
            return;
        }
    }
}

fn given_up_or_failed(error: CmError) -> NodeError {
    match error {
        CmError::Interrupted { .. } => NodeError::GivenUp,
        error => failed(error),
    }
}

fn connect(channel: &Arc<EventChannel>, way: &Way, role: &Role) -> Result<Connected, NodeError> {
    let (end, retries, reads) = (&way.end, Retries::default(), OutstandingReads::default());
    let mut made: Option<(Arc<ProtectionDomain>, QueuePairAttributes)> = None;
    let mut make = |context: &Arc<Context>| match &made {
        Some(made) => Ok(made.clone()),
        None => make(context, way, role.connections()).inspect(|new| made = Some(new.clone())),
    };
    let mut connections = Vec::new();
    for number in 0..role.connections() {
        let connecting = match role {
            Role::Active(targets) => {
                let to = targets[number];
                let active = ActiveEndpoint::resolve(
                    channel,
                    way.id_service,
                    (&end.device, end.port),
                    (end.address, to),
                    None,
                    way.limit,
                );
                let active = active.map_err(given_up_or_failed)?;
                let (domain, attributes) = make(&active.context())?;
                active.connect(&domain, attributes, retries, reads)
            }
            Role::Passive(listener, _) => {
                let requested = listener.request(way.limit).map_err(given_up_or_failed)?;
                let (domain, attributes) = make(&requested.context())?;
                requested.accept(&domain, attributes, retries, reads)
            }
        };
        let connecting = connecting.map_err(given_up_or_failed)?;
        connections.push(
            connecting
                .established(way.limit)
                .map_err(given_up_or_failed)?,
        );
    }
    let (domain, attributes) = made.expect("an end has at least one peer");
    Ok(Connected {
        domain,
        send_queue: attributes.send_queue,
        receive_queue: attributes.receive_queue,
        connections: Arc::new(connections),
    })
}

/// One completion queue a direction for all queue pairs, so that a loop polls one, however many these are.
fn make(
    context: &Arc<Context>,
    way: &Way,
    queue_pairs: usize,
) -> Result<(Arc<ProtectionDomain>, QueuePairAttributes), NodeError> {
    let queue = |requests: u32, events| {
        CompletionQueue::create(context, requests * queue_pairs as u32, events, 0).map_err(failed)
    };
    let attributes = QueuePairAttributes {
        service: ServiceType::from(way.service),
        capabilities: way.capabilities,
        send_elements: ELEMENTS,
        send_queue: queue(way.capabilities.send_requests, false)?,
        receive_queue: queue(way.capabilities.receive_requests, way.receive_events)?,
    };
    let domain = ProtectionDomain::allocate(context).map_err(failed)?;
    Ok((domain, attributes))
}
