//! A folder of samples for each ordered pair.

use std::collections::{BTreeMap, BTreeSet};

use super::FabricArguments;
use crate::launch::message::DirectionReport;
use crate::results::folder::PointFolder;
use crate::results::schema::SampleFile;
use crate::results::schema::between::{MESSAGES, PROBES_FILE};
use crate::results::{ReportError, ResultsFolder, SampleWriter};

/// Up to this many ranks each pair has a folder: beyond, there are too many files for a file system to like.
const MOST_RANKS: u32 = 64;

/// The files of a pair's folder.
pub(super) const SAMPLES: [SampleFile; 2] = [MESSAGES, PROBES_FILE];

/// Which pairs have a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PairFolders {
    /// All.
    All,
    /// Those that are measured again alone.
    Again,
    /// None.
    None,
}

impl PairFolders {
    /// As it was set, or as it fits to this many ranks.
    pub(super) fn of(arguments: &FabricArguments, ranks: u32) -> Self {
        let usual = match ranks <= MOST_RANKS {
            true => PairFolders::All,
            false => PairFolders::Again,
        };
        arguments.pair_folders.unwrap_or(usual)
    }
}

/// The folders that are there.
#[derive(Debug)]
pub(super) struct Folders {
    which: PairFolders,
    /// Whether an earlier run left some.
    resumed: bool,
    /// By its name, with the files that it has from this run.
    open: BTreeMap<String, (PointFolder, BTreeSet<&'static str>)>,
}

impl Folders {
    /// Of a run that begins, or goes on.
    pub(super) fn new(which: PairFolders, resumed: bool) -> Self {
        Folders {
            which,
            resumed,
            open: BTreeMap::new(),
        }
    }

    /// Whether a pair of the schedule has one, or one that is measured again.
    pub(super) fn has(&self, again: bool) -> bool {
        self.which == PairFolders::All || again && self.which == PairFolders::Again
    }

    /// Appends the samples of a direction in a round, where it has any.
    pub(super) fn keep(
        &mut self,
        of_run: &ResultsFolder,
        name: &str,
        round: u32,
        direction: &DirectionReport,
    ) -> Result<(), ReportError> {
        for file in SAMPLES {
            let path = of_run.path().join(name).join(file.name);
            if self.resumed && path.is_file() {
                // A round that is not whole is measured again.
                SampleWriter::keep_rounds(&path, &file, |kept| kept != round)?;
            }
            let Some(rows) = direction.samples.get(file.name) else {
                continue;
            };
            if !self.open.contains_key(name) {
                let made = (of_run.point(name)?, BTreeSet::new());
                self.open.insert(name.to_owned(), made);
            }
            let (folder, files) = self.open.get_mut(name).expect("made before");
            if files.insert(file.name) {
                folder.file(file.name)?;
            }
            let mut writer = SampleWriter::open(folder.path(), &file, round)?;
            writer.append_text(rows)?;
            writer.finish()?;
        }
        Ok(())
    }

    /// Nothing more will come. `whole`: the pairs that are whole in all rounds.
    pub(super) fn close(
        &mut self,
        of_run: &ResultsFolder,
        whole: impl Iterator<Item = String>,
    ) -> Result<(), ReportError> {
        let mut open = std::mem::take(&mut self.open);
        for name in whole {
            if let Some((folder, _)) = open.remove(&name) {
                folder.complete()?;
            } else if self.resumed && of_run.path().join(&name).is_dir() {
                of_run.point(&name)?.complete()?;
            }
        }
        let not_whole = "the pair is not whole in all rounds";
        open.into_values()
            .try_for_each(|(folder, _)| folder.fail(not_whole))
    }
}
