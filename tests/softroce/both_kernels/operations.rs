//! Each operation of a reliable connection, connected in either way.

use crate::machine::Machine;

#[test]
fn every_operation_of_a_reliable_connection_does_what_it_should_over_either_way() {
    let machine = Machine::take();
    let arguments = "--connect cm,direct --operation write-polled,read,compare-swap,fetch-add --size 8,9,4KiB --burst 40";
    let results = machine.measured(arguments);
    // Atomics are of 8 bytes.
    results.check(2 * (2 * 3 + 2));
    let left_out = results.left_out();
    assert_eq!(left_out.rows.len(), 2 * 2 * 2);
    for row in &left_out.rows {
        let reason = row.text("reason");
        assert!(reason.contains("it changes 8 bytes"), "{reason}");
    }
    for row in &results.summary().rows {
        assert_eq!(row.count("completions"), 40, "{row:?}");
        if !row.is_of_requests() {
            assert_eq!(row.count("messages_received"), 40, "{row:?}");
        }
    }
    for point in results.points() {
        let name = point.name();
        let path = &point.settings["obtained"]["path"];
        let number = |end: &str, attribute: &str| {
            let found = &path[end]["queue_pair"]["reliability"][attribute];
            found.as_u64().unwrap_or_else(|| panic!("{name}: {path}"))
        };
        let to_peer = number("sender", "max_rd_atomic");
        let from_peer = number("receiver", "max_dest_rd_atomic");
        let has_reads = results.row_of(&point).is_of_requests();
        // As many as the devices have, which is more than the one that there always may be.
        assert_eq!(to_peer > 1, has_reads, "{name}: {path}");
        assert!(!has_reads || from_peer >= to_peer, "{name}: {path}");
    }
}
