//! The end of Redis that receives: its own thread drives the client's task.

use std::collections::VecDeque;
use std::fmt;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use redis::aio::{MultiplexedConnection, PubSubStream};
use redis::streams::StreamReadReply;
use redis::{Cmd, Msg, RedisError, RedisResult, Value, cmd};

use super::connection::{FIELD, RedisClient};
use crate::node::broker_client::lost;
use crate::node::settings::{Poll, RedisKind};
use crate::node::{Node, NodeError, Pool, Settings, Slot, fill};

/// The consumer group of a stream.
const GROUP: &str = "subscribers";
/// Commands that a subscriber has under way at once.
const REQUESTS: usize = 1;

/// The end that receives.
pub struct RedisSubscriber {
    client: RedisClient,
    kind: RedisKind,
    name: String,
    /// Its name in the consumer group, if it is in one.
    consumer: Option<String>,
    at_once: usize,
    poll: Poll,
    /// There once it is connected.
    source: Option<Source>,
}

/// Where samples come from.
enum Source {
    Channel(PubSubStream),
    Stream(StreamReader),
}

/// What was sent, as the client hands it on.
enum Payload {
    Message(Msg),
    Entry(Value),
}

impl Payload {
    fn bytes(&self) -> &[u8] {
        match self {
            Payload::Message(message) => message.get_payload_bytes(),
            Payload::Entry(Value::BulkString(bytes)) => bytes,
            Payload::Entry(_) => &[],
        }
    }
}

impl Source {
    /// The next sample; none once the connection has ended.
    async fn next(&mut self) -> Result<Option<Payload>, RedisError> {
        match self {
            Source::Channel(messages) => Ok(messages.next().await.map(Payload::Message)),
            Source::Stream(reader) => reader.next().await.map(|it| Some(Payload::Entry(it))),
        }
    }

    /// One that has come along with another.
    fn at_hand(&mut self) -> Option<Payload> {
        match self {
            Source::Channel(messages) => {
                (messages.next().now_or_never().flatten()).map(Payload::Message)
            }
            Source::Stream(reader) => reader.entries.pop_front().map(Payload::Entry),
        }
    }
}

/// Reads a stream.
struct StreamReader {
    connection: MultiplexedConnection,
    name: String,
    consumer: Option<String>,
    at_once: usize,
    /// The last entry that was read, where no consumer group counts.
    last: String,
    /// The command under way. The client has no other type for it.
    reading: Option<BoxFuture<'static, RedisResult<StreamReadReply>>>,
    /// What came with the last reply and was not handed on.
    entries: VecDeque<Value>,
}

impl StreamReader {
    fn command(&self) -> Cmd {
        let mut command = match &self.consumer {
            None => cmd("XREAD"),
            Some(consumer) => {
                let mut command = cmd("XREADGROUP");
                command.arg("GROUP").arg(GROUP).arg(consumer).arg("NOACK");
                command
            }
        };
        command.arg("COUNT").arg(self.at_once).arg("BLOCK").arg(0);
        let from = match self.consumer {
            None => &*self.last,
            Some(_) => ">",
        };
        command.arg("STREAMS").arg(&self.name).arg(from);
        command
    }

    /// The next entry. What has been begun goes on where it is given up.
    async fn next(&mut self) -> Result<Value, RedisError> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Ok(entry);
            }
            let reading = match &mut self.reading {
                Some(reading) => reading,
                None => {
                    let (command, mut connection) = (self.command(), self.connection.clone());
                    let reading = async move { command.query_async(&mut connection).await };
                    self.reading.insert(reading.boxed())
                }
            };
            let reply = reading.await;
            self.reading = None;
            for mut entry in reply?.keys.into_iter().flat_map(|stream| stream.ids) {
                self.last = entry.id;
                // Without that field it was not sent by us.
                self.entries.extend(entry.map.remove(FIELD));
            }
        }
    }
}

impl fmt::Debug for RedisSubscriber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("RedisSubscriber");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

impl RedisSubscriber {
    /// A client that is to ask for a channel or to read a stream.
    pub(super) fn new(
        name: String,
        consumer: Option<String>,
        settings: &Settings,
    ) -> Result<Self, NodeError> {
        Ok(RedisSubscriber {
            client: RedisClient::new(settings, REQUESTS)?,
            kind: settings.redis_kind,
            name,
            consumer,
            at_once: settings.receive_queue as usize,
            poll: settings.poll,
            source: None,
        })
    }

    /// Connects, and asks for samples.
    async fn source(&self) -> Result<Source, RedisError> {
        if self.kind == RedisKind::PubSub {
            return (self.client.subscription(&self.name).await).map(Source::Channel);
        }
        let mut connection = self.client.commands().await?;
        if self.consumer.is_some() {
            let mut group = cmd("XGROUP");
            group.arg("CREATE").arg(&self.name).arg(GROUP);
            group.arg(0).arg("MKSTREAM");
            match group.query_async::<()>(&mut connection).await {
                // Another subscriber has made it.
                Err(error) if error.code() == Some("BUSYGROUP") => {}
                made => made?,
            }
        }
        Ok(Source::Stream(StreamReader {
            connection,
            name: self.name.clone(),
            consumer: self.consumer.clone(),
            at_once: self.at_once,
            last: "0".to_owned(),
            reading: None,
            entries: VecDeque::with_capacity(self.at_once),
        }))
    }
}

impl Node for RedisSubscriber {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        self.source = Some(self.client.connect(self.source(), go_on)?);
        Ok(())
    }

    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |end: &mut Self, free: &[Slot], is_first| {
            let client = &end.client;
            let source = end.source.as_mut().expect("it was started");
            let found = match is_first {
                true => client.runtime.look(end.poll, source.next()),
                false => source.at_hand().map(|payload| Ok(Some(payload))),
            };
            match found {
                Some(Ok(Some(payload))) => Ok(Some(pool.copy_in(&free[0], payload.bytes()).into())),
                Some(Ok(None)) => {
                    let reason = "the server has closed it";
                    Err(NodeError::Gone(lost(&client.broker, reason)))
                }
                Some(Err(error)) => Err(client.failed(&error)),
                None => Ok(None),
            }
        };
        fill(self, samples, go_on, look, |_| {})
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        self.source = None;
        Ok(())
    }
}
