//! `hcabench devices`: what RDMA devices there are, and which two a run would use.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::DevicesArguments;
use crate::bench::hca::choice::choose;
use crate::report::{Column, Table};
use crate::verbs::{Context, Device, Port, ServiceType, devices, granted_inline};

const SERVICES: [(&str, ServiceType); 3] = [
    ("rc", ServiceType::ReliableConnection),
    ("uc", ServiceType::UnreliableConnection),
    ("ud", ServiceType::UnreliableDatagram),
];

/// A device with the inline bytes it grants to each service type.
struct Described {
    device: Device,
    /// `None` for a service type that the device does not have.
    inline: Vec<(&'static str, Option<u32>)>,
}

/// Prints the devices. Returns the exit code: 0, or 1 if a run without options would find no pair.
///
/// # Errors
/// If the devices cannot be asked, or standard output not be written.
pub fn run(arguments: &DevicesArguments) -> anyhow::Result<u8> {
    let found = devices().context("cannot list the RDMA devices")?;
    let chosen = choose(&found, None, None);
    let described = found
        .usable
        .into_iter()
        .map(describe)
        .collect::<anyhow::Result<Vec<_>>>()?;
    for (name, error) in &found.refused {
        eprintln!("hcabench: the device {name} cannot be used: {error}");
    }
    let ends = chosen.as_ref().ok().map(|pair| {
        [&pair.sender, &pair.receiver]
            .map(|end| format!("{}:{}@{}", end.device.name, end.port.number, end.address))
    });
    let reason = chosen.err().map(|error| error.to_string());
    let mut out = io::stdout().lock();
    let written = if arguments.json {
        let document = json!({
            "devices": described.iter().map(document).collect::<Vec<_>>(),
            "sender": ends.as_ref().map(|[sender, _]| sender),
            "receiver": ends.as_ref().map(|[_, receiver]| receiver),
            "why_no_pair": reason,
        });
        serde_json::to_writer_pretty(&mut out, &document)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_tables(&described, ends.as_ref(), reason.as_deref(), &mut out)
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot write to standard output")?,
    }
    Ok(u8::from(ends.is_none()))
}

fn describe(device: Device) -> anyhow::Result<Described> {
    let context = Arc::new(Context::open_by_name(&device.name)?);
    let inline = SERVICES
        .iter()
        .map(|&(name, service)| (name, granted_inline(&context, service).ok()))
        .collect();
    Ok(Described { device, inline })
}

fn document(described: &Described) -> Value {
    let inline: serde_json::Map<String, Value> = described
        .inline
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), json!(bytes)))
        .collect();
    json!({ "device": described.device, "inline_bytes_granted": inline })
}

fn write_tables(
    described: &[Described],
    ends: Option<&[String; 2]>,
    reason: Option<&str>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut limits = Table::new(vec![
        Column::text("device"),
        Column::text("firmware"),
        Column::text("NUMA node"),
        Column::number("max_qp_wr", ""),
        Column::number("max_cqe", ""),
        Column::number("inline rc", "B"),
        Column::number("inline uc", "B"),
        Column::number("inline ud", "B"),
        Column::text("completion stamps"),
    ]);
    let mut ports = Table::new(vec![
        Column::text("port"),
        Column::text("state"),
        Column::text("link layer"),
        Column::number("MTU", "B"),
        Column::number("rate", "Gbit/s"),
        Column::text("addresses"),
    ]);
    for Described { device, inline } in described {
        let mut cells = vec![
            device.name.clone(),
            if device.firmware.is_empty() {
                "-".to_owned()
            } else {
                device.firmware.clone()
            },
            device
                .numa_node
                .map_or("-".to_owned(), |node| node.to_string()),
            device.limits.max_queue_pair_work_requests.to_string(),
            device.limits.max_completion_queue_entries.to_string(),
        ];
        let bytes = |bytes: Option<u32>| bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        cells.extend(inline.iter().map(|(_, granted)| bytes(*granted)));
        cells.push(
            match device.limits.completion_timestamps {
                Some(true) => "yes",
                Some(false) => "no",
                None => "not told",
            }
            .to_owned(),
        );
        limits.row(cells);
        for port in &device.ports {
            ports.row(port_cells(device, port));
        }
    }
    if !described.is_empty() {
        writeln!(out, "{}\n{}", limits.render(None), ports.render(None))?;
    }
    match (ends, reason) {
        (Some([sender, receiver]), _) => {
            writeln!(
                out,
                "A run would use: --sender {sender} --receiver {receiver}"
            )
        }
        (None, reason) => writeln!(
            out,
            "A run would find no pair: {}",
            reason.unwrap_or("unknown")
        ),
    }
}

fn port_cells(device: &Device, port: &Port) -> [String; 6] {
    let addresses: Vec<_> = port.addresses.iter().map(ToString::to_string).collect();
    [
        format!("{}:{}", device.name, port.number),
        port.state.to_owned(),
        port.link_layer.name().to_owned(),
        port.mtu.to_string(),
        port.gigabits_per_second.to_string(),
        if addresses.is_empty() {
            "none".to_owned()
        } else {
            addresses.join(", ")
        },
    ]
}
