//! The thread that connects an end and then watches its connections.
//!
//! It is there from the beginning, works once the end is started, and sleeps in between: in the connection manager's
//! event channel, of which it looks up every 100 ms.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::connector::{ConnectRole, ConnectedEnd, ConnectorSettings, LOOK, connect};
use crate::host::threads;
use crate::node::NodeError;
use crate::rdma::cm::{Connection, EventChannel};

/// The thread's report on the connections.
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

    /// That of the connection, if it has ended, else this one, which then is not what follows of that.
    #[cold]
    pub(super) fn or(&self, error: NodeError) -> NodeError {
        self.check().err().unwrap_or(error)
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
    connected: Receiver<Result<ConnectedEnd, NodeError>>,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    /// Starts the thread, which waits for the command to connect.
    pub(super) fn new(
        channel: Arc<EventChannel>,
        way: ConnectorSettings,
        role: ConnectRole,
    ) -> Result<Self, NodeError> {
        let (start, started) = self::channel();
        let (tell, connected) = self::channel();
        let state = Arc::new(State::default());
        let work = {
            let (channel, state) = (Arc::clone(&channel), Arc::clone(&state));
            move || {
                // Without a message the end was dropped before it was started.
                if started.recv().is_ok() {
                    manage(&channel, &way, &role, &state, &tell);
                }
            }
        };
        let thread = std::thread::Builder::new().name("hcabench-cm".to_owned());
        let thread = threads::start(thread, work)?;
        Ok(Manager {
            channel,
            state,
            start: Some(start),
            connected,
            thread: Some(thread),
        })
    }

    /// Has it connect, and waits for it while `go_on` returns true.
    pub(super) fn connect(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<ConnectedEnd, NodeError> {
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

    /// Its report.
    #[inline(always)]
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Ends the thread, wherever it is.
    pub(super) fn end(&mut self) {
        self.channel.give_up();
        self.start = None;
        // A panic of it was reported as it happened.
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
    way: &ConnectorSettings,
    role: &ConnectRole,
    state: &State,
    tell: &Sender<Result<ConnectedEnd, NodeError>>,
) {
    let connected = connect(channel, way, role);
    let connections = connected.as_ref().map(|it| Arc::clone(&it.connections));
    let connections = connections.unwrap_or_default();
    // If no thread receives it, the end has been given up.
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
