//! How many elements a second go through, found in runs that count for nothing else: for the number of elements of a
//! round, and for the rates of a load curve.

use super::QueueBenchmark;
use crate::bench::queue::config::RoundLength;
use crate::bench::queue::error::RunError;
use crate::bench::queue::estimate::{
    FIRST_COUNT, FIRST_TIME, LONG_PAUSE, SATURATION_COUNT, SATURATION_RUNS,
};
use crate::bench::queue::memory;
use crate::bench::queue::plan::Point;
use crate::pacing::Load;
use crate::stats::median_of;

/// Who keeps so much of a rate keeps it, but for what disturbed a short run.
const KEPT: f64 = 0.9;

impl QueueBenchmark {
    /// How many elements a second go through in runs of so many that count for nothing else, in the median; once in a
    /// process. Or why that could not be found, which is the queue's fault.
    fn rate(
        &mut self,
        point: &Point,
        runs: usize,
        count: u64,
    ) -> Result<Result<f64, String>, RunError> {
        let key = point.to_string();
        if let Some(known) = self.rates.get(&key) {
            return Ok(known.clone());
        }
        let mut rates = Vec::new();
        let mut failure = None;
        // Who failed once is not tried again, and what came before is not to be believed.
        while failure.is_none() && rates.len() < runs {
            match self.run(point, count.min(self.most_elements), 0) {
                Ok((run, _)) => match run.failure(&self.config) {
                    None => rates.extend(run.throughput_per_s),
                    some => failure = some,
                },
                Err(error) if error.fails_its_point() && !error.leaves_thread_behind() => {
                    failure = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        let found = match failure {
            Some(failure) => Err(failure),
            None => {
                median_of(&rates).ok_or_else(|| "one element has no rate: raise --count".to_owned())
            }
        };
        self.rates.insert(key, found.clone());
        Ok(found)
    }

    /// How many elements a second go through when nobody waits, by the loops of the points: with time stamps and a
    /// schedule that is less than without.
    pub(super) fn saturation(&mut self, point: &Point) -> Result<Result<f64, String>, RunError> {
        let found = self.rate(&point.at_saturation(), SATURATION_RUNS, SATURATION_COUNT)?;
        Ok(found.map_err(|failure| format!("the saturation could not be found: {failure}")))
    }

    /// How many elements a round of a point has; of several threads the most that one of them notes.
    pub(super) fn count(&mut self, point: &Point) -> Result<Result<u64, String>, RunError> {
        if point.wiring.is_some() {
            return Ok(Ok(self.most_elements));
        }
        let time = match self.config.length {
            RoundLength::Elements(count) => return Ok(Ok(count)),
            RoundLength::Time(time) => time,
        };
        let most = self.most_elements;
        let rate = self.expected_rate(point)?;
        Ok(rate
            .map(|rate| memory::elements_in(time, rate, most))
            .map_err(|failure| {
                format!("how many elements go through in a round could not be found: {failure}")
            }))
    }

    /// How many elements go through in a second under the load of a point.
    fn expected_rate(&mut self, point: &Point) -> Result<Result<f64, String>, RunError> {
        let asked = match point.sender.load {
            Load::ConstantRate { rate_per_s } => Some(rate_per_s),
            _ => None,
        };
        if let (Some(asked), Some(_)) = (asked, point.percent_of_saturation) {
            return Ok(Ok(asked));
        }
        let pause = point.slower().mean_pause();
        if pause >= LONG_PAUSE {
            return Ok(Ok(1.0 / pause.as_secs_f64()));
        }
        let in_time = FIRST_TIME.as_nanos().checked_div(pause.as_nanos());
        let count = in_time.map_or(FIRST_COUNT, |count| FIRST_COUNT.min(count as u64));
        let found = self.rate(point, 1, count)?;
        Ok(found.map(|found| match asked {
            Some(asked) if found >= KEPT * asked => asked,
            _ => found,
        }))
    }
}
