//! What an end is told, whatever it runs in.

use std::path::PathBuf;
use std::sync::Arc;

use super::config::Config;
use super::log::{Log, LogError, LogWriter, SharedLog};
use super::sample::Epoch;
use super::shared::SharedState;

/// Where an end has room for its log.
#[derive(Debug)]
pub(super) enum LogRoom {
    /// It makes its own; a file lies in that folder.
    Own(PathBuf),
    /// Another process has made it.
    Shared(SharedLog),
}

/// What a publisher or a subscriber is told.
pub(super) struct NodeTask<C> {
    pub(super) number: u32,
    pub(super) clock: C,
    pub(super) epoch: Epoch,
    pub(super) config: Config,
    pub(super) shared: Arc<SharedState>,
    pub(super) rate_per_s: f64,
    pub(super) words: usize,
    /// Whether it has no CPU of its own, and lets others run while it waits.
    pub(super) yields: bool,
    pub(super) log: LogRoom,
}

impl<C> NodeTask<C> {
    /// Asked while it waits.
    pub(super) fn go_on(&self) -> bool {
        if self.yields {
            std::thread::yield_now();
        }
        !self.shared.run.stopped()
    }

    /// A log of so many entries.
    pub(super) fn log<const N: usize>(&self, entries: usize) -> Result<LogWriter<N>, LogError> {
        let log = match &self.log {
            LogRoom::Own(folder) => {
                Log::new(self.config.log, entries, self.config.huge_pages, folder)?
            }
            LogRoom::Shared(room) => room.open()?,
        };
        Ok(LogWriter::new(Arc::new(log), entries))
    }
}
