//! What a process of a round is started with.

use clap::Parser as _;

use super::{Command, CommandLine};
use crate::bench::Assignment;

/// What is asked for by a command line.
fn assignment(line: &str) -> Assignment {
    let line = CommandLine::try_parse_from(line.split(' ')).unwrap();
    match line.command {
        #[cfg(feature = "rdma")]
        None if line.hca.between.peer.is_some() => {
            Assignment::TwoHosts(line.hca.config(), line.hca.between.config())
        }
        #[cfg(feature = "rdma")]
        None => Assignment::OneHost(line.hca.config()),
        Some(Command::Clock(arguments)) => arguments.assignment(),
        Some(Command::Memory(arguments)) => arguments.assignment(),
        Some(Command::Node(arguments)) => arguments.assignment(),
        Some(Command::Queue(arguments)) => arguments.assignment().unwrap(),
        _ => unreachable!("it measures nothing"),
    }
}

#[test]
fn a_process_of_a_round_gets_what_was_asked_for() {
    for line in [
        #[cfg(feature = "rdma")]
        "hcabench --service rc,ud --size 8..64 --rate 1k --arrivals poisson --depth 4 --warmup 3ms --sender a:1 \
         --sender-cpu 3 --traffic-class 7,0x20 --memory-load 30%,60% --background 0,200@4KiB --comp-vector 1,2",
        #[cfg(feature = "rdma")]
        "hcabench --peer other:7 --clock-uncertainty 3us --inline=off,on --poll event --receiver-pause 5us",
        "hcabench queue --load bursty --group 5 --wait 300ns --jitter 7% --receiver-load constant-rate \
         --receiver-rate 1234567.891 --memory-load 50 --retry backoff --priority 3",
        "hcabench queue --producers 2 --consumers 2 --scenario fan-out --measure throughput",
        "hcabench queue --queue lamport --topology --load-curve --count 12345",
        "hcabench node --type udp,shmem --rate 1234.567891,0.1 --ends threads,processes --log file --broker a:1883 \
         --samples --format villas --scenario fan-in --timer timerfd --receiver a:1@10.0.0.1 --count 3",
        "hcabench memory --generators 1-3,8 --smooth savgol:7:2 --pages 2m --pause 0,max,off --size 1GiB",
        "hcabench clock --cpu 0,2 --fail-above 5us@p99.95,1ms --threshold 300ns --causes trace --duration 1500ms \
         --tsc-khz 2100000",
        "hcabench clock --all-cpus --everything --keep-jumps 512",
        "hcabench clock --until 3 --priority 5",
    ] {
        let asked = assignment(line);
        let text = serde_json::to_string(&asked).unwrap();
        let got: Assignment = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{got:?}"), format!("{asked:?}"), "{line}");
    }
}
