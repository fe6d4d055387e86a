//! The variables that launchers set, each with where it is documented. `docs/launchers.md` is made of this table.

use crate::rig::named::named;

named! {
    /// What started the processes.
    Engine {
        /// Slurm's srun.
        Slurm = "slurm",
        /// Open MPI's mpirun.
        OpenMpi = "openmpi",
        /// Hydra, the mpiexec of MPICH, Intel MPI and MVAPICH, or another one that sets ranks by PMI.
        Pmi = "pmi",
        /// A PMIx server such as PRRTE's prterun.
        Pmix = "pmix",
        /// flux run, submit or batch.
        Flux = "flux",
        /// HPE's PALS, the mpiexec of Cray systems with PBS.
        Pals = "pals",
        /// jsrun in a job of LSF.
        Lsf = "lsf",
        /// An Indexed Job of Kubernetes, also as part of a JobSet.
        Kubernetes = "kubernetes",
        /// A user, by options.
        Options = "options",
    }
}

/// A variable of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Where it is documented.
    pub source: &'static str,
    /// The versions in whose processes it was seen; empty: none.
    pub seen: &'static str,
}

/// What a value that names hosts looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostsForm {
    /// A list of nodes as Slurm writes it, of which the first counts.
    NodeList,
    /// One name or address.
    Address,
    /// `HOST[:PORT]`.
    HostAndPort,
    /// `hostA 4 hostB 4`: hosts with their slots. The first may be the node of the batch script, where no rank runs, so
    /// that two count.
    Slots,
    /// `1234.0;tcp://192.0.2.2,198.51.100.2:36435`: where mpirun is reached.
    MpirunUri,
    /// `prterun-HOST-PID@1`, or `prte-HOST-PID@1`: where prterun or prte runs.
    PrterunNamespace,
}

/// Where rank 0 may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts {
    /// What the values look like.
    pub form: HostsForm,
    /// The first that is set counts.
    pub variables: &'static [Variable],
}

/// A launcher, and its variables. Of several variables the first that is set counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launcher {
    /// Its name in results.
    pub engine: Engine,
    /// Its name in texts.
    pub title: &'static str,
    /// The command that starts a fabric.
    pub start: &'static str,
    /// Whether it may have started another launcher or its daemons, which then set the ranks.
    pub surrounds: bool,
    /// The rank. The launcher has started a process if this is set.
    pub rank: Variable,
    /// The number of ranks. Without any, `--ranks` sets it.
    pub ranks: &'static [Variable],
    /// The rank among those on the same node.
    pub local_rank: Option<Variable>,
    /// How many ranks are on the same node.
    pub local_ranks: Option<Variable>,
    /// How many nodes there are.
    pub nodes: Option<Variable>,
    /// The name of the node; without any, the name of the host.
    pub node: &'static [Variable],
    /// The job.
    pub job: &'static [Variable],
    /// The step of the job.
    pub step: &'static [Variable],
    /// Why a process without a step cannot measure; empty: it can.
    pub without_step: &'static str,
    /// Where rank 0 may be, in this order.
    pub hosts: &'static [Hosts],
    /// What to know about it.
    pub note: &'static str,
}

const fn variable(name: &'static str, source: &'static str, seen: &'static str) -> Variable {
    Variable { name, source, seen }
}

const SRUN: &str = "srun(1), Output environment variables";
const SLURM_SEEN: &str = "Slurm 22.05.8";
const SLURM_JOB: Variable = variable("SLURM_JOB_ID", SRUN, SLURM_SEEN);
const SLURM_STEP: Variable = variable("SLURM_STEP_ID", SRUN, SLURM_SEEN);
const SLURM_NODE: Variable = variable("SLURMD_NODENAME", SRUN, SLURM_SEEN);
const SLURM_NODES: Hosts = Hosts {
    form: HostsForm::NodeList,
    variables: &[
        variable("SLURM_STEP_NODELIST", SRUN, SLURM_SEEN),
        variable("SLURM_NODELIST", SRUN, ""),
        variable("SLURM_JOB_NODELIST", SRUN, ""),
    ],
};
const SLURM_LAUNCH_NODE: Hosts = Hosts {
    form: HostsForm::Address,
    variables: &[variable("SLURM_LAUNCH_NODE_IPADDR", SRUN, "")],
};

const OPEN_MPI: &str = "Open MPI 5 documentation, Environment variables set for MPI applications";
const OPEN_MPI_SEEN: &str = "Open MPI 4.1.4, 5.0.11";
const PMIX_SEEN: &str = "Open MPI 4.1.4, 5.0.11; prterun of 5.0.11";
const PMIX_SOURCE: &str =
    "set by PMIx servers for their clients (PMIx_server_setup_fork); not in the PMIx standard";
const PMIX_RANK: Variable = variable("PMIX_RANK", PMIX_SOURCE, PMIX_SEEN);
pub(super) const PMIX_NAMESPACE: Variable = variable("PMIX_NAMESPACE", PMIX_SOURCE, PMIX_SEEN);
const PMIX_HOSTNAME: Variable = variable("PMIX_HOSTNAME", PMIX_SOURCE, PMIX_SEEN);
const PRTERUN: Hosts = Hosts {
    form: HostsForm::PrterunNamespace,
    variables: &[PMIX_NAMESPACE],
};

const HYDRA: &str = "Flux RFC 13 (PMI-1), Environment variables";
const HYDRA_SEEN: &str = "MPICH 4.0.2, 5.0.2; Intel MPI 2021.18.1";
const PMI_RANK: Variable = variable("PMI_RANK", HYDRA, HYDRA_SEEN);
const PMI_SIZE: Variable = variable("PMI_SIZE", HYDRA, HYDRA_SEEN);
const HYDRA_LOCAL: &str = "not documented; read by many programs";

const FLUX: &str = "flux-environment(7), Job environment";

const PALS: &str = "set as well by Slurm's plugin mpi/cray_shasta and Flux' plugin cray_pals; HPE's pals.h was not looked \
                    up";
const PALS_SIZE: &str = "read by programs on Aurora and Polaris; HPE's pals.h was not looked up";
const PBS: &str = "OpenPBS, qsub(1B), Environment variables; not looked up";
const PBS_JOB: Variable = variable("PBS_JOBID", PBS, "");

const LSF: &str = "LSF 10.1 documentation, Environment variables set for job execution";
const JSRUN: &str = "PyTorch Lightning documentation, LSFEnvironment; not verified with IBM's documentation of jsrun";
const LSF_JOB: Variable = variable("LSB_JOBID", LSF, "");
const LSF_HOSTS: Hosts = Hosts {
    form: HostsForm::Slots,
    variables: &[variable("LSB_MCPU_HOSTS", LSF, "")],
};

const KUBERNETES: &str = "Kubernetes documentation, Jobs, Completion mode";
const OURS: &str = "ours: set by the manifests in deploy/kubernetes";

/// All launchers. Of several that have set a rank, the first counts.
pub const LAUNCHERS: &[Launcher] = &[
    Launcher {
        engine: Engine::Lsf,
        title: "LSF (jsrun)",
        start: "jsrun -n 8 -r 1 hcabench fabric --inline --burst 200 --out fabric",
        surrounds: false,
        rank: variable("JSM_NAMESPACE_RANK", JSRUN, ""),
        ranks: &[variable("JSM_NAMESPACE_SIZE", JSRUN, "")],
        local_rank: Some(variable("JSM_NAMESPACE_LOCAL_RANK", JSRUN, "")),
        local_ranks: Some(variable(
            "JSM_NAMESPACE_LOCAL_SIZE",
            "read by MPI programs beside the others; not documented",
            "",
        )),
        nodes: None,
        node: &[],
        job: &[LSF_JOB],
        step: &[],
        without_step: "",
        hosts: &[LSF_HOSTS],
        note: "jsrun starts clients of a PMIx server, and scripts read the variables of Open MPI under it: where these \
               are set, they must agree. Several jsrun of one job at the same time need different ports: `--rendezvous \
               HOST:PORT`.",
    },
    Launcher {
        engine: Engine::Flux,
        title: "Flux",
        start: "flux run -N8 -n8 sh -c 'exec hcabench fabric --rendezvous \"$(flux hostlist --nth=0 local)\" --inline \
                --burst 200 --out fabric'",
        surrounds: false,
        rank: variable("FLUX_TASK_RANK", FLUX, ""),
        ranks: &[variable("FLUX_JOB_SIZE", FLUX, "")],
        local_rank: Some(variable("FLUX_TASK_LOCAL_ID", FLUX, "")),
        local_ranks: None,
        nodes: Some(variable("FLUX_JOB_NNODES", FLUX, "")),
        node: &[],
        job: &[variable("FLUX_JOB_ID", FLUX, "")],
        step: &[],
        without_step: "",
        hosts: &[],
        note: "Flux does not set the nodes of a job, so that a job of several nodes needs `--rendezvous`: within the job \
               `flux hostlist local` lists them. Flux sets `PMI_RANK` and `PMI_SIZE` as well, with the same values.",
    },
    Launcher {
        engine: Engine::OpenMpi,
        title: "Open MPI",
        start: "mpirun --map-by node -np 8 hcabench fabric --inline --burst 200 --out fabric",
        surrounds: false,
        rank: variable("OMPI_COMM_WORLD_RANK", OPEN_MPI, OPEN_MPI_SEEN),
        ranks: &[variable("OMPI_COMM_WORLD_SIZE", OPEN_MPI, OPEN_MPI_SEEN)],
        local_rank: Some(variable(
            "OMPI_COMM_WORLD_LOCAL_RANK",
            OPEN_MPI,
            OPEN_MPI_SEEN,
        )),
        local_ranks: Some(variable(
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            OPEN_MPI,
            OPEN_MPI_SEEN,
        )),
        nodes: None,
        node: &[SLURM_NODE, PMIX_HOSTNAME],
        job: &[PMIX_NAMESPACE],
        step: &[],
        without_step: "",
        hosts: &[
            SLURM_NODES,
            SLURM_LAUNCH_NODE,
            LSF_HOSTS,
            Hosts {
                form: HostsForm::MpirunUri,
                variables: &[variable(
                    "OMPI_MCA_orte_hnp_uri",
                    "not documented; set by Open MPI up to 4",
                    "Open MPI 4.1.4",
                )],
            },
            PRTERUN,
        ],
        note: "Outside of Slurm and LSF only the host of mpirun is known, which in a job of PBS is the first node: if \
               rank 0 runs on another one, give `--rendezvous`.",
    },
    Launcher {
        engine: Engine::Pals,
        title: "PALS (HPE Cray, with PBS)",
        start: "mpiexec -n 8 --ppn 1 hcabench fabric --rendezvous \"$(head -n 1 \"$PBS_NODEFILE\")\" --inline \
                --burst 200 --out fabric",
        surrounds: true,
        rank: variable("PALS_RANKID", PALS, ""),
        ranks: &[variable(
            "PMI_SIZE",
            "set by PALS with its default, --pmi=cray",
            "",
        )],
        local_rank: Some(variable("PALS_LOCAL_RANKID", PALS, "")),
        local_ranks: Some(variable("PALS_LOCAL_SIZE", PALS_SIZE, "")),
        nodes: None,
        node: &[],
        job: &[PBS_JOB],
        step: &[variable("PALS_APID", PALS, "")],
        without_step: "",
        hosts: &[],
        note: "PALS itself does not set the number of ranks (programs that look for `PALS_SIZE` report that it is never \
               set): it is that of PMI, and with `--pmi=pmix` you give `--ranks`. The file that `PBS_NODEFILE` names is \
               on the first node of the job, where the command above runs, and need not be on others: hcabench does not \
               read it. In a step of Slurm, whose plugin mpi/cray_shasta sets the variables of PALS and of PMI, Slurm's \
               count.",
    },
    Launcher {
        engine: Engine::Pmi,
        title: "Hydra (MPICH, Intel MPI)",
        start: "mpiexec.hydra -n 8 -ppn 1 -hosts n1,n2,n3,n4,n5,n6,n7,n8 hcabench fabric --rendezvous n1 --inline \
                --burst 200 --out fabric",
        surrounds: false,
        rank: PMI_RANK,
        ranks: &[PMI_SIZE],
        local_rank: Some(variable("MPI_LOCALRANKID", HYDRA_LOCAL, HYDRA_SEEN)),
        local_ranks: Some(variable("MPI_LOCALNRANKS", HYDRA_LOCAL, HYDRA_SEEN)),
        nodes: None,
        node: &[SLURM_NODE],
        job: &[SLURM_JOB, PBS_JOB, LSF_JOB],
        step: &[SLURM_STEP],
        without_step: "",
        hosts: &[SLURM_NODES, SLURM_LAUNCH_NODE, LSF_HOSTS],
        note: "Hydra sets neither hosts nor a job. On one host rank 0 is met at the loopback. In a job of Slurm or LSF \
               the first node of the job is tried, elsewhere give `--rendezvous`, with a port if several of these run \
               on one host; in a job of PBS it is `--rendezvous \"$(head -n 1 \"$PBS_NODEFILE\")\"`. `SLURMD_NODENAME` counts only if the step has as many tasks as there are ranks, because \
               Hydra may pass one environment to all nodes.",
    },
    Launcher {
        engine: Engine::Pmix,
        title: "PMIx (prterun)",
        start: "prterun --map-by node -np 8 hcabench fabric --ranks 8 --inline --burst 200 --out fabric",
        surrounds: false,
        rank: PMIX_RANK,
        ranks: &[],
        local_rank: None,
        local_ranks: None,
        nodes: None,
        node: &[PMIX_HOSTNAME],
        job: &[PMIX_NAMESPACE],
        step: &[],
        without_step: "",
        hosts: &[SLURM_NODES, SLURM_LAUNCH_NODE, LSF_HOSTS, PRTERUN],
        note: "No variable has the number of ranks: a client asks the server for it (`PMIX_JOB_SIZE`), and hcabench is \
               not a client. Give it as `--ranks`. Under `srun --mpi=pmix`, whose namespace begins with `slurm.pmix.`, \
               Slurm's variables count.",
    },
    Launcher {
        engine: Engine::Slurm,
        title: "Slurm",
        start: "srun -N8 --ntasks-per-node=1 hcabench fabric --inline --burst 200 --out fabric",
        surrounds: true,
        rank: variable("SLURM_PROCID", SRUN, SLURM_SEEN),
        ranks: &[
            variable("SLURM_STEP_NUM_TASKS", SRUN, ""),
            variable("SLURM_NTASKS", SRUN, SLURM_SEEN),
        ],
        local_rank: Some(variable("SLURM_LOCALID", SRUN, "")),
        local_ranks: None,
        nodes: None,
        node: &[SLURM_NODE],
        job: &[SLURM_JOB],
        step: &[SLURM_STEP],
        without_step: "this process is not a step of the job; start it by srun",
        hosts: &[SLURM_NODES, SLURM_LAUNCH_NODE],
        note: "The place of a node in the network is `SLURM_TOPOLOGY_ADDR`, if Slurm has a topology.",
    },
    Launcher {
        engine: Engine::Kubernetes,
        title: "Kubernetes (Indexed Job, JobSet)",
        start: "kubectl apply -f deploy/kubernetes/indexed-job.yaml",
        surrounds: true,
        rank: variable("JOB_COMPLETION_INDEX", KUBERNETES, ""),
        ranks: &[variable("HCABENCH_RANKS", OURS, "")],
        local_rank: None,
        local_ranks: None,
        nodes: None,
        node: &[variable("HCABENCH_NODE", OURS, "")],
        job: &[variable("HCABENCH_JOB", OURS, "")],
        step: &[],
        without_step: "",
        hosts: &[Hosts {
            form: HostsForm::HostAndPort,
            variables: &[variable("HCABENCH_RENDEZVOUS", OURS, "")],
        }],
        note: "Rank 0 is the pod with index 0, met by its name below a headless Service. It listens at its own host \
               name as well, because its name in the Service may be published later than it starts. An MPIJob starts \
               ranks by Open MPI or Hydra, whose variables count.",
    },
];

impl Launcher {
    /// The launcher of that name.
    pub fn of(engine: Engine) -> Option<&'static Launcher> {
        LAUNCHERS.iter().find(|launcher| launcher.engine == engine)
    }

    /// Its variables with what each is for, in the order of the documentation.
    pub fn variables(&self) -> Vec<(&'static str, Variable)> {
        let mut all = vec![("rank", self.rank)];
        let mut add = |purpose, variables: &mut dyn Iterator<Item = Variable>| {
            all.extend(variables.map(|variable| (purpose, variable)));
        };
        add("ranks", &mut self.ranks.iter().copied());
        add("local rank", &mut self.local_rank.into_iter());
        add("local ranks", &mut self.local_ranks.into_iter());
        add("nodes", &mut self.nodes.into_iter());
        add("name of the node", &mut self.node.iter().copied());
        add("job", &mut self.job.iter().copied());
        add("step", &mut self.step.iter().copied());
        for hosts in self.hosts {
            add("where rank 0 is met", &mut hosts.variables.iter().copied());
        }
        all
    }
}
