//! The runtime of an end whose library is written for `tokio`. Each end drives its own in its thread: there is no other
//! that it waits for, except where its module names one.

use std::ops::Deref;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::NodeError;
use super::settings::Poll;

/// How long an end that sleeps does not look at the stop flag.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// A runtime for one end, in the thread that asks it. It is dropped without waiting for what it has not finished: a
/// name lookup may take long.
#[derive(Debug)]
pub(super) struct NodeRuntime(Option<Runtime>);

impl NodeRuntime {
    /// # Errors
    /// When there is no file left.
    pub(super) fn new() -> Result<Self, NodeError> {
        let made = Builder::new_current_thread().enable_all().build();
        made.map(|runtime| NodeRuntime(Some(runtime)))
            .map_err(NodeError::io("epoll_create", "a node", "see man 7 epoll"))
    }

    /// Looks whether it is done, and sleeps until it is or has looked long enough, if it may. What is given up is begun
    /// again by the next call.
    #[inline]
    pub(super) fn look<F: Future>(&self, poll: Poll, future: F) -> Option<F::Output> {
        match poll {
            Poll::Busy => self.block_on(async {
                tokio::select! {
                    biased;
                    found = future => Some(found),
                    // The runtime has looked at its sockets when this comes back.
                    () = tokio::task::yield_now() => None,
                }
            }),
            Poll::Event => self.block_on(async { timeout(LONGEST_SLEEP, future).await.ok() }),
        }
    }
}

impl Deref for NodeRuntime {
    type Target = Runtime;

    #[inline]
    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for NodeRuntime {
    fn drop(&mut self) {
        self.0
            .take()
            .into_iter()
            .for_each(Runtime::shutdown_background);
    }
}
