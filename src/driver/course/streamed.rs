//! The first and the last lines of a run that is streamed; the others are written where they happen.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{AS_MANY_AS_FIT, Document, Findings, LineStream, Record, SweepRun};
use crate::results::schema::POINT;

impl SweepRun {
    /// Has all that happens from here on written there as well.
    pub(crate) fn stream(&mut self, mut lines: LineStream) {
        let Document {
            hcabench,
            benchmark,
            command_line,
            started_at,
            label,
            run,
            machine,
            rounds,
            ..
        } = &self.run.document;
        let columns = self
            .run
            .schema
            .summary()
            .into_iter()
            .chain(self.run.schema.runs());
        let columns: Map<String, Value> = columns
            .map(|(name, column)| {
                let unit = Some(column.unit()).filter(|unit| !unit.is_empty());
                let about = json!({ "kind": column.kind, "unit": unit, "better": column.better });
                (name.into_owned(), about)
            })
            .collect();
        let planned =
            (self.searches.is_none() && rounds.planned != AS_MANY_AS_FIT).then_some(rounds.planned);
        let points = self.searches.is_none().then_some(self.plan.points.len());
        let begin = json!({
            "program": hcabench,
            "benchmark": benchmark,
            "command_line": command_line,
            "started_at": started_at,
            "label": label,
            "folder": self.run.folder.path(),
            "resumed": self.run.resumed,
            "rounds": planned,
            "points": points,
            "left_out": self.plan.left_out.len(),
            "run": run,
            "machine": machine,
            "columns": columns,
        });
        lines.write("begin", begin);
        self.lines = Some(lines);
    }

    /// Writes the rows of the summary of a point whose last round was measured, if nothing in them follows from others.
    pub(super) fn stream_completed(&mut self, point: usize) {
        let has_own_figures = self.run.schema.across.is_none() && self.searches.is_none();
        let Some(lines) = self.lines.as_mut().filter(|_| has_own_figures) else {
            return;
        };
        for row in &self.rows[point] {
            let is_complete = row.done.len() as u64 == u64::from(self.rounds.count);
            if let Some(summary) = row.summary.as_ref().filter(|_| is_complete) {
                lines.write("point", json!({ "row": summary }));
                self.streamed.insert(row.planned.name.clone());
            }
        }
    }
}

/// Writes the rows of the summary that were not `streamed` before, and how the run ended. Returns why lines are missing,
/// if some are.
pub(super) fn end(
    mut lines: LineStream,
    summary: &[Record],
    streamed: &BTreeSet<String>,
    document: &Document,
    found: &Findings,
    found_rates: &Value,
) -> Option<String> {
    let is_new = |row: &&Record| !streamed.contains(&row.text(&POINT));
    for row in summary.iter().filter(is_new) {
        lines.write("point", json!({ "row": row }));
    }
    let end = json!({
        "status": document.status,
        "failure": document.failure,
        "rounds_done": document.rounds.done,
        "verdict": found.verdict(),
        "is_invalid": found.is_invalid(),
        "findings": found,
        "find_rate": found_rates,
    });
    lines.write("end", end);
    lines.failure().map(str::to_owned)
}
