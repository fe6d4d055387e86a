//! The limit on open files.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::error::HostError;

/// Descriptors that are looked at one by one where /proc cannot be read: a process that has more open has /proc.
const LOOKED_AT: u64 = 1024;

/// Files that this process has open.
pub fn count() -> u64 {
    match fs::read_dir("/proc/self/fd") {
        // The directory itself was open.
        Ok(open) => (open.count() as u64).saturating_sub(1),
        Err(_) => counted(),
    }
}

/// The same without a file: there is no /proc, or no descriptor is left for it.
fn counted() -> u64 {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(LOOKED_AT, |(soft, _)| soft);
    let is_open = |descriptor: &libc::c_int| {
        // SAFETY: it reads a flag, of any number.
        unsafe { libc::fcntl(*descriptor, libc::F_GETFD) != -1 }
    };
    let all = 0..limit.min(LOOKED_AT) as libc::c_int;
    all.filter(is_open).count() as u64
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
        match limit > soft {
            true => setrlimit(Resource::RLIMIT_NOFILE, limit, hard).map(|()| limit),
            false => Ok(soft),
        }
    });
    raised.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_without_proc() {
        let before = counted();
        let open: Vec<_> = (0..8)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        // Tests beside this one open and close some.
        assert!(
            before >= 3 && counted() >= 3 + open.len() as u64,
            "{before}"
        );
    }
}
