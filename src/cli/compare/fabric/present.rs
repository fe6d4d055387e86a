//! The tables of a comparison of fabrics, its words, and the same as JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Figure, Finding};
use crate::arguments::UsageError;
use crate::bench::fabric::over_time::{PairChange, What};
use crate::cli::compare::answer;
use crate::compare::{ERROR, Verdict};
use crate::results::units::duration;
use crate::sorting::sort_by;
use crate::terminal::output::labelled;
use crate::terminal::table::{Column, Table};
use crate::terminal::table_options::{Key, Order, TableOptions};

/// Of nodes without a verdict, so many of each figure are shown: those that changed most.
const MOST_NODES: usize = 4;

/// What there is to show.
pub(super) struct Shown<'a> {
    pub(super) names: &'a [String; 2],
    pub(super) findings: &'a [Finding<'a>],
    pub(super) figures: &'a [Figure],
    pub(super) rounds: [usize; 2],
}

/// A column, and what rows are sorted by in it.
type OfFinding = (&'static str, fn(&Finding<'_>) -> Key);

const COLUMNS: [OfFinding; 8] = [
    ("figure", |found| Key::Text(found.figure.name())),
    ("of", |found| Key::Text(found.of())),
    ("BASE", |found| Key::Number(found.change.medians_ns[0])),
    ("NEW", |found| Key::Number(found.change.medians_ns[1])),
    ("shift", |found| found.shift().map(|it| it[0]).into()),
    ("from", |found| found.shift().map(|it| it[1]).into()),
    ("to", |found| found.shift().map(|it| it[2]).into()),
    ("verdict", |found| {
        Key::Text(found.verdict().words().to_owned())
    }),
];

/// What the rows are to be sorted by.
pub(super) fn order(
    options: &TableOptions,
    [base, new]: &[String; 2],
) -> Result<Option<Order>, UsageError> {
    let column = |name| match name {
        "BASE" => base,
        "NEW" => new,
        "shift" => "difference",
        name => name,
    };
    options.order(&COLUMNS.map(|(name, _)| (name.to_owned(), column(name))))
}

impl Shown<'_> {
    /// The tables, and below them what they say in words.
    pub(super) fn text(
        &self,
        answer: &[String],
        order: Option<Order>,
        brief: bool,
        width: Option<usize>,
    ) -> String {
        let (table, left) = self.changes(order);
        let mut text: String = answer.iter().map(|it| answer::wrapped(it)).collect();
        text.push('\n');
        text += &table.brief(brief).render(width);
        text.push('\n');
        if !brief {
            text += &self.pairs(width);
        }
        for line in self.words(left) {
            text += &line;
            text.push('\n');
        }
        text
    }

    /// Tiers, and the nodes that changed; with how many are not in it.
    fn changes(&self, order: Option<Order>) -> (Table, usize) {
        let [base, new] = self.names;
        let mut columns = vec![
            Column::text("figure").setting(),
            Column::text("of").setting(),
            Column::number(base, ""),
            Column::number(new, ""),
            Column::number("difference", "").first(),
        ];
        let is_judged = self
            .findings
            .iter()
            .any(|it| it.verdict() != Verdict::NotJudged);
        if is_judged {
            columns.extend([
                Column::number("interval", ""),
                Column::text("verdict").first(),
            ]);
        }
        let mut table = Table::new(columns);
        let mut kept = self.kept();
        let left = self.findings.len() - kept.len();
        if let Some(order) = order {
            order.sort(&mut kept, |found| COLUMNS[order.column].1(found));
        }
        let mut before: Option<&Figure> = None;
        for found in kept {
            if order.is_none() && before.is_some_and(|it| !std::ptr::eq(it, found.figure)) {
                table.separator();
            }
            before = Some(found.figure);
            let shift = found.shift();
            let verdict = match found.verdict() {
                Verdict::NoDifferenceShown => "not shown",
                verdict => verdict.words(),
            };
            let mut verdict = verdict.to_owned();
            if found.is_broken() {
                verdict += ", BROKEN";
            }
            let [base, new] = found.change.medians_ns.map(duration);
            let cells = [
                found.figure.name(),
                found.of(),
                base,
                new,
                answer::difference(shift.map(|it| it[0]), "%"),
            ];
            let interval = answer::interval(shift.map(|[_, low, high]| [low, high]), "%");
            let judged = is_judged.then_some([interval, verdict]);
            table.row(cells.into_iter().chain(judged.into_iter().flatten()));
        }
        (table, left)
    }

    /// All tiers, all nodes that are better or worse, and of the others those that changed most.
    fn kept(&self) -> Vec<&Finding<'_>> {
        let size = |place: &usize| {
            let shift = self.findings[*place].change.shift;
            shift.map_or(0.0, |shift| shift.value.abs())
        };
        let mut kept = BTreeSet::new();
        for figure in self.figures {
            let mut others: Vec<usize> = Vec::new();
            for (place, found) in self.findings.iter().enumerate() {
                if !std::ptr::eq(found.figure, figure) {
                    continue;
                }
                let is_shown = matches!(found.verdict(), Verdict::Worse | Verdict::Better);
                match found.is_tier() || is_shown {
                    true => drop(kept.insert(place)),
                    false => others.push(place),
                }
            }
            others.retain(|place| size(place) > 0.0);
            sort_by(&mut others, |one, other| size(other).total_cmp(&size(one)));
            kept.extend(others.into_iter().take(MOST_NODES));
        }
        kept.into_iter()
            .map(|place| &self.findings[place])
            .collect()
    }

    /// The pairs that got slower most, of the first figure.
    fn pairs(&self, width: Option<usize>) -> String {
        let Some(figure) = self.figures.first() else {
            return String::new();
        };
        let slower = figure.comparison.pairs.iter();
        let slower: Vec<&PairChange> = slower.filter(|pair| pair.worse_by() > 0.0).collect();
        if slower.is_empty() {
            return String::new();
        }
        let [base, new] = self.names;
        let mut table = Table::new(vec![
            Column::text("from").setting(),
            Column::text("to").setting(),
            Column::text("tier").setting(),
            Column::number(base, ""),
            Column::number(new, ""),
            Column::number("more", ""),
        ]);
        for pair in slower {
            let [base, new] = pair.medians_ns.map(duration);
            let [from, to] = pair.pair.clone();
            let more = format!("+{}", duration(pair.worse_by()));
            table.row([from, to, pair.tier.clone(), base, new, more]);
        }
        let name = figure.name();
        let title = format!("the pairs whose {name} rose most (ranked, not judged):");
        format!("{title}\n{}\n", table.render(width))
    }

    fn words(&self, left: usize) -> Vec<String> {
        let count = |verdict| {
            let findings = self.findings.iter();
            findings.filter(|found| found.verdict() == verdict).count()
        };
        let mut lines = Vec::new();
        let [better, worse, none, open] = [
            Verdict::Better,
            Verdict::Worse,
            Verdict::NoDifferenceShown,
            Verdict::NotJudged,
        ]
        .map(count);
        if better + worse + none > 0 {
            lines.push(labelled(
                "verdicts",
                &format!(
                    "{better} better, {worse} worse, {none} without a difference shown, {open} not judged; that any of \
                     them is wrong has a probability of at most {:.0} %",
                    ERROR * 100.0
                ),
            ));
        }
        lines.push(labelled(
            "note",
            "egress, ingress: by how much messages from or to a node take longer than those of other nodes; their \
             difference is a share of the median of all pairs, that of a tier a share of the tier's median",
        ));
        if left > 0 {
            lines.push(labelled(
                "note",
                &format!(
                    "{left} effects of nodes that changed less are not in the table: --json has all"
                ),
            ));
        }
        let left_out = self.figures.iter().map(|it| it.comparison.left_out).max();
        if let Some(pairs) = left_out.filter(|pairs| *pairs > 0) {
            lines.push(labelled(
                "note",
                &format!("{pairs} ordered pairs lack a figure in one of the runs, or are of another tier now"),
            ));
        }
        let limited = self.findings.iter().filter(|it| it.limit.is_some());
        let limited = limited.count();
        if limited > 0 {
            let broken = self.findings.iter().filter(|it| it.is_broken()).count();
            let open = self
                .findings
                .iter()
                .filter(|it| it.open().is_some())
                .count();
            let text = match broken {
                0 => format!("broken by none of {limited} figures, left open by {open}"),
                broken => format!("BROKEN by {broken} of {limited} figures"),
            };
            lines.push(labelled("limits", &text));
        }
        lines
    }

    pub(super) fn json(&self) -> Value {
        let figure = |figure: &Figure| {
            let own = self.findings.iter();
            let own = own.filter(|it| std::ptr::eq(it.figure, figure));
            let pair = |pair: &PairChange| {
                json!({
                    "from": pair.pair[0], "to": pair.pair[1], "tier": pair.tier,
                    "base_ns": pair.medians_ns[0], "new_ns": pair.medians_ns[1],
                })
            };
            json!({
                "figure": figure.name(),
                "rounds_needed": figure.comparison.rounds_needed,
                "pairs_left_out": figure.comparison.left_out,
                "nodes_only_in": {
                    "base": figure.comparison.alone[0], "new": figure.comparison.alone[1],
                },
                "changes": own.map(change).collect::<Vec<_>>(),
                "pairs": figure.comparison.pairs.iter().map(pair).collect::<Vec<_>>(),
            })
        };
        json!({
            "rounds": { "base": self.rounds[0], "new": self.rounds[1] },
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
        })
    }
}

fn change(found: &Finding<'_>) -> Value {
    let (kind, name) = match &found.change.of {
        What::Tier(name) => ("tier", name),
        What::Egress(name) => ("egress", name),
        What::Ingress(name) => ("ingress", name),
    };
    let shift = found.change.shift;
    json!({
        "of": kind,
        "name": name,
        "base_ns": found.change.medians_ns[0],
        "new_ns": found.change.medians_ns[1],
        "shift_ns": shift.map(|it| it.value),
        "interval_ns": shift.map(|it| [it.interval.0, it.interval.1]),
        "shift_percent": found.shift().map(|it| it[0]),
        "p_value": shift.map(|it| it.p_value),
        "verdict": found.verdict().words(),
        "limit": found.limit,
        "broken": found.is_broken(),
        "may_be_worse_by_percent": found.open(),
    })
}
