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

/// Writes a file below a folder, with the folders on the way.
pub(crate) fn put(folder: impl AsRef<Path>, name: &str, text: &str) {
    let path = folder.as_ref().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Numbers without a pattern, the same each time for a seed: those of `pacing::SplitMix64`.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Noise(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below a number.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    /// Above 0, below 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.draw() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Of a normal distribution around 0 with deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.share(), self.share());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Of an exponential distribution of mean 1: one-sided, as delays are.
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.share().ln()
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
