//! Findings: what a reader must know before believing the figures of a run.
//!
//! A benchmark states a fact as a [`Finding`] of a [`FindingKind`], with its figures. [`Findings`] joins those of one
//! kind over points and rounds, and words each of them once, for the terminal, the report, `compare` and `--json`.

pub mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::error::ReportError;
use super::json;
use super::read_error::ReadError;
use super::units;
use super::whole::whole;

/// The file with the findings of a run.
pub const FINDINGS: &str = "findings.json";

/// What a finding means for the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The figures hold; the next run can be better.
    Advice,
    /// The figures hold, with this in mind.
    Reservation,
    /// The figures do not answer what was asked.
    Invalid,
}

/// A kind of finding and its wording. Texts name figures in braces: `{count}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingKind {
    /// Its name: lower case, words joined by `-`. It stays the same from version to version.
    pub id: &'static str,
    /// What it means for the figures.
    pub severity: Severity,
    /// What is wrong.
    pub problem: &'static str,
    /// Why, or what follows from it; may be empty.
    pub cause: &'static str,
    /// What to do; may be empty.
    pub fix: &'static str,
}

impl FindingKind {
    /// The kind of that id.
    pub fn of(id: &str) -> Option<&'static Self> {
        kinds::ALL.iter().find(|kind| kind.id == id)
    }
}

/// A figure of a finding. Over several points and rounds counts add up, and measures span a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FindingFigure {
    /// How many; with a name that ends in `_ns`, a time that adds up.
    Count(u64),
    /// The least and the greatest value. The end of the name states the unit: `_ns`, `_bytes`, `_percent`, `_ppm`, `_khz`.
    Range([f64; 2]),
    /// A name. Findings with different names stay apart.
    Name(String),
    /// Names, such as those of devices, which points and rounds add to.
    Names(BTreeSet<String>),
}

/// A fact about a run that changes how its figures are to be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The id of its kind.
    pub kind: String,
    /// What it means for the figures.
    pub severity: Severity,
    /// What is wrong.
    pub problem: String,
    /// Why, or what follows from it; may be empty.
    pub cause: String,
    /// What to do; may be empty.
    pub fix: String,
    /// The points that it is about; empty for the whole run.
    pub points: Vec<String>,
    /// The rounds that it was found in, from 0; empty for the whole run.
    pub rounds: Vec<u32>,
    /// Its figures by name.
    pub figures: BTreeMap<String, FindingFigure>,
}

impl Finding {
    /// A finding of this kind, without figures yet.
    pub fn of(kind: &FindingKind) -> Self {
        Finding {
            kind: kind.id.to_owned(),
            severity: kind.severity,
            problem: kind.problem.to_owned(),
            cause: kind.cause.to_owned(),
            fix: kind.fix.to_owned(),
            points: Vec::new(),
            rounds: Vec::new(),
            figures: BTreeMap::new(),
        }
    }

    /// A reservation that an older hcabench recorded as a sentence.
    pub fn recorded(text: &str) -> Self {
        Finding {
            kind: RECORDED.to_owned(),
            severity: Severity::Reservation,
            problem: text.to_owned(),
            cause: String::new(),
            fix: String::new(),
            points: Vec::new(),
            rounds: Vec::new(),
            figures: BTreeMap::new(),
        }
    }

    /// Advice that a benchmark gives as a sentence.
    pub fn note(text: &str) -> Self {
        Finding {
            kind: "note".to_owned(),
            severity: Severity::Advice,
            ..Self::recorded(text)
        }
    }

    /// A finding of this kind in the words of an older hcabench, which did not record its figures.
    pub fn in_words(kind: &FindingKind, text: &str) -> Self {
        Finding {
            kind: kind.id.to_owned(),
            severity: kind.severity,
            figures: BTreeMap::from([(RECORDED.to_owned(), FindingFigure::Name(text.to_owned()))]),
            ..Self::recorded(text)
        }
    }

    /// One of this kind with a count, and the count that it is a part of; none where nothing was counted.
    pub fn counted(kind: &FindingKind, count: u64, of: Option<u64>) -> Option<Self> {
        let found = (count > 0).then(|| Self::of(kind).count("count", count))?;
        Some(
            of.into_iter()
                .fold(found, |found, of| found.count("of", of)),
        )
    }

    /// With a count.
    #[must_use]
    pub fn count(self, name: &str, count: u64) -> Self {
        self.with(name, FindingFigure::Count(count))
    }

    /// With a measure, in the unit that its name ends in.
    #[must_use]
    pub fn measure(self, name: &str, value: f64) -> Self {
        self.with(name, FindingFigure::Range([value, value]))
    }

    /// With a name in a list, beside those that are in it.
    #[must_use]
    pub fn listed(self, name: &str, text: impl Into<String>) -> Self {
        let mut names = BTreeSet::from([text.into()]);
        if let Some(FindingFigure::Names(others)) = self.figures.get(name) {
            names.extend(others.iter().cloned());
        }
        self.with(name, FindingFigure::Names(names))
    }

    /// As it was found on that host, beside which others take part.
    #[must_use]
    pub fn on(self, host: impl Into<String>) -> Self {
        self.name(HOST, host)
    }

    /// With a name that keeps it apart from others.
    #[must_use]
    pub fn name(self, name: &str, text: impl Into<String>) -> Self {
        self.with(name, FindingFigure::Name(text.into()))
    }

    fn with(mut self, name: &str, figure: FindingFigure) -> Self {
        self.figures.insert(name.to_owned(), figure);
        self.word();
        self
    }

    /// Fills the figures into the texts.
    fn word(&mut self) {
        let is_in_words = self.figures.contains_key(RECORDED);
        if let Some(kind) = FindingKind::of(&self.kind).filter(|_| !is_in_words) {
            let filled = |template| filled(template, &self.figures);
            let texts = [kind.problem, kind.cause, kind.fix].map(filled);
            [self.problem, self.cause, self.fix] = texts;
            if let Some(FindingFigure::Name(host)) = self.figures.get(HOST) {
                self.problem = format!("{host}: {}", self.problem);
            }
        }
    }

    /// Whether both state the same, apart from points, rounds, counts and measures.
    fn is_like(&self, other: &Finding) -> bool {
        let names = |of: &Finding| {
            let names = of.figures.iter().filter_map(|(name, figure)| match figure {
                FindingFigure::Name(text) => Some((name.clone(), text.clone())),
                _ => None,
            });
            names.collect::<Vec<_>>()
        };
        // Without its kind at hand a text cannot be worded again.
        let same_text = FindingKind::of(&self.kind).is_some() || self.problem == other.problem;
        self.kind == other.kind && same_text && names(self) == names(other)
    }

    /// Takes in what another one of the kind states.
    fn join(&mut self, other: Finding) {
        for (name, figure) in other.figures {
            let joined = match (self.figures.get(&name), figure) {
                (Some(FindingFigure::Count(one)), FindingFigure::Count(other)) => {
                    FindingFigure::Count(one.saturating_add(other))
                }
                (Some(FindingFigure::Range([low, high])), FindingFigure::Range(other)) => {
                    FindingFigure::Range([low.min(other[0]), high.max(other[1])])
                }
                (Some(FindingFigure::Names(these)), FindingFigure::Names(others)) => {
                    FindingFigure::Names(these | &others)
                }
                (_, figure) => figure,
            };
            self.figures.insert(name, joined);
        }
        if self.points.is_empty() || other.points.is_empty() {
            // It is about the whole run.
            self.points.clear();
        } else {
            let new = |point: &String| !self.points.contains(point);
            let new: Vec<String> = other.points.into_iter().filter(new).collect();
            self.points.extend(new);
        }
        self.rounds.extend(other.rounds);
        self.rounds.sort_unstable();
        self.rounds.dedup();
        self.word();
    }

    /// One line: `12 of 48 points: problem: cause; fix`, where the run has 48 points.
    pub fn line(&self, points: usize) -> String {
        let mut line = match &self.points[..] {
            [one] if points > 1 => format!("{one}: {}", self.problem),
            _ => self.short(points),
        };
        if !self.cause.is_empty() {
            let _ = write!(line, ": {}", self.cause);
        }
        if !self.fix.is_empty() {
            let _ = write!(line, "; {}", self.fix);
        }
        line
    }

    /// The same without cause and fix.
    pub fn short(&self, points: usize) -> String {
        let of = match self.points.len() {
            0 => String::new(),
            _ if points <= 1 => String::new(),
            count if count == points => format!("all {points} points: "),
            count => format!("{count} of {points} points: "),
        };
        of + &self.problem
    }

    /// Whether it is a sentence of no known kind.
    pub fn is_recorded(&self) -> bool {
        self.kind == RECORDED
    }

    /// Whether it states that no hardware was measured.
    pub fn is_of_no_hardware(&self) -> bool {
        NOT_HARDWARE.contains(&self.kind.as_str())
    }

    /// Its kind in words.
    pub fn title(&self) -> String {
        let kind = self.kind.replace('-', " ");
        match self.figures.get("check") {
            Some(FindingFigure::Name(check)) => format!("{kind} ({check})"),
            _ => kind,
        }
    }
}

/// A template with its figures.
fn filled(template: &str, figures: &BTreeMap<String, FindingFigure>) -> String {
    let mut text = template.to_owned();
    for (name, figure) in figures {
        let shown = match figure {
            FindingFigure::Count(ns) if name.ends_with("_ns") => units::duration(*ns as f64),
            FindingFigure::Count(count) => count.to_string(),
            FindingFigure::Name(text) => text.clone(),
            FindingFigure::Names(names) => {
                let first: Vec<&str> = names.iter().take(MOST_NAMED).map(String::as_str).collect();
                match names.len().saturating_sub(MOST_NAMED) {
                    0 => first.join(", "),
                    more => format!("{} and {more} more", first.join(", ")),
                }
            }
            FindingFigure::Range([low, high]) => {
                let one = |value: f64| match name {
                    name if name.ends_with("_ns") => units::duration(value),
                    name if name.ends_with("_bytes") => units::bytes(value.max(0.0) as u64),
                    name if name.ends_with("_percent") => format!("{value:.0} %"),
                    name if name.ends_with("_ppm") => format!("{value:+.0} ppm"),
                    name if name.ends_with("_khz") => format!("{value:.0} kHz"),
                    _ if value.fract() == 0.0 => format!("{value:.0}"),
                    _ => units::significant(value),
                };
                let (low, high) = (one(*low), one(*high));
                match low == high {
                    true => low,
                    false => format!("{low} to {high}"),
                }
            }
        };
        text = text.replace(&format!("{{{name}}}"), &shown);
    }
    text
}

/// The findings of a run, each fact once, in the order in which they were first made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

/// As a file has them: one that was lost shows.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counted<F> {
    count: usize,
    findings: F,
}

impl Findings {
    /// Adds what was found, at a point and in a round of it if these are named. Returns whether it is a new fact, which
    /// no other point or round has stated.
    pub fn add(&mut self, mut found: Finding, point: Option<&str>, round: Option<u32>) -> bool {
        found.points.extend(point.map(str::to_owned));
        found.rounds.extend(round);
        match self.0.iter_mut().find(|earlier| earlier.is_like(&found)) {
            Some(earlier) => {
                earlier.join(found);
                false
            }
            None => {
                self.0.push(found);
                true
            }
        }
    }

    /// Takes away what states that a run is not whole: it goes on.
    pub fn go_on(&mut self) {
        let ended = [
            kinds::INCOMPLETE.id,
            kinds::ROUNDS_MISSING.id,
            kinds::POINT_FAILED.id,
            kinds::NOTHING_MEASURED.id,
        ];
        self.0.retain(|found| !ended.contains(&&*found.kind));
    }

    /// Takes away what was found in other rounds only. Figures of several rounds together stay as they are.
    pub fn keep_rounds(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.0.retain(|found| {
            let mut rounds = found.rounds.iter();
            found.rounds.is_empty() || rounds.any(|round| is_kept(*round))
        });
    }

    /// Takes away what too high a rate explains of these points, where it is of no other point.
    pub fn leave_out_overload(&mut self, points: &BTreeSet<String>) {
        let overload = [
            kinds::OFFERED_TOO_MUCH.id,
            kinds::MESSAGES_LOST.id,
            kinds::MESSAGES_LATE.id,
            kinds::STEPS_MISSED.id,
            kinds::LOAD_MISSED.id,
            kinds::NODE_STEPS_MISSED.id,
            kinds::COPIES_LOST.id,
            kinds::SAMPLES_REFUSED.id,
        ];
        self.0.retain(|found| {
            let mut theirs = found.points.iter();
            let is_of_others = found.points.is_empty() || theirs.any(|it| !points.contains(it));
            is_of_others || !overload.contains(&&*found.kind)
        });
    }

    /// Leaves those of one point, and of the whole run.
    pub fn keep_point(&mut self, point: &str) {
        self.0
            .retain(|found| found.points.is_empty() || found.points.iter().any(|it| it == point));
        for found in &mut self.0 {
            // Its figures are those of all of them.
            let all = found.points.len();
            if all > 1 {
                found.problem = format!("of {all} points together: {}", found.problem);
            }
            found.points.retain(|it| it == point);
        }
    }

    /// All of them: the most severe first.
    pub fn all(&self) -> Vec<&Finding> {
        let mut all: Vec<&Finding> = self.0.iter().collect();
        all.sort_by_key(|found| std::cmp::Reverse(found.severity));
        all
    }

    /// Whether the figures do not answer what was asked.
    pub fn is_invalid(&self) -> bool {
        let mut all = self.0.iter();
        all.any(|found| found.severity == Severity::Invalid)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kinds of some findings in words, each once, with the number of its points where these are some of `points`.
    fn titles(&self, points: usize, is_one: impl Fn(&Finding) -> bool) -> Vec<String> {
        let mut titles: Vec<(String, BTreeSet<&String>)> = Vec::new();
        for found in self.0.iter().filter(|found| is_one(found)) {
            let title = found.title();
            match titles.iter_mut().find(|(known, _)| *known == title) {
                Some((_, of)) => of.extend(&found.points),
                None => titles.push((title, found.points.iter().collect())),
            }
        }
        let counted = |(title, of): (String, BTreeSet<&String>)| match of.len() {
            count if (1..points).contains(&count) => {
                format!("{title} ({count} of {points} points)")
            }
            _ => title,
        };
        titles.into_iter().map(counted).collect()
    }

    /// The reservations in words, with the number of their points where these are some of `points`.
    pub fn reservations(&self, points: usize) -> Vec<String> {
        self.titles(points, |found| {
            found.severity == Severity::Reservation && found.kind != kinds::INCOMPLETE.id
        })
    }

    /// Whether the figures can be used, in one line.
    pub fn verdict(&self) -> String {
        self.verdict_over(0)
    }

    /// The same, with the number of points that a kind is about where these are some of `points`.
    pub fn verdict_over(&self, points: usize) -> String {
        let invalid = |unreal: bool| {
            self.titles(points, |found| {
                found.severity == Severity::Invalid && found.is_of_no_hardware() == unreal
            })
        };
        let (unreal, wrong) = (invalid(true), invalid(false));
        let mut parts = Vec::new();
        // Incomplete and invalid are separate facts.
        let incomplete = kinds::INCOMPLETE.id;
        if self.0.iter().any(|found| found.kind == incomplete) {
            parts.push(incomplete.to_owned());
        }
        if !wrong.is_empty() {
            parts.push(format!("not usable: {}", wrong.join(", ")));
        }
        if !unreal.is_empty() {
            parts.push(format!(
                "not a measurement of hardware: {}",
                unreal.join(", ")
            ));
        }
        if !self.is_invalid() {
            parts.push(match self.reservations(points).as_slice() {
                [] => "usable".to_owned(),
                [one] => format!("usable with 1 reservation: {one}"),
                several => format!(
                    "usable with {} reservations: {}",
                    several.len(),
                    several.join(", ")
                ),
            });
        }
        parts.join("; ")
    }

    /// Reads those of the run in a folder; `None` where an older hcabench wrote none.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn read(run: &Path) -> Result<Option<Self>, ReadError> {
        let path = run.join(FINDINGS);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let text = whole(&path, "it was there a moment ago")?;
        let wrong = |cause| ReadError::json(&path, &cause);
        if text.trim_start().starts_with('[') {
            return serde_json::from_str(&text).map(Some).map_err(wrong);
        }
        let Counted::<Findings> { count, findings } = serde_json::from_str(&text).map_err(wrong)?;
        if count != findings.0.len() {
            return Err(wrong(serde_json::Error::custom(format_args!(
                "{} findings in place of {count}",
                findings.0.len()
            ))));
        }
        Ok(Some(findings))
    }

    /// Writes them into the folder of a run, in one step.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, run: &Path) -> Result<(), ReportError> {
        let count = self.0.len();
        let findings = self;
        json::write(&run.join(FINDINGS), &Counted { count, findings })
    }
}

/// The id of what an older hcabench recorded as a sentence.
const RECORDED: &str = "recorded";
/// The figure with the host of a finding.
const HOST: &str = "host";
/// The most names of a list that a text has.
const MOST_NAMED: usize = 5;
/// Kinds by which the run tried the tool and measured no hardware.
const NOT_HARDWARE: [&str; 2] = [kinds::EMULATED_PROCESSOR.id, kinds::SOFTWARE_DEVICE.id];

#[cfg(test)]
mod tests {
    use super::*;

    use super::kinds::{ELEMENTS_LOST, PAGE_FAULTS, RECEIVER_CLOCK, SMT_SIBLINGS, SOFTWARE_DEVICE};

    fn faults(count: u64) -> Finding {
        Finding::of(&PAGE_FAULTS).count("count", count)
    }

    fn software(device: &str) -> Finding {
        Finding::of(&SOFTWARE_DEVICE).name("devices", device)
    }

    #[test]
    fn one_kind_is_one_finding_over_points_and_rounds() {
        let mut all = Findings::default();
        assert!(all.add(faults(3), Some("a"), Some(1)));
        assert!(!all.add(faults(4), Some("a"), Some(0)));
        let line = all.all()[0].line(1);
        assert!(
            line.starts_with("page faults in the hot loops: 7"),
            "{line}"
        );
        assert_eq!(all.all()[0].line(48), format!("a: {line}"));
        assert!(!all.add(faults(1), Some("b"), Some(1)));
        let found = all.all()[0];
        assert_eq!((found.points.len(), &found.rounds[..]), (2, &[0, 1][..]));
        let line = found.line(48);
        assert!(
            line.starts_with("2 of 48 points: page faults in the hot loops: 8"),
            "{line}"
        );
        assert!(found.line(2).starts_with("all 2 points: "));
    }

    #[test]
    fn what_was_found_in_rounds_that_are_not_kept_goes() {
        let mut all = Findings::default();
        all.add(faults(1), None, None);
        all.add(software("of_0"), None, Some(0));
        for (device, round) in [("of_1", 1), ("of_both", 0), ("of_both", 1)] {
            all.add(software(device), None, Some(round));
        }
        all.keep_rounds(|round| round == 0);
        let left: Vec<_> = all.0.iter().map(|found| &found.rounds[..]).collect();
        assert_eq!(left, [&[][..], &[0], &[0, 1]]);
    }

    #[test]
    fn measures_span_a_range() {
        let clock = |ns| Finding::of(&RECEIVER_CLOCK).measure("offset_ns", ns);
        let mut all = Findings::default();
        all.add(clock(850.0), None, None);
        assert!(all.all()[0].problem.contains("by 850 ns"));
        all.add(clock(-12_300.0), None, None);
        assert!(all.all()[0].problem.contains("by -12.3 us to 850 ns"));
    }

    #[test]
    fn times_that_are_counted_add_up() {
        let throttled = |ns| {
            let found = Finding::of(&kinds::THROTTLED).count("throttled", 28);
            let found = found.count("periods", 29).count("throttled_ns", ns);
            found.measure("of_time", 66.0)
        };
        let mut all = Findings::default();
        all.add(throttled(1_980_000_000), Some("a"), Some(0));
        let text = "a CPU quota throttled the group in 28 of 29 periods: 1.98 s over all CPUs, at most 66 % of the \
                    time of a thread";
        assert_eq!(all.all()[0].problem, text);
        all.add(throttled(20_000_000), Some("b"), Some(0));
        let text = all.all()[0].short(2);
        assert!(text.starts_with("all 2 points: "), "{text}");
        assert!(text.contains(" in 56 of 58 periods: 2.00 s over"), "{text}");
        assert_eq!(all.verdict(), "not usable: throttled");
    }

    #[test]
    fn names_in_a_list_are_joined_and_those_of_another_host_stay_apart() {
        let shared = |threads: &str| Finding::of(&SMT_SIBLINGS).listed("threads", threads);
        let mut all = Findings::default();
        all.add(shared("a and b"), Some("p"), None);
        assert!(!all.add(shared("c and d"), Some("q"), None));
        assert!(all.add(shared("a and b").on("far"), Some("p"), None));
        let [here, there] = all.all()[..] else {
            panic!("{all:?}");
        };
        assert!(
            here.short(2).ends_with("core: a and b, c and d"),
            "{here:?}"
        );
        assert!(there.problem.starts_with("far: threads share"), "{there:?}");
        for name in ["e", "f", "g", "h"] {
            all.add(shared(name), None, None);
        }
        let text = all.all()[0].short(2);
        assert!(text.ends_with("c and d, e, f, g and 1 more"), "{text}");
        let read: Findings = serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
        assert_eq!(read, all);
    }

    #[test]
    fn different_names_are_different_facts_and_the_worst_is_first() {
        let mut all = Findings::default();
        all.add(faults(1), None, None);
        assert!(all.add(software("rxe0"), None, None));
        assert!(all.add(software("rxe1"), None, None));
        assert!(!all.add(software("rxe0"), None, None));
        let problems: Vec<&str> = all.all().iter().map(|it| it.problem.as_str()).collect();
        assert!(problems[0].contains("rxe0") && problems[1].contains("rxe1"));
        assert_eq!(problems.len(), 3);
    }

    #[test]
    fn verdicts() {
        let mut all = Findings::default();
        assert_eq!(all.verdict(), "usable");
        all.add(faults(1), None, None);
        assert_eq!(all.verdict(), "usable with 1 reservation: page faults");
        all.add(Finding::recorded("one sentence"), None, None);
        all.add(Finding::recorded("another"), None, None);
        assert_eq!(all.all().len(), 3);
        let two = "usable with 2 reservations: page faults, recorded";
        assert_eq!(all.verdict(), two);
        all.add(software("rxe0"), None, None);
        let software = "not a measurement of hardware: software device";
        assert_eq!(all.verdict(), software);
        all.add(Finding::of(&ELEMENTS_LOST).count("count", 1), None, None);
        assert_eq!(
            all.verdict(),
            format!("not usable: elements lost; {software}")
        );
        let incomplete = Finding::of(&kinds::INCOMPLETE).name("reason", "a signal");
        all.add(incomplete, None, None);
        assert_eq!(
            all.verdict(),
            format!("incomplete; not usable: elements lost; {software}")
        );
    }

    #[test]
    fn an_incomplete_run_says_so_first_and_goes_on_without_saying_it() {
        let mut all = Findings::default();
        all.add(faults(3), Some("a"), Some(0));
        for kind in [&kinds::INCOMPLETE, &kinds::POINT_FAILED] {
            all.add(Finding::of(kind).listed("reason", "a signal"), None, None);
        }
        let verdict = "incomplete; usable with 2 reservations: page faults, point failed";
        assert_eq!(all.verdict(), verdict);
        all.go_on();
        assert_eq!(all.verdict(), "usable with 1 reservation: page faults");
    }

    #[test]
    fn a_point_alone_shows_figures_of_several_as_such() {
        let mut all = Findings::default();
        for point in ["a", "b"] {
            all.add(faults(3), Some(point), None);
        }
        all.keep_point("a");
        let text = all.all()[0].short(1);
        assert!(
            text.starts_with("of 2 points together: page faults in the hot loops: 6"),
            "{text}"
        );
    }

    #[test]
    fn a_verdict_over_points_counts_those_of_a_kind() {
        let mut all = Findings::default();
        for (device, point) in [("rxe0", "a"), ("rxe1", "a"), ("rxe1", "b")] {
            all.add(software(device), Some(point), None);
        }
        all.add(faults(1), Some("a"), None);
        all.add(Finding::recorded("a sentence"), None, None);
        let software = "not a measurement of hardware: software device";
        assert_eq!(all.verdict_over(2), software);
        assert_eq!(all.verdict_over(3), format!("{software} (2 of 3 points)"));
        let reservations = ["page faults (1 of 3 points)", "recorded"];
        assert_eq!(all.reservations(3), reservations);
    }

    #[test]
    fn a_run_that_is_resumed_goes_on_counting() {
        let mut all = Findings::default();
        all.add(faults(3), Some("a"), Some(1));
        let text = serde_json::to_string(&all).unwrap();
        let mut read: Findings = serde_json::from_str(&text).unwrap();
        assert_eq!(read, all);
        assert!(!read.add(faults(4), Some("b"), Some(1)));
        assert!(
            read.all()[0]
                .problem
                .starts_with("page faults in the hot loops: 7")
        );
    }

    #[test]
    fn each_kind_has_its_own_id_and_a_text_for_each_figure() {
        for (place, kind) in kinds::ALL.iter().enumerate() {
            let is_word = |letter: char| letter.is_ascii_lowercase() || letter == '-';
            assert!(kind.id.chars().all(is_word), "{}", kind.id);
            let ids = kinds::ALL[..place].iter().map(|other| other.id);
            assert_eq!(ids.filter(|id| *id == kind.id).count(), 0, "{}", kind.id);
            for text in [kind.problem, kind.cause, kind.fix] {
                assert!(!text.ends_with(['.', ';', ' ']), "{text}");
                assert_eq!(text.matches('{').count(), text.matches('}').count());
            }
            assert!(!kind.problem.is_empty());
        }
    }
}
