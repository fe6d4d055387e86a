//! Rank, job and node of a process by the variables of launchers, and which of several launchers counts.

use super::launchers::{Engine, LAUNCHERS, Launcher, PMIX_NAMESPACE, Variable};
use super::{Environment, IdentityError, Job, MOST_RANKS, half};

/// The values of the launchers.
pub(super) struct Variables<'a> {
    pub(super) environment: Environment<'a>,
}

/// A process among the ranks.
pub(super) struct Place {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) job: Job,
    /// The launcher that has set it; none: options have.
    pub(super) launcher: Option<&'static Launcher>,
}

impl Place {
    /// By `--rank` and `--ranks`.
    pub(super) fn by_options(rank: u32, ranks: u32) -> Result<Self, IdentityError> {
        check_rank(("--rank", rank), ("--ranks", ranks))?;
        Ok(Place {
            rank,
            ranks,
            job: Job {
                engine: Engine::Options,
                job: String::new(),
                step: String::new(),
            },
            launcher: None,
        })
    }
}

/// A variable or option, and its number.
type Number = (&'static str, u32);

fn refuse(name: &'static str, value: u32, allowed: String) -> IdentityError {
    IdentityError::Value {
        name,
        value: value.to_string(),
        allowed,
    }
}

/// Whether there can be such a rank.
fn check_rank(rank: Number, ranks: Number) -> Result<(), IdentityError> {
    if !(2..=MOST_RANKS).contains(&ranks.1) {
        let allowed = format!(
            "2 to {MOST_RANKS} ranks can measure together; have the launcher start as many, as in srun -N2 \
             --ntasks-per-node=1"
        );
        return Err(refuse(ranks.0, ranks.1, allowed));
    }
    check_below("the ranks are", rank, ranks)
}

/// Whether a number of ranks counted from 0 is below how many there are.
fn check_below(what: &str, number: Number, count: Number) -> Result<(), IdentityError> {
    if number.1 < count.1 {
        return Ok(());
    }
    let allowed = format!(
        "{what} 0 to {}, because {} is {}",
        count.1.saturating_sub(1),
        count.0,
        count.1
    );
    Err(refuse(number.0, number.1, allowed))
}

impl Variables<'_> {
    pub(super) fn text(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|text| !text.is_empty())
    }

    /// The value of the first of these that is set.
    pub(super) fn first(&self, variables: &[Variable]) -> Option<(&'static str, String)> {
        let mut set = (variables.iter())
            .filter_map(|variable| Some((variable.name, self.text(variable.name)?)));
        set.next()
    }

    fn number(&self, variable: Variable) -> Result<Option<Number>, IdentityError> {
        self.first_number(&[variable])
    }

    fn first_number(&self, variables: &[Variable]) -> Result<Option<Number>, IdentityError> {
        let Some((name, value)) = self.first(variables) else {
            return Ok(None);
        };
        let number = value.parse().map_err(|_| IdentityError::Value {
            name,
            value,
            allowed: "the launcher must set a whole number".to_owned(),
        })?;
        Ok(Some((name, number)))
    }

    /// The launchers that have set a rank, the one that counts first.
    fn present(&self) -> impl Iterator<Item = &'static Launcher> {
        let by_srun = self.set_by_srun();
        (LAUNCHERS.iter()).filter(move |launcher| {
            !by_srun.contains(&launcher.engine) && self.text(launcher.rank.name).is_some()
        })
    }

    /// The other launchers whose variables srun has set, by its plugins. The same for all ranks of a step.
    fn set_by_srun(&self) -> Vec<Engine> {
        let mut set = Vec::new();
        if self.pmix_of_slurm() {
            set.push(Engine::Pmix);
        }
        let value = |name: &str| self.text(name);
        // mpi/cray_shasta: PALS itself runs in jobs of PBS.
        if value("SLURM_STEP_ID").is_some() && value("PALS_RANKID").is_some() {
            set.push(Engine::Pals);
            if value("PMI_SIZE") == value("SLURM_STEP_NUM_TASKS") {
                set.push(Engine::Pmi);
            }
        }
        set
    }

    /// Whether Slurm is the PMIx server of this process: its namespace has job and step.
    fn pmix_of_slurm(&self) -> bool {
        let namespace = self.text(PMIX_NAMESPACE.name);
        namespace.is_some_and(|name| name.starts_with("slurm.pmix."))
    }

    /// The rank that the launcher has set, if it has.
    pub(super) fn rank(&self) -> Option<u32> {
        let launcher = self.present().next()?;
        self.number(launcher.rank).ok()?.map(|(_, rank)| rank)
    }

    /// Rank, ranks and job. `ranks`: the option, for launchers that do not set it.
    pub(super) fn place(&self, ranks: Option<u32>) -> Result<Place, IdentityError> {
        let Some(launcher) = self.present().next() else {
            return Err(match ranks {
                Some(_) => half("--ranks", "--rank"),
                None => IdentityError::Unknown,
            });
        };
        let missing = |missing, advice| IdentityError::Missing {
            present: launcher.rank.name,
            missing,
            advice,
        };
        let Some(rank) = self.number(launcher.rank)? else {
            return Err(IdentityError::Unknown);
        };
        let step = self.first(launcher.step);
        // The shell of a batch script is a process 0 as well.
        if step.is_none() && !launcher.without_step.is_empty() {
            let name = launcher.step.first().map_or("", |step| step.name);
            return Err(missing(name, launcher.without_step));
        }
        let by_option = ranks.map(|ranks| ("--ranks", ranks));
        let by_launcher = self.first_number(launcher.ranks)?;
        let ranks = match (by_launcher, by_option) {
            (Some((name, number)), Some((_, asked))) if number != asked => {
                return Err(IdentityError::Ranks {
                    asked,
                    name,
                    number,
                });
            }
            (Some(ranks), _) | (None, Some(ranks)) => ranks,
            (None, None) => {
                let name = launcher.ranks.last().map_or("--ranks", |ranks| ranks.name);
                return Err(missing(
                    name,
                    "the number of ranks is not known; give all of them the same --ranks",
                ));
            }
        };
        self.check_others(launcher, rank, ranks)?;
        check_rank(rank, ranks)?;
        self.check_local(launcher, ranks)?;
        let value = |found: Option<(&str, String)>| found.map(|(_, value)| value);
        Ok(Place {
            rank: rank.1,
            ranks: ranks.1,
            job: Job {
                engine: launcher.engine,
                job: value(self.first(launcher.job)).unwrap_or_default(),
                step: value(step).unwrap_or_default(),
            },
            launcher: Some(launcher),
        })
    }

    /// Refuses ranks of another launcher that differ, unless that one surrounds this one.
    fn check_others(
        &self,
        launcher: &Launcher,
        rank: Number,
        ranks: Number,
    ) -> Result<(), IdentityError> {
        let others = self
            .present()
            .filter(|other| other.engine != launcher.engine);
        let others: Vec<&Launcher> = others.collect();
        for other in others.iter().filter(|other| !other.surrounds) {
            let Some(its_rank) = self.number(other.rank)? else {
                continue;
            };
            // Slurm and PALS set the variables of PMI and PMIx for the daemons that they start, too.
            let mut around = others.iter().filter(|around| around.surrounds);
            let is_of_daemons = around.any(|around| {
                let outer = self.number(around.rank).ok().flatten();
                outer.is_some_and(|(_, outer)| outer == its_rank.1)
            });
            if is_of_daemons {
                continue;
            }
            // mpirun was started in a step of Slurm, which has set the variables of PMI for the step.
            let is_of_slurm = other.engine == Engine::Pmi && self.text("SLURM_JOB_ID").is_some();
            let its_ranks = self.first_number(other.ranks)?;
            if is_of_slurm && its_ranks.is_some_and(|its_ranks| its_ranks.1 != ranks.1) {
                continue;
            }
            if its_rank.1 != rank.1 {
                return Err(contradiction(rank, its_rank));
            }
            match its_ranks {
                Some(its_ranks) if its_ranks.1 != ranks.1 => {
                    return Err(contradiction(ranks, its_ranks));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses numbers of a node that cannot be: variables of another process.
    fn check_local(&self, launcher: &Launcher, ranks: Number) -> Result<(), IdentityError> {
        let value = |variable: Option<Variable>| match variable {
            Some(variable) => self.number(variable),
            None => Ok(None),
        };
        let (rank, count) = (value(launcher.local_rank)?, value(launcher.local_ranks)?);
        if let Some(rank) = rank {
            let count = count.unwrap_or(ranks);
            check_below("the ranks of this node are", rank, count)?;
        }
        match count {
            Some((name, count)) if count > ranks.1 => {
                let allowed = format!("{} is {}, and a node has no more", ranks.0, ranks.1);
                Err(refuse(name, count, allowed))
            }
            _ => Ok(()),
        }
    }

    /// Whether all ranks run on one node.
    pub(super) fn is_one_node(&self, place: &Place) -> Result<bool, IdentityError> {
        let Some(launcher) = place.launcher else {
            return Ok(false);
        };
        let is = |variable: Option<Variable>, wanted| match variable {
            Some(variable) => {
                let number = self.number(variable)?;
                Ok(number.is_some_and(|(_, number)| number == wanted))
            }
            None => Ok(false),
        };
        Ok(is(launcher.local_ranks, place.ranks)? || is(launcher.nodes, 1)?)
    }

    /// The launcher's name of the node.
    pub(super) fn node(&self, place: &Place) -> Result<Option<String>, IdentityError> {
        let Some(launcher) = place.launcher else {
            return Ok(None);
        };
        if launcher.engine == Engine::Pmi && !self.is_rank_of_slurm(place)? {
            return Ok(None);
        }
        Ok(self.first(launcher.node).map(|(_, value)| value))
    }

    /// Whether Slurm has started this process, or the proxy of Hydra that did, as the same rank. Hydra passes the
    /// environment of mpiexec to all nodes: in a batch script that has the variables of the first one.
    fn is_rank_of_slurm(&self, place: &Place) -> Result<bool, IdentityError> {
        let Some(slurm) = LAUNCHERS.iter().find(|it| it.engine == Engine::Slurm) else {
            return Ok(false);
        };
        let number = |found: Option<Number>| found.map(|(_, number)| number);
        let tasks = number(self.first_number(&slurm.ranks[..1])?);
        let rank = number(self.number(slurm.rank)?);
        Ok(tasks == Some(place.ranks) && rank == Some(place.rank))
    }

    /// The switches above the node, by Slurm. Without a plugin for topologies the address is the node alone.
    pub(super) fn topology(&self, place: &Place) -> Result<Option<String>, IdentityError> {
        let engine = place.launcher.map(|launcher| launcher.engine);
        if engine == Some(Engine::Pmi) && !self.is_rank_of_slurm(place)? {
            return Ok(None);
        }
        let has_switches = match self.text("SLURM_TOPOLOGY_ADDR_PATTERN") {
            Some(pattern) => pattern != "node",
            None => true,
        };
        let address = self.text("SLURM_TOPOLOGY_ADDR").filter(|_| has_switches);
        Ok(address.filter(|address| address.contains('.')))
    }
}

fn contradiction(first: Number, second: Number) -> IdentityError {
    IdentityError::Contradiction {
        first: first.0,
        first_value: first.1,
        second: second.0,
        second_value: second.1,
    }
}
