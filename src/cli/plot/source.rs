//! A point and a metric of it: what there is to draw.

use super::metric::Metric;
use crate::results::read::{Benchmark, Cells, Hgrm, Point, ReadError};
use crate::results::schema::{ROUND, ROUNDS, hca, node};
use crate::results::text::printable_path;

#[derive(Clone)]
pub(super) struct Source {
    pub run: String,
    pub point: Point,
    pub metric: &'static Metric,
    /// The rounds whose samples are drawn; all of them, if none are named.
    pub rounds: Vec<i64>,
}

/// Samples in ascending order, and how many messages were lost.
pub(super) struct Sorted {
    pub values: Vec<i64>,
    pub lost: u64,
}

impl Source {
    /// Reads columns of its samples, those of the rounds that are drawn.
    pub fn each(
        &self,
        columns: &[&str],
        mut take: impl FnMut(Cells<'_>) -> Result<(), ReadError>,
    ) -> anyhow::Result<()> {
        let mut columns = columns.to_vec();
        if !self.rounds.is_empty() {
            columns.push(ROUND.name);
        }
        let last = columns.len() - 1;
        let rows = self.point.rows(self.metric.file().name)?;
        rows.each(&columns, |cells| {
            let is_drawn = |round: i64| self.rounds.contains(&round);
            match self.rounds.is_empty() || cells.integer(last)?.is_some_and(is_drawn) {
                true => take(cells),
                false => Ok(()),
            }
        })?;
        Ok(())
    }

    /// Its value in a row of the columns of its metric, which stand at `at`.
    pub fn value(&self, cells: Cells<'_>, at: usize) -> Result<Option<i64>, ReadError> {
        let first = match self.metric.benchmark {
            Benchmark::Memory => cells.rounded(at)?,
            _ => cells.integer(at)?,
        };
        if self.metric.samples.len() < 2 {
            return Ok(first);
        }
        let both = first.zip(cells.integer(at + 1)?);
        Ok(both.map(|(from, to)| to.saturating_sub(from)))
    }

    /// Whether a row without a value is a message that was lost; the columns of its metric stand at `at`.
    pub fn is_lost(&self, cells: Cells<'_>, at: usize) -> Result<bool, ReadError> {
        let arrival = at + self.metric.samples.len();
        Ok(self.metric.may_be_lost() && cells.integer(arrival)?.is_none())
    }

    pub fn sorted(&self) -> anyhow::Result<Sorted> {
        // Of samples that were lost there is no row.
        let is_node = self.metric.benchmark == Benchmark::Node;
        let told = self.of_all_rounds().then(|| self.lost_told());
        let (mut values, mut lost) = (Vec::new(), told.filter(|_| is_node).unwrap_or(0));
        self.each(&self.metric.columns(), |cells| {
            match self.value(cells, 0)? {
                Some(value) => values.push(value),
                None => lost += u64::from(self.is_lost(cells, 0)?),
            }
            Ok(())
        })?;
        values.sort_unstable();
        Ok(Sorted { values, lost })
    }

    /// The same of its first round only, unless rounds were asked for.
    pub fn of_a_round(&self) -> Source {
        let mut source = self.clone();
        if self.rounds.is_empty() && most_rounds([&self.point].into_iter()) > 1 {
            source.rounds = vec![0];
        }
        source
    }

    /// Whether all rounds are drawn, of which summary and distributions tell.
    pub fn of_all_rounds(&self) -> bool {
        self.rounds.is_empty()
    }

    /// How many messages were lost, by the summary or the settings.
    pub fn lost_told(&self) -> u64 {
        let lost = match self.metric.benchmark {
            Benchmark::Node => Some(node::LOST),
            _ => self.metric.may_be_lost().then_some(hca::LOST),
        };
        let row = self.point.row.as_ref();
        row.zip(lost)
            .and_then(|(row, lost)| row.count(lost.name))
            .unwrap_or(0)
    }

    pub fn has_samples(&self) -> bool {
        let file = self.metric.file().name;
        !self.metric.samples.is_empty() && self.point.file(file).exists()
    }

    /// Its distribution, if it has one; it is of all rounds.
    pub fn distribution(&self) -> Result<Option<Hgrm>, ReadError> {
        let path = self.point.file(&self.metric.distribution());
        match self.of_all_rounds() && path.exists() {
            true => Hgrm::read(&path).map(Some),
            false => Ok(None),
        }
    }

    /// The error of a source that has neither samples nor what could stand for them.
    pub fn nothing_there(&self) -> anyhow::Error {
        let advice = match self.metric.benchmark {
            Benchmark::Memory if self.metric.samples.is_empty() => {
                "it is a figure of whole curves, which plot curves draws"
            }
            _ if !self.of_all_rounds() => "a single round's samples are in its files only",
            Benchmark::Queue => "measure with --elements",
            Benchmark::Clock => {
                "name folders of points with jumps; of wake-ups plot percentiles draws the histogram.hgrm"
            }
            Benchmark::Node => "measure with --samples",
            Benchmark::Hca | Benchmark::Between | Benchmark::Memory => {
                "copy the folder whole, or measure again"
            }
        };
        let folder = printable_path(&self.point.folder);
        anyhow::anyhow!("{folder} has no samples of {}: {advice}", self.metric.name)
    }
}

/// The largest number of rounds that a point has.
pub(super) fn most_rounds<'a>(points: impl Iterator<Item = &'a Point>) -> u64 {
    let told = points.filter_map(|point| point.row.as_ref()?.count(ROUNDS.name));
    told.max().unwrap_or(1)
}
