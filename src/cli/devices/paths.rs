//! Paths in texts, of which only the names of files are left unless they are of the system.

/// Folders that hold files of the system, whose paths show nothing of the user.
const SYSTEM: [&str; 7] = ["dev", "etc", "lib", "lib64", "proc", "sys", "usr"];

/// Of those, where the folders are named after users and containers.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup/";

/// A text with `.../NAME` in place of the paths of files outside of the system's folders.
pub(super) fn paths(text: &str) -> String {
    let is_around = |letter: char| letter.is_whitespace() || ",:;='\"()[]<>|&@".contains(letter);
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, from) = rest.split_at(start);
        let (found, after) = from.split_at(from.find(is_around).unwrap_or(from.len()));
        out += before;
        // Not 16 GT/s, a / b, 10.77.0.0/24, fd00::/64, sys/class, https://.
        let is_one = before.chars().next_back().is_none_or(is_around)
            && found[1..].contains(|letter: char| !letter.is_ascii_digit())
            && !found.starts_with("//");
        out += &match is_one {
            true => path(found),
            false => found.to_owned(),
        };
        rest = after;
    }
    out + rest
}

/// A path, of which only the last part is left unless it is of the system.
pub(super) fn path(path: &str) -> String {
    let first = path.split('/').nth(1).unwrap_or_default();
    match SYSTEM.contains(&first) && !path.starts_with(CONTROL_GROUPS) {
        true => path.to_owned(),
        false => last_part(path),
    }
}

fn last_part(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some((_, name)) => format!(".../{name}"),
        None => path.to_owned(),
    }
}

/// With `/home/user` in place of the home folders of others.
pub(super) fn without_users(text: &str) -> String {
    const HOMES: &str = "/home/";
    let mut parts = text.split(HOMES);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|letter: char| letter == '/' || letter.is_whitespace())
            .unwrap_or(part.len());
        out += HOMES;
        out += "user";
        out += &part[end..];
    }
    out
}
