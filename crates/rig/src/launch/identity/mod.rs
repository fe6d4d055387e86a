//! The rank of a process among those that measure together, from the launcher that started it or from options.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`launchers`] | the table of launchers and their variables |
//! | `variables` | rank, job and node by that table, and which of several launchers counts |
//! | `hosts` | where rank 0 may be, by that table |
//!
//! `--rank`, `--ranks` and `--rendezvous` precede all launchers.

mod hosts;
pub mod launchers;
mod variables;

use std::fmt;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

pub use self::launchers::Engine;
use self::variables::Variables;

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
    /// The launcher's name of the node, or the host's name.
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
    /// No launcher has started it, and no option sets it.
    #[error(
        "no launcher has set the rank of this process; start it by srun, mpirun, mpiexec, flux run or jsrun, as in \
         docs/launchers.md, or give each process --rank, --ranks and --rendezvous"
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
    /// The option and the launcher have other numbers of ranks.
    #[error(
        "--ranks is {asked} and {name} is {number}: leave --ranks out, or start as many processes"
    )]
    Ranks {
        /// By the option.
        asked: u32,
        /// The variable of the launcher.
        name: &'static str,
        /// Its value.
        number: u32,
    },
    /// Two launchers have set ranks, and it is not known which of them started the process.
    #[error(
        "two launchers have set the rank of this process: {first} is {first_value} and {second} is {second_value}; start \
         it by one of them, unset the variables of the other, or give each process --rank, --ranks and --rendezvous"
    )]
    Contradiction {
        /// A variable.
        first: &'static str,
        /// Its value.
        first_value: u32,
        /// A variable or option that contradicts it.
        second: &'static str,
        /// Its value.
        second_value: u32,
    },
    /// A launcher does not report where rank 0 runs.
    #[error(
        "the host of rank 0 is not given by {engine}; give all ranks the same --rendezvous HOST[:PORT]{example}"
    )]
    NoHost {
        /// What started it.
        engine: &'static str,
        /// Where the host is found.
        example: &'static str,
    },
}

impl IdentityError {
    /// Whether the process is not one of as many ranks as `--ranks` sets, or of none.
    pub fn is_by_number(&self) -> bool {
        match self {
            IdentityError::Unknown => true,
            IdentityError::Missing { missing, .. } => ["--rank", "SLURM_STEP_ID"].contains(missing),
            IdentityError::Ranks { .. } => true,
            IdentityError::Contradiction { .. }
            | IdentityError::Value { .. }
            | IdentityError::NoHost { .. } => false,
        }
    }
}

impl Identity {
    /// Who this process is. `hostname` is the node's name where no launcher has another one.
    ///
    /// # Errors
    /// When it is missing or invalid.
    pub fn find(
        options: &Options,
        environment: Environment<'_>,
        hostname: &str,
    ) -> Result<Self, IdentityError> {
        let variables = Variables { environment };
        let place = match (options.rank, options.ranks) {
            (Some(rank), Some(ranks)) => variables::Place::by_options(rank, ranks)?,
            (Some(_), None) => return Err(half("--rank", "--ranks")),
            (None, ranks) => variables.place(ranks)?,
        };
        let rendezvous = match &options.rendezvous {
            Some(text) => given("--rendezvous", text, place.job.port())?,
            None => variables.rendezvous(&place, hostname)?,
        };
        let node = variables.node(&place)?;
        Ok(Identity {
            rank: place.rank,
            ranks: place.ranks,
            node: node.unwrap_or_else(|| hostname.to_owned()),
            topology: variables.topology(&place)?,
            job: place.job,
            rendezvous,
        })
    }

    /// The rank by the launcher alone, if one has set it.
    pub fn rank_by_launcher(environment: Environment<'_>) -> Option<u32> {
        Variables { environment }.rank()
    }
}

fn half(present: &'static str, missing: &'static str) -> IdentityError {
    IdentityError::Missing {
        present,
        missing,
        advice: "give both, or none and start it by a launcher",
    }
}

/// Takes `HOST[:PORT]` apart: also `[::1]:PORT`, and `::1`.
fn given(name: &'static str, text: &str, port: u16) -> Result<Rendezvous, IdentityError> {
    let refuse = |allowed: &str| IdentityError::Value {
        name,
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

#[cfg(test)]
mod tests;
