//! What a program in C or the peer prints: lines such as `received=2000`.

use std::collections::BTreeMap;

use super::Ended;

pub(crate) struct Said(BTreeMap<String, String>);

impl Said {
    pub(crate) fn by(ended: &Ended) -> Self {
        let pair = |line: &str| {
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line:?}"));
            (key.to_owned(), value.to_owned())
        };
        Said(ended.stdout.lines().map(pair).collect())
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0
            .get(key)
            .unwrap_or_else(|| panic!("no {key} in {:?}", self.0))
    }

    pub(crate) fn number(&self, key: &str) -> f64 {
        self.text(key).parse().unwrap()
    }

    pub(crate) fn count(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap()
    }
}
