//! Assertions for tests of all crates.

#![allow(dead_code)] // No crate uses all of them.

use std::fmt::Display;

/// A text that has to have parts, or may not.
pub trait Has {
    fn has(&self, parts: &[&str]);
    fn lacks(&self, parts: &[&str]);
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
}

/// A result that has to be an error, which has these parts.
pub trait Refused {
    fn refused(self, parts: &[&str]);
}

impl<T, E: Display> Refused for Result<T, E> {
    #[track_caller]
    fn refused(self, parts: &[&str]) {
        self.err().expect("an error").has(parts);
    }
}
