//! Assertions and folders for tests of all crates.

#![allow(dead_code)] // No crate uses all of them.

use std::fmt::Display;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A path in a folder that goes with it.
pub(crate) struct Temporary {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Deref for Temporary {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Temporary {
    fn as_ref(&self) -> &Path {
        self
    }
}

/// What is to be of that name in a new folder, which is it where there is no name.
pub(crate) fn temporary(name: &str) -> Temporary {
    let folder = tempfile::tempdir().unwrap();
    let path = match name {
        "" => folder.path().to_owned(),
        _ => folder.path().join(name),
    };
    Temporary {
        path,
        _folder: folder,
    }
}

/// A text that has to have parts, or may not.
pub(crate) trait Has {
    fn has(&self, parts: &[&str]);
    fn lacks(&self, parts: &[&str]);
    fn begins(&self, part: &str);
    fn ends(&self, part: &str);
}

impl<T: Display + ?Sized> Has for T {
    #[track_caller]
    fn has(&self, parts: &[&str]) {
        let text = self.to_string();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[track_caller]
    fn lacks(&self, parts: &[&str]) {
        let text = self.to_string();
        for part in parts {
            assert!(!text.contains(part), "{part:?} is in:\n{text}");
        }
    }

    #[track_caller]
    fn begins(&self, part: &str) {
        let text = self.to_string();
        assert!(text.starts_with(part), "{part:?} does not begin:\n{text}");
    }

    #[track_caller]
    fn ends(&self, part: &str) {
        let text = self.to_string();
        assert!(text.ends_with(part), "{part:?} does not end:\n{text}");
    }
}

/// A result that has to be an error, which has these parts.
pub(crate) trait Refused {
    fn refused(self, parts: &[&str]);
}

impl<T, E: Display> Refused for Result<T, E> {
    #[track_caller]
    fn refused(self, parts: &[&str]) {
        self.err().expect("an error").has(parts);
    }
}
