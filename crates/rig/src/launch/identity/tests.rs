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
    assert_eq!(
        identity.job,
        job(Engine::Slurm, Some("812".into()), Some("3".into()))
    );
    assert_eq!(identity.rendezvous.hosts, ["n3", "192.0.2.9"]);
    // Without the step's own number of tasks, that of the job.
    let without: Vec<_> = SLURM
        .iter()
        .copied()
        .filter(|(name, _)| *name != "SLURM_STEP_NUM_TASKS")
        .collect();
    assert_eq!(by(&[&without]).unwrap().ranks, 8);
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
    let by_srun = by(&[&[("SLURM_STEP_NUM_TASKS", "16")], pmi, SLURM]).unwrap();
    assert_eq!(by_srun.node, "n5");
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
    assert_eq!(identity.job, job(Engine::Options, None, None));
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
    refuse(&[], &["srun or mpirun", "--rank", "--ranks"]);
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
