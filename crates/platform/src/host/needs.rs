//! Threads and files that something takes, counted before it begins.

use super::error::HostError;
use super::{open_files, resources};

/// What something takes at most, beside what there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Those of this process and of processes that it starts; a process is a thread as well.
    pub threads: u64,
    /// Address space for the stacks of those of them that are in this process, in bytes.
    pub stacks: u64,
    /// Files, sockets, pipes and all else that has a descriptor.
    pub files: u64,
}

/// Files that may be opened meanwhile by what is not counted: the C library, a look at /proc.
const SLACK: u64 = 64;

impl Needs {
    /// That of threads of this process with the stack that Rust gives them.
    pub fn of_threads(threads: u64) -> Self {
        Needs {
            threads,
            stacks: threads.saturating_mul(resources::STACK),
            files: 0,
        }
    }

    /// Raises the limit of open files as far as that is needed and allowed. `what`: who takes them.
    ///
    /// # Errors
    /// When a limit is below that.
    pub fn require(self, what: &str) -> Result<(), HostError> {
        let missing = files_missing(self.files)?
            .or_else(|| resources::threads_missing(self.threads))
            .or_else(|| resources::stacks_missing(self.stacks));
        match missing {
            None => Ok(()),
            Some(reason) => Err(HostError::Shortage {
                what: what.to_owned(),
                reason,
            }),
        }
    }
}

fn files_missing(more: u64) -> Result<Option<String>, HostError> {
    let open = open_files::count();
    let needed = open.saturating_add(more);
    let limit = open_files::raise(needed.saturating_add(SLACK))?;
    Ok((needed > limit).then(|| {
        format!(
            "{more} more files are needed, and {open} of the {limit} that ulimit -n allows are open: raise it as root \
             with ulimit -n {needed}"
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn files_that_cannot_be_had_are_counted_before_they_are_opened() {
        assert_eq!(files_missing(1).unwrap(), None);
        let needs = Needs {
            files: 1 << 40,
            ..Needs::default()
        };
        let told = ["the sockets: 1099511627776 more files", "ulimit -n"];
        needs.require("the sockets").refused(&told);
    }
}
