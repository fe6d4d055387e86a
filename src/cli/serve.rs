//! `hcabench serve`: the other end of a run between two hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use crate::arguments::UsageError;
use crate::arguments::values::port_request;
#[cfg(feature = "rdma")]
use crate::bench::hca::between::service::HcaService;
use crate::bench::node::between::serving::NodeService;
use crate::between::listening::{Event, Served, Service, serve};
use crate::between::peer::{Hello, ServedBenchmark};
use crate::cli::secret::SecretArguments;
use crate::launch::secret::Secret;
use crate::launch::wire::{Wire, listen_at};
use crate::results::text::printable;
use crate::rig::benchmark::Failure;
use crate::rig::ports::{PortRequest, SERVING};
use crate::terminal::output::{print_error, print_text, say};

/// Arguments of `hcabench serve`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServeArguments {
    /// Listen at this address of this host, with a TCP port if it is not 18599 (0: any free one); without a secret at
    /// one of the loopback [default: 0.0.0.0; without a secret 127.0.0.1 and ::1]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = bind)]
    pub bind: Option<SocketAddr>,

    /// What others have to show.
    #[command(flatten)]
    pub secret: SecretArguments,

    /// Receive at this port, with node that of infiniband, unless the connecting host names one [default: the first active
    /// port, of those with an IP address if there is one]
    #[arg(long, value_name = "DEVICE[:PORT][@ADDRESS]", value_parser = port_request)]
    pub receiver: Option<PortRequest>,

    /// End after one run
    #[arg(long)]
    pub once: bool,

    /// Print errors only
    #[arg(short, long)]
    pub quiet: bool,
}

fn bind(text: &str) -> Result<SocketAddr, String> {
    let address = text
        .parse::<IpAddr>()
        .map(|address| SocketAddr::new(address, SERVING));
    let address = address.or_else(|_| text.parse());
    address.map_err(|_| {
        let here = Ipv4Addr::new(10, 0, 0, 1);
        format!("allowed is an IP address of this host, such as {here}, or one with a port, such as {here}:{SERVING}")
    })
}

impl ServeArguments {
    /// Where to listen: without a secret only this host may connect, unless that is asked for.
    fn addresses(&self, secret: Option<&Secret>) -> Result<Vec<SocketAddr>, UsageError> {
        let is_open = secret.is_some() || self.secret.without_secret;
        match self.bind {
            Some(address) if !is_open && !address.ip().to_canonical().is_loopback() => {
                Err(UsageError(format!(
                    "--bind {address}: there is no secret, so only this host may connect: give --secret-file FILE or \
                     HCABENCH_SECRET, the same on both hosts; allowed without a secret are addresses of the loopback, \
                     and others with --without-secret"
                )))
            }
            Some(address) => Ok(vec![address]),
            None if is_open => Ok(vec![(Ipv4Addr::UNSPECIFIED, SERVING).into()]),
            None => {
                let ipv6 = IpAddr::from(Ipv6Addr::LOCALHOST);
                // A host may have no IPv6.
                let has_ipv6 = listen_at((ipv6, 0).into()).is_ok();
                let both = [IpAddr::from(Ipv4Addr::LOCALHOST), ipv6].into_iter();
                let all = both.take(1 + usize::from(has_ipv6));
                Ok(all.map(|address| (address, SERVING).into()).collect())
            }
        }
    }
}

/// What is done for each benchmark.
struct AllBenchmarks {
    #[cfg(feature = "rdma")]
    hca: HcaService,
    node: NodeService,
}

impl Served for AllBenchmarks {
    fn check(&self) -> Result<(), Failure> {
        #[cfg(feature = "rdma")]
        self.hca.check()?;
        self.node.check()
    }

    fn refusal(&self, hello: &Hello) -> Option<Failure> {
        match hello.benchmark {
            #[cfg(feature = "rdma")]
            ServedBenchmark::Hca => self.hca.refusal(hello),
            #[cfg(not(feature = "rdma"))]
            ServedBenchmark::Hca => {
                let text = "hcabench on the host that serves is built without the feature rdma; fix: install a package (.deb, \
                    .rpm or .whl) there";
                Some(Failure::Run(text.to_owned()))
            }
            ServedBenchmark::Node => self.node.refusal(hello),
        }
    }

    fn serve(&self, wire: &mut Wire, hello: &Hello) -> Result<(), Failure> {
        match hello.benchmark {
            #[cfg(feature = "rdma")]
            ServedBenchmark::Hca => self.hca.serve(wire, hello),
            #[cfg(not(feature = "rdma"))]
            ServedBenchmark::Hca => Ok(()),
            ServedBenchmark::Node => self.node.serve(wire, hello),
        }
    }
}

/// Serves other hosts. Returns the exit code.
pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<u8> {
    #[cfg(not(feature = "rdma"))]
    if let Some(port) = &arguments.receiver {
        return Err(UsageError(format!("--receiver {port}: {}", super::WITHOUT_RDMA)).into());
    }
    crate::host::resources::require_memory(crate::host::resources::LEAST_TO_MEASURE)?;
    let secret = arguments.secret.load()?;
    let bind = arguments.addresses(secret.as_ref())?;
    crate::host::interrupt::install()?;
    if secret.is_none() && arguments.bind.is_none() && !arguments.secret.without_secret {
        say(format_args!(
            "hcabench: only this host is served: there is no secret\n  fix: give --secret-file FILE or HCABENCH_SECRET, \
             the same on both hosts"
        ));
    }
    let service = Service {
        bind,
        secret,
        once: arguments.once,
    };
    let work = Arc::new(AllBenchmarks {
        #[cfg(feature = "rdma")]
        hca: HcaService {
            port: arguments.receiver.clone(),
            pair: None,
        },
        node: NodeService {
            #[cfg(feature = "rdma")]
            receiver: arguments.receiver.clone(),
        },
    });
    let quiet = arguments.quiet;
    let tell = move |event| match event {
        Event::Refused { peer, reason } => {
            say(format_args!(
                "hcabench: refused {peer}: {}",
                printable(&reason)
            ));
        }
        Event::MoreRefused { count } => {
            say(format_args!("hcabench: refused {count} more connections"));
        }
        Event::Failed { peer, reason } => {
            say(format_args!(
                "hcabench: run of {peer}: {}",
                printable(&reason)
            ));
        }
        // For a script that starts it and waits until it is ready.
        Event::Listening(address) => {
            if let Err(error) = print_text(&format!("serving at {address}\n")) {
                // The script would wait for ever. No host is served yet.
                print_error(&format!("{error:#}"));
                std::process::exit(1);
            }
        }
        _ if quiet => {}
        Event::Begun { host, peer } => say(format_args!("a run of {} ({peer})", printable(&host))),
        Event::Over { host } => say(format_args!("the run of {} is over", printable(&host))),
    };
    match serve(&service, work, tell) {
        Ok(()) => Ok(0),
        Err(Failure::Usage(text)) => Err(UsageError(text).into()),
        Err(other) => Err(anyhow::anyhow!(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_secret_only_this_host_may_connect() {
        let addresses = |words: &str| {
            use clap::{Args as _, FromArgMatches as _};
            let command = ServeArguments::augment_args(clap::Command::new("serve"));
            let words = std::iter::once("serve").chain(words.split_whitespace());
            let arguments = ServeArguments::from_arg_matches(&command.get_matches_from(words));
            let secret = Secret::of(b"the secret of this test").unwrap();
            let arguments = arguments.unwrap();
            let texts = |secret| {
                let found = arguments
                    .addresses(secret)
                    .map_err(|error| error.to_string());
                found.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
            };
            [texts(None), texts(Some(&secret))]
        };
        let [without, with] = addresses("");
        let without = without.unwrap();
        assert_eq!(without[0], "127.0.0.1:18599");
        assert!(
            without[1..].iter().all(|it| it == "[::1]:18599"),
            "{without:?}"
        );
        assert_eq!(with.unwrap(), ["0.0.0.0:18599"]);
        for address in [
            "127.0.0.1:7",
            "127.8.0.1:7",
            "[::1]:7",
            "[::ffff:127.0.0.1]:7",
        ] {
            for found in addresses(&format!("--bind {address}")) {
                assert_eq!(found.unwrap(), [address]);
            }
        }
        for address in ["10.0.0.1:7", "0.0.0.0:7", "[::]:7", "[fd00::2]:7"] {
            let [without, with] = addresses(&format!("--bind {address}"));
            let refused = without.unwrap_err();
            for word in [
                address,
                "--secret-file FILE",
                "HCABENCH_SECRET",
                "--without-secret",
            ] {
                assert!(refused.contains(word), "{refused}");
            }
            assert_eq!(with.unwrap(), [address]);
            let [open, _] = addresses(&format!("--without-secret --bind {address}"));
            assert_eq!(open.unwrap(), [address]);
        }
        let [open, _] = addresses("--without-secret");
        assert_eq!(open.unwrap(), ["0.0.0.0:18599"]);
    }

    #[test]
    fn an_address_may_have_a_port_and_a_name_is_none() {
        let found = |text: &str| bind(text).map(|address| address.to_string());
        assert_eq!(found("10.0.0.1").unwrap(), "10.0.0.1:18599");
        assert_eq!(found("10.0.0.1:0").unwrap(), "10.0.0.1:0");
        assert_eq!(found("[::1]:7").unwrap(), "[::1]:7");
        let refused = found("node2").unwrap_err();
        assert!(refused.contains("10.0.0.1:18599"), "{refused}");
    }
}
