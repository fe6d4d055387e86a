//! The PCI Express way of the RDMA devices (Documentation/ABI/testing/sysfs-bus-pci and sysfs-kernel-iommu_groups of the
//! kernel).

use super::{Assessment, Facts, ToAssessment};

const DEVICES: &str = "sys/class/infiniband";

/// The RDMA devices that have that file among those of their PCI function, and its text.
fn devices_with(facts: &Facts, file: &str) -> Vec<(String, String)> {
    let names = facts.files.names(DEVICES).into_iter();
    let text = |name: String| {
        let text = facts
            .files
            .optional(&format!("{DEVICES}/{name}/device/{file}"))?;
        Some((name, text.trim().to_owned()))
    };
    names.filter_map(text).collect()
}

/// Whether the cards have the lanes and the speed that they are made for; none where no device reports it.
pub(super) fn link(facts: &Facts) -> Assessment {
    let of = |file: &str| devices_with(facts, file);
    let (speeds, widths) = (of("current_link_speed"), of("current_link_width"));
    let (best_speeds, best_widths) = (of("max_link_speed"), of("max_link_width"));
    let value = |all: &[(String, String)], name: &str| {
        let found = all.iter().find(|(of, _)| of == name);
        found.map(|(_, text)| text.clone())
    };
    let mut found = Vec::new();
    let mut is_below = false;
    for (name, speed) in &speeds {
        let rest = [&widths, &best_speeds, &best_widths].map(|all| value(all, name));
        let [Some(width), Some(best_speed), Some(best_width)] = rest else {
            continue;
        };
        // A virtual function does not know its link.
        let known = speed.starts_with(|letter: char| letter.is_ascii_digit()) && width != "0";
        if !known {
            continue;
        }
        let link = format!("{name} {speed} x{width}");
        if *speed == best_speed && width == best_width {
            found.push(link);
        } else {
            is_below = true;
            found.push(format!("{link} of {best_speed} x{best_width}"));
        }
    }
    match (found.is_empty(), is_below) {
        (true, _) => None,
        (false, false) => found.join(", ").good(),
        (false, true) => found.join(", ").advise(
            "each access to the device takes longer than it must: move the card to a slot with its speed and lanes, seat \
             it again, or look at the settings of the firmware",
        ),
    }
}

/// Whether the links may sleep; none where no device has a setting for it.
pub(super) fn power(facts: &Facts) -> Assessment {
    let links = devices_with(facts, "link/l1_aspm");
    if links.is_empty() {
        return None;
    }
    let asleep: Vec<String> = (links.iter())
        .filter(|(_, text)| text == "1")
        .map(|(name, _)| name.clone())
        .collect();
    match asleep.is_empty() {
        true => "no RDMA device's link sleeps (L1 of ASPM)".good(),
        false => format!("the links of {} may sleep (L1 of ASPM)", asleep.join(", ")).advise(
            "the first message after a pause waits for the link to wake, some microseconds: boot with \
             pcie_aspm.policy=performance, or write 0 to link/l1_aspm of the device",
        ),
    }
}

/// Whether accesses of the devices to memory are translated.
pub(super) fn iommu(facts: &Facts) -> Assessment {
    let groups = devices_with(facts, "iommu_group/type");
    if groups.is_empty() {
        return None;
    }
    let found = groups.iter().map(|(name, kind)| format!("{name} {kind}"));
    let found = Vec::from_iter(found).join(", ");
    match groups.iter().all(|(_, kind)| kind == "identity") {
        true => found.good(),
        false => found.advise(
            "each access of the device to memory may wait for a translation, more so without huge pages: boot with \
             iommu=pt",
        ),
    }
}
