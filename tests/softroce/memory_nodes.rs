//! Pairs of NUMA nodes. `ci/test` boots a machine with two nodes of four CPUs, and one without any.

use std::collections::BTreeSet;
use std::fs;

use crate::machine::Machine;
use crate::program::hcabench;
use crate::results::Table;
use crate::testing::Has as _;

/// The nodes that the kernel reports, and whether they have CPUs.
fn nodes() -> Vec<(u64, bool)> {
    let folder = fs::read_dir("/sys/devices/system/node").unwrap();
    let node = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_prefix("node")?.parse().ok()?;
        let cpus = fs::read_to_string(entry.path().join("cpulist")).ok()?;
        Some((number, !cpus.trim().is_empty()))
    };
    folder.filter_map(|entry| node(entry.unwrap())).collect()
}

#[test]
fn the_memory_of_a_node_without_cpus_is_measured_from_all_others() {
    let nodes = nodes();
    let without = nodes.iter().filter(|(_, has_cpus)| !has_cpus).count();
    assert!(
        without > 0 && nodes.len() > 2,
        "{nodes:?}: boot it as ci/test does"
    );
    let machine = Machine::take();
    let out = machine.out("nodes");
    // Generators would stall on processors that share the host's.
    let short = "--pause off --windows 5 --window 5ms --rounds 1 --smooth none";
    hcabench(&format!("memory --node-pairs --size 64k,32M {short}"))
        .out(&out)
        .run()
        .expect(0);
    let summary = Table::read(&out.join("summary.csv"));
    let of_row =
        |column: &str| -> Vec<u64> { summary.rows.iter().map(|row| row.count(column)).collect() };
    let measured: BTreeSet<(u64, u64)> = of_row("cpu_node")
        .into_iter()
        .zip(of_row("memory_node"))
        .collect();
    let with_cpus = nodes.iter().filter(|(_, has_cpus)| *has_cpus);
    let expected: BTreeSet<(u64, u64)> = with_cpus
        .flat_map(|(cpus, _)| nodes.iter().map(|(memory, _)| (*cpus, *memory)))
        .collect();
    assert_eq!(measured, expected);
    assert!(
        summary
            .rows
            .iter()
            .all(|row| row.decimal("latency_ns") > 0.0)
    );
    let figure = machine.out("nodes.svg");
    hcabench(&format!("plot matrix {}", out.display()))
        .out(&figure)
        .run()
        .expect(0);
    let hatched = without * nodes.len();
    fs::read_to_string(&figure).unwrap().has(&[
        &format!("{hatched} pairs without this figure are hatched"),
        "buffers of 32 MiB",
    ]);
}
