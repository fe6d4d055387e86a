//! The end of Zenoh that receives.

use std::fmt;

use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::pubsub::Subscriber;
use zenoh::sample::Sample;
use zenoh::{Session, Wait as _};

use super::{failed, open};
use crate::node::runtime::LONGEST_SLEEP;
use crate::node::settings::Poll;
use crate::node::{Node, NodeError, Pool, Settings, Slot, fill};

/// The end that receives.
pub struct ZenohSubscriber {
    /// The session ends without the second. Both are there until it is stopped.
    open: Option<(Subscriber<FifoChannelHandler<Sample>>, Session)>,
    poll: Poll,
}

impl fmt::Debug for ZenohSubscriber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ZenohSubscriber")
            .finish_non_exhaustive()
    }
}

impl ZenohSubscriber {
    /// A session that listens, asks for the first key, and then for the second. With its locator.
    pub(super) fn new(
        [samples, ready]: [String; 2],
        settings: &Settings,
    ) -> Result<(Self, String), NodeError> {
        let session = open(&["tcp/127.0.0.1:0"], &[])?;
        let locators = session.info().locators().wait();
        let locator = locators.first().map(ToString::to_string);
        let locator = locator.ok_or_else(|| failed("listen", "it has no locator"))?;
        let channel = FifoChannel::new(settings.receive_queue as usize);
        let subscriber = session.declare_subscriber(samples).with(channel).wait();
        let subscriber = subscriber.map_err(|error| failed("subscribe", error))?;
        let ready = session
            .declare_subscriber(ready)
            .callback(drop)
            .background();
        ready.wait().map_err(|error| failed("subscribe", error))?;
        let subscriber = ZenohSubscriber {
            open: Some((subscriber, session)),
            poll: settings.poll,
        };
        Ok((subscriber, locator))
    }
}

impl Node for ZenohSubscriber {
    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let poll = self.poll;
        let (subscriber, _) = self.open.as_mut().expect("it is open until it is stopped");
        let look =
            |subscriber: &mut Subscriber<FifoChannelHandler<Sample>>, free: &[Slot], is_first| {
                let sample = match (poll, is_first) {
                    (Poll::Event, true) => subscriber.recv_timeout(LONGEST_SLEEP),
                    _ => subscriber.try_recv(),
                };
                let sample = sample.map_err(|error| failed("receive a sample", error))?;
                Ok(sample.map(|it| pool.copy_in(&free[0], &it.payload().to_bytes()).into()))
            };
        fill(subscriber, samples, go_on, look, |_| {})
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        self.open = None;
        Ok(())
    }
}
