//! The port of this host, for runs of other hosts that are let in.

use std::sync::Arc;

use super::message::WireMessage;
use super::pair::PairEnd;
use super::serving::Serving;
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::open_port::OpenPort;
use crate::bench::hca::error::RunError;
use crate::bench::hca::settings::config::PortRequest;
use crate::between::listening::Served;
use crate::between::message::{ANSWER, only, receive_message, send_message};
use crate::between::peer::Hello;
use crate::launch::wire::Wire;
use crate::rdma::verbs::devices;
use crate::rig::benchmark::Failure;
use crate::rig::port_choice::choose_one;

/// Receives messages of other hosts.
#[derive(Debug)]
pub struct HcaService {
    /// The port that messages arrive at, unless the other host names one.
    pub port: Option<PortRequest>,
    /// The rank of a fabric that this is: it has a port of its own, and measures the other way round when it is asked.
    pub pair: Option<Arc<PairEnd>>,
}

impl HcaService {
    fn open(&self, hello: &Hello) -> Result<(OpenPort, Facts), RunError> {
        if let Some(pair) = &self.pair {
            return pair.port();
        }
        let asked = hello.port.as_ref().or(self.port.as_ref());
        let port = OpenPort::open(choose_one(&devices()?, "--receiver", asked)?)?;
        let facts = port.facts();
        Ok((port, facts))
    }

    fn welcome(&self, wire: &mut Wire, hello: &Hello) -> Result<(), RunError> {
        let (port, facts) = match self.open(hello) {
            Ok(made) => made,
            Err(error) => {
                send_message(wire, &WireMessage::Failed(error.into()))?;
                return Ok(());
            }
        };
        let welcome = WireMessage::Welcome(Box::new(facts.clone()), wire.is_exposed());
        send_message(wire, &welcome)?;
        let welcomed = only!(WireMessage::Welcome(facts, _) => *facts);
        let peer = receive_message(wire, ANSWER, welcomed)?;
        Serving::new(port, facts, peer, self.pair.clone())?.run(wire)
    }
}

impl Served for HcaService {
    /// A host without a port serves other benchmarks.
    fn check(&self) -> Result<(), Failure> {
        if self.port.is_some() {
            let devices = devices().map_err(RunError::from)?;
            choose_one(&devices, "--receiver", self.port.as_ref()).map_err(RunError::from)?;
        }
        Ok(())
    }

    fn refusal(&self, hello: &Hello) -> Option<Failure> {
        let is_other = self
            .pair
            .as_ref()
            .is_some_and(|pair| !pair.is_of(&hello.run));
        let text = "it is a rank of hcabench fabric, and serves the other ranks only";
        is_other.then(|| Failure::Run(text.to_owned()))
    }

    fn serve(&self, wire: &mut Wire, hello: &Hello) -> Result<(), Failure> {
        Ok(self.welcome(wire, hello)?)
    }
}
