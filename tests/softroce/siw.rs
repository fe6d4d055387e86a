//! The second provider: iWARP in software, in a separate machine (`ci/vm --provider siw`).

use std::time::Duration;

use crate::program::{LIMIT, hcabench};
use crate::results::Results;
use crate::testing::Has as _;

/// A folder for a test, once both devices are found to be there.
fn scratch() -> tempfile::TempDir {
    for device in ["siw0", "siw1"] {
        let port = format!("/sys/class/infiniband/{device}/ports/1/state");
        let state = std::fs::read_to_string(port).unwrap_or_default();
        assert!(
            state.contains("ACTIVE"),
            "no {device}: these tests need the machine of ci/vm --provider siw (ci/test)"
        );
    }
    crate::scratch()
}

#[track_caller]
fn measured(folder: &tempfile::TempDir, words: &str) -> Results {
    let out = folder.path().join("results");
    let program = hcabench(words).word("--verbose").word("--force");
    program.out(&out).start().wait(LIMIT).expect(0);
    Results::at(out)
}

#[test]
fn the_main_job_gives_8192_latencies() {
    let folder = scratch();
    let out = folder.path().join("results");
    let words = "--service rc --inline --burst 8192 --verbose";
    let ended = hcabench(words).out(&out).start().wait(LIMIT).expect(0);
    let results = Results::at(&out);
    results.check(1);
    let messages = results.points()[0].messages();
    assert!(messages.iter().map(|one| one.seq).eq(0..8192));
    assert!(messages.iter().all(|one| one.latency.is_some()));
    let row = &results.summary().rows[0];
    assert_eq!(row.text("connect"), "cm");
    assert_eq!(row.count("messages_corrupted"), 0);
    ended.stderr.has(&[
        "sender:   siw0 port 1 at 10.77.0.1, Ethernet (iWARP)",
        "receiver: siw1 port 1 at 10.77.0.2, Ethernet (iWARP)",
        "software devices (siw0, siw1)",
    ]);
}

#[test]
fn stamps_of_adapters_are_refused_by_name() {
    let folder = scratch();
    let out = folder.path().join("results");
    let ended = hcabench("--hw-timestamps").out(&out).ends(2);
    ended.says(&["--hw-timestamps: siw0 ", "leave it out"]);
    assert!(!out.exists());
}

#[test]
fn each_operation_that_iwarp_has_delivers_and_the_others_have_a_reason() {
    let folder = scratch();
    let words = "--service rc,uc,ud --operation send,write,write-polled,read --connect auto,direct --poll busy,event \
                 --inline off,on --burst 50";
    let results = measured(&folder, words);
    let rows = results.summary().rows;
    let mut found: Vec<String> = rows
        .iter()
        .map(|row| {
            ["operation", "poll_recv", "inline"]
                .map(|name| row.text(name))
                .join(" ")
        })
        .collect();
    found.sort_unstable();
    let expected = [
        "read busy off",
        "send busy off",
        "send busy on",
        "send event off",
        "send event on",
        "write-polled busy off",
        "write-polled busy on",
    ];
    assert_eq!(found, expected);
    results.check(expected.len());
    for option in [
        "--service uc",
        "--service ud",
        "--operation write",
        "--connect direct",
    ] {
        let begins = format!("{option} is impossible: siw0 is iWARP");
        let reasons = results.left_out().rows;
        assert!(
            reasons
                .iter()
                .any(|row| row.text("reason").starts_with(&begins)),
            "{option}"
        );
    }
}

#[test]
fn sizes_several_queue_pairs_depth_and_repeats_deliver() {
    let folder = scratch();
    for words in [
        "--size 8,64,4096,65536 --burst 200",
        "--queue-pairs 1,3 --burst 200 --repeat 3",
        "--srq off,on --queue-pairs 1,5 --burst 200 --repeat 3 --poll busy,event",
        "--srq --queue-pairs 4 --depth 6 --rnr-retry 0 --burst 300",
        "--depth 8 --burst 500 --poll-comp event",
        "--operation write-polled,read --size 8,1024 --depth 4 --burst 100",
        "--rate 2000 --burst 100",
    ] {
        let results = measured(&folder, words);
        let rows = results.summary().rows;
        results.check(rows.len());
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row.count("messages_corrupted") == 0),
            "{words}"
        );
    }
}

#[test]
fn what_siw_lacks_is_refused_by_name() {
    let _folder = scratch();
    let (domain, paging) = ("--thread-domain is impossible", "--odp is impossible");
    hcabench("--thread-domain").ends(2).says(&[domain, "siw0"]);
    hcabench("--odp").ends(2).says(&[paging, "siw0"]);
}

#[test]
fn packets_that_are_lost_are_sent_again_by_tcp() {
    let folder = scratch();
    let loss = crate::machine::Disturbance::of_everything("veth0", "loss 2%");
    let results = measured(&folder, "--burst 500 --size 1024 --timeout 20s");
    let row = &results.summary().rows[0];
    assert_eq!(row.count("messages_received"), 500);
    assert!(loss.dropped() > 0);
}

#[test]
fn a_device_that_is_removed_ends_the_point_and_says_so() {
    let folder = scratch();
    let out = folder.path().join("results");
    let running = hcabench("--burst 50,8000 --pause 2ms --verbose")
        .out(&out)
        .start();
    Results::wait_for_point(&out, 2);
    crate::machine::sh("rdma link delete siw1");
    let ended = running.wait(LIMIT.max(Duration::from_secs(60)));
    crate::machine::sh("rdma link add siw1 type siw netdev veth1");
    let ended = ended.expect(1);
    ended.stderr.has(&["siw1"]);
    assert!(Results::at(&out).is_marked());
}
