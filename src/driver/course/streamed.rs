//! The first and the last lines of a run that is streamed; the others are written where they happen.

use serde_json::{Map, Value, json};

use super::{AS_MANY_AS_FIT, Document, Findings, LineStream, Record, SweepRun};

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
}

/// Writes the summary, and how the run ended. Returns why lines are missing, if some are.
pub(super) fn end(
    mut lines: LineStream,
    summary: &[Record],
    document: &Document,
    found: &Findings,
    found_rates: &Value,
) -> Option<String> {
    for row in summary {
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
