//! How a benchmark ends: the marks on disk, what is shown, and the exit code.

use std::fmt;
use std::io::{self, Write as _};

use crate::results::{ReportError, ResultsFolder};
use crate::terminal::output::{say, warning};

/// The exit code of broken limits.
const LIMIT_BROKEN: u8 = 3;

/// What ended it early.
pub(crate) enum Ending {
    /// A signal, or a failure of the measurement; noted in the marks on disk.
    Failed(String),
    /// Bad input that only the first point shows.
    Refused(String),
    /// The results could not be written.
    NotWritten(ReportError),
    /// As many rounds are there as were to be for now, as after an interrupt: `--resume` goes on.
    UntilRound,
}

impl From<ReportError> for Ending {
    fn from(error: ReportError) -> Self {
        Ending::NotWritten(error)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Failed(reason) | Ending::Refused(reason) => formatter.write_str(reason),
            Ending::NotWritten(error) => error.fmt(formatter),
            Ending::UntilRound => formatter.write_str("stopped by --until-round"),
        }
    }
}

/// Marks the folder, has the results so far printed, and prints where they are. `within`: what `--resume` must be run
/// in, if that matters. Returns the exit code, which limits that are broken change.
///
/// # Errors
/// What ended it early; that the mark or standard output could not be written.
pub(crate) fn close(
    folder: ResultsFolder,
    outcome: Result<(), Ending>,
    quiet: bool,
    within: Option<&str>,
    broken_limits: &[String],
    print: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<u8> {
    let path = folder.path().to_path_buf();
    let error = match outcome {
        Ok(()) => {
            folder.complete()?;
            None
        }
        Err(Ending::Failed(reason)) => {
            folder.fail(&reason)?;
            Some(anyhow::anyhow!(reason))
        }
        Err(Ending::Refused(reason)) => {
            folder.fail(&reason)?;
            Some(crate::arguments::UsageError(reason).into())
        }
        Err(ending @ Ending::UntilRound) => {
            folder.fail(&ending.to_string())?;
            return Ok(0);
        }
        Err(Ending::NotWritten(error)) => {
            // The disk may be full: the mark from the beginning is still there.
            let _ = folder.fail(&error.to_string());
            Some(error.into())
        }
    };
    let printed = print();
    if !quiet {
        let path = path.display();
        let state = match &error {
            Some(_) => {
                let within = within.map(|within| format!(" {within}"));
                let within = within.unwrap_or_default();
                format!(" (incomplete; go on by hcabench --resume {path}{within})")
            }
            None => String::new(),
        };
        // In one piece: standard output may go to the same terminal.
        let line = format!("results:  {path}{state}\n");
        let _ = io::stderr().write_all(line.as_bytes());
    }
    for line in broken_limits {
        let _ = writeln!(io::stderr(), "hcabench: {line}");
    }
    if let Some(error) = error {
        if let Err(other) = printed {
            say(warning(&format!("{other:#}")));
        }
        return Err(error);
    }
    printed?;
    Ok(if broken_limits.is_empty() {
        0
    } else {
        LIMIT_BROKEN
    })
}
