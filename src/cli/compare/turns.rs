//! Two command lines, measured in turn: each round of either is a process of this program of its own.

use std::fs;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;

use crate::arguments::UsageError;
use crate::host::interrupt::{self, BlockedSignals};
use crate::results::ReportError;
use crate::results::folder::{make_folders, make_numbered_folder};
use crate::rig::child;
use crate::terminal::output::{bad_default_folder, bad_folder, default_folder, say};

/// How often is looked whether a round has ended. While it measures, the end of its output tells: this process may sit
/// on a CPU that is measured.
const WATCHED: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
/// How long a round may take to end after a signal.
const ENDING: Duration = Duration::from_secs(10);

/// Makes the folder that was asked for, which must be empty if it exists, or a new one with the time in its name.
pub(crate) fn make_folder(out: Option<&Path>) -> anyhow::Result<PathBuf> {
    let Some(out) = out else {
        let made = make_numbered_folder(&default_folder(SystemTime::now()));
        return made.map_or_else(
            |error| Err(bad_default_folder(&error)),
            |(path, _)| Ok(path),
        );
    };
    let bad = |error| bad_folder(out, &error);
    make_folders(out).map_err(bad)?;
    let is_empty = fs::read_dir(out).map(|mut entries| entries.next().is_none());
    match is_empty {
        Ok(true) => Ok(out.to_path_buf()),
        Ok(false) => {
            let told = format!("--out {}: it holds something already", out.display());
            Err(UsageError(told).into())
        }
        Err(cause) => Err(bad(ReportError::from_io("look into", out, cause))),
    }
}

/// Measures `rounds` rounds of both into `folder/A` and `folder/B`, and returns these.
pub(crate) fn take(
    runs: [&[String]; 2],
    rounds: u32,
    folder: &Path,
    quiet: bool,
) -> anyhow::Result<[PathBuf; 2]> {
    interrupt::install()?;
    let folders = ["A", "B"].map(|name| folder.join(name));
    for round in 1..=rounds {
        // Neither is always the first of two.
        let order = if round % 2 == 1 { [0, 1] } else { [1, 0] };
        for side in order {
            let name = ["A", "B"][side];
            if !quiet {
                say(format_args!("round {round} of {rounds}: {name}"));
            }
            let child = child::this_program()
                .args(words(runs[side], &folders[side], round, rounds))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn();
            let child = child.map_err(|error| {
                let advice = child::advice(&error);
                anyhow::anyhow!("cannot start this program again: {error}: {advice}")
            })?;
            let status = ended(child)?;
            if status.code() == Some(2) {
                let told = format!("--run: {name} was refused in round {round}");
                return Err(UsageError(told).into());
            }
            // A limit of the run itself is broken: it is measured all the same.
            if !status.success() && status.code() != Some(3) {
                bail!(
                    "round {round} of {name} failed ({status}); what was measured is in {}",
                    folder.display()
                );
            }
        }
    }
    if !quiet {
        let [one, other] = folders.each_ref().map(|folder| folder.display());
        say(format_args!("results:  {one} and {other}"));
    }
    Ok(folders)
}

/// The words for a round, from 1: the first makes the folder, the others go on with it.
fn words(run: &[String], folder: &Path, round: u32, rounds: u32) -> Vec<std::ffi::OsString> {
    let mut words: Vec<std::ffi::OsString> = Vec::new();
    if round == 1 {
        words.extend(run.iter().map(Into::into));
        words.extend(["--rounds".into(), rounds.to_string().into()]);
        words.extend(["--quiet".into(), "--out".into(), folder.into()]);
    } else {
        words.extend(["--resume".into(), folder.into(), "--quiet".into()]);
    }
    words.extend(["--until-round".into(), round.to_string().into()]);
    words
}

/// Waits for a round, which has limits of its own. A signal is handed on, and then the round has so long to end.
fn ended(mut child: Child) -> anyhow::Result<ExitStatus> {
    let mut stdout = child.stdout.take().context("a round has no output")?;
    // After it was started, which would have the signals held back as well.
    let held = BlockedSignals::new()?;
    let mut told: Option<(Signal, Instant)> = None;
    let mut is_ending = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a round")? {
            return match told {
                Some((signal, _)) => bail!("interrupted by {signal}"),
                None => Ok(status),
            };
        }
        match (interrupt::requested(), told) {
            (Some(signal), None) => {
                told = Some((signal, Instant::now()));
                child::pass_on(signal, &child);
            }
            (_, Some((signal, since))) if since.elapsed() > ENDING => {
                let _ = child.kill();
                let _ = child.wait();
                bail!("interrupted by {signal}; the round did not end by itself, and was killed");
            }
            _ => {}
        }
        if is_ending {
            sleep(LOOK);
        } else {
            // What comes after the end of its output measures nothing.
            is_ending = held.wait(stdout.as_fd(), WATCHED)? && stdout.read(&mut [0; 4096])? == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_makes_the_folder_and_the_others_go_on_with_it() {
        let run = ["queue".to_owned(), "--count".to_owned(), "1000".to_owned()];
        let text =
            |round| words(&run, Path::new("out/A"), round, 8).join(std::ffi::OsStr::new(" "));
        let first = "queue --count 1000 --rounds 8 --quiet --out out/A --until-round 1";
        assert_eq!(text(1), first);
        assert_eq!(text(8), "--resume out/A --quiet --until-round 8");
    }
}
