//! UC by both routes: `rdma_create_ep`, and `rdma_create_id2` of `rdma-cm-patch/build`. Also run on kernel 6.12.

use crate::testing::Has as _;
use std::path::{Path, PathBuf};

use hcabench::bench::hca::ends::endpoints::{EndpointSettings, Endpoints};
use hcabench::bench::hca::loops::tag::Tag;
use hcabench::bench::hca::plan::Point;
use hcabench::bench::hca::settings::config::{Operation, Service, Switch, doubled_sizes};
use hcabench::rdma::cm::{EventChannel, UcRoute};
use hcabench::rdma::verbs::library_versions;
use hcabench::time::Ticks;

use crate::connections::{ends, send_one, settings, type_and_state};
use crate::machine::{ENDS, Machine};
use crate::own_process::run_with;
use crate::program::{Program, hcabench};
use crate::results::Results;

/// Where the patched library is; without it the tests fail.
fn patched_folder() -> PathBuf {
    let folder = std::env::var("HCABENCH_RDMA_CM_LIB")
        .expect("HCABENCH_RDMA_CM_LIB names the folder of the patched librdmacm, as ci/test does");
    let folder = PathBuf::from(folder);
    assert!(
        folder.join("librdmacm.so.1").is_file(),
        "no librdmacm.so.1 in {}: run rdma-cm-patch/build",
        folder.display()
    );
    folder
}

fn with_patched() -> String {
    format!("LD_LIBRARY_PATH={}", patched_folder().display())
}

fn patched_hcabench(arguments: &str) -> Program {
    let program = &crate::program::path();
    Program::under(&["env", &with_patched()], program, arguments)
}

/// Connects by a route, for each operation and size, asks both queue pairs what they are, and sends a message.
fn connect_and_deliver(route: UcRoute) {
    let _machine = Machine::take();
    let patched = patched_folder().canonicalize().unwrap();
    // The library is loaded when it is first needed.
    let channel = EventChannel::create().unwrap();
    let loaded = library_versions().remove("librdmacm").unwrap().path;
    assert_eq!(
        loaded.starts_with(&patched),
        route == UcRoute::Patched,
        "{} is loaded",
        loaded.display()
    );
    let [from, to] = ends();
    for operation in [Operation::Send, Operation::Write] {
        for size in doubled_sizes(8..=32_768) {
            let settings = settings(Service::Uc);
            let settings = EndpointSettings {
                point: Point {
                    operation,
                    size,
                    inline: Switch::Off,
                    ..settings.point
                },
                uc_route: route,
                ..settings
            };
            let endpoints = Endpoints::connect(Some(&channel), &from, &to, &settings)
                .unwrap_or_else(|error| panic!("{operation:?}, {size} B: {error}"));
            deliver(&endpoints, size);
            // Once, because starting a program takes long under emulation.
            if size == 8 {
                for (queue_pair, states) in [
                    (endpoints.sender.queue_pair(), &["RTS"][..]),
                    (endpoints.receiver.queue_pair(), &["RTS", "RTR"]),
                ] {
                    let (service, state) = type_and_state(queue_pair);
                    assert_eq!(service, "UC");
                    assert!(states.contains(&state.as_str()), "{state}");
                }
            }
        }
    }
}

/// Sends slot 2, which arrives there by a write, and by a send in slot 3, where the receive request is.
fn deliver(endpoints: &Endpoints, size: u32) {
    endpoints.sender.payload().fill(2, 7, 2);
    let completion = send_one(endpoints, Tag::new(7), &format!("{size} B"));
    assert_eq!(completion.byte_count, size);
    assert_eq!(completion.immediate_data, 0x7_0002);
    let arrived = [2, 3].into_iter().filter(|&slot| {
        endpoints.receiver.payload().slot(slot).load_stamp() == Ticks(4711)
            && endpoints.receiver.payload().holds(slot, 7, 2)
    });
    assert_eq!(arrived.count(), 1, "{size} B");
}

#[test]
fn endpoint_connects_and_delivers_all_sizes() {
    run_with(
        concat!(module_path!(), "::endpoint_connects_and_delivers_all_sizes"),
        &[],
        || connect_and_deliver(UcRoute::Endpoint),
    );
}

#[test]
fn patched_connects_and_delivers_all_sizes() {
    run_with(
        concat!(module_path!(), "::patched_connects_and_delivers_all_sizes"),
        &[&with_patched()],
        || connect_and_deliver(UcRoute::Patched),
    );
}

/// Runs a sweep over UC, in which nothing may be lost, and checks what the settings say of the route.
fn sweep(program: fn(&str) -> Program, asked: &str, taken: &str, function: &str, patched: bool) {
    let machine = Machine::take();
    let out = machine.out("results");
    let arguments = format!(
        "--service uc --operation send,write --size 8,32768 --burst 20 --warmup 5 --uc-route {asked}"
    );
    program(&arguments).out(&out).ends(0);
    let results = machine.results();
    results.check(2 * 2);
    for row in &results.summary().rows {
        assert_eq!(row.count("messages_received"), 20, "{row:?}");
    }
    for point in results.points() {
        let settings = &point.settings;
        assert_eq!(settings["run"]["uc_route"], asked);
        assert_eq!(settings["obtained"]["uc_route"], taken);
        let connection = settings["obtained"]["connection"].as_str().unwrap();
        assert_eq!(connection, format!("{function}, RDMA_PS_IB"));
        let library = settings["obtained"]["libraries"]["librdmacm"]["path"]
            .as_str()
            .unwrap();
        let is_patched = Path::new(library).starts_with(patched_folder().canonicalize().unwrap());
        assert_eq!(is_patched, patched, "{library}");
        assert!(settings["obtained"]["libraries"]["librdmacm"]["version"].is_string());
    }
}

#[test]
fn a_sweep_by_the_endpoint_delivers_everything() {
    sweep(hcabench, "endpoint", "endpoint", "rdma_create_ep", false);
}

#[test]
fn a_sweep_by_the_patched_library_delivers_everything() {
    sweep(
        patched_hcabench,
        "patched",
        "patched",
        "rdma_create_id2",
        true,
    );
}

/// That somebody has built the patched library, or even loads it, does not change a run that asks for nothing.
#[test]
fn auto_takes_the_endpoint_with_either_library_and_rc_takes_none() {
    let machine = Machine::take();
    for (name, program) in [
        ("system", hcabench as fn(&str) -> Program),
        ("patched", patched_hcabench),
    ] {
        let out = machine.out(name);
        program("--service rc,uc --burst 20").out(&out).ends(0);
        let points = Results::at(&out).points();
        assert_eq!(points.len(), 2);
        for point in points {
            assert_eq!(point.settings["run"]["uc_route"], "auto");
            let taken = &point.settings["obtained"]["uc_route"];
            if point.settings["point"]["service"] == "uc" {
                assert_eq!(taken, "endpoint");
            } else {
                assert!(taken.is_null(), "{taken}");
            }
        }
    }
}

#[test]
fn patched_without_the_patch_is_refused_and_names_the_build_script() {
    let machine = Machine::take();
    let out = machine.out("results");
    machine
        .ends("--service uc --uc-route patched --burst 20", 2)
        .says(&[
            "--uc-route patched",
            "librdmacm.so",
            "does not export rdma_create_id2",
            "rdma-cm-patch/build",
        ]);
    assert!(!out.exists());
    // Nobody would take it, so the library is not asked.
    machine
        .ends("--service rc --uc-route patched --burst 20", 2)
        .says(&["--uc-route patched", "no point of this run is UC"]);
    assert!(!out.exists());
}

#[test]
fn devices_says_which_routes_there_are() {
    let _machine = Machine::take();
    let ended = hcabench("devices").ends(0);
    ended.stdout.has(&[
        "endpoint  an id can be bound, by rdma_create_ep",
        "patched   no: ",
        "rdma-cm-patch/build",
    ]);

    for (program, patched) in [
        (hcabench as fn(&str) -> Program, false),
        (patched_hcabench, true),
    ] {
        let ended = program("devices --json").ends(0);
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["uc_routes"]["endpoint"]["binds"], true);
        assert_eq!(document["uc_routes"]["patched"]["binds"], patched);
        assert_eq!(
            document["uc_routes"]["patched"]["why_not"].is_null(),
            patched
        );
    }
}

/// The table of rdma-cm-patch/README.md: of all port spaces, only this one connects UC on RoCE.
#[test]
fn of_the_port_spaces_only_ib_connects_uc() {
    let _machine = Machine::take();
    let probe = patched_folder().join("../port-spaces");
    let addresses = ENDS.map(|end| end.2).join(" ");
    let ended = Program::under(&["env", &with_patched()], &probe, &addresses).ends(0);
    println!("{}", ended.stdout);
    let rows: Vec<(&str, &str)> = ended
        .stdout
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(space, result)| (space.trim(), result.trim()))
        .collect();
    assert_eq!(
        rows,
        [
            ("RDMA_PS_IB", "connected, UC to UC, message arrived"),
            ("RDMA_PS_TCP", "passive end, rdma_accept: Invalid argument"),
            (
                "RDMA_PS_UDP",
                "active end, rdma_create_qp: Invalid argument"
            ),
            (
                "RDMA_PS_IPOIB",
                "passive end, rdma_bind_addr: Invalid argument"
            ),
        ]
    );
}
