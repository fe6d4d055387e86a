//! Where the RDMA devices are. Of them only their place in sysfs is read.

use super::{Assessment, Facts, ToAssessment, count};

pub(super) fn nodes(facts: &Facts) -> Assessment {
    const DEVICES: &str = "sys/class/infiniband";
    let with_node = |name: String| {
        let file = format!("{DEVICES}/{name}/device/numa_node");
        // -1, which is not a usize, where the firmware does not report it; no file at all for a software device.
        (name, facts.files.number(&file))
    };
    let names = facts.files.names(DEVICES).into_iter();
    let devices: Vec<(String, Option<usize>)> = names.map(with_node).collect();
    if !facts.needs.devices {
        return format!("{}; none is needed", count(devices.len(), "device")).good();
    }
    if devices.is_empty() {
        return "none".spoils(
            "load the driver of your HCA (modprobe mlx5_ib), or measure in the SoftRoCE machine: ci/hcabench",
        );
    }
    let one_node = facts.topology.numa_nodes().len() <= 1;
    let cores_on = |node: usize| {
        let near = facts
            .topology
            .select(|cpu| cpu.allowed && cpu.numa_node == Some(node));
        facts.topology.allowed_cores_with(&near)
    };
    let found: Vec<String> = devices
        .iter()
        .map(|(name, node)| match node {
            _ if one_node => name.clone(),
            Some(node) => format!("{name} on node {node} ({})", count(cores_on(*node), "core")),
            None => format!("{name} on no known node"),
        })
        .collect();
    let mut found = found.join(", ");
    if one_node {
        found += "; one NUMA node";
    }
    let mut nodes = devices.iter().filter_map(|(_, node)| *node);
    match nodes.find(|node| !one_node && cores_on(*node) < facts.needs.cores) {
        None => found.good(),
        Some(node) => found.advise(format!(
            "each access to the device crosses the interconnect: let this process use the CPUs of node {node} \
             (taskset, cpuset), or move the card to another slot"
        )),
    }
}
