//! A broker that we start: mosquitto, nats-server or redis-server, as a child that ends with this process.
//!
//! Each reads its configuration from its standard input, listens on the loopback alone, writes no file, and holds back
//! or drops nothing that its clients take in time.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::mem;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::time::clock_getcpuclockid;
use nix::unistd::{Pid, geteuid, getpid, getppid};

use super::NodeError;
use super::settings::BrokerAddress;
use crate::host::system_files::SystemFiles;

/// Where Debian and others install some of them, which is in the PATH of root alone.
const FURTHER_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// How long it may take until it listens.
const LONGEST_START: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// Bytes of what it writes to its standard error that are kept: more than a line has.
const KEPT: usize = 4096;

/// A broker that can be started: what differs between them.
#[derive(Debug, PartialEq, Eq)]
pub struct BrokerProgram {
    /// Its file.
    pub name: &'static str,
    /// The packages that have it.
    packages: &'static str,
    /// What makes it read its configuration from its standard input.
    arguments: &'static [&'static str],
    /// The configuration, but for a line with its port.
    configuration: &'static str,
    /// What is before the port, and what is behind it.
    port: [&'static str; 2],
    /// What keeps it the user that root has started it as: a change of user would clear its parent-death signal.
    as_root: &'static str,
}

/// That of MQTT.
pub static MOSQUITTO: BrokerProgram = BrokerProgram {
    name: "mosquitto",
    packages: "Debian, Fedora: mosquitto",
    arguments: &["-c", "/dev/stdin"],
    // The listener first: what follows concerns it.
    configuration: "allow_anonymous true\n\
                    persistence false\n\
                    set_tcp_nodelay true\n\
                    max_queued_messages 0\n\
                    max_inflight_messages 0\n\
                    sys_interval 1\n\
                    log_dest stderr\n\
                    log_type error\n",
    port: ["listener ", " 127.0.0.1\n"],
    as_root: "user root\n",
};

/// That of NATS. It drops a client that takes nothing for a time: here one that lasts longer than a run waits.
pub static NATS_SERVER: BrokerProgram = BrokerProgram {
    name: "nats-server",
    packages: "Debian: nats-server",
    arguments: &["-c", "/dev/stdin"],
    configuration: "write_deadline: \"10m\"\n\
                    max_pending: 1GB\n",
    port: ["listen: \"127.0.0.1:", "\"\n"],
    as_root: "",
};

/// That of Redis. It takes the place of its log from the configuration, and would write to its standard output.
pub static REDIS_SERVER: BrokerProgram = BrokerProgram {
    name: "redis-server",
    packages: "Debian: redis-server, Fedora: redis",
    arguments: &["-"],
    configuration: "bind 127.0.0.1\n\
                    save \"\"\n\
                    appendonly no\n\
                    daemonize no\n\
                    client-output-buffer-limit normal 0 0 0\n\
                    client-output-buffer-limit pubsub 0 0 0\n\
                    loglevel warning\n\
                    logfile /dev/stderr\n",
    port: ["port ", "\n"],
    as_root: "",
};

/// A running broker. It is ended when this is dropped, and by the kernel when the thread that started it ends.
#[derive(Debug)]
pub struct Broker {
    program: &'static BrokerProgram,
    process: Child,
    address: BrokerAddress,
    /// The end of what it has written to its standard error.
    told: Vec<u8>,
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

impl BrokerProgram {
    /// Why it cannot be started here, if so.
    pub fn refusal(&self) -> Option<String> {
        self.file().is_none().then(|| {
            format!(
                "--broker spawn: there is no {} in PATH nor in {}: install it ({}), or name a broker that runs: --broker \
                 HOST:PORT",
                self.name,
                FURTHER_FOLDERS.join(", "),
                self.packages
            )
        })
    }

    fn file(&self) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        self.file_in(&path, &FURTHER_FOLDERS)
    }

    fn file_in(&self, path: &OsStr, further: &[&str]) -> Option<PathBuf> {
        let further = further.iter().map(PathBuf::from);
        let files = env::split_paths(path)
            .chain(further)
            .map(|it| it.join(self.name));
        files.into_iter().find(|file| file.is_file())
    }

    fn configuration(&self, port: u16) -> String {
        let [before, behind] = self.port;
        let as_root = match geteuid().is_root() {
            true => self.as_root,
            false => "",
        };
        format!("{before}{port}{behind}{}{as_root}", self.configuration)
    }
}

impl Broker {
    /// Starts a broker on a free port of the loopback and waits until it listens. To be called by a thread that lives
    /// as long as the broker is to run. `go_on` is asked while it waits.
    ///
    /// # Errors
    /// When the program is not there, or does not start.
    pub fn spawn(
        program: &'static BrokerProgram,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Self, NodeError> {
        let name = program.name;
        let file = program.file().ok_or_else(|| {
            let removed = || format!("{name} was removed");
            NodeError::Setting(program.refusal().unwrap_or_else(removed))
        })?;
        let failed = |operation| NodeError::io(operation, name, "check that it starts by hand");
        let port = free_port().map_err(failed("find a port for"))?;
        let mut command = Command::new(file);
        // It reads its configuration once: there is no file that could be left behind.
        command
            .args(program.arguments)
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
        let mut broker = Broker::new(program, process, port);
        broker.errors_never_block().map_err(failed("listen to"))?;
        // Dropped at once: then it has read all.
        let input = broker.process.stdin.take();
        let mut input = input.expect("it was asked for");
        let written = input.write_all(program.configuration(port).as_bytes());
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
                    "{name} does not listen on port {port} after {limit} s: the machine may be too busy"
                )));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(broker)
    }

    fn new(program: &'static BrokerProgram, process: Child, port: u16) -> Self {
        Broker {
            program,
            process,
            address: BrokerAddress {
                host: Ipv4Addr::LOCALHOST.to_string(),
                port,
            },
            told: Vec::new(),
        }
    }

    fn errors_never_block(&self) -> io::Result<()> {
        let errors = self.process.stderr.as_ref();
        let errors = errors.expect("it was asked for");
        fcntl(errors, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(())
    }

    /// Reads what it has written to its standard error: a pipe that is full would stop it.
    fn hear(&mut self) {
        let Some(errors) = &mut self.process.stderr else {
            return;
        };
        let mut read = [0; KEPT];
        while let Ok(length @ 1..) = errors.read(&mut read) {
            self.told.extend_from_slice(&read[..length]);
            let too_many = self.told.len().saturating_sub(KEPT);
            self.told.drain(..too_many);
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &BrokerAddress {
        &self.address
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Why it has ended, if it has. To be asked now and then as long as it runs.
    pub fn gone(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok().flatten();
        self.hear();
        let status = status?;
        let told = mem::take(&mut self.told);
        let told = String::from_utf8_lossy(&told);
        // Where a signal has ended it, it had no last line.
        let last = told
            .trim()
            .lines()
            .last()
            .filter(|_| status.signal().is_none());
        let told = last.map(|line| format!(": {line}")).unwrap_or_default();
        let (at, name) = (&self.address, self.program.name);
        Some(format!(
            "the broker at {at} ({name}) has ended: {status}{told}"
        ))
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
    use crate::testing::Has as _;

    fn it_listens_is_measured_and_ends(program: &'static BrokerProgram) {
        let mut broker = Broker::spawn(program, || true).unwrap();
        let usage = Usage::of(broker.id()).unwrap();
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
        assert!(
            reason.ends_with(&format!(
                "({}) has ended: signal: 9 (SIGKILL)",
                program.name
            )),
            "{reason}"
        );
        assert!(Usage::of(broker.id()).is_none());
        let port = broker.address().port;
        drop(broker);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    }

    #[test]
    fn mosquitto_listens_is_measured_and_ends() {
        it_listens_is_measured_and_ends(&MOSQUITTO);
    }

    #[cfg(feature = "nats")]
    #[test]
    fn nats_server_listens_is_measured_and_ends() {
        it_listens_is_measured_and_ends(&NATS_SERVER);
    }

    #[cfg(feature = "redis")]
    #[test]
    fn redis_server_listens_is_measured_and_ends() {
        it_listens_is_measured_and_ends(&REDIS_SERVER);
    }

    #[test]
    fn what_it_writes_does_not_stop_it_and_its_last_line_is_told() {
        let writes = "yes a line | head -n 50000 >&2; echo the last line >&2; exit 3";
        let mut command = Command::new("sh");
        command.args(["-c", writes]).stderr(Stdio::piped());
        let mut broker = Broker::new(&MOSQUITTO, command.spawn().unwrap(), 1);
        broker.errors_never_block().unwrap();
        let begun = Instant::now();
        let reason = loop {
            if let Some(reason) = broker.gone() {
                break reason;
            }
            assert!(begun.elapsed() < LONGEST_START, "it writes and waits");
            std::thread::sleep(BETWEEN_LOOKS);
        };
        assert!(
            reason.ends_with("exit status: 3: the last line"),
            "{reason}"
        );
    }

    #[test]
    fn it_is_looked_for_beside_the_path_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        assert_eq!(MOSQUITTO.file_in(path, &[]), None);
        let file = folder.path().join(MOSQUITTO.name);
        std::fs::write(&file, "").unwrap();
        assert_eq!(MOSQUITTO.file_in(path, &[]), Some(file.clone()));
        let further = folder.path().to_str().unwrap();
        assert_eq!(
            MOSQUITTO.file_in(OsStr::new("/nowhere"), &[further]),
            Some(file)
        );
    }

    #[test]
    fn one_that_is_not_there_is_named_with_its_package() {
        static MISSING: BrokerProgram = BrokerProgram {
            name: "no-such-broker",
            packages: "Debian: a-package",
            arguments: &[],
            configuration: "",
            port: ["", ""],
            as_root: "",
        };
        let told = MISSING.refusal().unwrap();
        told.has(&[
            "--broker spawn",
            "no-such-broker",
            "Debian: a-package",
            "--broker HOST:PORT",
        ]);
    }
}
