//! The machine as the tests change it: each change is a guard that undoes it.

use crate::testing::Has as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::{Ended, LIMIT, Program, Running, hcabench, until};
use crate::results::Results;

/// How long a port may take to become active, with the GID of its address.
const ACTIVE_LIMIT: Duration = Duration::from_secs(20);

/// The two ends: RDMA device, network interface, address.
pub(crate) const ENDS: [(&str, &str, &str); 2] = [
    ("rxe0", "veth0", "10.77.0.1"),
    ("rxe1", "veth1", "10.77.0.2"),
];

/// The whole machine, for one test at a time, and a folder for it.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Machine {
    /// Waits for its turn, and fails if the two devices are not there.
    pub(crate) fn take() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        // A test that failed has restored the machine all the same.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(
            nix::unistd::geteuid().is_root(),
            "these tests change the machine they run in: start them by ci/test, as root in the SoftRoCE machine"
        );
        for (device, interface, _) in ENDS {
            assert!(
                std::fs::exists(format!("/sys/class/net/{interface}")).unwrap(),
                "no {interface}: these tests need the SoftRoCE machine (ci/test, ci/vm)"
            );
            wait_until_active(device);
        }
        let folder = crate::scratch();
        Machine {
            folder,
            _turn: turn,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn out(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn start(&self, words: &str) -> Running {
        self.start_as("results", words)
    }

    pub(crate) fn start_as(&self, name: impl AsRef<Path>, words: &str) -> Running {
        let program = hcabench(words).word("--verbose");
        program.out(self.out(name)).start()
    }

    #[track_caller]
    pub(crate) fn ends(&self, words: &str, code: i32) -> Ended {
        self.start(words).wait(LIMIT).expect(code)
    }

    pub(crate) fn results(&self) -> Results {
        Results::at(self.out("results"))
    }

    pub(crate) fn wait_for_point(&self, number: usize) {
        Results::wait_for_point(&self.out("results"), number);
    }

    /// Runs `hcabench` to its end, which must be a good one; its results are in `results`.
    #[track_caller]
    pub(crate) fn measured(&self, words: &str) -> Results {
        self.measured_as("results", words)
    }

    #[track_caller]
    pub(crate) fn measured_as(&self, name: impl AsRef<Path>, words: &str) -> Results {
        self.start_as(&name, words).wait(LIMIT).expect(0);
        Results::at(self.out(name))
    }
}

const CHANGE_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn sh(line: &str) -> String {
    try_sh(line).unwrap_or_else(|reason| panic!("{line}: {reason}"))
}

pub(crate) fn try_sh(line: &str) -> Result<String, String> {
    let mut child = Command::new("sh")
        .args(["-c", line])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh is there");
    let deadline = Instant::now() + CHANGE_LIMIT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            // In the kernel, as in the removal of a device that is in use, it does not even end by a kill.
            let _ = child.kill();
            return Err(format!("not ended within {CHANGE_LIMIT:?}"));
        }
        sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    if output.status.success() {
        Ok(stdout)
    } else {
        Err(format!("{}\n{stderr}", output.status))
    }
}

#[track_caller]
pub(crate) fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    until(what, limit, || done().then_some(()));
}

fn wait_until_active(device: &str) {
    let (_, _, address) = *ENDS.iter().find(|end| end.0 == device).expect("known");
    let octets: std::net::Ipv4Addr = address.parse().unwrap();
    let [a, b, c, d] = octets.octets();
    let gid = format!("ffff:{a:02x}{b:02x}:{c:02x}{d:02x}");
    wait_until(
        &format!("{device} is active and reachable by {address}"),
        ACTIVE_LIMIT,
        || {
            let port = format!("/sys/class/infiniband/{device}/ports/1");
            let active = std::fs::read_to_string(format!("{port}/state"))
                .is_ok_and(|state| state.contains("ACTIVE"));
            let found = std::fs::read_dir(format!("{port}/gids"))
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| {
                    std::fs::read_to_string(entry.path())
                        .is_ok_and(|text| text.trim().ends_with(&gid))
                });
            active && found
        },
    );
}

/// Undoes a change when dropped; a failure to do so fails the test, and with it the run.
struct Undo(Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        for line in &self.0 {
            // A second panic would abort; the next test finds the machine as it is, and says so.
            if let (Err(reason), false) = (try_sh(line), std::thread::panicking()) {
                panic!("{line}: {reason}");
            }
        }
    }
}

/// A network namespace `afar`, which reaches this one at 10.99.0.1.
pub(crate) struct NamespaceAfar(#[expect(dead_code, reason = "held, never read")] Undo);

impl NamespaceAfar {
    pub(crate) fn begin() -> Self {
        sh("ip netns add afar");
        let undo = Undo(vec!["ip netns delete afar".to_owned()]);
        sh("ip link add near type veth peer name far netns afar");
        sh("ip addr add 10.99.0.1/24 dev near && ip link set near up");
        sh("ip -n afar addr add 10.99.0.2/24 dev far && ip -n afar link set far up");
        sh("ip -n afar link set lo up");
        NamespaceAfar(undo)
    }
}

/// Without the file by which programs reach the kernel's connection manager, as where its module is not loaded.
pub(crate) struct WithoutManager {
    _undo: Undo,
}

impl WithoutManager {
    pub(crate) fn begin() -> Self {
        let (file, away) = ("/dev/infiniband/rdma_cm", "/dev/infiniband/away");
        sh(&format!("mv {file} {away}"));
        WithoutManager {
            _undo: Undo(vec![format!("mv {away} {file}")]),
        }
    }
}

pub(crate) struct Disturbance {
    interface: &'static str,
    handle: &'static str,
    _undo: Undo,
}

impl Disturbance {
    /// Of every packet, those of the connection manager and of ARP too.
    pub(crate) fn of_everything(interface: &'static str, netem: &str) -> Self {
        sh(&format!(
            "tc qdisc add dev {interface} root handle 1: netem {netem}"
        ));
        Disturbance {
            interface,
            handle: "1:",
            _undo: Undo(vec![format!("tc qdisc del dev {interface} root")]),
        }
    }

    /// Of messages and acknowledgements alone: each packet that is dropped is one of a queue pair of ours.
    pub(crate) fn of_messages(interface: &'static str, netem: &str) -> Self {
        Self::of_packets(interface, "", netem)
    }

    /// Of the same packets, but only of those to one address.
    pub(crate) fn of_messages_to(interface: &'static str, address: &str, netem: &str) -> Self {
        Self::of_packets(interface, &format!("match ip dst {address}/32"), netem)
    }

    fn of_packets(interface: &'static str, matching: &str, netem: &str) -> Self {
        // Everything goes to band 1, but for RoCE packets (UDP port 4791) whose opcode, the first byte behind the UDP
        // header, is not that of the connection manager's datagrams (UD SEND only, 0x64).
        let filters = format!(
            "tc filter add dev {interface} parent 1: protocol ip prio 1 u32 \
                match ip protocol 17 0xff match ip dport 4791 0xffff match u8 0x64 0xff at 28 flowid 1:1 &&
             tc filter add dev {interface} parent 1: protocol ip prio 2 u32 \
                match ip protocol 17 0xff match ip dport 4791 0xffff {matching} flowid 1:2"
        );
        Self::of_filtered(interface, netem, &filters)
    }

    /// Of what these filters lead to the second band.
    fn of_filtered(interface: &'static str, netem: &str, filters: &str) -> Self {
        let _undo = Undo(vec![format!("tc qdisc del dev {interface} root")]);
        sh(&format!(
            "tc qdisc add dev {interface} root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
             tc qdisc add dev {interface} parent 1:2 handle 20: netem {netem} && {filters}"
        ));
        Disturbance {
            interface,
            handle: "20:",
            _undo,
        }
    }

    /// Of the connection manager's requests for a connection, or for the queue pair of a peer of datagrams.
    pub(crate) fn of_requests(interface: &'static str, netem: &str) -> Self {
        // The attribute of a management datagram stands 16 bytes behind the headers of IP (20 bytes), UDP (8), and
        // those of a datagram of RoCE (12 and 8): REQ is 0x10, SIDR_REQ 0x17 (InfiniBand Architecture Specification,
        // volume 1, 12.6 and 12.11).
        let filters = format!(
            "for attribute in 0x10 0x17; do
                tc filter add dev {interface} parent 1: protocol ip prio 1 u32 \
                    match ip protocol 17 0xff match ip dport 4791 0xffff match u8 0x64 0xff at 28 \
                    match u8 0x07 0xff at 49 match u16 $attribute 0xffff at 64 flowid 1:2 || exit
             done"
        );
        Self::of_filtered(interface, netem, &filters)
    }

    /// Changes it under way, without losing a packet.
    pub(crate) fn change(&self, netem: &str) {
        let (interface, handle) = (self.interface, self.handle);
        let place = if handle == "1:" { "root" } else { "parent 1:2" };
        sh(&format!(
            "tc qdisc change dev {interface} {place} handle {handle} netem {netem}"
        ));
    }

    pub(crate) fn dropped(&self) -> u64 {
        let text = sh(&format!("tc -s -j qdisc show dev {}", self.interface));
        let disciplines: serde_json::Value = serde_json::from_str(&text).unwrap();
        let netem = disciplines
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["handle"] == self.handle)
            .unwrap_or_else(|| panic!("no {} in {text}", self.handle));
        netem["drops"].as_u64().unwrap()
    }
}

pub(crate) struct Away {
    device: &'static str,
    _undo: Undo,
}

impl Away {
    pub(crate) fn take(device: &'static str) -> Self {
        let (_, interface, _) = *ENDS.iter().find(|end| end.0 == device).expect("known");
        let undo = Undo(vec![format!(
            "rdma link add {device} type rxe netdev {interface}"
        )]);
        sh(&format!("rdma link delete {device}"));
        Away {
            device,
            _undo: undo,
        }
    }

    pub(crate) fn by_another(device: &'static str) -> Self {
        let (_, interface, _) = *ENDS.iter().find(|end| end.0 == device).expect("known");
        let undo = Undo(vec![format!(
            "rdma link delete {device} 2>/dev/null; rdma link add {device} type rxe netdev {interface}"
        )]);
        Away {
            device,
            _undo: undo,
        }
    }

    pub(crate) fn bring_back(self) {
        let device = self.device;
        drop(self);
        wait_until_active(device);
    }
}

/// A CPU on which a thread with a real-time priority runs, and on older kernels (6.1) no other one ever does.
pub(crate) struct OccupiedCpu(#[expect(dead_code, reason = "held, never read")] Undo);

impl OccupiedCpu {
    pub(crate) fn take(cpu: usize) -> Self {
        const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
        let before = std::fs::read_to_string(LIMIT).unwrap();
        let spins = "sh -c 'while :; do :; done'";
        let line = format!("taskset -c {cpu} chrt -f 50 {spins} >/dev/null 2>&1 & echo $!");
        let process = sh(&line);
        let undo = Undo(vec![
            format!("kill -9 {}", process.trim()),
            format!("echo {} > {LIMIT}", before.trim()),
        ]);
        sh(&format!("echo -1 > {LIMIT}"));
        OccupiedCpu(undo)
    }
}

pub(crate) struct LinkDown(Undo);

impl LinkDown {
    /// Takes it down, which takes the other end's carrier away.
    pub(crate) fn take() -> Self {
        let undo = Undo(vec![
            "ip link set veth1 up".to_owned(),
            // Went with the link.
            "ip route replace 10.77.0.1 dev veth1 src 10.77.0.2 table 102".to_owned(),
        ]);
        sh("ip link set veth1 down");
        wait_until("rxe1 is down", ACTIVE_LIMIT, || {
            std::fs::read_to_string("/sys/class/infiniband/rxe1/ports/1/state")
                .is_ok_and(|state| state.contains("DOWN"))
        });
        LinkDown(undo)
    }

    /// Takes it up again, and waits until both ports are active.
    pub(crate) fn take_up(self) {
        drop(self.0);
        ENDS.iter().for_each(|end| wait_until_active(end.0));
    }
}

pub(crate) struct WithoutAddress(Undo);

impl WithoutAddress {
    pub(crate) fn take() -> Self {
        let undo = Undo(vec![
            "ip address add 10.77.0.2/24 dev veth1".to_owned(),
            "ip route replace 10.77.0.1 dev veth1 src 10.77.0.2 table 102".to_owned(),
        ]);
        sh("ip address del 10.77.0.2/24 dev veth1");
        WithoutAddress(undo)
    }

    pub(crate) fn give_back(self) {
        drop(self.0);
        wait_until_active("rxe1");
    }
}

pub(crate) struct HugePages(#[expect(dead_code, reason = "held, never read")] Undo);

impl HugePages {
    pub(crate) fn reserve(pages: u32) -> Self {
        let undo = Undo(vec!["echo 0 >/proc/sys/vm/nr_hugepages".to_owned()]);
        sh(&format!("echo {pages} >/proc/sys/vm/nr_hugepages"));
        assert_eq!(
            sh("cat /proc/sys/vm/nr_hugepages").trim(),
            pages.to_string()
        );
        HugePages(undo)
    }
}

pub(crate) struct SmallDisk {
    folder: tempfile::TempDir,
    _undo: Undo,
}

impl SmallDisk {
    pub(crate) fn mount(mebibytes: u32) -> Self {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().display();
        let undo = Undo(vec![format!("umount -l {path}")]);
        sh(&format!("mount -t tmpfs -o size={mebibytes}m small {path}"));
        SmallDisk {
            folder,
            _undo: undo,
        }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn fill(&self) {
        let file = self.path().join("filling");
        let words = format!("if=/dev/zero bs=4096 of={}", file.display());
        let full = Program::under(&[], "dd", &words).run();
        full.stderr.has(&["No space left"]);
    }
}

/// A port of SoftRoCE whose MTU is 4096 bytes, as its interface has longer frames.
pub(crate) struct LongerMtu(#[expect(dead_code, reason = "held, never read")] Undo);

impl LongerMtu {
    pub(crate) fn of(device: &'static str) -> Self {
        let (_, interface, _) = *ENDS.iter().find(|end| end.0 == device).expect("known");
        let undo = Undo(vec![format!("ip link set {interface} mtu 1500")]);
        sh(&format!("ip link set {interface} mtu 4500"));
        LongerMtu(undo)
    }
}
