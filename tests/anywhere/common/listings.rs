//! Running the listings in C, and reading what they print.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

pub const LISTINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/listings");
pub const COMPILERS: [&str; 2] = ["gcc", "clang"];
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a command to its end, which must come in time and be a success; returns its standard output.
pub fn output_of(command: &mut Command) -> String {
    let ended = Running::start(command).wait();
    assert!(
        ended.status.success(),
        "{command:?}: {}\n{}",
        ended.status,
        ended.stderr
    );
    ended.stdout
}

/// A command under way, in a process group of its own: when it is dropped, all that it has started ends with it. Its
/// output is read all the time, so that it never waits for a full pipe.
pub struct Running {
    child: Child,
    name: String,
    deadline: Instant,
    stdout: Output,
    stderr: Output,
}

pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// What has come so far from a pipe that a thread reads.
struct Output {
    text: Arc<Mutex<Vec<u8>>>,
    /// Hears of each piece that comes, and is cut off at the end.
    news: Receiver<()>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let (tell, news) = channel();
        let shared = Arc::clone(&text);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // An error ends it as the end of the pipe does; what is missing then, the tests miss.
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                let mut text = shared.lock().unwrap_or_else(PoisonError::into_inner);
                text.extend_from_slice(&piece[..length]);
                let _ = tell.send(());
            }
        });
        Output { text, news }
    }

    fn so_far(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits until the text is as wanted or complete; false if neither comes in time.
    fn wait(&self, deadline: Instant, wanted: impl Fn(&str) -> bool) -> bool {
        while !wanted(&self.so_far()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
        true
    }
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{command:?}: {error}: is it installed? (ci/setup test)")
            });
        Running {
            stdout: Output::of(child.stdout.take().unwrap()),
            stderr: Output::of(child.stderr.take().unwrap()),
            child,
            name: format!("{command:?}"),
            deadline: Instant::now() + LIMIT,
        }
    }

    pub fn id(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Waits until it has said this on standard output.
    pub fn wait_for(&self, words: &str) {
        self.stdout.wait(self.deadline, |text| text.contains(words));
        let text = self.stdout.so_far();
        assert!(
            text.contains(words),
            "{}: no {words:?} in {text:?}",
            self.name
        );
    }

    fn give_up(&mut self) -> ! {
        let _ = killpg(self.id(), Signal::SIGKILL);
        let _ = self.child.wait();
        panic!(
            "{}: not ended within {LIMIT:?}\n{}",
            self.name,
            self.stderr.so_far()
        )
    }

    /// Waits for its end and all of its output.
    pub fn wait(mut self) -> Ended {
        let in_time = self.stdout.wait(self.deadline, |_| false)
            && self.stderr.wait(self.deadline, |_| false);
        let status = loop {
            // Not before its output has ended: until it is waited for, the number of its group is its own.
            match in_time.then(|| self.child.try_wait().unwrap()) {
                Some(Some(status)) => break status,
                None => self.give_up(),
                Some(None) if Instant::now() > self.deadline => self.give_up(),
                Some(None) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Ended {
            status,
            stdout: self.stdout.so_far(),
            stderr: self.stderr.so_far(),
        }
    }
}

impl Drop for Running {
    /// Ends what has not ended.
    fn drop(&mut self) {
        // Once it was waited for, its number may be another's.
        if let Ok(None) = self.child.try_wait() {
            let _ = killpg(self.id(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// The folder with the programs of one compiler, built once.
pub fn built_by(compiler: &'static str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let folder =
        |compiler| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("listings-{compiler}"));
    BUILT.get_or_init(|| {
        for compiler in COMPILERS {
            // What needs no RDMA is all there is on a machine without its headers.
            let what = if cfg!(feature = "rdma") {
                "all"
            } else {
                "machine"
            };
            output_of(
                Command::new("make")
                    .args(["--silent", "--always-make", "-C", LISTINGS, what])
                    .arg(format!("CC={compiler}"))
                    .arg(format!("OUT={}", folder(compiler).display())),
            );
        }
    });
    folder(compiler)
}

/// The lines `key=value` that a program prints.
pub struct Said(BTreeMap<String, String>);

impl Said {
    pub fn by(command: &mut Command) -> Self {
        Said::in_text(&output_of(command))
    }

    pub fn in_text(text: &str) -> Self {
        let pair = |line: &str| {
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line:?}"));
            (key.to_owned(), value.to_owned())
        };
        Said(text.lines().map(pair).collect())
    }

    pub fn text(&self, key: &str) -> &str {
        self.0
            .get(key)
            .unwrap_or_else(|| panic!("no {key} in {:?}", self.0))
    }

    pub fn number(&self, key: &str) -> f64 {
        self.text(key).parse().unwrap()
    }

    pub fn count(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap()
    }
}
