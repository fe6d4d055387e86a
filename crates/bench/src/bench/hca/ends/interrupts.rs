//! The interrupts of completion queues, where vectors were asked for.

use serde_json::{Value, json};

use super::facts::Facts;
use crate::bench::hca::error::RunError;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::host::interrupt_lines::cpus_of_interrupt;
use crate::rig::port_choice::{ChosenPort, PortPair};

/// What drivers call the interrupt of a vector, in /proc/interrupts (the files are those of the kernel). bnxt_re has none
/// for a vector: it takes the queue of its `bnxt_re-nq-N` with the least load (`bnxt_re_get_nq`).
const NAMES: [&str; 5] = [
    // drivers/net/ethernet/mellanox/mlx5/core/pci_irq.c: irq_set_name
    "mlx5_comp{VECTOR}@pci:{ADDRESS}",
    // drivers/infiniband/hw/irdma/hw.c: irdma_cfg_ceq_vector; verbs.c: irdma_create_cq
    "irdma-{ADDRESS}-CEQ-{VECTOR}",
    // The first one, where it is that of asynchronous events as well.
    "irdma-{ADDRESS}-AEQCEQ-{VECTOR}",
    // drivers/infiniband/hw/hns/hns_roce_hw_v2.c: __hns_roce_request_irq; before, without an address
    "hns-{ADDRESS}-ceq-{VECTOR}",
    // drivers/infiniband/hw/efa/efa_main.c: efa_setup_comp_irq; efa_verbs.c: efa_vec2eq
    "efa-comp{VECTOR}@pci:{ADDRESS}",
];

impl CompletionVectors {
    /// Those of a run: what was asked for. Otherwise two ends of one device get a vector each, which may keep either from
    /// waiting for the other's interrupt.
    pub(crate) fn of_run(asked: Option<Self>, [sender, receiver]: [&Facts; 2]) -> Self {
        if let Some(asked) = asked {
            return asked;
        }
        // Hosts that do not know theirs may be two.
        let one_device = !sender.boot_id.is_empty()
            && (&sender.boot_id, &sender.device) == (&receiver.boot_id, &receiver.device);
        let has_two = receiver.limits.completion_vectors > 1;
        CompletionVectors {
            sender: 0,
            receiver: u32::from(one_device && has_two),
        }
    }

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
            let cpus = address.and_then(|address| {
                let mut names = names(address, vector);
                names.find_map(|name| cpus_of_interrupt(&name))
            });
            json!({ "vector": vector, "interrupt_cpus": cpus.map(|cpus| cpus.to_string()) })
        });
        json!({ "sender": sender, "receiver": receiver })
    }
}

fn names(pci_address: &str, vector: u32) -> impl Iterator<Item = String> {
    let filled = move |name: &str| {
        let name = name.replace("{ADDRESS}", pci_address);
        name.replace("{VECTOR}", &vector.to_string())
    };
    NAMES.into_iter().map(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_address_and_the_vector_where_the_driver_puts_them() {
        let expected = [
            "mlx5_comp7@pci:0000:3b:00.0",
            "irdma-0000:3b:00.0-CEQ-7",
            "irdma-0000:3b:00.0-AEQCEQ-7",
            "hns-0000:3b:00.0-ceq-7",
            "efa-comp7@pci:0000:3b:00.0",
        ];
        assert!(names("0000:3b:00.0", 7).eq(expected));
    }
}
