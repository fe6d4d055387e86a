//! What a thread does, as data.

use std::fmt;

/// What a thread does in a benchmark. Benchmarks define their roles as constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Role {
    /// In words: `receiver`.
    pub name: &'static str,
    /// The thread's name, as `top -H` shows it; at most 15 characters.
    pub thread: &'static str,
}

impl Role {
    /// A role with these names.
    pub const fn new(name: &'static str, thread: &'static str) -> Self {
        Role { name, thread }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
