//! This program once more, as a child: for a round, or for an end of a node.
//!
//! It is asked on its standard input and answers on its standard output, a line of JSON each. It ends when its standard
//! input does, so that none is left behind, however its parent ends: one that is stopped goes on then.

use std::fmt::Display;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::benchmark::Failure;
use super::json_lines::{LineBuffer, line_of};
use crate::host::cgroup::{ControlGroups, MemoryLimit, memory_limit};
use crate::host::gave_up::Exhausted;
use crate::host::interrupt::{self, BlockedSignals};
use crate::host::{HostError, resources, threads};

/// The environment variable that makes the program a child: its value is the kind.
pub const VARIABLE: &str = "HCABENCH_CHILD";

/// How often the parent looks for an answer once it has passed on a signal.
const LOOK: Duration = Duration::from_millis(50);
/// How long a child may take to end after a signal, before it is killed.
const GRACE: Duration = Duration::from_millis(800);
/// How long a child whose parent has exited may take to end what it is at.
const ORPHAN: Duration = Duration::from_secs(2);

/// This very program, also where another one has taken its name since; in a separate process group, so that a
/// terminal's signal comes to it once, through the process that started it.
pub fn this_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("hcabench").process_group(0);
    command
}

/// What to do where it could not be started.
pub fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "/proc is missing; mount it (mount -t proc proc /proc)".to_owned()
        }
        _ => resources::process_remedy(error),
    }
}

/// Hands a signal of this process on to such a child. One that has ended does not mind.
pub fn pass_on(signal: Signal, child: &Child) {
    let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
}

/// Whether this process is a child of that kind.
pub fn is(kind: &str) -> bool {
    kind_of_this().is_some_and(|found| found == kind)
}

/// Whether this process is a child of any kind.
pub fn is_any() -> bool {
    kind_of_this().is_some()
}

/// A child has no arguments: those of a user with the variable in the environment are obeyed.
fn kind_of_this() -> Option<std::ffi::OsString> {
    std::env::var_os(VARIABLE).filter(|_| std::env::args_os().len() == 1)
}

/// Answers the parent.
pub fn answer(answer: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(&line_of(answer)?)?;
    out.flush()
}

/// The lines of standard input. At its end nothing more is asked for, or the parent has exited: then this process is to
/// end, too, whatever it is at.
///
/// # Errors
/// When the thread that reads it cannot be started.
pub fn listen() -> Result<Receiver<String>, HostError> {
    // One that is stopped could not see it. It fails for no signal that there is.
    let _ = set_pdeathsig(Signal::SIGCONT);
    let (give, take) = channel();
    let thread = std::thread::Builder::new().name("hcabench-asked".to_owned());
    threads::start(thread, move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if give.send(line).is_err() {
                return;
            }
        }
        // A process that waits to be asked ends by this, one that measures by the signal.
        drop(give);
        let _ = raise(Signal::SIGTERM);
        std::thread::sleep(ORPHAN);
        std::process::exit(1);
    })?;
    Ok(take)
}

/// The parent's end: a child that is killed when this is dropped.
#[derive(Debug)]
pub struct ChildProcess {
    /// What it is, for messages: `the process of a round`.
    what: String,
    child: Arc<Mutex<Child>>,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    answers: LineBuffer,
    /// The signal that was passed on, and when. A second one would kill the child before it reports its results.
    told: Option<(Instant, Signal)>,
    /// Processes of its control group that were killed for memory before it was started.
    killed_before: Option<u64>,
}

/// A way to a child for others than who reads its answers.
#[derive(Debug)]
pub struct ChildHandle(Arc<Mutex<Child>>);

impl ChildHandle {
    /// Hands a signal on to it, if it has not ended.
    pub fn send_signal(&self, signal: Signal) {
        let mut child = locked(&self.0);
        if let Ok(None) = child.try_wait() {
            pass_on(signal, &child);
        }
    }

    /// Kills it, if it has not ended.
    pub fn kill(&self) {
        // One that has ended was reported as it did.
        let _ = locked(&self.0).kill();
    }
}

/// No code panics with the lock held.
fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ChildProcess {
    /// Starts a child of that kind by a command of [`this_program`]. It inherits these files, under the same numbers.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn start(
        mut command: Command,
        kind: &str,
        what: impl Into<String>,
        inherits: &[BorrowedFd<'_>],
    ) -> Result<Self, Failure> {
        let what = what.into();
        let killed_before = ControlGroups::of_this_process().killed_for_memory();
        let failed = |error: io::Error| {
            let advice = advice(&error);
            Failure::Shortage(format!("{what} could not be started: {error}: {advice}"))
        };
        let inherit = |flag: FdFlag| {
            inherits.iter().try_for_each(|file| {
                let set = fcntl(*file, FcntlArg::F_SETFD(flag));
                set.map(drop).map_err(io::Error::from)
            })
        };
        command
            .env(VARIABLE, kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let spawned = inherit(FdFlag::empty()).and_then(|()| command.spawn());
        inherit(FdFlag::FD_CLOEXEC).map_err(failed)?;
        let mut child = spawned.map_err(failed)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("a pipe was asked for");
        Ok(ChildProcess {
            what,
            child: Arc::new(Mutex::new(child)),
            stdin,
            stdout,
            answers: LineBuffer::default(),
            told: None,
            killed_before,
        })
    }

    /// Whether it has exited.
    pub fn has_ended(&self) -> bool {
        !matches!(locked(&self.child).try_wait(), Ok(None))
    }

    /// A way to it from elsewhere.
    pub fn handle(&self) -> ChildHandle {
        ChildHandle(Arc::clone(&self.child))
    }

    /// Asks it.
    pub fn ask(&mut self, ask: &impl Serialize) -> Result<(), Failure> {
        let line = line_of(ask).map_err(|error| Failure::Run(error.to_string()))?;
        if let Some(stdin) = &mut self.stdin {
            // A child that has exited shows by the end of its answers.
            let _ = stdin.write_all(&line);
        }
        Ok(())
    }

    /// Asks for nothing more, which ends it, and waits for that a moment.
    pub fn let_go(&mut self) {
        self.stdin = None;
        self.status(GRACE);
    }

    /// The next answer. A signal to this process is passed on; the child then reports its results. Sleeps until there
    /// is one of the two: the parent may sit on a CPU that is measured.
    ///
    /// # Errors
    /// When it has ended, or does not answer in time.
    pub fn next<A: DeserializeOwned>(&mut self, limit: Duration) -> Result<A, Failure> {
        // After the child was started, which would have the signals held back as well.
        let held = BlockedSignals::new().map_err(|error| self.failed(&error))?;
        let begun = Instant::now();
        loop {
            if let Some(line) = self.answers.take() {
                return serde_json::from_slice(&line).map_err(|error| self.unexpected(&error));
            }
            match (self.told, interrupt::requested()) {
                (None, Some(signal)) => {
                    pass_on(signal, &locked(&self.child));
                    self.told = Some((Instant::now(), signal));
                }
                (Some((since, signal)), _) if since.elapsed() > GRACE => {
                    self.end();
                    return Err(Failure::Interrupted(signal.to_string()));
                }
                _ => {}
            }
            let left = match self.told {
                Some(_) => LOOK,
                None => limit.saturating_sub(begun.elapsed()),
            };
            if left.is_zero() {
                self.end();
                return Err(Failure::Run(format!(
                    "{} did not answer within {}",
                    self.what,
                    humantime::format_duration(Duration::from_secs(limit.as_secs()))
                )));
            }
            if !held
                .wait(self.stdout.as_fd(), left)
                .map_err(|error| self.failed(&error))?
            {
                continue;
            }
            match self.answers.read_from(&mut self.stdout) {
                Ok(0) => return Err(self.gone()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    /// An answer that was not asked for.
    pub fn unexpected(&self, why: &dyn Display) -> Failure {
        let what = &self.what;
        Failure::Run(format!("{what} gave an invalid answer: {why}"))
    }

    fn failed(&self, error: &dyn Display) -> Failure {
        Failure::Run(format!("{}: {error}", self.what))
    }

    fn gone(&mut self) -> Failure {
        let status = self.status(GRACE);
        if let Some(signal) = interrupt::requested() {
            return Failure::Interrupted(signal.to_string());
        }
        let what = &self.what;
        let code = status.and_then(|status| status.code());
        if let Some(exhausted) = code.and_then(Exhausted::of_exit_code) {
            return Failure::Shortage(format!("{what} ended early: {}", exhausted.in_words()));
        }
        if status.is_some_and(|status| status.signal() == Some(libc::SIGABRT)) {
            return Failure::Aborted(format!(
                "{what} ended early: a library or a fault aborted it: see what it printed"
            ));
        }
        if let Some(status) = status
            && status.signal() == Some(libc::SIGKILL)
        {
            let text = format!("{what} ended early: {status}");
            let killed = ControlGroups::of_this_process().killed_for_memory();
            // Where it was not counted before, it is not known whether it rose.
            let is_for_memory = self.killed_before.is_some() && killed > self.killed_before;
            return of_killed(text, is_for_memory.then(memory_limit));
        }
        Failure::Run(match status {
            Some(status) => format!("{what} ended early: {status}"),
            None => format!("{what} sent nothing more"),
        })
    }

    /// How it ended, if it has within `limit`.
    fn status(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match locked(&self.child).try_wait() {
                Ok(None) if begun.elapsed() < limit => {}
                Ok(status) => return status,
                Err(_) => return None,
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(&mut self) {
        // It may have ended by itself. One that is held by the kernel is left behind.
        let _ = locked(&self.child).kill();
        self.status(GRACE);
    }
}

/// `for_memory`: the limit of the control group, if it has one, where the kernel killed it because memory ended.
fn of_killed(text: String, for_memory: Option<Option<MemoryLimit>>) -> Failure {
    let Some(limit) = for_memory else {
        return Failure::Aborted(text);
    };
    let advice = match limit {
        Some(limit) => format!(
            "{} allows {} KiB: raise the limit on the memory of this container or control group, or measure less at \
             a time",
            limit.file.display(),
            limit.limit >> 10
        ),
        None => "the machine has too little: measure less at a time".to_owned(),
    };
    Failure::Shortage(format!(
        "{text}: the kernel ended it because memory was used up: {advice}"
    ))
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_killed_fails_its_point() {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -KILL $$"]);
        let mut child =
            ChildProcess::start(command, "a-test", "the process of a round", &[]).unwrap();
        let failure = child.next::<bool>(Duration::from_secs(60)).unwrap_err();
        assert!(failure.fails_its_point(), "{failure:?}");
        let text = failure.to_string();
        assert!(
            text.starts_with("the process of a round ended early: signal: 9"),
            "{text}"
        );
    }

    #[test]
    fn a_child_that_is_killed_for_memory_is_reported_with_the_limit() {
        let killed = |for_memory| of_killed("it ended".to_owned(), for_memory);
        assert_eq!(killed(None), Failure::Aborted("it ended".to_owned()));
        let limit = MemoryLimit {
            limit: 64 << 20,
            free: 0,
            file: "/sys/fs/cgroup/a/memory.max".into(),
        };
        for (limit, expected) in [
            (Some(limit), "a/memory.max allows 65536 KiB: "),
            (None, "the machine has too little"),
        ] {
            let Failure::Shortage(text) = killed(Some(limit)) else {
                panic!("not a shortage");
            };
            assert!(
                text.starts_with("it ended: ") && text.contains(expected),
                "{text}"
            );
        }
    }
}
