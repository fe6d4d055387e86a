//! `hcabench devices --report`: the folder that a user with an adapter sends to those who have none.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::port_files::PortFiles;
use super::pseudonyms::{EXPLANATION, Pseudonyms};
use crate::arguments::UsageError;
use crate::host::boot::without_values;
use crate::host::error::HostError;
use crate::host::fingerprint::Fingerprint;
use crate::host::machine_name::machine_name;
use crate::host::readiness::{Needs, Readiness};
use crate::host::system_files::SystemFiles;
use crate::rdma::environment::variables;
use crate::rdma::verbs::{gid_files, interface_counters, interfaces_of, library_versions};
use crate::results::document::Program;
use crate::results::folder::{make_folders, make_numbered_folder};
use crate::results::{durable, json as json_files};
use crate::terminal::output::{print_as, say};

/// Where it is written if no folder is named; a number follows where there is one.
const DEFAULT_FOLDER: &str = "hcabench-devices";

/// The drivers of adapters with the modules that they use, of which versions are read.
const MODULES: [&str; 29] = [
    "bnxt_en",
    "bnxt_re",
    "cxgb4",
    "efa",
    "erdma",
    "hfi1",
    "hns3",
    "hns_roce_hw_v2",
    "i40e",
    "ib_core",
    "ib_ipoib",
    "ib_uverbs",
    "ice",
    "idpf",
    "ionic",
    "ionic_rdma",
    "irdma",
    "iw_cm",
    "iw_cxgb4",
    "mana",
    "mana_ib",
    "mlx4_core",
    "mlx4_ib",
    "mlx5_core",
    "mlx5_ib",
    "qedr",
    "rdma_cm",
    "rdma_rxe",
    "siw",
];

/// Writes the report. `devices` finds what `hcabench devices --json` prints, or why it does not; no device is opened
/// before there is a folder. What is not there is named on standard error, and is no failure.
pub(super) fn write(
    folder: Option<&Path>,
    devices: impl FnOnce() -> anyhow::Result<Value>,
    as_json: bool,
) -> anyhow::Result<()> {
    let (folder, made) = make_folder(folder)?;
    let written = write_into(&folder, devices()).inspect_err(|_| {
        // It holds what this run wrote, and folders above it that it made hold nothing else. What is left behind is no
        // further error.
        let _ = std::fs::remove_dir_all(&folder);
        for above in made.iter().rev() {
            let _ = std::fs::remove_dir(above);
        }
    })?;
    print_as(
        as_json,
        &json!({ "folder": folder, "files": written }),
        || {
            let paths = written.iter().map(|path| format!("{}\n", path.display()));
            paths.collect()
        },
    )
}

/// Returns the files.
fn write_into(folder: &Path, devices: anyhow::Result<Value>) -> anyhow::Result<Vec<PathBuf>> {
    let files = SystemFiles::of_this_machine();
    let mut missing = Vec::new();
    let mut kept = |what: &str, found: anyhow::Result<Value>| {
        found.unwrap_or_else(|error| {
            let error = format!("{error:#}");
            missing.push(format!("{what}: {error}"));
            json!({ "error": error })
        })
    };
    let devices = kept("RDMA devices", devices);
    let readiness = Readiness::assess_in_part(Needs::between_devices());
    let machine = match &readiness {
        Ok(readiness) => readiness.machine.clone(),
        Err(_) => Fingerprint::collect(),
    };
    let host = kept("the machine", host(readiness));
    let class = files.names("sys/class/infiniband");
    let ports = match class.as_slice() {
        [] => Err(anyhow::anyhow!("no RDMA device in /sys/class/infiniband")),
        _ => Ok(PortFiles::new(&files).document(
            |device, port| interfaces_of(Path::new("/sys/class"), device, port, None),
            gid_files,
            |interface| {
                let counters = interface_counters(interface).into_iter();
                counters.map(|(name, _)| name).collect()
            },
        )),
    };
    let ports = kept("RDMA ports", ports);
    let mut names = pseudonyms(&files);
    let mut written = Vec::new();
    for (name, mut document) in [
        ("devices.json", devices),
        ("host.json", host),
        ("ports.json", ports),
        ("software.json", software(&files, &machine)),
    ] {
        names.replace(&mut document);
        document["names"] = json!(EXPLANATION);
        let path = folder.join(name);
        json_files::write(&path, &document)?;
        written.push(path);
    }
    let path = folder.join("README.txt");
    durable::create_new(&path)
        .and_then(|mut readme| readme.write_all(readme_text().as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    written.push(path);
    for what in missing {
        say(format_args!("hcabench: missing in the report: {what}"));
    }
    Ok(written)
}

/// A folder that was not there, and all that were made for it.
fn make_folder(asked: Option<&Path>) -> anyhow::Result<(PathBuf, Vec<PathBuf>)> {
    let refused = |folder: &Path, reason: &dyn std::fmt::Display| {
        UsageError(format!("--report {}: {reason}", folder.display()))
    };
    let Some(folder) = asked else {
        let folder = Path::new(DEFAULT_FOLDER);
        let made = make_numbered_folder(folder).map_err(|error| refused(folder, &error))?;
        return Ok(made);
    };
    let made = make_folders(folder).map_err(|error| refused(folder, &error))?;
    match made.last().is_some_and(|last| last == folder) {
        true => Ok((folder.to_owned(), made)),
        false => Err(refused(folder, &"it exists: name a folder that does not").into()),
    }
}

/// What `hcabench host --json` prints, without the values of parameters of the kernel that may be secret.
fn host(readiness: Result<Readiness, HostError>) -> anyhow::Result<Value> {
    let readiness = readiness.context("cannot assess this machine")?;
    let mut document = serde_json::to_value(&readiness)?;
    let line = readiness.machine.kernel_command_line.as_deref();
    document["machine"]["kernel_command_line"] = json!(line.map(without_values));
    Ok(document)
}

/// The versions of what is between a program and an adapter, and the variables that the libraries read.
fn software(files: &SystemFiles, machine: &Fingerprint) -> Value {
    let loaded = files.names("sys/module");
    let modules = MODULES.iter().filter_map(|name| {
        let folder = format!("sys/module/{name}");
        let is_loaded = loaded.iter().any(|loaded| loaded == name);
        let text = |file: &str| files.optional(&format!("{folder}/{file}"));
        let version = json!({ "version": text("version"), "srcversion": text("srcversion") });
        is_loaded.then(|| ((*name).to_owned(), version))
    });
    json!({
        "hcabench": Program::this(),
        "kernel_release": machine.kernel_release,
        "kernel_version": machine.kernel_version,
        "distribution": machine.distribution,
        "libraries": library_versions(),
        "modules": modules.collect::<Map<_, _>>(),
        "environment": variables(),
    })
}

fn pseudonyms(files: &SystemFiles) -> Pseudonyms {
    let hosts = [
        machine_name().0,
        files
            .optional("proc/sys/kernel/hostname")
            .unwrap_or_default(),
    ];
    let interfaces = files.names("sys/class/net").into_iter();
    let macs: Vec<String> = interfaces
        .filter_map(|name| files.optional(&format!("sys/class/net/{name}/address")))
        .collect();
    let home = std::env::var_os("HOME")
        .as_deref()
        .and_then(OsStr::to_str)
        .map(str::to_owned);
    let users = ["SUDO_USER", "USER"].map(|name| std::env::var(name).unwrap_or_default());
    Pseudonyms::new(hosts, users, home, macs.iter().map(String::as_str))
}

fn readme_text() -> String {
    let names = crate::terminal::wrap(EXPLANATION, crate::terminal::TEXT_WIDTH);
    format!(
        "The RDMA devices of one host, as hcabench found them. Read the files before you send them.\n\n\
         devices.json   hcabench devices --json\n\
         host.json      hcabench host --json; of the kernel's command line only the values that set up\n\
         \x20              processors, memory and PCI Express\n\
         ports.json     devices, ports and their network interfaces as they are in sysfs, counters, interrupts,\n\
         \x20              names of statistics (ethtool -S)\n\
         software.json  versions, and the environment variables that the libraries of RDMA read, no others\n\n\
         {}\n",
        names.join("\n")
    )
}
