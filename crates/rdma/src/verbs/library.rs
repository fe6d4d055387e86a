//! Which libraries of rdma-core this process runs with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A library as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its version, by its file name; the last number is that of rdma-core.
    pub version: Option<String>,
    /// Its file, with all links followed.
    pub path: PathBuf,
}

/// libibverbs and librdmacm as mapped into this process, by their paths in /proc/self/maps. A link such as
/// `libibverbs.so.1` is resolved there.
pub fn library_versions() -> BTreeMap<String, Library> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    from_maps(&maps)
}

fn from_maps(maps: &str) -> BTreeMap<String, Library> {
    let mut found = BTreeMap::new();
    // Five columns without white space precede the path, which may hold some.
    for path in maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]))
    {
        // So the kernel marks a file that was replaced since, as by an upgrade.
        let path = Path::new(path.strip_suffix(" (deleted)").unwrap_or(path));
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let Some((name, version)) = file.split_once(".so") else {
            continue;
        };
        if matches!(name, "libibverbs" | "librdmacm") {
            let library = Library {
                version: version.strip_prefix('.').map(str::to_owned),
                path: path.to_owned(),
            };
            found.insert(name.to_owned(), library);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_their_files() {
        let maps = "7f00-7f01 r-xp 00000000 fe:00 12 /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0\n\
                    7f02-7f03 r--p 00000000 fe:00 13 /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so\n\
                    7f04-7f05 rw-p 00000000 00:00 0\n\
                    7f06-7f07 r-xp 00000000 fe:00 14 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f08-7f09 r-xp 00000000 fe:00 15 /home/my files/lib/librdmacm.so.1.3.55.0 (deleted)\n\
                    7f0a-7f0b r--p 00000000 fe:00 16 /usr/lib/librdmacmish.so.1\n";
        let found = from_maps(maps);
        assert_eq!(found.len(), 2);
        for (name, version, path) in [
            (
                "libibverbs",
                "1.14.44.0",
                "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0",
            ),
            (
                "librdmacm",
                "1.3.55.0",
                "/home/my files/lib/librdmacm.so.1.3.55.0",
            ),
        ] {
            assert_eq!(found[name].version.as_deref(), Some(version));
            assert_eq!(found[name].path, Path::new(path));
        }
    }
}
