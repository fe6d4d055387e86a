//! A port of this host whose device is open: what it has, and what it refuses.

use std::sync::{Arc, OnceLock};

use super::facts::Facts;
use super::hardware_stamps::refused;
use crate::bench::hca::error::RunError;
use crate::bench::hca::settings::config::Service;
use crate::host::machine_name::machine_name;
use crate::rdma::cm::{CmError, EventChannel, UcRoute};
use crate::rdma::verbs::{
    Context, EndPlan, Transport, VerbsError, gid_table, granted_inline, partition_keys,
};
use crate::rig::port_choice::ChosenPort;

/// A port of this host that takes part, with its device.
#[derive(Debug)]
pub(crate) struct OpenPort {
    pub(crate) port: ChosenPort,
    context: Arc<Context>,
    /// Made when it is needed first: ports that are connected directly do without the connection manager.
    channel: OnceLock<Arc<EventChannel>>,
}

impl OpenPort {
    /// Opens the device of a port.
    pub(crate) fn open(port: ChosenPort) -> Result<Self, VerbsError> {
        Ok(OpenPort {
            context: Arc::new(Context::open_by_name(&port.device.name)?),
            channel: OnceLock::new(),
            port,
        })
    }

    /// The same device and port for another connection.
    pub(crate) fn another(&self) -> Self {
        OpenPort {
            port: self.port.clone(),
            context: Arc::clone(&self.context),
            channel: OnceLock::new(),
        }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Where events of the connection manager come.
    pub(crate) fn channel(&self) -> Result<&Arc<EventChannel>, CmError> {
        if let Some(channel) = self.channel.get() {
            return Ok(channel);
        }
        let channel = EventChannel::create()?;
        Ok(self.channel.get_or_init(|| channel))
    }

    /// Makes the channel of a port that can use the connection manager: without an address it cannot.
    pub(crate) fn open_channel(&self) -> Result<(), CmError> {
        match self.port.address {
            Some(_) => self.channel().map(|_| ()),
            None => Ok(()),
        }
    }

    /// What the other end needs to know of this one.
    pub(crate) fn facts(&self) -> Facts {
        self.facts_for(Service::ALL)
    }

    /// The same, with the inline data of these services only: each takes some queue pairs, on trial.
    pub(crate) fn facts_for(&self, services: &[Service]) -> Facts {
        let ChosenPort {
            device,
            port,
            address,
        } = &self.port;
        let inline_of = |service: &Service| {
            let granted = granted_inline(&self.context, (*service).into()).ok()?;
            Some((*service, granted))
        };
        let (host, boot_id) = machine_name();
        Facts {
            host,
            boot_id,
            device: device.name.clone(),
            port: port.number,
            address: *address,
            limits: device.limits.clone(),
            mtu: port.mtu,
            max_message: port.max_message,
            link_layer: port.link_layer,
            transport: device.transport,
            software: device.software,
            gids: gid_table(&self.context, port.number),
            partition_keys: partition_keys(&device.name, port.number),
            inline: services.iter().filter_map(inline_of).collect(),
            description: self.port.describe(),
            details: self.port.details(),
        }
    }

    /// Tries an end; returns why it is refused.
    pub(crate) fn refuses(&self, plan: &EndPlan) -> Option<String> {
        let tried = plan.attempt(&self.context);
        tried.err().map(|error| error.to_string())
    }

    /// Refuses a device that does not stamp completions.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn require_hardware_stamps(&self) -> Result<(), RunError> {
        self.context.tried_hardware_clock().map_err(refused)?;
        let device = &self.port.device;
        if device.transport == Transport::Iwarp {
            return Err(RunError::Usage(format!(
                "--hw-timestamps: {} is iWARP, on which stamps are not recorded, of no operation: leave it out",
                device.name
            )));
        }
        Ok(())
    }

    /// Tries a route to UC; without an address there is none to try.
    pub(crate) fn probe(&self, route: UcRoute) -> Result<(), CmError> {
        let Some(address) = self.port.address else {
            return Ok(());
        };
        route.probe(self.channel()?, address)
    }
}
