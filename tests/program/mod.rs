//! Programs as a user runs them, with a time limit.

#![allow(dead_code)] // Each test program uses a part of it.

pub(crate) mod exports;
pub(crate) mod said;

pub(crate) use crate::LIMIT;
use crate::testing::Has as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;

/// How long a run that would go on may take to end: more than load makes of a second.
pub(crate) const END: Duration = Duration::from_secs(10);

/// The program: that of the environment variable HCABENCH_PROGRAM, which users run, or the one built beside this test.
pub(crate) fn path() -> PathBuf {
    match std::env::var_os("HCABENCH_PROGRAM") {
        Some(program) => fs::canonicalize(&program)
            .unwrap_or_else(|error| panic!("HCABENCH_PROGRAM is {program:?}: {error}")),
        None => PathBuf::from(env!("CARGO_BIN_EXE_hcabench")),
    }
}

/// `hcabench` with these words, quoted as in a shell.
pub(crate) fn hcabench(words: &str) -> Program {
    Program::under(&[], path(), words)
}

pub(crate) struct Program(pub Command);

impl Program {
    /// A program, started by another one, such as `prlimit`.
    pub(crate) fn under(starter: &[&str], program: impl AsRef<Path>, words: &str) -> Self {
        let program = program.as_ref().as_os_str();
        let mut line = starter.iter().map(|word| word.as_ref()).chain([program]);
        let mut command = Command::new(line.next().unwrap());
        command
            .args(line)
            .args(shlex::split(words).unwrap())
            .env_remove("HCABENCH_PROGRESS")
            .env_remove("HCABENCH_SECRET")
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Program(command)
    }

    pub(crate) fn out(self, folder: impl AsRef<Path>) -> Self {
        self.change(|command| command.arg("--out").arg(folder.as_ref()))
    }

    pub(crate) fn word(self, word: &str) -> Self {
        self.change(|command| command.arg(word))
    }

    pub(crate) fn env(self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.change(|command| command.env(name, value))
    }

    pub(crate) fn in_folder(self, folder: impl AsRef<Path>) -> Self {
        self.change(|command| command.current_dir(folder))
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        change(&mut self.0);
        self
    }

    #[track_caller]
    pub(crate) fn start(mut self) -> Running {
        let mut child = (self.0.spawn())
            .unwrap_or_else(|error| panic!("{:?}: {error}: see ci/setup test", self.0));
        let [stdout, stderr] = [
            child.stdout.take().map(Output::of),
            child.stderr.take().map(Output::of),
        ];
        let name = format!("{:?}", self.0);
        let child = Some(child);
        Running {
            child,
            name,
            stdout,
            stderr,
        }
    }

    #[track_caller]
    pub(crate) fn run(self) -> Ended {
        self.start().wait(LIMIT)
    }

    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Ended {
        self.run().expect(code)
    }
}

/// What has come so far from a pipe that a thread reads, so that no program waits for a full one.
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

/// A run under way. Dropped, it is killed, with all that it has started if it leads a process group.
pub(crate) struct Running {
    child: Option<Child>,
    name: String,
    stdout: Option<Output>,
    stderr: Option<Output>,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(signal, self.id());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    #[track_caller]
    pub(crate) fn wait_for_line(&self, wanted: &str) {
        assert_eq!(self.line_with(wanted), "", "{}", self.name);
    }

    /// What follows this in the line that begins with it, once that is whole.
    #[track_caller]
    pub(crate) fn line_with(&self, beginning: &str) -> String {
        let found = |text: &str| {
            let mut lines = text
                .split_inclusive('\n')
                .filter_map(|it| it.strip_suffix('\n'));
            lines.find_map(|line| line.strip_prefix(beginning).map(str::to_owned))
        };
        let stdout = self.stdout.as_ref().unwrap();
        stdout.wait(Instant::now() + LIMIT, |text| found(text).is_some());
        let text = stdout.so_far();
        found(&text).unwrap_or_else(|| panic!("{}: no line {beginning:?} in {text:?}", self.name))
    }

    #[track_caller]
    pub(crate) fn wait(mut self, limit: Duration) -> Ended {
        let deadline = Instant::now() + limit;
        // Its output first: until it is waited for, its number is its own.
        let pipes = [self.stdout.take(), self.stderr.take()];
        let mut in_time = (pipes.iter().flatten()).all(|pipe| pipe.wait(deadline, |_| false));
        while in_time && !self.has_ended() {
            in_time = Instant::now() < deadline;
            sleep(Duration::from_millis(5));
        }
        let [stdout, stderr] = pipes.map(|it| it.map(|it| it.so_far()).unwrap_or_default());
        let what = format!("{}\nstdout:\n{stdout}\nstderr:\n{stderr}", self.name);
        assert!(in_time, "not ended within {limit:?}: {what}");
        let status = self.child.take().unwrap().wait().unwrap();
        Ended {
            status,
            stdout,
            stderr,
            name: std::mem::take(&mut self.name),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Once it was waited for, its number may be another's.
            if let Ok(None) = child.try_wait() {
                let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

pub(crate) fn send(signal: Signal, process: u32) {
    kill(Pid::from_raw(process.cast_signed()), signal).expect("it still runs");
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    name: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        let Ended {
            status,
            stdout,
            stderr,
            name,
        } = &self;
        let what = format!("{name}: {status}\nstdout:\n{stdout}\nstderr:\n{stderr}");
        assert_eq!(status.code(), Some(code), "{what}");
        self
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Checks that the last line on standard error, where the error stands, says all of this.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        self.stderr.lines().last().unwrap_or_default().has(words);
        self.stderr.lacks(&["panicked"]);
        self
    }

    /// Standard error, whichever way its lines are broken.
    pub(crate) fn told(&self) -> String {
        self.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Checks that a warning or a finding has this, whichever way the lines are broken.
    #[track_caller]
    pub(crate) fn warns(&self, text: &str) {
        let findings = self.stdout.split_whitespace().collect::<Vec<_>>();
        (self.told() + " " + &findings.join(" ")).has(&[text]);
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[track_caller]
pub(crate) fn until<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        sleep(Duration::from_millis(5));
    }
}

pub(crate) fn threads(process: u32, name: &str) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter();
    // One may end meanwhile.
    let named = tasks.flatten().flatten().filter(|task| {
        let comm = fs::read_to_string(task.path().join("comm"));
        comm.is_ok_and(|found| found.starts_with(name))
    });
    let number = |task: fs::DirEntry| task.file_name().to_str().unwrap().parse().unwrap();
    named.map(number).collect()
}
