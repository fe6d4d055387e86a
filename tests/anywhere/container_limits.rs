//! Limits of control groups as they are where these tests run, whatever they are: with or without a quota, in a
//! container or not. `tests/softroce/throttling.rs` makes a group with a quota.

use serde_json::Value;

use crate::common::{alone, json};
use crate::program::hcabench;
use crate::testing::temporary;

const LIMITS: [&str; 5] = ["cpus_by_quota", "cpu_quotas", "cpuset", "memory", "pids"];

#[test]
fn each_benchmark_records_the_limits_that_host_shows() {
    let _alone = alone();
    let folder = &*temporary("");
    let host = hcabench("host --for clock --json").run().json();
    let expected = &host["machine"]["limits"];
    for name in LIMITS {
        let found = &expected[name];
        assert!(!found.is_null(), "{name} is left out: {expected}");
        // Of what is unknown there is the reason.
        let reason = &expected["unknown"][name.replace("cpus_by_quota", "cpu_quotas")];
        assert!(
            found != "unknown" || reason.is_string(),
            "{name}: {expected}"
        );
    }
    for words in [
        "queue --queue lamport --count 1k --warmup 1ms",
        "clock --duration 20ms",
        "node --type loopback --rate 1k --duration 50ms --warmup 0",
        "memory --size 64k --pause off --read-share 100 --windows 2 --rounds 1",
    ] {
        let out = folder.join(&words[..3]);
        hcabench(words).out(&out).ends(0);
        let settings = json(&out.join("settings.json"));
        let limits = &settings["machine"]["limits"];
        for name in LIMITS {
            // Which of several groups leaves the least of these depends on what others use.
            let varies = ["memory", "pids"].contains(&name) && expected[name].is_object();
            match varies {
                true => assert!(limits[name].is_object(), "{words}: {limits}"),
                false => assert_eq!(limits[name], expected[name], "{words}: {name}"),
            }
        }
        // Only what has a quota can be throttled.
        let findings = json(&out.join("findings.json"));
        let mut kinds = findings["findings"].as_array().unwrap().iter().map(kind);
        let is_throttled = kinds.any(|kind| kind.starts_with("throttled"));
        assert!(
            !is_throttled || limits["cpus_by_quota"].is_number(),
            "{words}: {findings}"
        );
    }
}

fn kind(found: &Value) -> &str {
    found["kind"].as_str().unwrap()
}
