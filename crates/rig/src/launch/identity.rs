//! The rank of a process among those that measure together, from the engine that started it or from options.
//!
//! | engine | rank and number | job, step | where rank 0 may be |
//! | --- | --- | --- | --- |
//! | options | `--rank`, `--ranks` | none | `--rendezvous` |
//! | Open MPI | `OMPI_COMM_WORLD_RANK`, `_SIZE` | `PMIX_NAMESPACE` | Slurm's nodes, the host of mpirun |
//! | PMI | `PMI_RANK`, `PMI_SIZE` | those of Slurm | Slurm's nodes |
//! | Slurm | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | `SLURM_JOB_ID`, `SLURM_STEP_ID` | the nodes of the step |
//!
//! They are asked in this order, because a process of mpirun inside a job of Slurm sees the variables of both.
//! `--rendezvous` precedes the value of an engine.

use std::fmt;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::node_list;
use crate::rig::named::named;

/// The environment: the value of a variable, if it is set.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment of this process. A value that is not Unicode counts as not set.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// More ranks than this are a mistake.
pub const MOST_RANKS: u32 = 1 << 16;

/// The port of `--rendezvous HOST` without an engine.
pub const DEFAULT_PORT: u16 = 19_016;

/// Where the ports of jobs begin, and how many there are: below the ports that kernels give to those who ask for none.
const JOB_PORTS: (u16, u16) = (20_000, 12_000);

named! {
    /// What started the processes.
    Engine {
        /// Slurm's srun.
        Slurm = "slurm",
        /// Open MPI's mpirun.
        OpenMpi = "openmpi",
        /// Another one that sets ranks by PMI: MPICH, Intel MPI.
        Pmi = "pmi",
        /// A user, by options.
        Options = "options",
    }
}

/// An identifier of the run, which its processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What started it.
    pub engine: Engine,
    /// The engine's name for the job; empty: it has none.
    pub job: String,
    /// The step of the job; empty: there are none.
    pub step: String,
}

impl fmt::Display for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (job, step) = (self.job.escape_default(), self.step.escape_default());
        write!(
            formatter,
            "'{job}', step '{step}', of {}",
            self.engine.name()
        )
    }
}

impl Job {
    /// The port at which the ranks of this job meet. Two jobs on a node have different ones, almost always.
    fn port(&self) -> u16 {
        if self.job.is_empty() {
            return DEFAULT_PORT;
        }
        let text = format!("{}/{}", self.job, self.step);
        // FNV-1a.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let (first, count) = JOB_PORTS;
        first + (hash % u64::from(count)) as u16
    }
}

/// Where the ranks meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    /// Names or addresses of the host of rank 0. The first of them at which rank 0 answers counts.
    pub hosts: Vec<String>,
    /// The TCP port.
    pub port: u16,
}

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its number, from 0. Rank 0 conducts.
    pub rank: u32,
    /// How many there are.
    pub ranks: u32,
    /// The engine's name of the node, or the host's name.
    pub node: String,
    /// The job that it is part of.
    pub job: Job,
    /// Where the node is in the network, from Slurm: `top.s1.n2`.
    pub topology: Option<String>,
    /// Where rank 0 is met.
    pub rendezvous: Rendezvous,
}

/// The values of options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `--rank`.
    pub rank: Option<u32>,
    /// `--ranks`.
    pub ranks: Option<u32>,
    /// `--rendezvous HOST[:PORT]`.
    pub rendezvous: Option<String>,
}

/// Why it is not known who a process is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// No engine has started it, and no option sets it.
    #[error(
        "no engine has set the rank of this process; start it by srun or mpirun, or give each process --rank, --ranks \
         and --rendezvous"
    )]
    Unknown,
    /// A variable or an option has a value that it cannot have.
    #[error("{name} is '{value}': {allowed}")]
    Value {
        /// The variable or option.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// One of two that belong together is missing.
    #[error("{present} is given and {missing} is not: {advice}")]
    Missing {
        /// What is there.
        present: &'static str,
        /// What is not.
        missing: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// An engine does not report where rank 0 runs.
    #[error(
        "the host of rank 0 is not given by {engine}; give all ranks the same --rendezvous HOST[:PORT]"
    )]
    NoHost {
        /// What started it.
        engine: &'static str,
    },
}

impl Identity {
    /// Who this process is. `hostname` is the node's name where no engine has another one.
    ///
    /// # Errors
    /// When it is missing or invalid.
    pub fn find(
        options: &Options,
        environment: Environment<'_>,
        hostname: &str,
    ) -> Result<Self, IdentityError> {
        let told = EngineEnvironment { environment };
        let (rank, ranks, job) = match (options.rank, options.ranks) {
            (Some(rank), Some(ranks)) => (rank, ranks, job(Engine::Options, None, None)),
            (None, None) => told.by_engine()?,
            (rank, _) => return Err(half(rank.is_some())),
        };
        check(rank, ranks, job.engine)?;
        let rendezvous = match &options.rendezvous {
            Some(text) => given(text, job.port())?,
            None => Rendezvous {
                hosts: told.hosts(&job)?,
                port: job.port(),
            },
        };
        let node = match job.engine {
            Engine::Options => None,
            Engine::OpenMpi => told
                .text("SLURMD_NODENAME")
                .or_else(|| told.text("PMIX_HOSTNAME")),
            // An mpiexec that uses ssh may give its own environment to all nodes.
            Engine::Pmi if told.number("SLURM_STEP_NUM_TASKS")? != Some(ranks) => None,
            Engine::Slurm | Engine::Pmi => told.text("SLURMD_NODENAME"),
        };
        Ok(Identity {
            rank,
            ranks,
            node: node.unwrap_or_else(|| hostname.to_owned()),
            topology: told.text("SLURM_TOPOLOGY_ADDR"),
            job,
            rendezvous,
        })
    }
}

fn job(engine: Engine, job: Option<String>, step: Option<String>) -> Job {
    Job {
        engine,
        job: job.unwrap_or_default(),
        step: step.unwrap_or_default(),
    }
}

fn half(has_rank: bool) -> IdentityError {
    let (present, missing) = if has_rank {
        ("--rank", "--ranks")
    } else {
        ("--ranks", "--rank")
    };
    IdentityError::Missing {
        present,
        missing,
        advice: "give both, or none and start it by srun or mpirun",
    }
}

/// Whether there can be such a rank.
fn check(rank: u32, ranks: u32, engine: Engine) -> Result<(), IdentityError> {
    let (rank_name, ranks_name) = match engine {
        Engine::Slurm => ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
        Engine::OpenMpi => ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        Engine::Pmi => ("PMI_RANK", "PMI_SIZE"),
        Engine::Options => ("--rank", "--ranks"),
    };
    let refuse = |name, value: u32, allowed| {
        Err(IdentityError::Value {
            name,
            value: value.to_string(),
            allowed,
        })
    };
    if !(2..=MOST_RANKS).contains(&ranks) {
        return refuse(
            ranks_name,
            ranks,
            format!("2 to {MOST_RANKS} ranks can measure together"),
        );
    }
    if rank >= ranks {
        let allowed = format!(
            "the ranks are 0 to {}, because {ranks_name} is {ranks}",
            ranks - 1
        );
        return refuse(rank_name, rank, allowed);
    }
    Ok(())
}

/// Takes `HOST[:PORT]` apart: also `[::1]:PORT`, and `::1`.
fn given(text: &str, port: u16) -> Result<Rendezvous, IdentityError> {
    let refuse = |allowed: &str| IdentityError::Value {
        name: "--rendezvous",
        value: text.to_owned(),
        allowed: allowed.to_owned(),
    };
    let (host, port_text) = if text.parse::<Ipv6Addr>().is_ok() {
        (text, None)
    } else if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or_else(|| refuse("a '[' is not closed"))?;
        let port = match rest.strip_prefix(':') {
            None if !rest.is_empty() => return Err(refuse("only :PORT may follow ']'")),
            port => port,
        };
        (host, port)
    } else {
        let split = text.split_once(':');
        split.map_or((text, None), |(host, port)| (host, Some(port)))
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(refuse("it takes HOST[:PORT], the host of rank 0"));
    }
    let number = port_text.map_or(Ok(port), |port| {
        let number = port.parse().ok().filter(|port| *port > 0);
        number.ok_or_else(|| refuse("the port is a number from 1 to 65535"))
    })?;
    Ok(Rendezvous {
        hosts: vec![host.to_owned()],
        port: number,
    })
}

/// The values of the engines.
struct EngineEnvironment<'a> {
    environment: Environment<'a>,
}

impl EngineEnvironment<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|text| !text.is_empty())
    }

    fn number(&self, name: &'static str) -> Result<Option<u32>, IdentityError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().map_err(|_| IdentityError::Value {
            name,
            value: text,
            allowed: "the engine must set a whole number".to_owned(),
        })?;
        Ok(Some(number))
    }

    /// Both numbers, if the first is set.
    fn two(
        &self,
        rank: &'static str,
        ranks: &'static str,
    ) -> Result<Option<(u32, u32)>, IdentityError> {
        let Some(number) = self.number(rank)? else {
            return Ok(None);
        };
        let count = self.number(ranks)?.ok_or(IdentityError::Missing {
            present: rank,
            missing: ranks,
            advice: "the engine must set both",
        })?;
        Ok(Some((number, count)))
    }

    /// Rank, ranks and job.
    fn by_engine(&self) -> Result<(u32, u32, Job), IdentityError> {
        let slurm = |engine| {
            job(
                engine,
                self.text("SLURM_JOB_ID"),
                self.text("SLURM_STEP_ID"),
            )
        };
        if let Some((rank, ranks)) = self.two("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")? {
            return Ok((
                rank,
                ranks,
                job(Engine::OpenMpi, self.text("PMIX_NAMESPACE"), None),
            ));
        }
        if let Some((rank, ranks)) = self.two("PMI_RANK", "PMI_SIZE")? {
            return Ok((rank, ranks, slurm(Engine::Pmi)));
        }
        let Some(rank) = self.number("SLURM_PROCID")? else {
            return Err(IdentityError::Unknown);
        };
        // The shell of a batch script is a process 0 as well.
        if self.text("SLURM_STEP_ID").is_none() {
            return Err(IdentityError::Missing {
                present: "SLURM_PROCID",
                missing: "SLURM_STEP_ID",
                advice: "this process is not a step of the job; start it by srun",
            });
        }
        let ranks = match self.number("SLURM_STEP_NUM_TASKS")? {
            Some(ranks) => Some(ranks),
            None => self.number("SLURM_NTASKS")?,
        };
        let ranks = ranks.ok_or(IdentityError::Missing {
            present: "SLURM_PROCID",
            missing: "SLURM_NTASKS",
            advice: "the engine must set both",
        })?;
        Ok((rank, ranks, slurm(Engine::Slurm)))
    }

    /// Where rank 0 may be: the first node, and what else is known of hosts near it. Names of nodes need not be
    /// names of hosts.
    fn hosts(&self, job: &Job) -> Result<Vec<String>, IdentityError> {
        let mut hosts = Vec::new();
        if job.engine == Engine::OpenMpi {
            let (all, here) = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE");
            if self.number(all)? == self.number(here)? {
                hosts.push("127.0.0.1".to_owned());
            }
        }
        if job.engine != Engine::Options {
            hosts.extend(self.first_node()?);
            hosts.extend(self.text("SLURM_LAUNCH_NODE_IPADDR"));
        }
        if job.engine == Engine::OpenMpi {
            let uri = self.text("OMPI_MCA_orte_hnp_uri").unwrap_or_default();
            hosts.extend(addresses_of_mpirun(&uri));
        }
        if hosts.is_empty() {
            let engine = job.engine.name();
            return Err(IdentityError::NoHost { engine });
        }
        Ok(hosts)
    }

    /// The first node of the step, or of the job.
    fn first_node(&self) -> Result<Option<String>, IdentityError> {
        for name in [
            "SLURM_STEP_NODELIST",
            "SLURM_NODELIST",
            "SLURM_JOB_NODELIST",
        ] {
            let Some(list) = self.text(name) else {
                continue;
            };
            let nodes = node_list::expand(&list).map_err(|reason| IdentityError::Value {
                name,
                value: list,
                allowed: format!("it must be a list of nodes such as n[1-4,7], but {reason}"),
            })?;
            return Ok(nodes.into_iter().next());
        }
        Ok(None)
    }
}

/// The addresses in `1234.0;tcp://192.0.2.2,198.51.100.2:36435;tcp6://[fd00::2]:41495`.
fn addresses_of_mpirun(uri: &str) -> Vec<String> {
    let parts = uri.split(';').filter_map(|part| part.split_once("://"));
    let lists = parts.filter_map(|(_, addresses)| addresses.rsplit_once(':'));
    let addresses = lists.flat_map(|(list, _port)| list.trim_matches(['[', ']']).split(','));
    addresses
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests;
