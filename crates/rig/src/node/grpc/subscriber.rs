//! The end of gRPC that receives: its own thread drives the server.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll as Polled};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::codegen::tokio_stream::{self, Pending};
use tonic::codegen::{BoxFuture, Service};
use tonic::server::{Grpc as Server, StreamingService};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use super::{Grpc, RUN, RawCodec};
use crate::node::BETWEEN_LOOKS;
use crate::node::runtime::NodeRuntime;
use crate::node::settings::Poll;
use crate::node::{Node, NodeError, Pool, Slot, fill};

const ADVICE: &str = "check that its interface is up (ip address)";

/// The end that receives.
#[derive(Debug)]
pub struct GrpcSubscriber {
    samples: Receiver<Bytes>,
    /// Calls of this run.
    calls: Arc<AtomicUsize>,
    publishers: usize,
    poll: Poll,
    patience: Duration,
    runtime: NodeRuntime,
}

impl GrpcSubscriber {
    /// A server that this many publishers are to call, and its address.
    pub(super) fn new(
        maker: &Grpc<'_>,
        publishers: usize,
    ) -> Result<(Self, SocketAddr), NodeError> {
        let settings = maker.settings;
        let (sender, samples) = channel(settings.receive_queue as usize);
        let calls = Arc::new(AtomicUsize::new(0));
        let service = SampleService {
            run: maker.name.into(),
            samples: sender,
            calls: Arc::clone(&calls),
        };
        let runtime = NodeRuntime::new()?;
        let (incoming, address) = listen(&runtime, settings.address)?;
        let server = tonic::transport::Server::builder();
        runtime.spawn(server.serve_with_incoming(service, incoming));
        let subscriber = GrpcSubscriber {
            samples,
            calls,
            publishers,
            poll: settings.poll,
            patience: settings.patience(maker.wiring),
            runtime,
        };
        Ok((subscriber, address))
    }

    /// Looks for a sample, and sleeps until there is one or it has looked long enough, if it may.
    #[inline]
    fn look(&mut self) -> Option<Bytes> {
        let samples = &mut self.samples;
        if let Ok(sample) = samples.try_recv() {
            return Some(sample);
        }
        self.runtime.look(self.poll, samples.recv()).flatten()
    }
}

/// Listens at a free port.
fn listen(runtime: &NodeRuntime, address: IpAddr) -> Result<(TcpIncoming, SocketAddr), NodeError> {
    let free = SocketAddr::from((address, 0));
    let listener = TcpListener::bind(free).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let _in_runtime = runtime.enter();
        Ok((tokio::net::TcpListener::from_std(listener)?, address))
    });
    let (listener, address) = listener.map_err(NodeError::io("bind", free, ADVICE))?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Ok((incoming, address))
}

impl Node for GrpcSubscriber {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let begun = Instant::now();
        while self.calls.load(Ordering::Relaxed) < self.publishers {
            if !go_on() {
                return Err(NodeError::GivenUp);
            }
            if begun.elapsed() >= self.patience {
                return Err(NodeError::TooFew {
                    came: self.calls.load(Ordering::Relaxed),
                    all: self.publishers,
                    what: "publishers have called".to_owned(),
                    patience: self.patience,
                });
            }
            self.runtime.block_on(async { sleep(BETWEEN_LOOKS).await });
        }
        Ok(())
    }

    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |end: &mut Self, free: &[Slot], is_first: bool| {
            let sample = match is_first {
                true => end.look(),
                false => end.samples.try_recv().ok(),
            };
            Ok(sample.map(|sample| pool.copy_in(&free[0], &sample).into()))
        };
        fill(self, samples, go_on, look, |_| {})
    }
}

/// Takes the calls of a run.
#[derive(Debug, Clone)]
struct SampleService {
    run: Arc<str>,
    samples: Sender<Bytes>,
    calls: Arc<AtomicUsize>,
}

impl Service<http::Request<Body>> for SampleService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Polled<Result<(), Infallible>> {
        Polled::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(Server::new(RawCodec).streaming(service, request).await) })
    }
}

impl StreamingService<Bytes> for SampleService {
    type Response = Bytes;
    type ResponseStream = Pending<Result<Bytes, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let run = request.metadata().get(RUN);
        if run.is_none_or(|run| run.as_bytes() != self.run.as_bytes()) {
            return ready(Err(Status::permission_denied("the call is of another run")));
        }
        let samples = self.samples.clone();
        let mut stream = request.into_inner();
        tokio::spawn(async move {
            // A publisher that has ended sends no more; without room it waits.
            while let Ok(Some(sample)) = stream.message().await
                && samples.send(sample).await.is_ok()
            {}
        });
        self.calls.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Response::new(tokio_stream::pending())))
    }
}
