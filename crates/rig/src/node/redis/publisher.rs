//! The end of Redis that sends: its own thread drives the client's task, and takes replies when they have come.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{Cmd, RedisError, RedisResult, Value, cmd};

use super::connection::{FIELD, RedisClient};
use crate::node::settings::RedisKind;
use crate::node::{BETWEEN_LOOKS, Node, NodeError, Pool, Settings, Slot};

/// How long is waited at the end for replies, and until a stream is removed.
const LONGEST_END: Duration = Duration::from_secs(1);

/// The end that sends.
pub struct RedisPublisher {
    client: RedisClient,
    kind: RedisKind,
    /// Of the channel or stream.
    name: String,
    most_under_way: usize,
    /// Entries that a stream keeps at least.
    most_kept: u32,
    /// There once it is connected.
    connection: Option<MultiplexedConnection>,
    /// The replies that are awaited, in the order of the samples. The client has no other type for them.
    under_way: VecDeque<BoxFuture<'static, RedisResult<Value>>>,
    acknowledged: u64,
}

impl fmt::Debug for RedisPublisher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("RedisPublisher");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

impl RedisPublisher {
    /// A client that is to send to a channel or stream.
    pub(super) fn new(name: String, settings: &Settings) -> Result<Self, NodeError> {
        let most_under_way = settings.send_queue as usize;
        Ok(RedisPublisher {
            client: RedisClient::new(settings, most_under_way)?,
            kind: settings.redis_kind,
            name,
            most_under_way,
            most_kept: settings.receive_queue,
            connection: None,
            under_way: VecDeque::with_capacity(most_under_way),
            acknowledged: 0,
        })
    }

    fn command(&self, sample: &[u8]) -> Cmd {
        match self.kind {
            RedisKind::PubSub => {
                let mut command = cmd("PUBLISH");
                command.arg(&self.name).arg(sample);
                command
            }
            RedisKind::Streams => {
                let mut command = cmd("XADD");
                command.arg(&self.name).arg("MAXLEN").arg("~");
                command.arg(self.most_kept).arg("*").arg(FIELD).arg(sample);
                command
            }
        }
    }

    /// Takes the replies that have come.
    fn take_replies(&mut self) -> Result<(), RedisError> {
        while let Some(reply) = self.under_way.front_mut() {
            let Some(reply) = reply.now_or_never() else {
                break;
            };
            reply.and_then(Value::extract_error)?;
            self.acknowledged += 1;
            self.under_way.pop_front();
        }
        Ok(())
    }

    /// Lets the client's task run until it has to wait, and takes the replies that have come.
    fn drive(&mut self) -> Result<(), NodeError> {
        self.client.runtime.block_on(tokio::task::yield_now());
        self.take_replies()
            .map_err(|error| self.client.failed(&error))
    }

    /// Takes the replies that this host has received, if there is else no room for that many samples.
    fn make_room(&mut self, samples: usize) -> Result<(), NodeError> {
        if self.under_way.len() + samples > self.most_under_way {
            // The runtime looks at its socket first; only then the client's task can read from it.
            self.client.runtime.block_on(tokio::task::yield_now());
            self.drive()?;
        }
        Ok(())
    }

    /// Removes the stream, if there is one that was not removed, by then. Without an answer it stays: nothing is lost
    /// by that.
    fn remove_stream(&mut self, until: Instant) {
        if let (RedisKind::Streams, Some(mut connection)) = (self.kind, self.connection.take()) {
            let mut remove = cmd("DEL");
            remove.arg(&self.name);
            let removed = async {
                let removed = remove.query_async::<()>(&mut connection);
                tokio::time::timeout_at(until.into(), removed).await
            };
            let _ = self.client.runtime.block_on(removed);
        }
    }
}

/// A run that is interrupted does not stop its ends in order.
impl Drop for RedisPublisher {
    fn drop(&mut self) {
        self.remove_stream(Instant::now() + LONGEST_END);
    }
}

impl Node for RedisPublisher {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        self.connection = Some(self.client.connect(self.client.commands(), go_on)?);
        Ok(())
    }

    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        self.make_room(samples.len())?;
        let mut taken = 0;
        for slot in &*samples {
            if self.under_way.len() >= self.most_under_way {
                break;
            }
            let command = self.command(pool.bytes(slot));
            let mut connection = self.connection.clone().expect("it was started");
            let reply = async move { connection.req_packed_command(&command).await };
            self.under_way.push_back(reply.boxed());
            taken += 1;
        }
        let begun = self.under_way.len() - taken;
        self.client.runtime.block_on(async {
            for reply in self.under_way.range_mut(begun..) {
                // There is room in the client's channel for all that may be under way: this puts the sample there. What
                // it finds out beside that, a later look finds as well.
                let look = std::future::poll_fn(|context| {
                    let _ = reply.as_mut().poll(context).is_pending();
                    std::task::Poll::Ready(())
                });
                look.await;
            }
            // The task that writes runs.
            tokio::task::yield_now().await;
        });
        self.take_replies()
            .map_err(|error| self.client.failed(&error))?;
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), NodeError> {
        self.drive()
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        let until = Instant::now() + LONGEST_END;
        while !self.under_way.is_empty() && Instant::now() < until {
            self.drive()?;
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.remove_stream(until.max(Instant::now() + LONGEST_END / 2));
        Ok(())
    }

    fn acknowledged(&self) -> Option<u64> {
        Some(self.acknowledged)
    }
}
