//! Messages between processes, a line of JSON each: over the pipes of a child, and over TCP between ranks and hosts.

use std::io::{self, Read};

use serde::Serialize;

/// A message as a line.
pub(crate) fn line_of(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// What was read and not taken yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    buffer: Vec<u8>,
    /// Up to where it is known to hold no end of a line.
    searched: usize,
}

impl LineBuffer {
    /// Reads what is there; 0 bytes at the end of the stream.
    pub(crate) fn read_from(&mut self, mut stream: impl Read) -> io::Result<usize> {
        let mut part = [0; 1 << 16];
        let count = stream.read(&mut part)?;
        self.buffer.extend_from_slice(&part[..count]);
        Ok(count)
    }

    /// Takes bytes that came another way.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The first byte that was not taken yet.
    pub(crate) fn first(&self) -> Option<u8> {
        self.buffer.first().copied()
    }

    /// The next line, if it is whole.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let fresh = &self.buffer[self.searched..];
        let Some(end) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
        line.pop();
        self.searched = 0;
        Some(line)
    }

    /// Bytes that were not taken yet.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }
}
