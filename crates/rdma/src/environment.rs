//! Variables by which the user-space drivers are set.

use std::collections::BTreeMap;

/// What their names begin with: `getenv` in the providers mlx5, mlx4 and cxgb4 (T5), in libibverbs, and in what all
/// share (rdma-core 55).
const PREFIXES: [&str; 7] = [
    "MLX5_",
    "MLX4_",
    "CXGB4_",
    "T5_",
    "IBV_",
    "RDMAV_",
    "VERBS_LOG_",
];

/// Those that are set in this process, with their values.
pub fn variables() -> BTreeMap<String, String> {
    of_drivers(std::env::vars_os().map(|(name, value)| {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        (text(name), text(value))
    }))
}

fn of_drivers(all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_drivers = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    all.filter(|(name, _)| is_drivers(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_drivers_are_told_and_no_others() {
        let names = [
            "MLX5_SCATTER_TO_CQE",
            "MLX4_SINGLE_THREADED",
            "IBV_FORK_SAFE",
            "RDMAV_HUGEPAGES_SAFE",
            "T5_ENABLE_WC",
            "VERBS_LOG_LEVEL",
            "PATH",
            "MY_MLX5_",
        ];
        let found = of_drivers(
            names
                .map(|name| (name.to_owned(), "1".to_owned()))
                .into_iter(),
        );
        let mut expected: Vec<_> = names[..6].to_vec();
        expected.sort_unstable();
        assert_eq!(found.keys().collect::<Vec<_>>(), expected);
    }
}
