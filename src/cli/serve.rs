//! `hcabench serve`: the other end of a run between two hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::arguments::UsageError;
use crate::arguments::values::port_request;
#[cfg(feature = "rdma")]
use crate::bench::hca::between::service::HcaService;
use crate::bench::node::between::serving::NodeService;
use crate::between::listening::{Event, Served, Service, serve};
use crate::between::peer::{Hello, ServedBenchmark};
use crate::launch::wire::Wire;
use crate::results::text::printable;
use crate::rig::benchmark::Failure;
use crate::rig::ports::{PortRequest, SERVING};
use crate::terminal::output::{print_error, print_text, say};

/// Arguments of `hcabench serve`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServeArguments {
    /// Listen at this address of this host, with a TCP port if it is not 18599 (0: any free one). Any host that can
    /// connect can have messages sent here: use the address of the cluster's internal network
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "0.0.0.0", value_parser = bind)]
    pub bind: SocketAddr,

    /// Receive at this port, unless the connecting host names one; not for node [default: the first active port, of those
    /// with an IP address if there is one]
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

/// What is done for each benchmark.
struct AllBenchmarks {
    #[cfg(feature = "rdma")]
    hca: HcaService,
}

impl Served for AllBenchmarks {
    fn check(&self) -> Result<(), Failure> {
        #[cfg(feature = "rdma")]
        self.hca.check()?;
        NodeService.check()
    }

    fn refusal(&self, hello: &Hello) -> Option<Failure> {
        match hello.benchmark {
            #[cfg(feature = "rdma")]
            ServedBenchmark::Hca => self.hca.refusal(hello),
            #[cfg(not(feature = "rdma"))]
            ServedBenchmark::Hca => Some(Failure::Run(super::WITHOUT_RDMA.to_owned())),
            ServedBenchmark::Node => NodeService.refusal(hello),
        }
    }

    fn serve(&self, wire: &mut Wire, hello: &Hello) -> Result<(), Failure> {
        match hello.benchmark {
            #[cfg(feature = "rdma")]
            ServedBenchmark::Hca => self.hca.serve(wire, hello),
            #[cfg(not(feature = "rdma"))]
            ServedBenchmark::Hca => Ok(()),
            ServedBenchmark::Node => NodeService.serve(wire, hello),
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
    crate::host::interrupt::install()?;
    let service = Service {
        bind: arguments.bind,
        once: arguments.once,
    };
    let work = Arc::new(AllBenchmarks {
        #[cfg(feature = "rdma")]
        hca: HcaService {
            port: arguments.receiver.clone(),
            pair: None,
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
    fn an_address_may_have_a_port_and_a_name_is_none() {
        let found = |text: &str| bind(text).map(|address| address.to_string());
        assert_eq!(found("10.0.0.1").unwrap(), "10.0.0.1:18599");
        assert_eq!(found("10.0.0.1:0").unwrap(), "10.0.0.1:0");
        assert_eq!(found("[::1]:7").unwrap(), "[::1]:7");
        let refused = found("node2").unwrap_err();
        assert!(refused.contains("10.0.0.1:18599"), "{refused}");
    }
}
