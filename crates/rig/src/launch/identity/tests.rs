use super::launchers::{LAUNCHERS, Launcher};
use super::*;
use crate::testing::Refused as _;

const SLURM: &[(&str, &str)] = &[
    ("SLURM_PROCID", "2"),
    ("SLURM_NTASKS", "8"),
    ("SLURM_STEP_NUM_TASKS", "4"),
    ("SLURM_STEP_NODELIST", "n[3-6]"),
    ("SLURM_NODELIST", "n[1-8]"),
    ("SLURMD_NODENAME", "n5"),
    ("SLURM_JOB_ID", "812"),
    ("SLURM_STEP_ID", "3"),
    ("SLURM_TOPOLOGY_ADDR", "top.s1.n5"),
    ("SLURM_LAUNCH_NODE_IPADDR", "192.0.2.9"),
];

const OPEN_MPI: &[(&str, &str)] = &[
    ("OMPI_COMM_WORLD_RANK", "1"),
    ("OMPI_COMM_WORLD_SIZE", "8"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "1"),
    (
        "OMPI_MCA_orte_hnp_uri",
        "50331648.0;tcp://192.0.2.2,198.51.100.2:36435;tcp6://[fd00::2]:41495",
    ),
    ("PMIX_NAMESPACE", "50331649"),
    ("PMIX_HOSTNAME", "node7"),
];

fn found(options: &Options, variables: &[&[(&str, &str)]]) -> Result<Identity, IdentityError> {
    let environment = |name: &str| {
        let mut all = variables.iter().copied().flatten();
        let found = all.find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Identity::find(options, &environment, "host")
}

fn by(variables: &[&[(&str, &str)]]) -> Result<Identity, IdentityError> {
    found(&Options::default(), variables)
}

fn job(engine: Engine, job: &str, step: &str) -> Job {
    Job {
        engine,
        job: job.to_owned(),
        step: step.to_owned(),
    }
}

fn options(rank: u32, ranks: u32, rendezvous: &str) -> Options {
    Options {
        rank: Some(rank),
        ranks: Some(ranks),
        rendezvous: Some(rendezvous.to_owned()),
    }
}

#[test]
fn slurm_tells_rank_step_node_and_place() {
    let identity = by(&[SLURM]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (2, 4));
    assert_eq!(identity.node, "n5");
    assert_eq!(identity.topology.as_deref(), Some("top.s1.n5"));
    assert_eq!(identity.job, job(Engine::Slurm, "812", "3"));
    assert_eq!(identity.rendezvous.hosts, ["n3", "192.0.2.9"]);
    // Without the step's own number of tasks, that of the job.
    let without: Vec<_> = SLURM
        .iter()
        .copied()
        .filter(|(name, _)| *name != "SLURM_STEP_NUM_TASKS")
        .collect();
    assert_eq!(by(&[&without]).unwrap().ranks, 8);
    // Without a plugin for topologies.
    let node = [
        ("SLURM_TOPOLOGY_ADDR", "n5.example.org"),
        ("SLURM_TOPOLOGY_ADDR_PATTERN", "node"),
    ];
    assert_eq!(by(&[&node, SLURM]).unwrap().topology, None);
    let node = [("SLURM_TOPOLOGY_ADDR", "n5")];
    assert_eq!(by(&[&node, SLURM]).unwrap().topology, None);
}

#[test]
fn steps_meet_at_ports_of_their_own() {
    let port = |step: &'static str| {
        by(&[&[("SLURM_STEP_ID", step)], SLURM])
            .unwrap()
            .rendezvous
            .port
    };
    assert_eq!(port("3"), port("3"));
    let mut ports: Vec<u16> = ["0", "1", "2", "3", "10", "11"].map(port).to_vec();
    assert!(ports.iter().all(|port| (20_000..32_000).contains(port)));
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 6);
}

#[test]
fn mpirun_goes_before_slurm_in_whose_job_it_runs() {
    let identity = by(&[OPEN_MPI, SLURM]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (1, 8));
    assert_eq!(identity.node, "n5");
    assert_eq!(identity.rendezvous.hosts[0], "n3");
    let alone = by(&[OPEN_MPI]).unwrap();
    assert_eq!(alone.node, "node7");
    assert_eq!(alone.job.job, "50331649");
    let expected = ["192.0.2.2", "198.51.100.2", "fd00::2"];
    assert_eq!(alone.rendezvous.hosts, expected);
    let on_one_host = by(&[&[("OMPI_COMM_WORLD_LOCAL_SIZE", "8")], OPEN_MPI]).unwrap();
    assert_eq!(on_one_host.rendezvous.hosts[0], "127.0.0.1");
}

#[test]
fn pmi_tells_ranks_and_slurm_or_an_option_the_host() {
    let pmi: &[(&str, &str)] = &[("PMI_RANK", "7"), ("PMI_SIZE", "16")];
    let identity = by(&[pmi, SLURM]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (7, 16));
    assert_eq!(identity.job.engine, Engine::Pmi);
    assert_eq!(identity.node, "host", "the step is not that of these ranks");
    assert_eq!(identity.rendezvous.hosts[0], "n3");
    let tasks = ("SLURM_STEP_NUM_TASKS", "16");
    let by_srun = by(&[&[tasks, ("SLURM_PROCID", "7")], pmi, SLURM]).unwrap();
    assert_eq!(by_srun.node, "n5");
    assert_eq!(by_srun.topology.as_deref(), Some("top.s1.n5"));
    // In a batch script mpiexec passes on what Slurm has set on the first node.
    let in_batch = by(&[&[tasks, ("SLURM_PROCID", "0")], pmi, SLURM]).unwrap();
    assert_eq!((&*in_batch.node, in_batch.topology), ("host", None));
    by(&[pmi]).refused(&["not given by pmi", "--rendezvous HOST[:PORT]"]);
    let given = Options {
        rendezvous: Some("head".to_owned()),
        ..Options::default()
    };
    let identity = found(&given, &[pmi]).unwrap();
    assert_eq!(identity.node, "host");
    assert_eq!(identity.rendezvous.hosts, ["head"]);
    assert_eq!(identity.rendezvous.port, DEFAULT_PORT);
}

#[test]
fn options_go_before_every_engine() {
    let identity = found(&options(3, 4, "head:7000"), &[OPEN_MPI, SLURM]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (3, 4));
    assert_eq!(identity.node, "host");
    assert_eq!(identity.job, job(Engine::Options, "", ""));
    for (text, host, port) in [
        ("head:7000", "head", 7000),
        ("192.0.2.1", "192.0.2.1", DEFAULT_PORT),
        ("fd00::2", "fd00::2", DEFAULT_PORT),
        ("[fd00::2]:7000", "fd00::2", 7000),
        ("[fd00::2]", "fd00::2", DEFAULT_PORT),
    ] {
        let met = found(&options(0, 2, text), &[]).unwrap().rendezvous;
        assert_eq!(met.hosts, vec![host.to_owned()], "{text}");
        assert_eq!(met.port, port, "{text}");
    }
}

#[test]
fn what_cannot_be_is_refused_by_name_and_value() {
    let refuse = |variables: &[(&str, &str)], words: &[&str]| by(&[variables]).refused(words);
    refuse(&[], &["srun, mpirun", "--rank", "--ranks"]);
    refuse(
        &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")],
        &["SLURM_STEP_ID is not", "start it by srun"],
    );
    refuse(
        &[("SLURM_PROCID", "two")],
        &["SLURM_PROCID is 'two'", "whole number"],
    );
    refuse(
        &[("PMI_RANK", "1")],
        &["PMI_RANK is given", "PMI_SIZE is not"],
    );
    refuse(
        &[("PMI_RANK", "4"), ("PMI_SIZE", "4")],
        &["PMI_RANK is '4'", "0 to 3", "PMI_SIZE is 4"],
    );
    refuse(
        &[("PMI_RANK", "0"), ("PMI_SIZE", "1")],
        &["PMI_SIZE is '1'", "2 to 65536"],
    );
    by(&[&[("SLURM_STEP_NODELIST", "n[1-")], SLURM])
        .refused(&["SLURM_STEP_NODELIST is 'n[1-'", "not closed"]);
    let rank = Options {
        rank: Some(1),
        ..Options::default()
    };
    found(&rank, &[SLURM]).refused(&["--rank is given", "--ranks is not"]);
    let no_host = Options {
        rendezvous: None,
        ..options(0, 2, "")
    };
    found(&no_host, &[SLURM]).refused(&["not given by options", "--rendezvous"]);
    for text in [
        "",
        ":7000",
        "a b",
        "head:0",
        "head:x",
        "head:70000",
        "[::1",
        "[::1]7",
        "[]:7",
    ] {
        found(&options(0, 2, text), &[]).refused(&["--rendezvous is '", text]);
    }
}

/// What a launcher of the table sets, with these numbers.
fn set_by(launcher: &Launcher, rank: u32, ranks: u32) -> Vec<(&'static str, String)> {
    let mut set = vec![(launcher.rank.name, rank.to_string())];
    set.extend(launcher.ranks.iter().map(|it| (it.name, ranks.to_string())));
    let first = |variables: &[launchers::Variable]| variables.first().map(|it| it.name);
    set.extend(first(launcher.job).map(|name| (name, "job7".to_owned())));
    set.extend(first(launcher.step).map(|name| (name, "step3".to_owned())));
    set.extend(first(launcher.node).map(|name| (name, "node5".to_owned())));
    set
}

fn with(
    options: &Options,
    variables: &[(&'static str, String)],
) -> Result<Identity, IdentityError> {
    let variables: Vec<_> = (variables.iter())
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    found(options, &[&variables])
}

fn head(ranks: Option<u32>) -> Options {
    Options {
        rank: None,
        ranks,
        rendezvous: Some("head:7000".to_owned()),
    }
}

#[test]
fn each_launcher_of_the_table_sets_rank_job_and_node() {
    assert!(LAUNCHERS.len() >= 8);
    for launcher in LAUNCHERS {
        let set = set_by(launcher, 2, 5);
        let ranks = launcher.ranks.is_empty().then_some(5);
        let identity = with(&head(ranks), &set).unwrap();
        let title = launcher.title;
        assert_eq!((identity.rank, identity.ranks), (2, 5), "{title}");
        let step = match launcher.step {
            [] => "",
            _ => "step3",
        };
        let jobs = [(launcher.job, "job7"), (&[], "")];
        let (_, name) = jobs[usize::from(launcher.job.is_empty())];
        assert_eq!(identity.job, job(launcher.engine, name, step), "{title}");
        // Hydra's may be that of another node.
        let node = match launcher.node {
            [_, ..] if launcher.engine != Engine::Pmi => "node5",
            _ => "host",
        };
        assert_eq!(identity.node, node, "{title}");
        let too_high = set_by(launcher, 5, 5);
        let refused = with(&head(ranks), &too_high);
        refused.refused(&[launcher.rank.name, "'5'", "0 to 4"]);
    }
}

#[test]
fn no_two_launchers_have_the_same_rank_and_each_variable_has_a_source() {
    let mut ranks: Vec<&str> = LAUNCHERS.iter().map(|it| it.rank.name).collect();
    ranks.sort_unstable();
    ranks.dedup();
    assert_eq!(ranks.len(), LAUNCHERS.len());
    for launcher in LAUNCHERS {
        for (purpose, variable) in launcher.variables() {
            assert!(!variable.source.is_empty(), "{purpose} {}", variable.name);
        }
        assert_eq!(Launcher::of(launcher.engine), Some(launcher));
    }
    // Each but the one of options.
    assert_eq!(LAUNCHERS.len() + 1, Engine::ALL.len());
}

#[test]
fn an_option_gives_the_number_that_a_launcher_does_not_set() {
    let pmix: &[(&str, &str)] = &[
        ("PMIX_RANK", "1"),
        ("PMIX_NAMESPACE", "prterun-login-2-4711@1"),
        ("PMIX_HOSTNAME", "n7"),
    ];
    by(&[pmix]).refused(&["PMIX_RANK is given", "--ranks is not", "the same --ranks"]);
    let eight = Options {
        ranks: Some(8),
        ..Options::default()
    };
    let identity = found(&eight, &[pmix]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (1, 8));
    assert_eq!(identity.node, "n7");
    assert_eq!(identity.rendezvous.hosts, ["login-2"]);
    let by_daemon: &[(&str, &str)] = &[("PMIX_NAMESPACE", "prte-n1-7@3")];
    let identity = found(&eight, &[by_daemon, pmix]).unwrap();
    assert_eq!(identity.rendezvous.hosts, ["n1"]);
    let other: &[(&str, &str)] = &[("PMIX_NAMESPACE", "other-n1-7@3")];
    found(&eight, &[other, pmix]).refused(&["not given by pmix"]);
    let index: &[(&str, &str)] = &[
        ("JOB_COMPLETION_INDEX", "0"),
        ("HCABENCH_RENDEZVOUS", "fabric-0.fabric:19016"),
    ];
    by(&[index]).refused(&[
        "JOB_COMPLETION_INDEX is given",
        "HCABENCH_RANKS is not",
        "--ranks",
    ]);
    assert_eq!(found(&eight, &[index]).unwrap().ranks, 8);
    // It does not replace a number that is set.
    found(&eight, &[SLURM]).refused(&["SLURM_STEP_NUM_TASKS is 4", "--ranks is 8"]);
    let four = Options {
        ranks: Some(4),
        ..Options::default()
    };
    assert_eq!(found(&four, &[SLURM]).unwrap().rank, 2);
    found(&four, &[]).refused(&["--ranks is given", "--rank is not"]);
}

#[test]
fn the_pod_with_index_0_is_met_below_the_service_and_listens_at_its_own_name() {
    let pod = |index| {
        let set: &[(&str, &str)] = &[
            ("JOB_COMPLETION_INDEX", index),
            ("HCABENCH_RANKS", "4"),
            ("HCABENCH_RENDEZVOUS", "fabric-0.fabric:19020"),
            ("HCABENCH_NODE", "worker7"),
            ("HCABENCH_JOB", "fabric"),
        ];
        by(&[set]).unwrap()
    };
    assert_eq!(pod("3").rendezvous.hosts, ["fabric-0.fabric"]);
    assert_eq!(pod("0").rendezvous.hosts, ["fabric-0.fabric", "host"]);
    assert_eq!(pod("3").rendezvous.port, 19_020);
    assert_eq!(pod("3").node, "worker7");
    by(&[&[("JOB_COMPLETION_INDEX", "1"), ("HCABENCH_RANKS", "2")]])
        .refused(&["not given by kubernetes", "--rendezvous"]);
    by(&[&[
        ("JOB_COMPLETION_INDEX", "1"),
        ("HCABENCH_RANKS", "2"),
        ("HCABENCH_RENDEZVOUS", "fabric-0:x"),
    ]])
    .refused(&["HCABENCH_RENDEZVOUS is 'fabric-0:x'", "1 to 65535"]);
}

#[test]
fn ranks_of_one_node_meet_at_the_loopback() {
    for set in [
        &[
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "4"),
            ("MPI_LOCALNRANKS", "4"),
        ][..],
        &[
            ("FLUX_TASK_RANK", "1"),
            ("FLUX_JOB_SIZE", "4"),
            ("FLUX_JOB_NNODES", "1"),
        ],
        &[
            ("JSM_NAMESPACE_RANK", "1"),
            ("JSM_NAMESPACE_SIZE", "4"),
            ("JSM_NAMESPACE_LOCAL_SIZE", "4"),
        ],
    ] {
        assert_eq!(by(&[set]).unwrap().rendezvous.hosts, ["127.0.0.1"]);
    }
    by(&[&[
        ("FLUX_TASK_RANK", "1"),
        ("FLUX_JOB_SIZE", "4"),
        ("FLUX_JOB_NNODES", "2"),
    ]])
    .refused(&["not given by flux", "--rendezvous"]);
}

#[test]
fn hosts_of_lsf_are_those_of_the_job_and_pbs_is_asked_for_its_own() {
    let jsrun: &[(&str, &str)] = &[
        ("JSM_NAMESPACE_RANK", "1"),
        ("JSM_NAMESPACE_SIZE", "4"),
        ("LSB_JOBID", "99"),
        ("LSB_MCPU_HOSTS", "batch2 1 h36n03 42 h36n04 42"),
        ("OMPI_COMM_WORLD_RANK", "1"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("PMIX_RANK", "1"),
    ];
    let identity = by(&[jsrun]).unwrap();
    assert_eq!(identity.job, job(Engine::Lsf, "99", ""));
    assert_eq!(identity.rendezvous.hosts, ["batch2", "h36n03"]);

    let pals: &[(&str, &str)] = &[
        ("PALS_RANKID", "1"),
        ("PALS_APID", "a1"),
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "2"),
        ("PBS_JOBID", "7.head"),
    ];
    let of_pbs: &[(&str, &str)] = &[("PBS_NODEFILE", "/var/spool/aux/7.head")];
    by(&[pals, of_pbs]).refused(&["not given by pals", "$(head -n 1 \"$PBS_NODEFILE\")"]);
    by(&[pals]).refused(&["not given by pals", "--rendezvous"]);
    let identity = found(&head(None), &[pals, of_pbs]).unwrap();
    assert_eq!(identity.job, job(Engine::Pals, "7.head", "a1"));
}

/// srun on a Cray sets the variables of PALS and PMI.
#[test]
fn a_step_of_slurm_is_one_also_where_its_plugin_sets_those_of_pals() {
    let shasta: &[(&str, &str)] = &[
        ("PALS_RANKID", "2"),
        ("PALS_APID", "812.3"),
        ("PALS_LOCAL_RANKID", "0"),
    ];
    let pmi: &[(&str, &str)] = &[("PMI_RANK", "2"), ("PMI_SIZE", "4")];
    for set in [&[SLURM, shasta][..], &[SLURM, shasta, pmi]] {
        let identity = by(set).unwrap();
        assert_eq!(identity.job, job(Engine::Slurm, "812", "3"));
        assert_eq!((identity.rank, identity.ranks), (2, 4));
        assert_eq!(identity.node, "n5");
        assert_eq!(identity.rendezvous.hosts, ["n3", "192.0.2.9"]);
    }
    // Hydra has started its proxies by this srun.
    let hydra: &[(&str, &str)] = &[("PMI_RANK", "5"), ("PMI_SIZE", "8")];
    let identity = by(&[SLURM, shasta, hydra]).unwrap();
    assert_eq!((identity.rank, identity.job.engine), (5, Engine::Pmi));
}

#[test]
fn mpirun_and_hydra_in_a_batch_script_of_slurm_count() {
    let script: &[(&str, &str)] = &[
        ("SLURM_PROCID", "0"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_JOB_ID", "812"),
        ("SLURM_JOB_NODELIST", "n[3-6]"),
    ];
    let identity = by(&[script, OPEN_MPI]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (1, 8));
    assert_eq!(identity.rendezvous.hosts[0], "n3");
    let hydra: &[(&str, &str)] = &[("PMI_RANK", "2"), ("PMI_SIZE", "4")];
    let identity = by(&[script, hydra]).unwrap();
    assert_eq!(identity.job, job(Engine::Pmi, "812", ""));
    assert_eq!(identity.rank, 2);
}

/// salloc has started a shell as a step, whose PMI variables mpirun passes on; a daemon is another process of Slurm.
#[test]
fn what_the_step_of_a_shell_has_set_does_not_contradict_mpirun() {
    let stale: &[(&str, &str)] = &[("PMI_RANK", "0"), ("PMI_SIZE", "1")];
    let daemon: &[(&str, &str)] = &[
        ("SLURM_PROCID", "2"),
        ("SLURM_STEP_ID", "1"),
        ("SLURM_STEP_NUM_TASKS", "4"),
        ("SLURM_JOB_ID", "812"),
        ("SLURM_STEP_NODELIST", "n[3-6]"),
    ];
    let identity = by(&[OPEN_MPI, stale, daemon]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (1, 8));
    assert_eq!(identity.job.engine, Engine::OpenMpi);
    // Without Slurm, the two contradict each other.
    by(&[OPEN_MPI, stale]).refused(&["OMPI_COMM_WORLD_RANK is 1", "PMI_RANK is 0"]);
}

#[test]
fn srun_that_sets_pmi_gives_the_same_ranks_by_either() {
    let pmi2: &[(&str, &str)] = &[("PMI_RANK", "2"), ("PMI_SIZE", "4")];
    let identity = by(&[SLURM, pmi2]).unwrap();
    assert_eq!((identity.rank, identity.ranks), (2, 4));
    assert_eq!(identity.node, "n5");
    assert_eq!(identity.rendezvous, by(&[SLURM]).unwrap().rendezvous);
}

#[test]
fn launchers_that_contradict_each_other_are_named() {
    let flux: &[(&str, &str)] = &[("FLUX_TASK_RANK", "0"), ("FLUX_JOB_SIZE", "4")];
    let mpirun: &[(&str, &str)] = &[
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
    ];
    by(&[mpirun, flux]).refused(&[
        "FLUX_TASK_RANK is 0",
        "OMPI_COMM_WORLD_RANK is 3",
        "start it by one of them",
    ]);
    let hydra: &[(&str, &str)] = &[("PMI_RANK", "3"), ("PMI_SIZE", "8")];
    by(&[mpirun, hydra]).refused(&["OMPI_COMM_WORLD_SIZE is 4", "PMI_SIZE is 8"]);
    by(&[mpirun, &[("PMIX_RANK", "2")]]).refused(&["OMPI_COMM_WORLD_RANK is 3", "PMIX_RANK is 2"]);
    assert!(by(&[mpirun, &[("PMIX_RANK", "3")]]).is_ok());
    // Options precede all of them.
    assert_eq!(
        found(&options(1, 2, "head"), &[mpirun, flux]).unwrap().rank,
        1
    );
}

#[test]
fn what_surrounds_a_launcher_does_not_contradict_it() {
    let srun: &[(&str, &str)] = &[
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_STEP_NODELIST", "n[1-2]"),
    ];
    let mpirun: &[(&str, &str)] = &[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
    // srun --mpi=pmi2 has started the daemons of mpirun.
    let pmi_of_daemons: &[(&str, &str)] = &[("PMI_RANK", "1"), ("PMI_SIZE", "2")];
    let identity = by(&[mpirun, srun, pmi_of_daemons]).unwrap();
    assert_eq!(identity.job.engine, Engine::OpenMpi);
    assert_eq!((identity.rank, identity.ranks), (3, 4));
    // A pod in which mpirun runs.
    let pod: &[(&str, &str)] = &[("JOB_COMPLETION_INDEX", "0"), ("HCABENCH_RANKS", "9")];
    assert_eq!(by(&[mpirun, srun, pod]).unwrap().ranks, 4);
    // PMIx by srun itself, and by prterun whose daemons srun has started.
    let by_srun: &[(&str, &str)] = &[("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "slurm.pmix.7.0")];
    assert_eq!(by(&[srun, by_srun]).unwrap().job.engine, Engine::Slurm);
    let by_prterun: &[(&str, &str)] = &[("PMIX_RANK", "5"), ("PMIX_NAMESPACE", "prterun-n1-7@1")];
    let eight = Options {
        ranks: Some(8),
        ..Options::default()
    };
    let identity = found(&eight, &[srun, by_prterun]).unwrap();
    assert_eq!((identity.rank, identity.job.engine), (5, Engine::Pmix));
}

#[test]
fn numbers_of_a_node_that_cannot_be_are_refused() {
    let set: &[(&str, &str)] = &[
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "4"),
        ("MPI_LOCALRANKID", "2"),
        ("MPI_LOCALNRANKS", "2"),
    ];
    by(&[set]).refused(&["MPI_LOCALRANKID is '2'", "0 to 1", "MPI_LOCALNRANKS is 2"]);
    by(&[&[("MPI_LOCALRANKID", "1"), ("MPI_LOCALNRANKS", "5")], set])
        .refused(&["MPI_LOCALNRANKS is '5'", "PMI_SIZE is 4"]);
}
