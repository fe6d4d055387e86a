//! The limit on open files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::error::HostError;

/// Files that this process has open; `None` where that cannot be found out.
pub fn count() -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    // The directory itself was open.
    Some(open.saturating_sub(1))
}

/// Lets this process, and those that it starts, have this many files open, as far as its hard limit allows: no
/// privilege is needed for that. Returns the limit then in force.
///
/// # Errors
/// When the system does not report the limit, or does not raise it.
pub fn raise(files: u64) -> Result<u64, HostError> {
    let advice = "raise it with ulimit -n before the program starts";
    let failed = HostError::system("setrlimit(RLIMIT_NOFILE)", "this process", advice);
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let limit = files.min(hard).max(soft);
        setrlimit(Resource::RLIMIT_NOFILE, limit, hard).map(|()| limit)
    });
    raised.map_err(failed)
}
