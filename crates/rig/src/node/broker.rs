//! A broker of MQTT that we start: mosquitto, as a child that ends with this process.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::time::clock_getcpuclockid;
use nix::unistd::{Pid, geteuid, getpid, getppid};

use super::NodeError;
use super::settings::BrokerAddress;
use crate::host::system_files::SystemFiles;

const PROGRAM: &str = "mosquitto";
/// Where Debian and others install it, which is in the PATH of root alone.
const FURTHER_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// How long it may take until it listens.
const LONGEST_START: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A running broker. It is ended when this is dropped, and by the kernel when the thread that started it ends.
#[derive(Debug)]
pub struct Broker {
    process: Child,
    address: BrokerAddress,
}

/// What a process has taken by some moment.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// The moment.
    pub at: Instant,
    /// Processor time, of all its threads.
    pub cpu: Duration,
    /// Memory that it has.
    pub resident_bytes: u64,
    /// The most memory that it had.
    pub peak_bytes: u64,
}

/// Why no broker can be started here, if so.
pub fn refusal() -> Option<String> {
    program().is_none().then(|| {
        format!(
            "--broker spawn: there is no {PROGRAM} in PATH nor in {}: install it (Debian, Fedora: {PROGRAM}), or name \
             a broker that runs: --broker HOST:PORT",
            FURTHER_FOLDERS.join(", ")
        )
    })
}

fn program() -> Option<PathBuf> {
    program_in(&env::var_os("PATH").unwrap_or_default(), &FURTHER_FOLDERS)
}

fn program_in(path: &OsStr, further: &[&str]) -> Option<PathBuf> {
    let further = further.iter().map(PathBuf::from);
    let files = env::split_paths(path)
        .chain(further)
        .map(|it| it.join(PROGRAM));
    files.into_iter().find(|file| file.is_file())
}

/// It listens on the loopback alone, writes no file, and holds back or drops nothing. It stays the user that it is
/// started as: a change of user would clear its parent-death signal.
fn configuration(port: u16) -> String {
    let user = match geteuid().is_root() {
        true => "user root\n",
        false => "",
    };
    format!(
        "listener {port} 127.0.0.1\n\
         allow_anonymous true\n\
         persistence false\n\
         set_tcp_nodelay true\n\
         max_queued_messages 0\n\
         max_inflight_messages 0\n\
         sys_interval 1\n\
         log_dest stderr\n\
         log_type error\n\
         {user}"
    )
}

impl Broker {
    /// Starts mosquitto on a free port of the loopback and waits until it listens. To be called by a thread that lives
    /// as long as the broker is to run. `go_on` is asked while it waits.
    ///
    /// # Errors
    /// When there is no mosquitto, or it does not start.
    pub fn spawn(mut go_on: impl FnMut() -> bool) -> Result<Self, NodeError> {
        let program = program().ok_or_else(|| {
            NodeError::Setting(refusal().unwrap_or_else(|| format!("{PROGRAM} was removed")))
        })?;
        let failed = |operation| {
            let advice = "check that it starts by hand (mosquitto -v)";
            NodeError::io(operation, PROGRAM, advice)
        };
        let port = free_port().map_err(failed("find a port for"))?;
        let mut command = Command::new(program);
        // It reads its configuration once: there is no file that could be left behind.
        command
            .args(["-c", "/dev/stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // What a terminal sends to end us is for us alone: it is needed until the run has ended.
            .process_group(0);
        let parent = getpid();
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                set_pdeathsig(Signal::SIGKILL)?;
                match getppid() == parent {
                    true => Ok(()),
                    false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
                }
            });
        }
        let process = command.spawn().map_err(failed("start"))?;
        let mut broker = Broker {
            process,
            address: BrokerAddress {
                host: Ipv4Addr::LOCALHOST.to_string(),
                port,
            },
        };
        // Dropped at once: then it has read all.
        let input = broker.process.stdin.take();
        let mut input = input.expect("it was asked for");
        let written = input.write_all(configuration(port).as_bytes());
        written.map_err(failed("configure"))?;
        drop(input);
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(reason) = broker.gone() {
                return Err(NodeError::Gone(reason));
            }
            if !go_on() {
                return Err(NodeError::GivenUp);
            }
            if begun.elapsed() >= LONGEST_START {
                let limit = LONGEST_START.as_secs();
                return Err(NodeError::Gone(format!(
                    "{PROGRAM} does not listen on port {port} after {limit} s: the machine may be too busy"
                )));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(broker)
    }

    /// Where it listens.
    pub fn address(&self) -> &BrokerAddress {
        &self.address
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Why it has ended, if it has.
    pub fn gone(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok().flatten()?;
        let mut told = String::new();
        if let Some(mut errors) = self.process.stderr.take() {
            // Its output only helps.
            let _ = errors.read_to_string(&mut told);
        }
        let told = match told.trim() {
            "" => String::new(),
            told => format!(": {told}"),
        };
        let at = &self.address;
        Some(format!(
            "the broker at {at} ({PROGRAM}) has ended: {status}{told}"
        ))
    }

    /// What it has taken by now; none once it has ended.
    pub fn usage(&self) -> Option<Usage> {
        Usage::of(self.id())
    }
}

impl Usage {
    /// What a process of this host has taken by now; none if there is no such process.
    pub fn of(process: u32) -> Option<Self> {
        let process = Pid::from_raw(i32::try_from(process).ok()?);
        let cpu = clock_getcpuclockid(process).ok()?.now().ok()?;
        let status = format!("proc/{process}/status");
        let files = SystemFiles::of_this_machine();
        Some(Usage {
            at: Instant::now(),
            cpu: cpu.into(),
            resident_bytes: files.kibibytes(&status, "VmRSS")?,
            peak_bytes: files.kibibytes(&status, "VmHWM")?,
        })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that no process listens on now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_is_measured_and_ends() {
        let mut broker = Broker::spawn(|| true).unwrap();
        let usage = broker.usage().unwrap();
        assert!(usage.resident_bytes > 0 && usage.peak_bytes >= usage.resident_bytes);
        assert!(usage.cpu > Duration::ZERO);
        assert_eq!(broker.gone(), None);
        let process = Pid::from_raw(broker.id() as i32);
        nix::sys::signal::kill(process, Signal::SIGKILL).unwrap();
        let reason = loop {
            if let Some(reason) = broker.gone() {
                break reason;
            }
        };
        assert!(reason.contains("signal: 9"), "{reason}");
        assert!(broker.usage().is_none());
        let port = broker.address().port;
        drop(broker);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    }

    #[test]
    fn it_is_looked_for_beside_the_path_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        assert_eq!(program_in(path, &[]), None);
        let file = folder.path().join(PROGRAM);
        std::fs::write(&file, "").unwrap();
        assert_eq!(program_in(path, &[]), Some(file.clone()));
        let further = folder.path().to_str().unwrap();
        assert_eq!(program_in(OsStr::new("/nowhere"), &[further]), Some(file));
    }
}
