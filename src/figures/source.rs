//! A point and a metric of it: what there is to draw.

use std::path::PathBuf;
use std::sync::Arc;

use crate::bench::presentation::{Metric, Presentation};
use crate::results::read::{Cells, Hgrm, Point, ReadError, ReadErrorKind};
use crate::results::schema::{Data, ROUND, ROUNDS};
use crate::results::text::printable_path;

#[derive(Clone)]
pub(super) struct Source {
    pub run: String,
    pub point: Point,
    pub presentation: &'static Presentation,
    pub metric: &'static Metric,
    /// The rounds whose samples are drawn; all of them, if none are named.
    pub rounds: Vec<i64>,
    /// Whether another point of the figure has samples.
    pub are_others_there: bool,
}

/// Samples in ascending order, and how many messages were lost.
pub(super) struct Sorted {
    pub values: Vec<i64>,
    pub lost: u64,
}

impl Source {
    /// Reads columns of its samples, those of the rounds that are drawn.
    pub(crate) fn each(
        &self,
        columns: &[&str],
        mut take: impl FnMut(Cells<'_>) -> Result<(), ReadError>,
    ) -> anyhow::Result<()> {
        let mut columns = columns.to_vec();
        if !self.rounds.is_empty() {
            columns.push(ROUND.name);
        }
        let last = columns.len() - 1;
        let rows = self.point.rows(self.presentation.file.name)?;
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
    pub(crate) fn value(&self, cells: Cells<'_>, at: usize) -> Result<Option<i64>, ReadError> {
        let first = match self.metric.samples[0].data {
            Data::Number(_) => cells.rounded(at)?,
            _ => cells.integer(at)?,
        };
        if self.metric.samples.len() < 2 {
            return Ok(first);
        }
        let both = first.zip(cells.integer(at + 1)?);
        Ok(both.map(|(from, to)| to.saturating_sub(from)))
    }

    /// Whether a row without a value is a message that was lost; the columns of its metric stand at `at`.
    pub(crate) fn is_lost(&self, cells: Cells<'_>, at: usize) -> Result<bool, ReadError> {
        let arrival = at + self.metric.samples.len();
        Ok(self.metric.arrival.is_some() && cells.integer(arrival)?.is_none())
    }

    pub(crate) fn sorted(&self) -> anyhow::Result<Sorted> {
        let are_told = self.metric.arrival.is_none() && self.of_all_rounds();
        let told = are_told.then(|| self.lost_told());
        let (mut values, mut lost) = (Vec::new(), told.unwrap_or(0));
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
    pub(crate) fn of_a_round(&self) -> Source {
        let mut source = self.clone();
        if self.rounds.is_empty() && most_rounds([&self.point].into_iter()) > 1 {
            source.rounds = vec![0];
        }
        source
    }

    /// Whether all rounds are drawn, of which summary and distributions tell.
    pub(crate) fn of_all_rounds(&self) -> bool {
        self.rounds.is_empty()
    }

    /// How many messages were lost, by the summary or the settings.
    pub(crate) fn lost_told(&self) -> u64 {
        let lost = self.metric.lost.as_ref();
        lost.and_then(|lost| self.point.count(lost)).unwrap_or(0)
    }

    /// Why others were never sent, and how many, by the summary.
    pub(crate) fn absent(&self) -> Vec<(&'static str, u64)> {
        let absent = self.metric.absent.iter().filter(|_| self.of_all_rounds());
        let counts = absent.map(|(cause, count)| (*cause, self.point.count(count).unwrap_or(0)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    pub(crate) fn has_samples(&self) -> bool {
        let file = self.presentation.file.name;
        !self.metric.samples.is_empty() && self.point.file(file).exists()
    }

    /// Its distribution, if it has one; it is of all rounds.
    pub(crate) fn distribution(&self) -> Result<Option<Hgrm>, ReadError> {
        let path = self.point.file(&self.metric.distribution());
        match self.of_all_rounds() && path.exists() {
            true => Hgrm::read(&path).map(Some),
            false => Ok(None),
        }
    }

    /// The file of its distributions by interval, if it is there.
    pub(crate) fn interval_log(&self) -> Option<PathBuf> {
        self.metric.interval_log_of(&self.point)
    }

    /// Whether none of the files that it may be drawn of is damaged.
    pub(crate) fn is_whole(&self, damaged: &[Arc<ReadError>]) -> bool {
        let samples = self.point.file(self.presentation.file.name);
        let distribution = self.point.file(&self.metric.distribution());
        let log = self.point.file(&self.metric.interval_log());
        let files = [samples, distribution, log];
        damaged.iter().all(|error| !files.contains(&error.path))
    }

    /// The error of a source that has neither samples nor what could stand for them.
    pub(crate) fn nothing_there(&self) -> anyhow::Error {
        let without_file = self.presentation.without_file;
        if self.are_others_there {
            let file = self.point.file(self.presentation.file.name);
            return ReadErrorKind::MissingFile(without_file.to_owned())
                .at(&file)
                .into();
        }
        let advice = match (self.metric.is_of_curves(), self.of_all_rounds()) {
            (true, _) => "it is a figure of whole curves, which plot curves draws".to_owned(),
            (false, true) => without_file.to_owned(),
            (false, false) => {
                format!("a single round's samples are in its files only; {without_file}")
            }
        };
        let folder = printable_path(&self.point.folder);
        anyhow::anyhow!("{folder} has no samples of {}: {advice}", self.metric.name)
    }
}

/// The largest number of rounds that a point has.
pub(super) fn most_rounds<'a>(points: impl Iterator<Item = &'a Point>) -> u64 {
    let told = points.filter_map(|point| point.count(&ROUNDS));
    told.max().unwrap_or(1)
}
