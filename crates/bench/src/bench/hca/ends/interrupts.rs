//! The interrupts of completion queues, where vectors were asked for.

use serde_json::{Value, json};

use crate::bench::hca::error::RunError;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::host::interrupt_lines::cpus_of_interrupt;
use crate::rig::port_choice::{ChosenPort, PortPair};

impl CompletionVectors {
    /// Each end with its vector.
    fn of_ends(self, pair: &PortPair) -> [(&ChosenPort, u32); 2] {
        [(&pair.sender, self.sender), (&pair.receiver, self.receiver)]
    }

    /// Refuses vectors that the devices do not have.
    pub(crate) fn check(self, pair: &PortPair) -> Result<(), RunError> {
        for (end, vector) in self.of_ends(pair) {
            let (device, count) = (&end.device.name, end.device.limits.completion_vectors);
            if vector >= count {
                return Err(RunError::Usage(format!(
                    "--comp-vector {vector}: {device} has {count} completion vectors, numbered from 0"
                )));
            }
        }
        Ok(())
    }

    /// The vectors, and the CPUs that their interrupts go to; null where that is not known.
    pub(crate) fn describe(self, pair: &PortPair) -> Value {
        let [sender, receiver] = self.of_ends(pair).map(|(end, vector)| {
            let address = end.device.pci_address.as_deref();
            let name = address.map(|address| interrupt_name(address, vector));
            let cpus = name.and_then(|name| cpus_of_interrupt(&name));
            json!({ "vector": vector, "interrupt_cpus": cpus.map(|cpus| cpus.to_string()) })
        });
        json!({ "sender": sender, "receiver": receiver })
    }
}

/// What mlx5 calls the interrupt of a vector (drivers/net/ethernet/mellanox/mlx5/core/pci_irq.c of the kernel).
fn interrupt_name(pci_address: &str, vector: u32) -> String {
    format!("mlx5_comp{vector}@pci:{pci_address}")
}
