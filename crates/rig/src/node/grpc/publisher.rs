//! The end of gRPC that sends: its thread hands samples to channels, and another one drives the calls.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tonic::Request;
use tonic::client::Grpc as Client;
use tonic::codegen::StdError;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

use super::{Grpc, PATH, RUN, RawCodec};
use crate::host::threads;
use crate::node::BETWEEN_LOOKS;
use crate::node::runtime::NodeRuntime;
use crate::node::wiring::Distribution;
use crate::node::{Node, NodeError, Pool, Slot};

/// The end that sends.
#[derive(Debug)]
pub struct GrpcPublisher {
    targets: Vec<Sender<Bytes>>,
    distribution: Distribution,
    state: Arc<CallState>,
    thread: Option<JoinHandle<()>>,
    patience: Duration,
}

/// The state of the thread behind the channels.
#[derive(Debug, Default)]
struct CallState {
    /// Calls that their subscribers have taken.
    taken: AtomicUsize,
    ended: AtomicBool,
    /// Why it has ended; set before `ended` is.
    reason: Mutex<Option<String>>,
    stop: Notify,
}

impl CallState {
    fn error(&self) -> NodeError {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = "a subscriber has ended its call";
        NodeError::PeerEnded(reason.clone().unwrap_or_else(|| unknown.to_owned()))
    }
}

impl GrpcPublisher {
    /// A client of these servers. Its thread is started by this one, and runs where this one may.
    pub(super) fn new(
        maker: &Grpc<'_>,
        addresses: Vec<SocketAddr>,
        distribution: Distribution,
    ) -> Result<Self, NodeError> {
        let state = Arc::new(CallState::default());
        let channels = addresses
            .iter()
            .map(|_| channel(maker.settings.send_queue as usize));
        let (targets, samples): (Vec<_>, Vec<_>) = channels.unzip();
        let calls = addresses
            .into_iter()
            .zip(samples)
            .map(|(address, samples)| Call {
                address,
                samples,
                run: maker.name.to_owned(),
                timeout: maker.settings.timeout,
            });
        let (calls, runtime, of_thread) =
            (calls.collect(), NodeRuntime::new()?, Arc::clone(&state));
        let thread = std::thread::Builder::new().name("hcabench-grpc".to_owned());
        let thread = threads::start(thread, move || drive(&runtime, calls, &of_thread))?;
        Ok(GrpcPublisher {
            targets,
            distribution,
            state,
            thread: Some(thread),
            patience: maker.settings.patience(maker.wiring),
        })
    }
}

impl Node for GrpcPublisher {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let begun = Instant::now();
        while self.state.taken.load(Ordering::Acquire) < self.targets.len() {
            if self.state.ended.load(Ordering::Acquire) {
                return Err(self.state.error());
            }
            if !go_on() {
                return Err(NodeError::GivenUp);
            }
            if begun.elapsed() >= self.patience {
                return Err(NodeError::TooFew {
                    came: self.state.taken.load(Ordering::Relaxed),
                    all: self.targets.len(),
                    what: "subscribers have taken the call".to_owned(),
                    patience: self.patience,
                });
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        if self.state.ended.load(Ordering::Acquire) {
            return Err(self.state.error());
        }
        for (taken, slot) in samples.iter().enumerate() {
            let targets = &self.targets[self.distribution.next_targets()];
            // All targets get it, or none.
            if targets.iter().any(|target| target.capacity() == 0) {
                return Ok(taken);
            }
            let sample = Bytes::copy_from_slice(pool.bytes(slot));
            for target in targets {
                // There is room: it is closed.
                (target.try_send(sample.clone())).map_err(|_| self.state.error())?;
            }
        }
        Ok(samples.len())
    }
}

impl Drop for GrpcPublisher {
    fn drop(&mut self) {
        self.state.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of it must not cause another.
            let _ = thread.join();
        }
    }
}

/// A call of a subscriber.
struct Call {
    address: SocketAddr,
    samples: Receiver<Bytes>,
    run: String,
    timeout: Duration,
}

/// The work of the thread behind the channels.
fn drive(runtime: &NodeRuntime, calls: Vec<Call>, state: &Arc<CallState>) {
    let reason = runtime.block_on(async {
        let mut running = JoinSet::new();
        for call in calls {
            let state = Arc::clone(state);
            running.spawn(async move {
                let address = call.address;
                let why = match call.run(&state).await {
                    Ok(()) => String::new(),
                    Err(error) => format!(": {error}"),
                };
                format!("the call of the subscriber at {address} has ended{why}")
            });
        }
        tokio::select! {
            () = state.stop.notified() => None,
            ended = running.join_next() => ended.and_then(Result::ok),
        }
    });
    *state.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    state.ended.store(true, Ordering::Release);
}

impl Call {
    /// Sends what comes from the channel, until the subscriber ends the call.
    async fn run(self, state: &CallState) -> Result<(), StdError> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?;
        let endpoint = endpoint.tcp_nodelay(true).connect_timeout(self.timeout);
        let mut client = Client::new(endpoint.connect().await?);
        client.ready().await?;
        let mut request = Request::new(ReceiverStream::new(self.samples));
        request.metadata_mut().insert(RUN, self.run.parse()?);
        let path = PathAndQuery::from_static(PATH);
        let answer = client.streaming(request, path, RawCodec).await?;
        state.taken.fetch_add(1, Ordering::Release);
        // Nothing comes: a subscriber only ends the call.
        let mut answers = answer.into_inner();
        while answers.message().await?.is_some() {}
        Ok(())
    }
}
