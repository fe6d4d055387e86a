//! Completion vectors: which interrupt of a device tells that a completion queue has something, for threads that wait
//! for events.

use std::fmt;

#[cfg(feature = "rdma")]
use serde_json::{Value, json};

#[cfg(feature = "rdma")]
use super::error::RunError;
#[cfg(feature = "rdma")]
use crate::host::interrupt_lines::cpus_of_interrupt;
#[cfg(feature = "rdma")]
use crate::rig::port_choice::{ChosenPort, Pair};

/// The completion vectors of both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CompletionVectors {
    /// Of the sender's completion queues.
    pub sender: u32,
    /// Of the receiver's completion queues.
    pub receiver: u32,
}

impl fmt::Display for CompletionVectors {
    /// As the command line has it: `1,2`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{},{}", self.sender, self.receiver)
    }
}

#[cfg(feature = "rdma")]
impl CompletionVectors {
    /// Each end with its vector.
    fn of_ends(self, pair: &Pair) -> [(&ChosenPort, u32); 2] {
        [(&pair.sender, self.sender), (&pair.receiver, self.receiver)]
    }

    /// Refuses vectors that the devices do not have.
    pub(super) fn check(self, pair: &Pair) -> Result<(), RunError> {
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
    pub(super) fn describe(self, pair: &Pair) -> Value {
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
#[cfg(feature = "rdma")]
fn interrupt_name(pci_address: &str, vector: u32) -> String {
    format!("mlx5_comp{vector}@pci:{pci_address}")
}
