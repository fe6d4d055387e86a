//! The findings of a run as lines of its page.

use super::{Texts, name_of, varying};
use crate::figures::capital;
use crate::page::Notice;
use crate::results::finding::{Finding, Findings};
use crate::results::read::Run;

/// So many points of a finding are named.
const MOST_NAMED: usize = 8;

/// All of them: a line each, and what else there is to it.
pub(super) fn of(run: &Run, found: &Findings) -> Vec<Notice> {
    let varying = varying(run);
    let notice = |found: &Finding| Notice {
        severity: found.severity,
        line: capital(&found.short(run.points.len())) + ".",
        more: vec![
            sentence(&found.cause),
            sentence(&found.fix),
            sentence(&places(run, &varying, found)),
        ],
    };
    found.all().into_iter().map(notice).collect()
}

fn sentence(text: &str) -> String {
    match text {
        "" => String::new(),
        text => capital(text) + ".",
    }
}

/// The points that a finding is about, if these are not all of them.
fn places(run: &Run, varying: &[Texts<'_>], found: &Finding) -> String {
    if found.points.len() == run.points.len() {
        return String::new();
    }
    let is_named = |name: &String| found.points.contains(name);
    let points = run.points.iter().filter(|point| is_named(&point.name));
    let names: Vec<String> = points.map(|point| name_of(varying, point)).collect();
    let shown = names[..names.len().min(MOST_NAMED)].join("; ");
    match names.len().saturating_sub(MOST_NAMED) {
        _ if names.is_empty() => String::new(),
        0 => format!("at {shown}"),
        more => format!("at {shown}; and {more} more"),
    }
}
