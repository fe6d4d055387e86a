//! Reading procfs and sysfs below a root, which in tests is a made-up tree.

use super::cpu_set::CpuSet;
use super::error::HostError;
use std::path::{Path, PathBuf};

/// The files by which the kernel describes the machine.
#[derive(Debug, Clone)]
pub struct SystemFiles {
    root: PathBuf,
}

impl SystemFiles {
    /// The files of this machine.
    pub fn of_this_machine() -> Self {
        Self::below("/")
    }

    /// The files of a tree that holds `proc`, `sys` and `etc`.
    pub fn below(root: impl AsRef<Path>) -> Self {
        Self {
            root: root.as_ref().to_owned(),
        }
    }

    /// Where a file of the tree is.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The trimmed text of a file that must be there.
    pub fn text(&self, path: &str) -> Result<String, HostError> {
        let path = self.path(path);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(source) => Err(HostError::Read { path, source }),
        }
    }

    /// The trimmed text of a file, if it is there, readable and not empty.
    pub fn optional(&self, path: &str) -> Option<String> {
        self.text(path).ok().filter(|text| !text.is_empty())
    }

    /// The number in a file, if there is one.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.optional(path)?.parse().ok()
    }

    /// The list of CPUs in a file; none if the file is missing, an error if it holds something else.
    pub(crate) fn cpu_list(&self, path: &str) -> Result<Option<CpuSet>, HostError> {
        let Ok(text) = self.text(path) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(set) => Ok(Some(set)),
            Err(error) => {
                let reason = error.to_string();
                Err(HostError::Malformed(self.path(path), text, reason))
            }
        }
    }

    /// What the kernel numbers a file by, if it is there.
    pub(crate) fn inode(&self, path: &str) -> Option<u64> {
        use std::os::unix::fs::MetadataExt as _;
        let file = std::fs::metadata(self.path(path));
        file.ok().map(|file| file.ino())
    }

    /// What a link leads to, if it is there.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        target.into_os_string().into_string().ok()
    }

    /// The name of what a link leads to in the end, if it is there.
    pub fn name_behind(&self, path: &str) -> Option<String> {
        let target = std::fs::canonicalize(self.path(path)).ok()?;
        let name = target.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The names in a folder, sorted; none if it is missing.
    pub fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path(path))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The names of the processes that show; those of others may be hidden (`hidepid`).
    pub fn processes(&self) -> impl Iterator<Item = String> {
        let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
        let all = self.names("proc").into_iter().filter(is_number);
        all.filter_map(|process| self.optional(&format!("proc/{process}/comm")))
    }

    /// The value of `key` in a file of lines `key<separator>value`, such as /proc/meminfo.
    pub fn field(&self, path: &str, key: &str, separator: char) -> Option<String> {
        let text = self.optional(path)?;
        let value = text.lines().find_map(|line| {
            let (name, value) = line.split_once(separator)?;
            (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
        })?;
        (!value.is_empty()).then_some(value)
    }

    /// A value that /proc/meminfo or /proc/self/status give in KiB, in bytes.
    pub fn kibibytes(&self, path: &str, key: &str) -> Option<u64> {
        let value = self.field(path, key, ':')?;
        let kibibytes: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    }
}
