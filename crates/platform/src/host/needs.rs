//! Threads and files that something takes, counted before it begins.

use super::error::HostError;
use super::{open_files, resources};

/// What something takes at most, beside what there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Processes are threads as well.
    pub threads: u64,
    /// Files, sockets, pipes and all else that has a descriptor.
    pub files: u64,
}

impl Needs {
    /// Raises the limit of open files as far as that is needed and allowed. `what`: who takes them.
    ///
    /// # Errors
    /// When a limit is below that.
    pub fn require(self, what: &str) -> Result<(), HostError> {
        let files = files_missing(self.files, open_files::count())?;
        match files.or_else(|| resources::threads_missing(self.threads)) {
            None => Ok(()),
            Some(reason) => Err(HostError::Shortage {
                what: what.to_owned(),
                reason,
            }),
        }
    }
}

fn files_missing(more: u64, open: Option<u64>) -> Result<Option<String>, HostError> {
    let limit = open_files::raise(open.unwrap_or(0).saturating_add(more))?;
    // The folder could not be opened to count them: none is left.
    let open = open.unwrap_or(limit);
    let needed = open.saturating_add(more);
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
        assert_eq!(files_missing(1, Some(3)).unwrap(), None);
        let needs = Needs {
            files: 1 << 40,
            threads: 0,
        };
        let told = ["the sockets: 1099511627776 more files", "ulimit -n"];
        needs.require("the sockets").refused(&told);
        let uncounted = files_missing(1, None).unwrap().unwrap();
        assert!(uncounted.contains("1 more files"), "{uncounted}");
    }
}
