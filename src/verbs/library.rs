//! Which libraries of rdma-core this process runs with.

use std::collections::BTreeMap;

/// File names, with version, of libibverbs and librdmacm as mapped into this process, by their path in /proc/self/maps.
/// A link such as `libibverbs.so.1` is resolved there.
pub fn library_versions() -> BTreeMap<String, String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    from_maps(&maps)
}

fn from_maps(maps: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for path in maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
    {
        let file = path.rsplit('/').next().unwrap_or_default();
        let name = file.split('.').next().unwrap_or_default();
        if matches!(name, "libibverbs" | "librdmacm") {
            found.insert(name.to_owned(), file.to_owned());
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
                    7f06-7f07 r-xp 00000000 fe:00 14 /usr/lib/x86_64-linux-gnu/libc.so.6\n";
        let found = from_maps(maps);
        assert_eq!(found.len(), 1);
        assert_eq!(found["libibverbs"], "libibverbs.so.1.14.44.0");
    }
}
