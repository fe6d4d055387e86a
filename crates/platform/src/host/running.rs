//! The threads of the machine that ran, as `/proc` reports to all users.
//!
//! Two looks at `schedstat` and `stat` of each thread give how long it ran between them, to the nanosecond. On which
//! CPU it ran is known for a thread that may run on one only. Of others it is known where they ran last: that they had
//! that CPU is likely. Threads that begin and end between the two looks are not seen.

use std::collections::HashMap;
use std::fs;

use nix::unistd::Pid;
use serde::Serialize;

use super::pinning;

/// A thread that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadRun {
    /// As the kernel has it, which cuts it after 15 characters.
    pub name: String,
    pub thread: i32,
    /// How long it ran, on all CPUs.
    pub ran_ns: u64,
    /// Whether it may run on no other CPU.
    pub only_here: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Thread {
    name: String,
    process: i32,
    cpu: usize,
    ran_ns: u64,
}

/// All threads of the machine at one moment, by their number and when they began.
#[derive(Debug, Clone, Default)]
pub struct Threads(HashMap<(i32, u64), Thread>);

impl Threads {
    pub fn now() -> Self {
        let numbers = |folder: String| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        };
        let of_process = |process: i32| {
            let threads = numbers(format!("/proc/{process}/task"));
            threads.filter_map(move |thread| {
                let folder = format!("/proc/{process}/task/{thread}");
                let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
                let [ran_ns, _] = times(&format!("{folder}/schedstat"))?;
                let (name, cpu, began) = parse(&stat)?;
                let known = Thread {
                    name,
                    process,
                    cpu,
                    ran_ns,
                };
                Some(((thread, began), known))
            })
        };
        Threads(numbers("/proc".to_owned()).flat_map(of_process).collect())
    }

    /// The threads that ran since, and have or had `cpu`, the longest first. Threads of this process whose name begins
    /// with `own` are left out.
    pub fn since(&self, before: &Self, cpu: usize, own: &str) -> Vec<ThreadRun> {
        let this = Pid::this().as_raw();
        let ran = self.0.iter().filter_map(|(key, now)| {
            let then = before.0.get(key);
            let was_here = now.cpu == cpu || then.is_some_and(|then| then.cpu == cpu);
            let is_own = now.process == this && now.name.starts_with(own);
            let ran_ns = now.ran_ns - then.map_or(0, |then| then.ran_ns).min(now.ran_ns);
            (was_here && !is_own && ran_ns > 0).then(|| ThreadRun {
                name: now.name.clone(),
                thread: key.0,
                ran_ns,
                only_here: pinning::affinity_of(Pid::from_raw(key.0))
                    .is_ok_and(|cpus| cpus.len() == 1),
            })
        });
        let mut ran: Vec<ThreadRun> = ran.collect();
        ran.sort_by_key(|it| (std::cmp::Reverse(it.ran_ns), it.thread));
        ran
    }
}

/// How long the calling thread has been ready to run without a CPU, in nanoseconds; `None` where the kernel does not
/// report it.
pub fn waited() -> Option<u64> {
    times("/proc/thread-self/schedstat").map(|[_, waited]| waited)
}

/// How long a thread has run, and how long it has waited.
fn times(schedstat: &str) -> Option<[u64; 2]> {
    let text = fs::read_to_string(schedstat).ok()?;
    let mut figures = text.split(' ').map_while(|word| word.parse().ok());
    Some([figures.next()?, figures.next()?])
}

/// The name, the CPU, and when it began, of `/proc/PID/stat`. A name may hold anything.
fn parse(stat: &str) -> Option<(String, usize, u64)> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
    let field = |at: usize| rest.split(' ').nth(at - 3);
    Some((
        name.to_owned(),
        field(39)?.parse().ok()?,
        field(22)?.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_thread_that_spins_beside_is_found_with_its_time_and_its_cpu() {
        let before = Threads::now();
        let allowed = pinning::current_affinity().unwrap();
        let cpu = allowed.iter().next().unwrap();
        std::thread::scope(|scope| {
            let (done, wait) = std::sync::mpsc::channel::<()>();
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::Builder::new()
                .name("spins ) here".to_owned())
                .spawn_scoped(scope, move || {
                    pinning::pin_current_thread(cpu).unwrap();
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_millis(20) {}
                    tell.send(()).unwrap();
                    let _ = wait.recv();
                })
                .unwrap();
            told.recv().unwrap();
            let now = Threads::now();
            let found = now.since(&before, cpu, "watch-");
            let spins = found.iter().find(|it| it.name == "spins ) here").unwrap();
            assert!(spins.only_here && spins.ran_ns > 0, "{spins:?}");
            assert!(
                now.since(&before, cpu, "spins")
                    .iter()
                    .all(|it| it.thread != spins.thread)
            );
            assert!(now.since(&now, cpu, "").is_empty());
            drop(done);
        });
        assert!(waited().is_some());
    }
}
