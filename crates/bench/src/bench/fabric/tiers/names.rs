//! The names of distances.

use super::UNKNOWN;

/// Nothing is above both.
pub(super) const APART: u32 = u32::MAX - 2;
/// Without a source.
pub(super) const FABRIC: u32 = u32::MAX - 1;
/// At least one has no place.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The name of a distance: 0 on one host, else one more than the links between the two switches, of which a level of a
/// tree is two.
pub(super) fn name_of(distance: u32) -> String {
    match distance {
        0 => "same-host".to_owned(),
        1 => "leaf".to_owned(),
        APART => "apart".to_owned(),
        FABRIC => "fabric".to_owned(),
        NOWHERE => UNKNOWN.to_owned(),
        more if more % 2 == 1 => format!("up-{}", more / 2),
        more => format!("hops-{}", more - 1),
    }
}

/// What the name of a tier means.
pub fn meaning(name: &str) -> String {
    match nearness(name) {
        0 => "on one host".to_owned(),
        1 => "at one switch, or in one group".to_owned(),
        3 => "in one pod: one level above their switches".to_owned(),
        APART => "without a switch or group in common".to_owned(),
        FABRIC => "on different hosts".to_owned(),
        NOWHERE => "at least one is not named: not judged".to_owned(),
        more if more % 2 == 1 => format!("across pods: {} levels above their switches", more / 2),
        more => format!("{} links between their switches", more - 1),
    }
}

/// The distance that a name is of.
pub(super) fn nearness(name: &str) -> u32 {
    let number = |unit: &str| name.strip_prefix(unit)?.parse::<u32>().ok();
    match name {
        "same-host" => 0,
        "leaf" => 1,
        "fabric" => FABRIC,
        UNKNOWN => NOWHERE,
        _ => {
            let up = number("up-").map(|levels| levels.saturating_mul(2));
            let links = up.or_else(|| number("hops-"));
            links.map_or(APART, |links| links.saturating_add(1).min(APART))
        }
    }
}
