//! What the ends are made with: shared receive queues, relaxed ordering, on-demand paging, thread domains.

use super::Host;
use crate::testing::Has as _;

#[test]
fn queue_pairs_share_a_receive_queue_where_the_adapter_has_one() {
    let words = "--service rc,uc,ud --operation send,write --srq off,on --queue-pairs 1,16 --connect cm,direct \
                 --burst 160";
    for (character, shared) in [
        ("connectx-roce", &["rc send", "rc write", "ud send"][..]),
        ("bnxt", &["rc send", "rc write", "ud send"]),
        ("hns", &["rc send", "rc write", "ud send"]),
    ] {
        let measured = Host::with(character).measured(words);
        measured.is_whole();
        let points = measured.points(&["srq", "connect", "queue_pairs", "service", "operation"]);
        for way in ["cm", "direct"] {
            for queue_pairs in ["1", "16"] {
                let begins = format!("on {way} {queue_pairs} ");
                let found = points
                    .iter()
                    .filter_map(|point| point.strip_prefix(&begins));
                assert!(found.eq(shared.iter().copied()), "{character}: {points:?}");
            }
        }
        let left_out = measured.left_out();
        let mut reasons = left_out.iter().map(|row| &row["reason"]);
        let says = "--srq is impossible with --service uc: shared receive queues are for RC and UD";
        assert!(
            reasons.any(|reason| reason.starts_with(says)),
            "{character}"
        );
    }
    // E810 of that generation and EFA have none; the receiver is asked.
    for (character, device) in [("irdma-roce", "rocep59s0f1"), ("efa", "rdmap0s7")] {
        let refused = Host::with(character).ends("--service ud --srq", 2);
        refused.says(&["--srq is impossible", device, "max_srq is 0"]);
    }
}

#[test]
fn a_shared_receive_queue_waits_and_posts_again_as_those_of_queue_pairs_do() {
    for words in [
        "--service rc --srq --rnr-retry 0 --queue-pairs 4 --depth 1,6 --burst 300",
        "--service rc,ud --srq --queue-pairs 4 --poll event --burst 60",
        "--service rc,ud --srq --queue-pairs 3 --repeat 3 --unsignaled off,on",
        "--service rc --srq --operation write --size 8,4096 --queue-pairs 3 --receiver-pause 20us --burst 90",
    ] {
        let measured = Host::with("connectx-roce").measured(words);
        for row in measured.rows() {
            assert_eq!(row["messages_received"], row["messages_sent"], "{words}");
            assert_eq!(row["messages_corrupted"], "0", "{words}");
        }
    }
}

#[test]
fn relaxed_ordering_is_asked_for_and_refused_where_memory_is_polled() {
    let words = "--operation send,write,write-polled,read --relaxed-ordering off,on";
    let measured = Host::with("connectx-roce").measured(words);
    let points = measured
        .is_whole()
        .points(&["operation", "relaxed_ordering"]);
    let [read, send, write] =
        ["read", "send", "write"].map(|it| [format!("{it} off"), format!("{it} on")]);
    let polled = ["write-polled off".to_owned()];
    assert_eq!(points, [&read[..], &send, &write, &polled].concat());
    let left_out = measured.left_out();
    let says = "--relaxed-ordering is impossible with --operation write-polled";
    assert_eq!(left_out.len(), 1);
    left_out[0]["reason"].has(&[says, "last byte"]);
    let alone = "--operation write-polled --relaxed-ordering";
    Host::with("connectx-roce").ends(alone, 2).says(&[says]);
}

#[test]
fn on_demand_paging_is_asked_of_the_adapter_by_service_and_operation() {
    let words = "--service rc,uc,ud --operation send,write,read --srq off,on --odp";
    let measured = Host::with("connectx-roce").measured(words);
    let points = measured
        .is_whole()
        .points(&["odp", "service", "operation", "srq"]);
    let found = ["read off", "send off", "send on", "write off", "write on"];
    assert_eq!(points, found.map(|point| format!("on rc {point}")));
    let left_out = measured.left_out();
    let reasons: Vec<_> = left_out.iter().map(|row| row["reason"].as_str()).collect();
    for words in [
        "--odp is impossible with --operation send and --service ud: mlx5_1 has no on-demand paging for it (no \
         IBV_ODP_SUPPORT_RECV in odp_caps)",
        "(no IBV_ODP_SUPPORT_SRQ_RECV in odp_caps)",
        "--odp is impossible with --operation write and --service uc",
    ] {
        assert!(
            reasons.iter().any(|reason| reason.contains(words)),
            "{words}: {reasons:?}"
        );
    }
    let refused = Host::with("irdma-roce").ends("--odp", 2);
    refused.says(&["--odp is impossible: rocep59s0f0 has no on-demand paging"]);
    let devices = |options: &str| {
        let words = format!("devices{options}");
        Host::with("connectx-roce").ends(&words, 0).stdout
    };
    devices("").has(&["max_srq_wr", "ODP", "rc/ud"]);
    let document: serde_json::Value = serde_json::from_str(&devices(" --json")).unwrap();
    let caps = &document["devices"][0]["device"]["limits"]["on_demand_paging"];
    assert_eq!(caps["ud"], serde_json::json!(["send"]));
    assert_eq!(caps["uc"], serde_json::json!([]));
}

#[test]
fn a_thread_domain_is_made_where_the_driver_has_them() {
    let words =
        "--service rc,ud --thread-domain off,on --srq off,on --queue-pairs 2 --connect cm,direct";
    let measured = Host::with("connectx-roce").measured(words);
    let points = measured
        .is_whole()
        .points(&["thread_domain", "srq", "connect", "service"]);
    assert_eq!(points.len(), 16, "{points:?}");
    // A single thread uses what is in it, at the sending end too, and that of the points that it is compared with.
    for row in measured.rows() {
        let settings = measured.settings(&row);
        assert!(
            settings.to_string().contains(r#""completion_by":"sender""#),
            "{settings}"
        );
    }
    let event = Host::with("connectx-roce").ends("--thread-domain --poll event", 2);
    event.says(&["--thread-domain is impossible with --poll-comp event"]);
    let locked = Host::with("efa").ends("--service ud --thread-domain", 2);
    locked.says(&[
        "--thread-domain is impossible: the driver of rdmap0s6",
        "(EFA)",
    ]);
    for (character, device) in [("irdma-roce", "rocep59s0f0"), ("bnxt", "bnxt_re0")] {
        let refused = Host::with(character).ends("--thread-domain", 2);
        let verb = format!("ibv_alloc_td on {device} failed: Operation not supported");
        refused.says(&[
            "--thread-domain is impossible with --service rc",
            &verb,
            "--thread-domain off",
        ]);
    }
}
