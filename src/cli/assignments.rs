//! What a process of a round is started with.

use clap::Parser as _;

use super::{Command, CommandLine};
use crate::bench::Assignment;
#[cfg(feature = "rdma")]
use crate::bench::hca::settings::config::Service;
#[cfg(feature = "rdma")]
use crate::results::schema::Schema;
#[cfg(feature = "rdma")]
use crate::rig::benchmark::{Benchmark, Failure, Outcome, Plan, Progress, Ready, SampleFolders};

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
        Some(Command::Cores(arguments)) => arguments.assignment(),
        Some(Command::Memory(arguments)) => arguments.assignment(),
        Some(Command::Node(arguments)) => arguments.assignment().unwrap(),
        Some(Command::Queue(arguments)) => arguments.assignment().unwrap(),
        _ => unreachable!("it measures nothing"),
    }
}

/// A benchmark whose trial showed that UC is connected directly.
#[cfg(feature = "rdma")]
struct Tried;

#[cfg(feature = "rdma")]
impl Benchmark for Tried {
    fn schema(&self) -> &'static Schema {
        unreachable!("only what the trial showed is of interest")
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        Ok(Plan::default())
    }

    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        let _ = plan;
        Err(Failure::Run("it is prepared".to_owned()))
    }

    fn direct_services(&self) -> Option<Vec<Service>> {
        Some(vec![Service::Uc])
    }

    fn measure(
        &mut self,
        _point: usize,
        _place: &SampleFolders,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        Ok(Outcome::default())
    }
}

#[cfg(feature = "rdma")]
#[test]
fn a_process_of_a_round_takes_over_what_a_trial_of_its_parent_showed() {
    let direct_services = |assignment: &Assignment| match assignment {
        Assignment::OneHost(config) => config.direct_services.clone(),
        other => panic!("{other:?}"),
    };
    let asked = assignment("hcabench --service rc,uc --rounds 3");
    assert_eq!(direct_services(&asked), None, "a trial is to show it");
    let text = serde_json::to_string(&asked.of_round(&Tried)).unwrap();
    let got: Assignment = serde_json::from_str(&text).unwrap();
    assert_eq!(direct_services(&got), Some(vec![Service::Uc]));
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
        "hcabench node --type tcp,unix,multicast --tcp-nodelay off --tcp-busy-poll 50us --unix-socket seqpacket \
         --multicast-interface eth0",
        "hcabench node --type udp --redis-kind streams --qos 2 --broker a:6379",
        "hcabench cores --cpus 0-3,8 --duration 500us --memory-node reader --clock monotonic",
        "hcabench cores --memory-node 1",
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
