//! `hcabench devices`: what RDMA devices there are, which two a run would use, and which routes to UC there are.

mod addresses;
mod paths;
mod port_files;
mod pseudonyms;
mod report;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use nix::errno::Errno;
use serde_json::{Value, json};

use super::DevicesArguments;
use crate::rdma::cm::{CmError, EventChannel, UcRoute};
use crate::rdma::verbs::{
    Context, Device, DeviceLimits, Library, OnDemandPaging, Port, ServiceType, Transport,
    VerbsError, devices, granted_inline, library_versions,
};
use crate::rig::port_choice::choose;
use crate::terminal::output::{print_json, print_text, say, terminal_width};
use crate::terminal::table::{Column, Table};

const SERVICES: [(&str, ServiceType); 3] = [
    ("rc", ServiceType::ReliableConnection),
    ("uc", ServiceType::UnreliableConnection),
    ("ud", ServiceType::UnreliableDatagram),
];

/// A device with the inline bytes it grants to each service type.
struct DeviceDescription {
    device: Device,
    /// The error for a service type that the device does not have.
    inline: Vec<(&'static str, Result<u32, VerbsError>)>,
}

/// All that is shown.
struct Found {
    devices: Vec<DeviceDescription>,
    refused: Vec<(String, VerbsError)>,
    /// The pair of a run, or why there is none.
    ends: Result<[String; 2], String>,
    routes: [TriedRoute; UcRoute::ALL.len()],
    library: Option<Library>,
}

/// A route to UC, tried on the pair of a run.
struct TriedRoute {
    route: UcRoute,
    /// Whether it makes an id that can be bound to each end, which shows that this librdmacm and kernel take UC by it,
    /// not that the two ends connect. `None` where there is no pair to try it on.
    binds: Option<bool>,
    /// Why it does not, or was not tried.
    reason: Option<String>,
}

/// Prints the devices. Returns the exit code: 0, or 1 if a run without options would find no pair.
pub(crate) fn run(arguments: &DevicesArguments) -> anyhow::Result<u8> {
    if let Some(folder) = &arguments.report {
        let document = || Found::on_this_host().map(|found| found.document());
        report::write(folder.as_deref(), document, arguments.json)?;
        return Ok(0);
    }
    let found = Found::on_this_host()?;
    for (name, error) in &found.refused {
        say(format_args!(
            "hcabench: the device {name} cannot be used: {error}"
        ));
    }
    if arguments.json {
        print_json(&found.document())?;
    } else {
        print_text(&found.text(arguments.brief.brief))?;
    }
    Ok(u8::from(found.ends.is_err()))
}

impl Found {
    fn on_this_host() -> anyhow::Result<Self> {
        let mut found = devices().context("cannot list the RDMA devices")?;
        let chosen = choose(&found, None, None)
            .map(|pair| [pair.sender, pair.receiver])
            .map_err(|error| error.to_string());
        let (devices, refused) = all_described(found.usable);
        found.refused.extend(refused);
        let addresses = chosen
            .as_ref()
            .ok()
            .and_then(|[sender, receiver]| Some([sender.address?, receiver.address?]));
        let ends = chosen.iter().flatten();
        let without_uc = ends.map(|end| &end.device).find_map(|device| {
            why_without_uc(device, &devices).map(|why| format!("{} {why}", device.name))
        });
        let routes = UcRoute::ALL.map(|route| match &without_uc {
            Some(reason) => TriedRoute {
                route,
                binds: Some(false),
                reason: Some(reason.clone()),
            },
            None => try_route(route, addresses),
        });
        Ok(Found {
            devices,
            refused: found.refused,
            ends: chosen.map(|ends| ends.map(|end| end.request().to_string())),
            routes,
            library: library_versions().remove("librdmacm"),
        })
    }

    fn document(&self) -> Value {
        let [sender, receiver] = match &self.ends {
            Ok(ends) => ends.each_ref().map(Some),
            Err(_) => [None, None],
        };
        let refused = self.refused.iter();
        let refused =
            refused.map(|(name, error)| json!({ "device": name, "error": error.to_string() }));
        json!({
            "devices": self.devices.iter().map(document).collect::<Vec<_>>(),
            "refused": refused.collect::<Vec<_>>(),
            "sender": sender,
            "receiver": receiver,
            "why_no_pair": self.ends.as_ref().err(),
            "uc_routes": self.routes.iter().map(route_document).collect::<serde_json::Map<_, _>>(),
            "librdmacm": self.library,
        })
    }

    fn text(&self, brief: bool) -> String {
        let pair = match &self.ends {
            Ok([sender, receiver]) => {
                format!("A run would use: --sender {sender} --receiver {receiver}\n")
            }
            Err(reason) => format!("A run would find no pair: {reason}\n"),
        };
        tables(&self.devices, brief, terminal_width())
            + &pair
            + &routes_in_words(&self.routes, self.library.as_ref())
    }
}

/// The devices that can be opened, and those that cannot: one may have gone since it was listed.
fn all_described(usable: Vec<Device>) -> (Vec<DeviceDescription>, Vec<(String, VerbsError)>) {
    let mut refused = Vec::new();
    let devices = usable.into_iter().filter_map(|device| {
        let opened = Context::open_by_name(&device.name);
        match opened {
            Ok(context) => Some(describe(device, &Arc::new(context))),
            Err(error) => {
                refused.push((device.name, error));
                None
            }
        }
    });
    let devices = devices.collect();
    (devices, refused)
}

fn describe(device: Device, context: &Arc<Context>) -> DeviceDescription {
    let inline = SERVICES
        .iter()
        .map(|&(name, service)| (name, granted_inline(context, service)))
        .collect();
    DeviceDescription { device, inline }
}

/// Why a device has no UC, if it says so, or refuses it without a reason (bnxt_re).
fn why_without_uc(device: &Device, described: &[DeviceDescription]) -> Option<&'static str> {
    if device.transport == Transport::Iwarp {
        return Some("is iWARP, which has no UC");
    }
    let described = described.iter().find(|it| it.device.name == device.name)?;
    let (_, granted) = described.inline.iter().find(|(name, _)| *name == "uc")?;
    let errno = granted.as_ref().err()?.errno();
    let lacks_it = errno.is_none_or(|errno| errno == Errno::EOPNOTSUPP as i32);
    lacks_it.then_some("has no UC")
}

fn try_route(route: UcRoute, addresses: Option<[IpAddr; 2]>) -> TriedRoute {
    let probed = |addresses: [IpAddr; 2]| {
        let channel = EventChannel::create()?;
        let mut addresses = addresses.into_iter();
        addresses.try_for_each(|address| route.probe(&channel, address))
    };
    let tried = |outcome: Result<(), CmError>| {
        let reason = outcome.err().map(|error| error.to_string());
        (Some(reason.is_none()), reason)
    };
    let (binds, reason) = match route.check().map(|()| addresses) {
        Ok(None) => (None, Some("no pair of ports to try it on".to_owned())),
        Ok(Some(addresses)) => tried(probed(addresses)),
        Err(error) => tried(Err(error)),
    };
    TriedRoute {
        route,
        binds,
        reason,
    }
}

fn route_document(tried: &TriedRoute) -> (String, Value) {
    let value = json!({ "binds": tried.binds, "why_not": tried.reason });
    (tried.route.name().to_owned(), value)
}

fn document(described: &DeviceDescription) -> Value {
    let granted = described.inline.iter();
    let inline: serde_json::Map<String, Value> = granted
        .map(|(name, bytes)| ((*name).to_owned(), json!(bytes.as_ref().ok())))
        .collect();
    let refused = described.inline.iter().filter_map(|(name, bytes)| {
        let error = bytes.as_ref().err()?;
        Some(((*name).to_owned(), json!(error.to_string())))
    });
    let refused: serde_json::Map<_, _> = refused.collect();
    json!({ "device": described.device, "inline_bytes_granted": inline, "services_refused": refused })
}

fn tables(described: &[DeviceDescription], brief: bool, width: Option<usize>) -> String {
    let mut limits = Table::new(vec![
        Column::text("device").setting(),
        Column::text("firmware"),
        Column::text("NUMA node"),
        Column::number("max_qp_wr", ""),
        Column::number("max_cqe", ""),
        Column::number("max_srq", ""),
        Column::number("max_srq_wr", ""),
        Column::number("inline rc/uc/ud", "B"),
        Column::text("ODP"),
        Column::text("completion stamps"),
    ]);
    let mut ports = Table::new(vec![
        Column::text("port").setting(),
        Column::text("state").first(),
        Column::text("link layer"),
        Column::number("MTU", "B"),
        Column::number("rate", "Gbit/s").first(),
        Column::text("addresses").first(),
    ]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for DeviceDescription { device, inline } in described {
        let firmware = match device.software {
            true => Some("software".to_owned()),
            false => Some(device.firmware.clone()).filter(|text| !text.is_empty()),
        };
        let granted = inline.iter().map(|(_, bytes)| bytes.as_ref().ok());
        let granted = granted.map(|bytes| or_dash(bytes.map(ToString::to_string)));
        let granted: Vec<_> = granted.collect();
        limits.row([
            device.name.clone(),
            or_dash(firmware),
            or_dash(device.numa_node.map(|node| node.to_string())),
            device.limits.max_queue_pair_work_requests.to_string(),
            device.limits.max_completion_queue_entries.to_string(),
            device.limits.max_shared_receive_queues.to_string(),
            device.limits.max_shared_receive_requests.to_string(),
            granted.join("/"),
            paging_in_words(device.limits.on_demand_paging.as_ref()),
            stamps_in_words(&device.limits),
        ]);
        for port in &device.ports {
            ports.row(port_cells(device, port));
        }
    }
    if described.is_empty() {
        return String::new();
    }
    let ports = ports.brief(brief).render(width);
    match brief {
        true => ports + "\n",
        false => format!("{}\n{ports}\n", limits.render(width)),
    }
}

/// The service types for which a device has on-demand paging. Their operations are in the JSON.
fn paging_in_words(paging: Option<&OnDemandPaging>) -> String {
    let Some(paging) = paging else {
        return "unknown".to_owned();
    };
    let has = |service: ServiceType| !paging.uses(service).is_empty();
    let services = SERVICES.iter().filter(|(_, service)| has(*service));
    let services: Vec<_> = services.map(|(name, _)| *name).collect();
    match services.as_slice() {
        [] => "no".to_owned(),
        some => some.join("/"),
    }
}

/// Whether completions have stamps of the device, of how many bits (`completion_timestamp_mask`), and its nominal rate,
/// or that its clock cannot be read.
fn stamps_in_words(limits: &DeviceLimits) -> String {
    match (limits.hardware_clock, limits.completion_timestamps) {
        (Some(clock), _) if !clock.readable => format!("{} bit, clock not readable", clock.bits()),
        (Some(clock), _) => {
            let rate = clock.khz.map(|khz| khz as f64 / 1e3);
            let rate = rate.map_or_else(String::new, |mhz| format!(", {mhz} MHz"));
            format!("{} bit{rate}", clock.bits())
        }
        (None, Some(true)) => "yes".to_owned(),
        (None, Some(false)) => "no".to_owned(),
        (None, None) => "unknown".to_owned(),
    }
}

/// A line for each route; reasons are broken, and indented to their column.
fn routes_in_words(routes: &[TriedRoute], library: Option<&Library>) -> String {
    let file = library.map_or(Path::new("librdmacm"), |library| &library.path);
    let mut shown = format!("\nRoutes to UC, with {}:\n", file.display());
    for tried in routes {
        let reason = tried.reason.as_deref().unwrap_or_default();
        let text = match tried.binds {
            Some(true) => format!("an id can be bound, by {}", tried.route.function()),
            Some(false) => format!("no: {reason}"),
            None => format!("not tried: {reason}"),
        };
        let indentation = 12;
        let lines = crate::terminal::wrap(&text, crate::terminal::text_width() - indentation);
        for (number, line) in lines.iter().enumerate() {
            let name = if number == 0 { tried.route.name() } else { "" };
            shown += &format!("  {name:10}{line}\n");
        }
    }
    shown
}

fn port_cells(device: &Device, port: &Port) -> [String; 6] {
    let addresses: Vec<_> = port.addresses.iter().map(ToString::to_string).collect();
    [
        format!("{}:{}", device.name, port.number),
        port.state.to_owned(),
        match device.transport {
            Transport::Iwarp => format!("{}, iWARP", port.link_layer.name()),
            Transport::InfiniBand | Transport::Other => port.link_layer.name().to_owned(),
        },
        port.mtu.to_string(),
        port.gigabits_per_second.to_string(),
        match addresses.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::verbs::{HardwareClock, PagedUse};
    use crate::testing::Has as _;

    fn described(name: &str, firmware: &str, limits: DeviceLimits) -> DeviceDescription {
        let device = Device {
            name: name.to_owned(),
            node_guid: String::new(),
            adapter_guid: None,
            transport: Transport::InfiniBand,
            firmware: firmware.to_owned(),
            driver: None,
            vendor: (0, 0),
            numa_node: Some(0),
            pci_address: None,
            software: false,
            limits,
            ports: Vec::new(),
        };
        let has_no_uc = VerbsError::code("ibv_create_qp", "a device", Errno::EOPNOTSUPP as i32);
        let inline = vec![("rc", Ok(828)), ("uc", Err(has_no_uc)), ("ud", Ok(780))];
        DeviceDescription { device, inline }
    }

    #[test]
    fn the_limits_of_adapters_fit_into_120_columns() {
        let none = DeviceLimits {
            max_queue_pairs: 65_536,
            max_queue_pair_work_requests: 4096,
            max_completion_queue_entries: 1_048_574,
            completion_vectors: 8,
            max_outstanding_reads: 16,
            max_served_reads: 16,
            atomics: true,
            completion_timestamps: Some(false),
            hardware_clock: None,
            max_shared_receive_queues: 1024,
            max_shared_receive_requests: 32_767,
            on_demand_paging: Some(OnDemandPaging::default()),
        };
        let uses = [PagedUse::Send, PagedUse::SharedReceive];
        let all = DeviceLimits {
            max_queue_pair_work_requests: 32_768,
            max_completion_queue_entries: 4_194_303,
            completion_timestamps: Some(true),
            hardware_clock: Some(HardwareClock {
                mask: u64::MAX,
                khz: Some(1_000_000),
                readable: true,
            }),
            max_shared_receive_queues: 8_388_608,
            max_shared_receive_requests: 32_768,
            on_demand_paging: Some(OnDemandPaging::of_rc(&uses)),
            ..none.clone()
        };
        let unreported = DeviceLimits {
            completion_timestamps: None,
            on_demand_paging: None,
            ..none.clone()
        };
        let devices = [
            described("mlx5_0", "22.41.1000", all),
            described("rocep1s0f0", "1.71", none),
            described("efa_0", "0.0.0", unreported),
        ];
        let text = tables(&devices, false, Some(120));
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
        let heads: Vec<&str> = (text.lines())
            .filter(|line| line.starts_with("device "))
            .collect();
        assert_eq!(heads.len(), 1, "{text}");
        heads[0].has(&[
            "max_srq",
            "max_srq_wr",
            "inline rc/uc/ud",
            "ODP",
            "completion stamps",
        ]);
        let rows = ["mlx5_0 ", "rocep1s0f0 ", "efa_0 "].map(|name| {
            let row = text.lines().find(|line| line.starts_with(name)).unwrap();
            let cells: Vec<&str> = row.split_whitespace().skip(2).collect();
            cells.join(" ")
        });
        let expected = [
            "0 32768 4194303 8388608 32768 828/-/780 rc 64 bit, 1000 MHz",
            "0 4096 1048574 1024 32767 828/-/780 no no",
            "0 4096 1048574 1024 32767 828/-/780 unknown unknown",
        ];
        assert_eq!(rows, expected, "{text}");
        // The JSON has the operations as well.
        let paging = &document(&devices[0])["device"]["limits"]["on_demand_paging"];
        let expected = json!({ "rc": ["send", "shared-receive"], "uc": [], "ud": [] });
        assert_eq!(*paging, expected);
        let read: OnDemandPaging = serde_json::from_value(expected).unwrap();
        assert_eq!(Some(read), devices[0].device.limits.on_demand_paging);
        assert!(document(&devices[2])["device"]["limits"]["on_demand_paging"].is_null());
    }
}
