//! A generator under valgrind's tool lackey, which prints each access of a program: what is counted as issued is what
//! is accessed. valgrind knows no AVX-512.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use super::accesses::{Accesses, InstructionSet, LINE, Store};
use super::generator::{Generator, Groups, LineCounts, Load};
use crate::buffer::{Bytes, PageSize, Region};
use crate::rig::named::Named;

/// Set for the program under valgrind.
const TRACED: &str = "HCABENCH_TRACED";
const BUFFER: usize = 64 << 10;
/// What begins a line of the traced program.
const TOLD: &str = "traced ";
const LOOKS: u64 = 2;
const SHARES: [u32; 5] = [0, 26, 50, 76, 100];

fn instruction_set() -> InstructionSet {
    match InstructionSet::Avx2.is_there() {
        true => InstructionSet::Avx2,
        false => InstructionSet::BASE,
    }
}

fn loads() -> Vec<Load> {
    let set = instruction_set();
    let of = |store| {
        SHARES.map(|percent| Load {
            accesses: Accesses::with_share(set, store, percent),
            pause: 0,
        })
    };
    Store::ALL.iter().copied().flat_map(of).collect()
}

/// Does the loads, one after the other, and prints the buffers, and how many lines they issued. A store of two bytes to
/// the buffer that is read begins each of them.
fn generate() {
    let region = || Region::new(Bytes(BUFFER as u64), PageSize::Small, None).unwrap();
    let (read, stored) = (region(), region());
    let begin = read.as_ptr().cast::<u16>();
    println!("{TOLD}{} {}", read.as_ptr().addr(), stored.as_ptr().addr());
    let mut generator = Generator::new(read, stored);
    for load in loads() {
        // SAFETY: it is the start of the buffer, which the generator keeps and does not access now.
        unsafe { begin.write_volatile(1) };
        let (groups, left) = (Groups::default(), Cell::new(LOOKS));
        generator.run(&load, &groups, || {
            left.replace(left.get().saturating_sub(1)) > 0
        });
        let lines = LineCounts::of_groups(groups.done(), &load.accesses);
        println!("{TOLD}{} {}", lines.read, lines.stored);
    }
}

/// All accesses to memory, in their order: whether it is a store, the address and the bytes.
fn accesses_in(trace: impl Read) -> Vec<(bool, usize, usize)> {
    let parse = |line: String| {
        let (is_store, place) = match line.split_at_checked(3)? {
            (" S ", place) => (true, place),
            (" L ", place) => (false, place),
            // Both at once counts as what it should not be.
            (" M ", place) => (true, place),
            _ => return None,
        };
        let (address, length) = place.split_once(',')?;
        Some((
            is_store,
            usize::from_str_radix(address, 16).ok()?,
            length.parse().ok()?,
        ))
    };
    BufReader::new(trace)
        .lines()
        .map_while(Result::ok)
        .filter_map(parse)
        .collect()
}

#[test]
fn lackey_finds_as_many_loads_and_stores_as_lines_were_issued() {
    if std::env::var_os(TRACED).is_some() {
        return generate();
    }
    let this = "generators::traced::lackey_finds_as_many_loads_and_stores_as_lines_were_issued";
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=lackey", "--basic-counts=no", "--trace-mem=yes"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture", "--test-threads=1"])
        .env(TRACED, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}: install it (ci/setup test)"));
    // What it writes to standard output fits into the pipe.
    let accesses = accesses_in(child.stderr.take().unwrap());
    let mut told = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{told}");
    let told: Vec<[usize; 2]> = told.lines().filter_map(numbers).collect();
    let [buffers, issued @ ..] = told.as_slice() else {
        panic!("nothing was printed");
    };
    let found = during_loads(&accesses, *buffers);
    assert_eq!(found.len(), loads().len());
    assert_eq!(issued.len(), loads().len());
    for ((found, issued), load) in found.iter().zip(issued).zip(loads()) {
        let issued = LineCounts {
            read: issued[0] as u64,
            stored: issued[1] as u64,
        };
        assert!(issued.all() >= LOOKS * 50, "{load:?}");
        assert_eq!(*found, issued, "{load:?}");
    }
}

/// The two numbers of a line of the traced program.
fn numbers(line: &str) -> Option<[usize; 2]> {
    // The test's own name may precede it, without an end of line.
    let (_, numbers) = line.split_once(TOLD)?;
    let (one, other) = numbers.split_once(' ')?;
    Some([one.parse().ok()?, other.parse().ok()?])
}

/// The lines that were accessed in each load: each access of the expected width, right behind the one before it.
fn during_loads(accesses: &[(bool, usize, usize)], buffers: [usize; 2]) -> Vec<LineCounts> {
    let width = if instruction_set() == InstructionSet::Avx2 {
        32
    } else {
        16
    };
    let mut counts: Vec<[usize; 2]> = Vec::new();
    let mut ends = [None; 2];
    for &(is_store, address, length) in accesses {
        let inside = |start: &usize| (*start..*start + BUFFER).contains(&address);
        let Some(buffer) = buffers.iter().position(inside) else {
            continue;
        };
        if is_store && (address, length) == (buffers[0], 2) {
            counts.push([0; 2]);
            continue;
        }
        // Before the first one: who makes the buffers may touch them.
        let Some(count) = counts.last_mut() else {
            continue;
        };
        assert_eq!(
            (is_store, length),
            (buffer == 1, width),
            "an access of the wrong kind at {address:#x}"
        );
        let follows = ends[buffer].is_none_or(|end| end == address) || address == buffers[buffer];
        assert!(follows, "{address:#x} does not follow {:#x?}", ends[buffer]);
        ends[buffer] = Some(address + length);
        count[buffer] += length;
    }
    let lines = |[read, stored]: [usize; 2]| {
        assert_eq!((read % LINE, stored % LINE), (0, 0));
        LineCounts {
            read: (read / LINE) as u64,
            stored: (stored / LINE) as u64,
        }
    };
    counts.into_iter().map(lines).collect()
}
