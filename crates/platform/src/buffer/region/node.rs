//! On which NUMA node memory lies: mbind(2) and move_pages(2), for which the C library has no functions.

use std::collections::BTreeMap;
use std::io;
use std::ptr::{NonNull, null};

/// The highest node that can be asked for, as in the kernel's largest configuration.
const MOST_NODES: usize = 1024;
/// Addresses that are asked about at once.
const PAGES_AT_ONCE: usize = 4096;
const BITS: usize = u64::BITS as usize;

/// Memory is not on the node where it was to be.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The kernel refused it.
    #[error(
        "mbind to NUMA node {node} failed ({source}): name a node with memory (hcabench host or numactl --hardware \
         lists them)"
    )]
    Bind {
        /// The node.
        node: u32,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel does not report where memory is.
    #[error("move_pages failed ({0}): it cannot be verified on which NUMA node memory lies")]
    Ask(io::Error),
    /// It is somewhere else.
    #[error("of {of} pages that were to lie on NUMA node {node}, {elsewhere} lie elsewhere")]
    Elsewhere {
        /// The node.
        node: u32,
        /// How many do not lie there.
        elsewhere: usize,
        /// All of them.
        of: usize,
    },
}

/// Has the pages of a range that are not yet touched come from a node only.
pub(super) fn bind(start: NonNull<u8>, length: usize, node: u32) -> Result<(), NodeError> {
    let failed = |source| NodeError::Bind { node, source };
    let mut mask = [0_u64; MOST_NODES / BITS];
    let place = node as usize;
    let Some(word) = mask.get_mut(place / BITS) else {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    };
    *word = 1 << (place % BITS);
    // The kernel reads one bit less than it is given.
    let bits = MOST_NODES + 1;
    // SAFETY: the range is a mapping of the caller's; the mask has as many bits as are read.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start.as_ptr(),
            length,
            libc::MPOL_BIND,
            mask.as_ptr(),
            bits,
            0,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(failed(io::Error::last_os_error()))
    }
}

/// How many pages of a touched range lie on each node; by a negative number those for which the kernel reported an
/// error.
pub(super) fn of_pages(
    start: NonNull<u8>,
    length: usize,
    page: usize,
) -> Result<BTreeMap<i32, usize>, NodeError> {
    let mut found = BTreeMap::new();
    let all: Vec<*mut u8> = (0..length)
        .step_by(page)
        .map(|at| start.as_ptr().wrapping_add(at))
        .collect();
    for pages in all.chunks(PAGES_AT_ONCE) {
        let mut nodes = [0_i32; PAGES_AT_ONCE];
        // SAFETY: as many addresses are read, and nodes written, as there are pages. Without a list of nodes to go to,
        // nothing is moved. 0 is this process.
        let done = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                pages.len(),
                pages.as_ptr(),
                null::<i32>(),
                nodes.as_mut_ptr(),
                0,
            )
        };
        if done < 0 {
            return Err(NodeError::Ask(io::Error::last_os_error()));
        }
        for node in &nodes[..pages.len()] {
            *found.entry(*node).or_insert(0) += 1;
        }
    }
    Ok(found)
}

/// Checks that all pages lie on a node.
pub(super) fn verify(
    start: NonNull<u8>,
    length: usize,
    page: usize,
    node: u32,
) -> Result<(), NodeError> {
    let found = of_pages(start, length, page)?;
    let of = found.values().sum();
    let here = found.get(&(node as i32)).copied().unwrap_or(0);
    if here == of {
        return Ok(());
    }
    Err(NodeError::Elsewhere {
        node,
        elsewhere: of - here,
        of,
    })
}
