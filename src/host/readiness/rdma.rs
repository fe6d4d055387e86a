//! Where the RDMA devices are. Of them only their place in sysfs is read.

use super::{Check, Facts, count, subject};

pub(super) fn nodes(facts: &Facts) -> Option<Check> {
    const DEVICES: &str = "sys/class/infiniband";
    let title = "RDMA devices";
    let devices: Vec<(String, Option<usize>)> = facts
        .files
        .names(DEVICES)
        .into_iter()
        .map(|name| {
            // -1, which is no usize, where the firmware does not tell; no file at all for a software device.
            let node = facts
                .files
                .number(&format!("{DEVICES}/{name}/device/numa_node"));
            (name, node)
        })
        .collect();
    if devices.is_empty() {
        return subject("rdma_devices", title, "none").advise(
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
    let far: Vec<String> = devices
        .iter()
        .filter_map(|(_, node)| *node)
        .filter(|node| !one_node && cores_on(*node) < facts.needs.cores)
        .map(|node| node.to_string())
        .collect();
    let subject = subject("rdma_devices", title, found);
    match far.first() {
        None => subject.good(),
        Some(node) => subject.advise(format!(
            "each access to the device crosses the interconnect: let this process use the CPUs of node {node} \
             (taskset, cpuset), or move the card to another slot"
        )),
    }
}
