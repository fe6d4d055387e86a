//! The bursts of a point, with what others do meanwhile: from before the warm-up to behind the last message.

use std::sync::Arc;

use super::background::RunningBackground;
use super::receiving_half::ReceivingSide;
use super::worker::Frame;
use super::{BetweenBursts, Session};
use crate::bench::hca::ends::SendingEnd;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::placement::Placement;
use crate::bench::hca::result::Tally;
use crate::bench::hca::settings::config::Config;
use crate::buffer::PageKind;
use crate::generators::ActiveLoad;
use crate::host::interrupt;
use crate::rig::benchmark::Progress;
use crate::time::Clock;

/// The bursts of a point, between ends of any type.
pub struct Bursts<'a, C> {
    pub(crate) clock: C,
    pub(crate) config: &'a Config,
    pub(crate) frame: Frame,
    pub(crate) placement: &'a Placement,
    pub(crate) load: Option<ActiveLoad<'a>>,
    pub(crate) progress: &'a mut dyn FnMut(Progress),
}

impl<C: Clock> Bursts<'_, C> {
    /// Measures them, beside what runs in the background, and with what is done `between` them; returns the pages of the
    /// buffers, too.
    pub(crate) fn measure<S: SendingEnd, R: ReceivingSide>(
        self,
        sender: &Arc<S>,
        receiver: &Arc<R>,
        background: Option<RunningBackground>,
        between: &mut dyn BetweenBursts,
    ) -> Result<(Tally, [PageKind; 3]), RunError> {
        let (config, clock) = (self.config, self.clock);
        let (timeout, placement) = (config.timeout, self.placement);
        let mut session = Session::start(
            clock,
            sender,
            receiver,
            self.frame,
            timeout,
            placement,
            interrupt::requested,
        )?;
        background.into_iter().for_each(|it| session.beside(it));
        let mut load = self.load;
        load.as_mut().map_or(Ok(()), ActiveLoad::begin)?;
        let (warmup, repeat) = (config.warmup, config.repeat);
        let mut tally = session.measure(&clock, warmup, repeat, self.progress, between)?;
        if let Some(mut load) = load {
            let ended = load.end().map_err(RunError::from);
            tally.drawn = load.drawn();
            tally.failure = tally.failure.or(ended.err().map(|error| error.to_string()));
        }
        Ok((tally, session.pages()))
    }
}
