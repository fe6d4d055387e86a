//! `hcabench fabric` under the variables of each launcher, in a namespace without others' variables. It prints how the
//! ranks would find each other, by `--dry-run`, or what is wrong with the variables.

use std::process::Command;

use crate::program::{Ended, hcabench};
use crate::testing::Has as _;
use hcabench::launch::identity::launchers::{LAUNCHERS, Launcher};
use serde_json::{Value, json};

/// A rank that has these variables and no other.
fn rank(words: &str, variables: &[(&str, &str)]) -> Ended {
    let program = hcabench(&format!("fabric --burst 10 --dry-run {words}"));
    let alone = |command: &mut Command| {
        command.env_clear();
        command.envs(variables.iter().copied());
    };
    program
        .change(|command| {
            alone(command);
            command
        })
        .run()
}

fn plan(words: &str, variables: &[(&str, &str)]) -> Value {
    let ended = rank(&format!("{words} --json"), variables).expect(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A launcher, its variables, the options that it needs, the hosts where rank 0 is met, job and step.
type Started = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static [&'static str],
    [&'static str; 2],
);

/// What real launchers have set in processes of theirs, without what does not matter here. Those of LSF, Flux, PALS and
/// Kubernetes are as they are documented.
const REAL: &[Started] = &[
    (
        "slurm",
        &[
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_JOB_ID", "2"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_STEP_NODELIST", "n[1-4]"),
            ("SLURMD_NODENAME", "n1"),
        ],
        "",
        &["n1"],
        ["2", "0"],
    ),
    (
        "openmpi",
        // Open MPI 4.1.4.
        &[
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("PMIX_RANK", "0"),
            ("PMIX_NAMESPACE", "746586113"),
            ("PMIX_HOSTNAME", "vm"),
            (
                "OMPI_MCA_orte_hnp_uri",
                "746586112.0;tcp://192.0.2.2:53755;tcp6://[fd00::2]:47569",
            ),
        ],
        "",
        &["192.0.2.2", "fd00::2"],
        ["746586113", ""],
    ),
    (
        "openmpi",
        // Open MPI 5.0.11.
        &[
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("PMIX_RANK", "0"),
            ("PMIX_NAMESPACE", "prterun-vm-16530@1"),
            ("PMIX_HOSTNAME", "vm"),
        ],
        "",
        &["vm"],
        ["prterun-vm-16530@1", ""],
    ),
    (
        "pmix",
        // prterun of Open MPI 5.0.11.
        &[
            ("PMIX_RANK", "0"),
            ("PMIX_NAMESPACE", "prterun-vm-16539@1"),
            ("PMIX_HOSTNAME", "vm"),
        ],
        "--ranks 4",
        &["vm"],
        ["prterun-vm-16539@1", ""],
    ),
    (
        "pmi",
        // MPICH 4.0.2 and 5.0.2, Intel MPI 2021.18.1.
        &[
            ("PMI_RANK", "0"),
            ("PMI_SIZE", "4"),
            ("PMI_FD", "7"),
            ("MPI_LOCALRANKID", "0"),
            ("MPI_LOCALNRANKS", "4"),
        ],
        "",
        &["127.0.0.1"],
        ["", ""],
    ),
    (
        "flux",
        &[
            ("FLUX_TASK_RANK", "0"),
            ("FLUX_TASK_LOCAL_ID", "0"),
            ("FLUX_JOB_SIZE", "4"),
            ("FLUX_JOB_NNODES", "4"),
            ("FLUX_JOB_ID", "f5FxiVgD"),
            ("PMI_RANK", "0"),
            ("PMI_SIZE", "4"),
        ],
        "--rendezvous n1",
        &["n1"],
        ["f5FxiVgD", ""],
    ),
    (
        "pals",
        &[
            ("PALS_RANKID", "0"),
            ("PALS_LOCAL_RANKID", "0"),
            ("PALS_APID", "4f2d"),
            ("PMI_RANK", "0"),
            ("PMI_SIZE", "4"),
            ("PBS_JOBID", "17.head"),
        ],
        "--rendezvous x1000",
        &["x1000"],
        ["17.head", "4f2d"],
    ),
    (
        "lsf",
        &[
            ("JSM_NAMESPACE_RANK", "0"),
            ("JSM_NAMESPACE_SIZE", "4"),
            ("JSM_NAMESPACE_LOCAL_RANK", "0"),
            ("LSB_JOBID", "99"),
            ("LSB_MCPU_HOSTS", "batch1 1 h1 42 h2 42"),
            ("PMIX_RANK", "0"),
        ],
        "",
        &["batch1", "h1"],
        ["99", ""],
    ),
    (
        "kubernetes",
        &[
            ("JOB_COMPLETION_INDEX", "0"),
            ("HCABENCH_RANKS", "4"),
            ("HCABENCH_RENDEZVOUS", "hcabench-0.hcabench:19020"),
            ("HCABENCH_JOB", "hcabench"),
            ("HCABENCH_NODE", "worker1"),
        ],
        "",
        &["hcabench-0.hcabench"],
        ["hcabench", ""],
    ),
];

#[test]
fn under_each_launcher_rank_0_prints_the_plan_and_where_it_is_met() {
    for launcher in LAUNCHERS {
        let name = launcher.engine.name();
        assert!(REAL.iter().any(|(engine, ..)| *engine == name), "{name}");
    }
    for (engine, variables, words, hosts, [job, step]) in REAL {
        let plan = plan(words, variables);
        assert_eq!(plan["ranks"], 4, "{engine}: {plan}");
        assert_eq!(
            plan["job"],
            json!({ "engine": engine, "job": job, "step": step })
        );
        let met = plan["rendezvous"]["hosts"].as_array().unwrap();
        let mut met: Vec<_> = met.iter().filter_map(Value::as_str).collect();
        if *engine == "kubernetes" {
            // Its own name, by which it listens.
            assert!(met.pop().is_some_and(|own| !hosts.contains(&own)));
        }
        assert_eq!(met, *hosts, "{engine}");
        let port = plan["rendezvous"]["port"].as_u64().unwrap();
        match *engine {
            "kubernetes" => assert_eq!(port, 19_020),
            "pmi" => assert_eq!(port, 19_016, "without a job"),
            _ => assert!((20_000..32_000).contains(&port), "{engine}: {port}"),
        }
        let text = rank(words, variables).expect(0).stdout;
        text.has(&["4 ranks", hosts[0], engine]);
    }
}

#[test]
fn the_other_ranks_of_each_launcher_are_silent() {
    for (engine, variables, words, ..) in REAL {
        let launcher = LAUNCHERS.iter().find(|it| it.engine.name() == *engine);
        let of_rank = |name| [launcher.unwrap().rank.name, "PMI_RANK", "PMIX_RANK"].contains(&name);
        let others: Vec<_> = (variables.iter())
            .map(|(name, value)| (*name, if of_rank(*name) { "3" } else { *value }))
            .collect();
        let ended = rank(words, &others).expect(0);
        assert_eq!(ended.stdout, "", "{engine}");
    }
}

#[test]
fn each_launcher_s_missing_and_wrong_numbers_are_refused_before_a_device_is_opened() {
    for (engine, variables, ..) in REAL {
        let launcher: &Launcher = (LAUNCHERS.iter())
            .find(|it| it.engine.name() == *engine)
            .unwrap();
        let broken: Vec<_> = (variables.iter())
            .map(|(name, value)| {
                let is_rank = *name == launcher.rank.name;
                (*name, if is_rank { "none" } else { *value })
            })
            .collect();
        let ended = rank("", &broken).expect(2);
        ended
            .stderr
            .has(&[launcher.rank.name, "'none'", "whole number"]);
        let without: Vec<_> = (variables.iter().copied())
            .filter(|(name, _)| !launcher.ranks.iter().any(|ranks| ranks.name == *name))
            .collect();
        let ended = rank("", &without).expect(2);
        ended.stderr.has(&[launcher.rank.name, "is not", "--ranks"]);
    }
}

#[test]
fn two_launchers_that_contradict_each_other_are_named() {
    let ended = rank(
        "",
        &[
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("FLUX_TASK_RANK", "0"),
            ("FLUX_JOB_SIZE", "2"),
            ("FLUX_JOB_NNODES", "1"),
        ],
    );
    let ended = ended.expect(2);
    ended
        .stderr
        .has(&["FLUX_JOB_SIZE is 2", "OMPI_COMM_WORLD_SIZE is 4"]);
}

#[test]
fn what_is_wrong_is_reported_by_every_rank_and_another_number_is_planned() {
    // Of two nodes, whose first is not known.
    let flux = |rank| {
        [
            ("FLUX_TASK_RANK", rank),
            ("FLUX_JOB_SIZE", "4"),
            ("FLUX_JOB_NNODES", "2"),
        ]
    };
    for of_rank in ["0", "3"] {
        let ended = rank("", &flux(of_rank)).expect(2);
        ended.stderr.has(&["not given by flux", "flux hostlist"]);
    }
    let script = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")];
    rank("", &script).expect(2).stderr.has(&["SLURM_STEP_ID"]);
    for variables in [&script[..], &[], REAL[0].1] {
        assert_eq!(plan("--ranks 512", variables)["ranks"], 512);
    }
}

#[test]
fn the_secret_that_the_manifests_come_with_is_refused() {
    let manifest = std::fs::read_to_string("deploy/kubernetes/secret.yaml").unwrap();
    let text = manifest.split_once("secret: ").unwrap().1;
    let secret = text.split_whitespace().next().unwrap();
    let (_, variables, ..) = REAL.last().unwrap();
    for (value, code) in [(secret, 2), ("a secret of this test", 0)] {
        let mut of_pod = variables.to_vec();
        of_pod.push(("HCABENCH_SECRET", value));
        let told = rank("", &of_pod).expect(code).stderr;
        let is_named = told.contains("HCABENCH_SECRET: the secret has");
        assert_eq!(is_named, code == 2, "{told}");
    }
}

/// A real one, which `ci/setup test` installs. Slurm and Open MPI start ranks in the SoftRoCE machine (`ci/fabric`).
#[test]
fn hydra_starts_ranks_that_print_one_plan() {
    let ended = Command::new("mpiexec.hydra")
        .args(["-n", "4"])
        .arg(crate::program::path())
        .args(["fabric", "--burst", "10", "--dry-run", "--json"])
        .output()
        .expect("mpiexec.hydra is missing: ci/setup test installs it");
    let (text, errors) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert!(ended.status.success(), "{}: {errors}", ended.status);
    let plan: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}"));
    assert_eq!(plan["ranks"], 4);
    assert_eq!(plan["job"]["engine"], "pmi");
    assert_eq!(plan["rendezvous"]["hosts"][0], "127.0.0.1");
}
