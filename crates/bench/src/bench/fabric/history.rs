//! Nodes, tiers and pairs over many runs: in how many of the last ones each was out, since when, and on what it ran then.

use std::collections::{BTreeMap, BTreeSet};

use super::against::{Judged, State, Unit};
use super::culprits::Direction;
use super::metrics::{RunFigures, RunNode};
use super::rules::{Rules, Runs};
use crate::rig::named::named;

/// A run that was judged.
#[derive(Debug, Clone)]
pub struct JudgedRun {
    /// When it began, in RFC 3339.
    pub begun: String,
    /// Its folder.
    pub folder: String,
    /// Its nodes, by name, each with its place.
    nodes: BTreeMap<String, (usize, RunNode)>,
    /// What was judged of each.
    judged: BTreeMap<Subject, Vec<Judged>>,
    /// A bit for each ordered pair of places, set of those that have figures.
    measured: Vec<u64>,
}

/// Something that is judged over runs, by its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A node.
    Node(String),
    /// From and to.
    Pair(String, String),
    /// A tier.
    Tier(String),
}

impl Subject {
    /// In words: `n1`, `n1 to n2`, `tier leaf`.
    pub fn in_words(&self) -> String {
        match self {
            Subject::Node(name) => name.clone(),
            Subject::Pair(from, to) => format!("{from} to {to}"),
            Subject::Tier(name) => format!("tier {name}"),
        }
    }
}

impl JudgedRun {
    /// Takes a run with its judgements.
    pub fn new(run: &RunFigures, judged: Vec<Judged>, begun: String, folder: String) -> Self {
        let name = |node: usize| run.nodes[node].name.clone();
        let subject = |unit: Unit| match unit {
            Unit::Node(node) => Subject::Node(name(node)),
            Unit::Pair(from, to) => Subject::Pair(name(from), name(to)),
            Unit::Tier(tier) => Subject::Tier(run.tiers.name(tier).to_owned()),
        };
        let mut of = BTreeMap::<Subject, Vec<Judged>>::new();
        for judged in judged {
            of.entry(subject(judged.unit)).or_default().push(judged);
        }
        let nodes = run.nodes.iter().enumerate();
        let nodes = nodes.map(|(place, node)| (node.name.clone(), (place, node.clone())));
        let count = run.nodes.len();
        let mut measured = vec![0; (count * count).div_ceil(64)];
        for (from, to, _) in run.columns()[1].each() {
            let place = from * count + to;
            measured[place / 64] |= 1 << (place % 64);
        }
        JudgedRun {
            begun,
            folder,
            nodes: nodes.collect(),
            judged: of,
            measured,
        }
    }

    /// How many nodes it has.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How many hosts, by what the engine calls them; a node of which that is unknown is one.
    pub fn hosts(&self) -> usize {
        let host = |(_, node): &'_ (usize, RunNode)| match node.host.is_empty() {
            true => node.name.clone(),
            false => node.host.clone(),
        };
        let hosts: BTreeSet<String> = self.nodes.values().map(host).collect();
        hosts.len()
    }

    /// What was judged, in order of names.
    pub fn judged(&self) -> impl Iterator<Item = (&Subject, &Judged)> {
        let all = self.judged.iter();
        all.flat_map(|(subject, judged)| judged.iter().map(move |it| (subject, it)))
    }

    fn has(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Node(name) => self.nodes.contains_key(name),
            Subject::Pair(from, to) => [from, to].iter().all(|it| self.nodes.contains_key(*it)),
            Subject::Tier(_) => self.judged.contains_key(subject),
        }
    }

    /// Whether it shows if something was out by a rule. A run that had too few figures of it, or did not come to a pair,
    /// does not.
    fn has_judged(&self, subject: &Subject, rule: usize) -> bool {
        let is_judged = || self.of(subject).iter().any(|it| it.rule == rule);
        match subject {
            // Of pairs only those that are out were judged.
            Subject::Pair(from, to) => is_judged() || self.has_measured([from, to]),
            _ => is_judged(),
        }
    }

    fn has_measured(&self, ends: [&String; 2]) -> bool {
        let [from, to] = ends.map(|name| self.nodes.get(name).map(|(place, _)| *place));
        from.zip(to).is_some_and(|(from, to)| {
            let place = from * self.nodes.len() + to;
            self.measured[place / 64] >> (place % 64) & 1 == 1
        })
    }

    fn node(&self, name: &str) -> Option<&RunNode> {
        self.nodes.get(name).map(|(_, node)| node)
    }

    fn of(&self, subject: &Subject) -> &[Judged] {
        self.judged.get(subject).map_or(&[], Vec::as_slice)
    }

    /// What it was out by.
    fn outs(&self, subject: &Subject) -> impl Iterator<Item = &Judged> {
        let all = self.of(subject).iter();
        all.filter(|judged| judged.state == State::Out)
    }
}

named! {
    /// What many runs show of a node.
    Health {
        /// In none of the last runs it was out.
        Healthy = "healthy",
        /// It was out, in fewer runs than any rule has.
        Watched = "watched",
        /// A rule is broken.
        Failing = "failing",
        /// The last run does not have it: it may be repaired, drained or renamed.
        Left = "left",
        /// No run has figures by which it can be judged.
        NotJudged = "not-judged",
    }
}

/// A rule that something broke, or is on the way to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    /// The place of the rule.
    pub rule: usize,
    /// In how many it was out of how many of the last runs that show it.
    pub out: usize,
    /// Those runs; fewer than the rule has where there are no more.
    pub of: usize,
    /// Whether it is broken.
    pub is_broken: bool,
    /// How far it was above the baseline in the last run in which it was out; see [`Judged::above`].
    pub above: Option<f64>,
    /// In which direction.
    pub direction: Option<Direction>,
}

/// A fact of a node that changed between runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactChange {
    /// Firmware, kernel or port.
    pub fact: &'static str,
    /// Before.
    pub before: String,
    /// When the first run began that had another one.
    pub since: String,
}

/// A node, tier or pair over all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Who or what.
    pub subject: Subject,
    /// What the runs show.
    pub health: Health,
    /// Rules by which it was out in their last runs.
    pub counts: Vec<Count>,
    /// In how many of the last runs that show it it was out by any rule, and how many these are.
    pub failed: [usize; 2],
    /// When the first run began in which it was out, if it was out in one of the last runs since; and the last one.
    pub since: Option<[String; 2]>,
    /// Whether the last run has it.
    pub is_in_last: bool,
    /// Whether it is out, in the last run that shows it, by a rule that is broken: it was not repaired since.
    pub is_out_now: bool,
    /// Whether no run of the baseline has it.
    pub is_new: bool,
    /// Of a node, its host as the launcher calls it, and as Kubernetes does; empty if unknown.
    pub hosts: [String; 2],
    /// Of a node, what it ran on in the last run that has it.
    pub facts: Vec<(&'static str, String)>,
    /// What of that changed, the last change of each.
    pub changes: Vec<FactChange>,
}

/// All that was ever in a run, in order of names, by runs in order of time. `shown`: of how many of the last runs it is
/// counted in how many something was out.
pub fn courses(runs: &[JudgedRun], rules: &Rules, shown: usize) -> Vec<Course> {
    let mut subjects = BTreeSet::new();
    for run in runs {
        subjects.extend(run.nodes.keys().cloned().map(Subject::Node));
        subjects.extend(run.judged.keys().cloned());
    }
    let course = |subject| course(subject, runs, rules, shown);
    subjects.into_iter().map(course).collect()
}

fn course(subject: Subject, runs: &[JudgedRun], rules: &Rules, shown: usize) -> Course {
    let own: Vec<&JudgedRun> = runs.iter().filter(|run| run.has(&subject)).collect();
    let out_by =
        |run: &JudgedRun, rule: usize| run.outs(&subject).find(|it| it.rule == rule).copied();
    let mut counts = Vec::new();
    let mut is_out_now = false;
    for (rule, Runs { least, of }) in rules.rules.iter().map(|rule| rule.runs).enumerate() {
        let shows = own
            .iter()
            .rev()
            .filter(|run| run.has_judged(&subject, rule));
        let mut shows: Vec<&JudgedRun> = shows.take(of).copied().collect();
        shows.reverse();
        let outs: Vec<Judged> = shows.iter().filter_map(|run| out_by(run, rule)).collect();
        let is_out = shows.last().is_some_and(|run| out_by(run, rule).is_some());
        is_out_now |= is_out && outs.len() >= least;
        if let Some(newest) = outs.last() {
            counts.push(Count {
                rule,
                out: outs.len(),
                of: shows.len(),
                is_broken: outs.len() >= least,
                above: newest.above,
                direction: newest.direction,
            });
        }
    }
    let is_out = |run: &JudgedRun| run.outs(&subject).next().is_some();
    let rules_of_it = 0..rules.rules.len();
    let is_shown = |run: &JudgedRun| {
        rules_of_it
            .clone()
            .any(|rule| run.has_judged(&subject, rule))
    };
    let shows: Vec<&JudgedRun> = own.iter().copied().filter(|run| is_shown(run)).collect();
    let last = &shows[shows.len().saturating_sub(shown)..];
    let failed = last.iter().filter(|run| is_out(run)).count();
    // What a rule looks back on must not have been forgotten.
    let longest = rules.rules.iter().map(|rule| rule.runs.of).max();
    let longest = longest.map_or(shown, |it| it.max(shown));
    let is_in_last = runs.last().is_some_and(|run| run.has(&subject));
    let health = match (
        counts.iter().any(|it| it.is_broken),
        !counts.is_empty() || failed > 0,
    ) {
        _ if !is_in_last => Health::Left,
        (true, _) => Health::Failing,
        (_, true) => Health::Watched,
        _ if !shows.is_empty() => Health::Healthy,
        _ => Health::NotJudged,
    };
    let newest = own.last().and_then(|run| match &subject {
        Subject::Node(name) => run.node(name),
        _ => None,
    });
    let is_new = own
        .last()
        .is_some_and(|run| run.of(&subject).iter().any(|it| it.is_new));
    Course {
        health,
        counts,
        failed: [failed, last.len()],
        since: since(&shows, &is_out, longest),
        is_in_last,
        is_out_now,
        is_new,
        hosts: newest.map_or_else(Default::default, |node| {
            [node.host.clone(), node.pod_host.clone()]
        }),
        facts: newest.map_or(Vec::new(), |node| node.facts.clone()),
        changes: match &subject {
            Subject::Node(name) => changes(&own, name),
            _ => Vec::new(),
        },
        subject,
    }
}

/// When the first run began in which it was out, going back from the last one as long as fewer than `apart` runs lie
/// between two of them; and the last. `None` where it was not out in the last `apart` runs.
fn since(
    own: &[&JudgedRun],
    is_out: &impl Fn(&JudgedRun) -> bool,
    apart: usize,
) -> Option<[String; 2]> {
    let (mut first, mut last): (Option<usize>, Option<usize>) = (None, None);
    for (place, run) in own.iter().enumerate().rev() {
        let after = first.unwrap_or(own.len());
        if after - place > apart {
            break;
        }
        if is_out(run) {
            first = Some(place);
            last = last.or(first);
        }
    }
    first
        .zip(last)
        .map(|(first, last)| [first, last].map(|it| own[it].begun.clone()))
}

/// The last change of each fact of a node. A fact that a run does not have is unknown, and no change.
fn changes(own: &[&JudgedRun], name: &str) -> Vec<FactChange> {
    let mut last: BTreeMap<&'static str, &str> = BTreeMap::new();
    let mut changes: BTreeMap<&'static str, FactChange> = BTreeMap::new();
    for run in own {
        for (fact, value) in run.node(name).into_iter().flat_map(|node| &node.facts) {
            if let Some(before) = last.insert(fact, value).filter(|before| *before != value) {
                let change = FactChange {
                    fact,
                    before: before.to_owned(),
                    since: run.begun.clone(),
                };
                changes.insert(fact, change);
            }
        }
    }
    changes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::matrix::Matrix;
    use crate::bench::fabric::metrics::Metric;
    use crate::bench::fabric::rules::{Rule, Scope};
    use crate::bench::fabric::tiers::Tiers;

    fn rules(least: usize, of: usize) -> Rules {
        let verdict = Rule {
            metric: Metric::Verdict,
            scope: Scope::Node,
            limit: None,
            runs: Runs { least, of },
        };
        Rules::of(vec![verdict])
    }

    /// A run of two nodes, of which `a` is named or not, or could not be judged for a question mark; without it for a
    /// space. `kernel` is that of a.
    fn run(day: usize, letter: char, kernel: &str) -> JudgedRun {
        let node = |name: &str, is_named| RunNode {
            name: name.to_owned(),
            is_named,
            facts: vec![("kernel", kernel.to_owned())],
            ..RunNode::default()
        };
        let mut nodes = vec![node("b", Some(false))];
        if letter != ' ' {
            nodes.push(node("a", (letter != '?').then_some(letter == 'x')));
        }
        let missing = || Matrix::missing(nodes.len());
        let columns = std::array::from_fn(|_| missing());
        let (tiers, tried) = (Tiers::one(nodes.len()), missing());
        let figures = RunFigures::new(nodes, tiers, columns, tried);
        let judged = crate::bench::fabric::against::judge(&figures, None, &rules(1, 1));
        JudgedRun::new(
            &figures,
            judged,
            format!("2026-01-{day:02}"),
            day.to_string(),
        )
    }

    fn of_a(letters: &str, least: usize, of: usize) -> Course {
        let days = letters.chars().enumerate();
        let kernel = |day: usize| if day < 2 { "6.1" } else { "6.12" };
        let runs: Vec<JudgedRun> = days.map(|(day, it)| run(day, it, kernel(day))).collect();
        let found = courses(&runs, &rules(least, of), 10);
        let [a, b] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(b.health, Health::Healthy);
        a.clone()
    }

    #[test]
    fn a_node_fails_in_k_of_the_last_n_runs_that_it_took_part_in() {
        for (letters, health, failed, since) in [
            ("..........", Health::Healthy, [0, 10], None),
            (".x......x", Health::Watched, [2, 9], Some("01")),
            ("......x.x", Health::Failing, [2, 9], Some("06")),
            // Runs without it do not count.
            ("......x  .x", Health::Failing, [2, 9], Some("06")),
            ("....x..xx", Health::Failing, [3, 9], Some("04")),
            // Nor those that could not judge it.
            ("......x??.x", Health::Failing, [2, 9], Some("06")),
            ("xx????", Health::Failing, [2, 2], Some("00")),
            ("???", Health::NotJudged, [0, 0], None),
            // Ten runs without a fault are an end of it.
            ("xx..........", Health::Healthy, [0, 10], None),
            ("x............x", Health::Watched, [1, 10], Some("13")),
            // It may have been repaired.
            ("xx ", Health::Left, [2, 2], Some("00")),
        ] {
            let found = of_a(letters, 2, 3);
            assert_eq!(
                (found.health, found.failed),
                (health, failed),
                "{letters:?}"
            );
            let expected = since.map(|day| format!("2026-01-{day}"));
            assert_eq!(found.since.map(|[first, _]| first), expected, "{letters:?}");
        }
        assert!(!of_a("xx ", 2, 3).is_in_last);
        for (letters, is_out_now) in [(".xx", true), ("xx?", true), ("xx.", false), ("..x", false)]
        {
            assert_eq!(of_a(letters, 2, 3).is_out_now, is_out_now, "{letters:?}");
        }
        assert_eq!(of_a("x.xx", 3, 10).counts[0].out, 3);
        // Twelve runs back, which the rule looks at and the count of ten does not.
        let old = of_a("x.x...........", 3, 14);
        assert_eq!((old.health, old.failed), (Health::Watched, [0, 10]));
        assert_eq!(old.since.unwrap()[0], "2026-01-00");
    }

    #[test]
    fn the_last_change_of_a_fact_is_shown() {
        let found = of_a("....", 1, 1);
        assert_eq!(found.facts, [("kernel", "6.12".to_owned())]);
        let expected = FactChange {
            fact: "kernel",
            before: "6.1".to_owned(),
            since: "2026-01-02".to_owned(),
        };
        assert_eq!(found.changes, [expected]);
        assert_eq!(of_a("..", 1, 1).changes, []);
    }
}
