//! What the commands that measure have in common in what they show and where they write.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::UsageError;
use crate::report::ReportError;

/// A warning in lines that fit, the later ones indented.
pub(super) fn warning(text: &str) -> String {
    crate::cli::wrap(&format!("warning: {text}"), crate::cli::TEXT_WIDTH - 2).join("\n  ")
}

/// A results folder that cannot be used is bad input.
pub(super) fn bad_folder(out: &Path, error: &ReportError) -> anyhow::Error {
    UsageError(format!("--out {}: {error}", out.display())).into()
}

/// `results/DATE-TIME`, with a number behind it if there is one already.
pub(super) fn default_folder(now: SystemTime) -> PathBuf {
    let stamp = humantime::format_rfc3339_seconds(now).to_string();
    let stamp = stamp.replace(['-', ':', 'Z'], "").replace('T', "-");
    let base = Path::new("results").join(&stamp);
    let mut candidates = (2..).map(|number| base.with_file_name(format!("{stamp}-{number}")));
    if base.exists() {
        candidates
            .find(|candidate| !candidate.exists())
            .unwrap_or(base)
    } else {
        base
    }
}

/// Columns of the terminal; `None` when standard output is no terminal and nobody says how wide it will be shown.
pub(super) fn terminal_width() -> Option<usize> {
    let told = || {
        std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok())
    };
    let found =
        terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    found.or_else(told)
}

/// A reader that has seen enough (head, a pager) is no failure.
pub(super) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
