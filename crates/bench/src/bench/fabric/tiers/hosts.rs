//! The names of hosts in files: which one is meant, and their order.

use std::collections::HashMap;

/// Hosts by name: by the whole one, else ignoring case, and where one of both has no domain, without that of the other.
pub(super) struct NamedHosts<'a, T> {
    whole: &'a HashMap<String, T>,
    /// By the part before the first point, in lower case; more than one name is no name.
    short: HashMap<String, Vec<&'a String>>,
}

impl<'a, T> NamedHosts<'a, T> {
    pub(super) fn of(whole: &'a HashMap<String, T>) -> Self {
        let mut short: HashMap<String, Vec<&String>> = HashMap::new();
        for name in whole.keys() {
            short.entry(start_of(name)).or_default().push(name);
        }
        NamedHosts { whole, short }
    }

    pub(super) fn name(&self, host: &str) -> Option<&'a String> {
        if let Some((name, _)) = self.whole.get_key_value(host) {
            return Some(name);
        }
        let is_same = |name: &str| {
            let has_no_domain = !name.contains('.') || !host.contains('.');
            has_no_domain || name.eq_ignore_ascii_case(host)
        };
        let all = self.short.get(&start_of(host))?;
        match all.iter().filter(|name| is_same(name)).collect::<Vec<_>>()[..] {
            [name] => Some(name),
            _ => None,
        }
    }

    pub(super) fn get(&self, host: &str) -> Option<&'a T> {
        self.whole.get(self.name(host)?)
    }
}

/// The part before the first point, in lower case.
fn start_of(host: &str) -> String {
    let start = host.split('.').next().unwrap_or(host);
    start.to_ascii_lowercase()
}

/// A name in parts, so that `n10` is behind `n9`.
pub(super) fn in_numbers(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digit = rest.find(|letter: char| letter.is_ascii_digit());
        let (text, behind) = rest.split_at(digit.unwrap_or(rest.len()));
        let end = behind.find(|letter: char| !letter.is_ascii_digit());
        let (number, behind) = behind.split_at(end.unwrap_or(behind.len()));
        parts.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = behind;
    }
    parts
}
