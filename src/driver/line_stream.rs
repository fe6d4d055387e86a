//! A run as it happens, for other programs: an object of JSON a line, in a file, a pipe or on standard output.
//!
//! `docs/json-lines.schema.json` describes the objects. [`VERSION`] changes when a reader of the older ones would fail.
//! Lines are written between two points, never while one is measured.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use super::moment;
use crate::host::standard_output::was_closed;
use crate::results::durable::create_new;

/// The version of the objects.
const VERSION: u64 = 1;
/// How long a reader may leave a pipe full.
const PATIENCE: Duration = Duration::from_secs(5);
/// The bytes that a pipe takes at once if it takes any.
const PIECE: usize = 4096;
/// The name of standard output.
pub(crate) const STANDARD_OUTPUT: &str = "-";

/// Where the lines go.
pub(crate) struct LineStream {
    path: PathBuf,
    out: File,
    /// The length of the whole lines of a new file; none of what was there. A file without a line, as of a run that is
    /// refused, is removed.
    length: Option<u64>,
    /// Whether no more lines are written: the reader is gone, or a line could not be written.
    has_ended: bool,
    failure: Option<String>,
}

impl LineStream {
    /// Opens it: a new file, a pipe or a device that is there, or `-` for standard output.
    ///
    /// # Errors
    /// When a file of that name exists, a pipe has no reader, or it cannot be made.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let (out, is_new) = if path == Path::new(STANDARD_OUTPUT) {
            if was_closed() {
                return Err("standard output is closed".to_owned());
            }
            let out = io::stdout().as_fd().try_clone_to_owned();
            (out.map(File::from), false)
        } else if path
            .metadata()
            .is_ok_and(|there| !there.is_file() && !there.is_dir())
        {
            let mut options = OpenOptions::new();
            // A pipe without a reader is an error, and no reason to wait.
            options
                .write(true)
                .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
            (options.open(path), false)
        } else {
            (create_new(path), true)
        };
        let out = out.map_err(|cause| match cause.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EEXIST) => "it exists; remove it, or choose another name".to_owned(),
            Some(Errno::ENXIO) => "no program reads this pipe; start its reader first".to_owned(),
            _ => cause.to_string(),
        })?;
        Ok(LineStream {
            path: path.to_path_buf(),
            out,
            length: is_new.then_some(0),
            has_ended: false,
            failure: None,
        })
    }

    /// Writes an object of this type. A reader that is gone has seen enough. The first line that cannot be written is the
    /// last: the run goes on, and [`failure`](Self::failure) has the reason.
    pub(crate) fn write(&mut self, of_type: &str, object: Value) {
        if self.has_ended {
            return;
        }
        let mut line = json!({
            "type": of_type,
            "version": VERSION,
            "time": moment(SystemTime::now()),
        });
        if let (Value::Object(line), Value::Object(object)) = (&mut line, object) {
            line.extend(object);
        }
        let line = format!("{line}\n");
        let written = self.write_all(line.as_bytes());
        if let (Ok(()), Some(length)) = (&written, &mut self.length) {
            *length += line.len() as u64;
        }
        if let Err(cause) = written {
            self.has_ended = true;
            if let Some(length) = self.length {
                let _ = self.out.set_len(length);
            }
            if cause.kind() != io::ErrorKind::BrokenPipe {
                let path = self.path.display();
                self.failure = Some(format!(
                    "--json-lines {path}: lines are missing: {cause}; the results folder has all of the run"
                ));
            }
        }
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let mut taken_at = Instant::now();
        let mut rest = line;
        while !rest.is_empty() {
            let left = PATIENCE.saturating_sub(taken_at.elapsed());
            let limit = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut what = [PollFd::new(self.out.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut what, limit) {
                Err(Errno::EINTR) => continue,
                Err(cause) => return Err(cause.into()),
                Ok(0) if left.is_zero() => {
                    let seconds = PATIENCE.as_secs();
                    let reason = format!("its reader has read nothing for {seconds} s");
                    return Err(io::Error::other(reason));
                }
                // Time may be left by less than poll counts.
                Ok(0) => continue,
                Ok(_) => {}
            }
            match self.out.write(&rest[..rest.len().min(PIECE)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    rest = &rest[count..];
                    taken_at = Instant::now();
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    /// Why lines are missing.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl Drop for LineStream {
    fn drop(&mut self) {
        if self.length == Some(0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::fs::FileTypeExt as _;

    use super::*;
    use crate::testing::{Refused as _, Temporary, temporary};

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    #[test]
    fn each_object_is_a_line_with_type_and_version() {
        let path = temporary("run.jsonl");
        let mut stream = LineStream::open(&path).unwrap();
        stream.write("begin", json!({ "label": "two\nlines" }));
        // It is there before the next one.
        assert_eq!(lines(&path).len(), 1);
        stream.write("end", json!({}));
        drop(stream);
        let lines = lines(&path);
        assert_eq!(lines[0]["label"], "two\nlines");
        for (line, of_type) in lines.iter().zip(["begin", "end"]) {
            assert_eq!(line["type"], of_type);
            assert_eq!(line["version"], VERSION);
            assert!(humantime::parse_rfc3339(line["time"].as_str().unwrap()).is_ok());
        }
    }

    #[test]
    fn a_file_that_is_there_is_kept_and_one_without_a_line_is_removed() {
        let path = temporary("run.jsonl");
        drop(LineStream::open(&path).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, "ours").unwrap();
        LineStream::open(&path).refused(&["it exists", "choose another name"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ours");
        let folder = path.parent().unwrap();
        LineStream::open(folder).refused(&["it exists"]);
        LineStream::open(&folder.join("none/run.jsonl")).refused(&["No such file"]);
    }

    fn pipe() -> Temporary {
        let path = temporary("pipe");
        nix::unistd::mkfifo(&*path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(path.metadata().unwrap().file_type().is_fifo());
        path
    }

    fn reader_of(pipe: &Path) -> File {
        let mut options = OpenOptions::new();
        let reader = options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
        reader.open(pipe).unwrap()
    }

    #[test]
    fn a_pipe_needs_a_reader_which_may_leave() {
        let path = pipe();
        LineStream::open(&path).refused(&["no program reads this pipe"]);
        let reader = reader_of(&path);
        let mut stream = LineStream::open(&path).unwrap();
        stream.write("begin", json!({}));
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).unwrap();
        assert!(line.contains("begin"), "{line}");
        // With the reader it is closed.
        stream.write("round", json!({}));
        stream.write("end", json!({}));
        assert_eq!(stream.failure(), None);
        assert!(stream.has_ended);
    }

    #[test]
    fn a_reader_that_reads_nothing_ends_the_stream_and_not_the_run() {
        let path = pipe();
        let _reader = reader_of(&path);
        let mut stream = LineStream::open(&path).unwrap();
        stream.write("round", json!({ "text": "x".repeat(1 << 20) }));
        let failure = stream.failure().unwrap().to_owned();
        assert!(failure.contains("has read nothing for 5 s"), "{failure}");
        stream.write("end", json!({}));
        assert_eq!(stream.failure(), Some(&*failure));
    }
}
