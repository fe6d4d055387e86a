//! Where rank 0 may be, by the variables of launchers.

use super::launchers::{Engine, Hosts, HostsForm};
use super::variables::{Place, Variables};
use super::{IdentityError, Rendezvous, given};
use crate::launch::node_list;

impl Variables<'_> {
    /// Where rank 0 may be: the first node, and what else is known of hosts near it. Names of nodes need not be names of
    /// hosts.
    pub(super) fn rendezvous(
        &self,
        place: &Place,
        hostname: &str,
    ) -> Result<Rendezvous, IdentityError> {
        let (mut hosts, mut port) = (Vec::new(), place.job.port());
        if self.is_one_node(place)? {
            // No other host needs to reach it: rank 0 would listen at all addresses if it were known by several.
            let hosts = vec!["127.0.0.1".to_owned()];
            return Ok(Rendezvous { hosts, port });
        }
        for known in place.launcher.map_or(&[][..], |launcher| launcher.hosts) {
            let Some((name, value)) = self.first(known.variables) else {
                continue;
            };
            if known.form == HostsForm::HostAndPort {
                let found = given(name, &value, port)?;
                port = found.port;
                hosts.extend(found.hosts);
            } else {
                hosts.extend(named_by(known, name, value)?);
            }
        }
        if hosts.is_empty() {
            let engine = place.job.engine.name();
            let example = match place.launcher {
                Some(launcher) if launcher.engine == Engine::Flux => {
                    "; in a job of Flux it is \"$(flux hostlist --nth=0 local)\""
                }
                Some(_) if self.text("PBS_NODEFILE").is_some() => {
                    "; in a job of PBS it is \"$(head -n 1 \"$PBS_NODEFILE\")\", where mpiexec is started"
                }
                _ => "",
            };
            return Err(IdentityError::NoHost { engine, example });
        }
        if place.job.engine == Engine::Kubernetes && place.rank == 0 {
            hosts.push(hostname.to_owned());
        }
        Ok(Rendezvous { hosts, port })
    }
}

/// The hosts that a value names.
fn named_by(
    known: &Hosts,
    name: &'static str,
    value: String,
) -> Result<Vec<String>, IdentityError> {
    Ok(match known.form {
        HostsForm::NodeList => {
            let nodes = node_list::expand(&value).map_err(|reason| IdentityError::Value {
                name,
                value,
                allowed: format!("it must be a list of nodes such as n[1-4,7], but {reason}"),
            })?;
            nodes.into_iter().take(1).collect()
        }
        HostsForm::Address | HostsForm::HostAndPort => vec![value],
        HostsForm::Slots => {
            let mut hosts: Vec<String> = Vec::new();
            for host in value.split_whitespace().step_by(2) {
                if !hosts.iter().any(|known| known == host) {
                    hosts.push(host.to_owned());
                }
            }
            hosts.truncate(2);
            hosts
        }
        HostsForm::MpirunUri => addresses_of_mpirun(&value),
        HostsForm::PrterunNamespace => host_of_prterun(&value).into_iter().collect(),
    })
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

/// The host in `prterun-HOST-PID@1` or `prte-HOST-PID@1`, in which it may have hyphens.
fn host_of_prterun(namespace: &str) -> Option<String> {
    let (starter, rest) = namespace.split_once('-')?;
    if !["prterun", "prte"].contains(&starter) {
        return None;
    }
    let (host, process) = rest.rsplit_once('-')?;
    let (process, _) = process.split_once('@')?;
    let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !host.is_empty()).then(|| host.to_owned())
}
