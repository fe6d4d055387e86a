//! Which one port a host takes part with: in a run between two hosts, or as a rank of a fabric.

use super::{ChoiceError, ChosenPort, find, no_device, none_active, usable_ports};
use crate::rdma::verbs::Devices;
use crate::rig::ports::PortRequest;
use crate::sorting::sort_by_key;

/// Chooses one port: the one that was named, or the first active one, of those with an IP address if there is one.
///
/// # Errors
/// When the named port cannot be used, or there is none.
pub fn choose_one(
    all: &Devices,
    option: &'static str,
    request: Option<&PortRequest>,
) -> Result<ChosenPort, ChoiceError> {
    let ports = match request {
        Some(request) => find(all, option, request)?,
        None => usable_ports(&all.usable),
    };
    let best = ports.into_iter().min_by_key(|port| port.address.is_none());
    best.ok_or_else(|| {
        ChoiceError::TooFew(match (all.usable.as_slice(), all.refused.first()) {
            ([], Some((_, reason))) => format!("no RDMA device of this host can be used: {reason}"),
            ([], None) => no_device().to_owned(),
            (devices, _) => none_active(devices),
        })
    })
}

/// Chooses one port of several that share a host: the one that was named, which the first of them has alone, or of the
/// active ones, each by its first address, that of this place, in the order of their names.
///
/// # Errors
/// When the named port cannot be used, or there are fewer.
pub fn choose_nth(
    all: &Devices,
    request: Option<&PortRequest>,
    place: u32,
) -> Result<ChosenPort, ChoiceError> {
    if let Some(request) = request {
        return match place {
            0 => choose_one(all, "--sender", Some(request)),
            _ => Err(ChoiceError::Named {
                option: "--sender",
                value: request.to_string(),
                reason:
                    "another rank of this host has it: leave it out, and each takes a separate port"
                        .to_owned(),
            }),
        };
    }
    let mut ports = usable_ports(&all.usable);
    ports.dedup_by(|one, other| one.is_port_of(other));
    // The kernel lists them in the order in which they came.
    sort_by_key(&mut ports, |port| {
        let name = port.device.name.clone();
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = name[stem.len()..].parse::<u32>().unwrap_or(0);
        (stem.to_owned(), number, port.port.number)
    });
    let place = place as usize;
    match ports.len() {
        0 => choose_one(all, "--sender", None),
        count if place >= count => Err(ChoiceError::TooFew(format!(
            "this host has {count} active RDMA ports, and rank {} of those on it needs one: start fewer ranks a host",
            place + 1
        ))),
        _ => Ok(ports.swap_remove(place)),
    }
}
