//! The clocks of adapters that stamp completions, read around each burst, and their stamps.

use super::Session;
use super::burst_record::BurstRecord;
use super::receiving_half::ReceivingSide;
use crate::bench::hca::ends::SendingEnd;
use crate::bench::hca::ends::hardware_stamps::HardwareStamps;
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::tag::Tag;
use crate::bench::hca::result::hardware::HardwareBurst;
use crate::time::{Clock, CounterPair};

impl<S: SendingEnd, R: ReceivingSide> Session<S, R> {
    /// The stamps of the adapters of sender and receiver.
    pub(super) fn hardware(&self) -> [Option<&HardwareStamps>; 2] {
        [self.sending.hardware(), self.receiving.hardware()]
    }

    /// Reads the clocks of adapters that stamp completions.
    fn read_hardware_clocks<C: Clock>(
        &mut self,
        clock: &C,
    ) -> Result<[Option<CounterPair>; 2], RunError> {
        let mut read = [None; 2];
        for (read, stamps) in read.iter_mut().zip(self.hardware()) {
            if let Some(stamps) = stamps {
                *read = Some(CounterPair::read(clock, || stamps.read_clock())?);
            }
        }
        for (pairs, pair) in self.clock_pairs.iter_mut().zip(read) {
            pairs.extend(pair);
        }
        Ok(read)
    }

    /// Runs one burst, and reads the clocks of adapters before and after it.
    pub(super) fn run_between_readings<C: Clock>(
        &mut self,
        clock: &C,
        count: usize,
        progress: &mut dyn FnMut(u32),
    ) -> Result<BurstRecord, RunError> {
        let before = self.read_hardware_clocks(clock)?;
        let mut record = self.run_burst(count, progress)?;
        let after = match self.read_hardware_clocks(clock) {
            Ok(after) => after,
            // What ended the burst says more.
            Err(error) => {
                record.failure.get_or_insert_with(|| {
                    format!(
                        "the clock of an adapter could not be read after a burst ({error}), so that its stamps have no \
                         time: leave out --hw-timestamps, or look for a reset of the adapter in the kernel's log"
                    )
                });
                [None; 2]
            }
        };
        for (end, burst) in record.hardware.iter_mut().enumerate() {
            if let Some(burst) = burst {
                burst.pairs = before[end].zip(after[end]);
            }
        }
        Ok(record)
    }

    /// What the adapters stamped of a burst that is over, before anything of it is forgotten.
    pub(super) fn hardware_stamps(&self, record: &BurstRecord) -> [Option<HardwareBurst>; 2] {
        let [sending, receiving] = self.hardware();
        let completed = record.completed.iter().enumerate();
        let completed = completed.filter(|(_, stamp)| stamp.0 != 0);
        let completed = completed.map(|(sequence, _)| (sequence, sequence));
        let arrived = record.arrivals.iter().enumerate();
        let arrived = arrived.map(|(place, one)| (Tag::sequence(one.label) as usize, place));
        [
            sending.map(|stamps| {
                HardwareBurst::of(stamps.kind(), completed, |place| stamps.at(place))
            }),
            receiving
                .map(|stamps| HardwareBurst::of(stamps.kind(), arrived, |place| stamps.at(place))),
        ]
    }
}
