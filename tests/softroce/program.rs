//! The program as a user runs it, with a time limit.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a run may take unless a test says otherwise. Emulated, on a busy machine, one of a few thousand messages
/// takes some seconds.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How long a run that would go on may take to end: more than load makes of a second.
pub const END: Duration = Duration::from_secs(10);

/// A run to be started.
pub struct Program {
    command: Command,
}

/// The program: that of the environment variable HCABENCH_PROGRAM, which users run, or the one built beside this test.
pub fn path() -> PathBuf {
    match std::env::var_os("HCABENCH_PROGRAM") {
        Some(program) => std::fs::canonicalize(&program)
            .unwrap_or_else(|error| panic!("HCABENCH_PROGRAM is {program:?}: {error}")),
        None => PathBuf::from(env!("CARGO_BIN_EXE_hcabench")),
    }
}

/// `hcabench` with arguments that hold no white space.
pub fn hcabench(arguments: &str) -> Program {
    Program::under(&[], &path(), arguments)
}

impl Program {
    /// A copy of `hcabench` somewhere else, started by another program, such as `prlimit`.
    pub fn under(starter: &[&str], hcabench: &Path, arguments: &str) -> Self {
        let mut command = match starter {
            [] => Command::new(hcabench),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(hcabench);
                command
            }
        };
        command
            .args(arguments.split_whitespace())
            .env_remove("HCABENCH_PROGRESS")
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Program { command }
    }

    /// Where the results go.
    pub fn out(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.arg("--out").arg(folder.as_ref());
        self
    }

    /// One more argument, which may hold white space.
    pub fn word(mut self, word: &str) -> Self {
        self.command.arg(word);
        self
    }

    /// The folder it runs in.
    pub fn in_folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let mut child = self.command.spawn().expect("the program starts");
        let (told, lines) = channel();
        let readers = [
            read(child.stdout.take().unwrap(), told),
            read(child.stderr.take().unwrap(), channel().0),
        ];
        Running {
            child,
            lines,
            readers: Some(readers),
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Ended {
        self.start().wait(LIMIT)
    }
}

/// Reads a pipe to its end on a thread of its own; `told` hears of each line, if anybody listens.
fn read(pipe: impl Read + Send + 'static, told: Sender<String>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        let mut lines = BufReader::new(pipe);
        loop {
            let start = text.len();
            if lines.read_line(&mut text).expect("the output is text") == 0 {
                return text;
            }
            let _ = told.send(text[start..].trim_end().to_owned());
        }
    })
}

/// A run under way. Dropped, it is killed.
pub struct Running {
    child: Child,
    /// Those of standard output, as they come.
    lines: Receiver<String>,
    readers: Option<[JoinHandle<String>; 2]>,
}

impl Running {
    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it still runs");
    }

    /// Waits until this is a line of its standard output, and fails if it ends before or that does not come in time.
    pub fn wait_for_line(&self, wanted: &str) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line == wanted => return,
                Ok(_) => {}
                Err(reason) => panic!("no line {wanted:?}: {reason}"),
            }
        }
    }

    /// Waits for its end, and fails if that does not come in time.
    pub fn wait(mut self, limit: Duration) -> Ended {
        let deadline = Instant::now() + limit;
        let mut status = None;
        while status.is_none() && Instant::now() < deadline {
            status = self.child.try_wait().unwrap();
            sleep(Duration::from_millis(10));
        }
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let [stdout, stderr] = self
            .readers
            .take()
            .unwrap()
            .map(|reader| reader.join().unwrap());
        let Some(status) = status else {
            panic!("not ended within {limit:?}\nstdout:\n{stdout}\nstderr:\n{stderr}");
        };
        Ended {
            status,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.readers.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Checks the exit code; a signal has none.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}\nstdout:\n{}\nstderr:\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Checks that the last line on standard error, where the error stands, says all of this.
    pub fn says(self, words: &[&str]) -> Self {
        let last = self.stderr.lines().last().unwrap_or_default().to_owned();
        for word in words {
            assert!(last.contains(word), "{word:?} is not in:\n{}", self.stderr);
        }
        assert!(
            !self.stderr.contains("panicked"),
            "it panicked:\n{}",
            self.stderr
        );
        self
    }

    /// Checks that standard error says this somewhere, whichever way the lines are broken.
    pub fn warns(&self, text: &str) {
        let words: Vec<&str> = self.stderr.split_whitespace().collect();
        assert!(
            words.join(" ").contains(text),
            "{text:?} is not in:\n{}",
            self.stderr
        );
    }
}
