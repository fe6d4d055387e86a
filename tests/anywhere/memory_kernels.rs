//! The functions that generate memory load, as they are in the program: what `objdump` finds in them is followed step by
//! step. What they access when they run: `crates/rig/src/generators/traced.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::program::{self, Program};

const LINES: usize = 50;
const LINE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    /// Bytes of an access.
    width: usize,
    non_temporal: bool,
    percent: usize,
}

impl Name {
    fn all() -> Vec<Name> {
        let mut all = Vec::new();
        for width in [16, 32, 64] {
            for non_temporal in [false, true] {
                for percent in (0..=100).step_by(2) {
                    all.push(Name {
                        width,
                        non_temporal,
                        percent,
                    });
                }
            }
        }
        all
    }

    /// Of a symbol such as `hcabench::generators::accesses::functions::avx2_regular::reads_26`, maybe with a hash.
    fn of(symbol: &str) -> Option<Name> {
        let (_, path) = symbol.split_once("generators::accesses::functions::")?;
        let (module, function) = path.split_once("::")?;
        let (set, store) = module.split_once('_')?;
        let digits = function.strip_prefix("reads_")?.split("::").next()?;
        Some(Name {
            width: [("sse2", 16), ("avx2", 32), ("avx512", 64)]
                .iter()
                .find_map(|(name, width)| (*name == set).then_some(*width))?,
            non_temporal: match store {
                "regular" => false,
                "non_temporal" => true,
                _ => return None,
            },
            percent: digits.parse().ok()?,
        })
    }

    fn reads(&self) -> usize {
        LINES * self.percent / 100
    }

    /// The access that an instruction is, in a function of this name; its offset is that of its operand.
    fn access(&self, text: &str) -> Option<Access> {
        let (set, letter) = match self.width {
            16 => ("", 'x'),
            32 => ("v", 'y'),
            _ => ("v", 'z'),
        };
        let (mnemonic, operands) = text.strip_prefix(set)?.split_once(char::is_whitespace)?;
        let (from, to) = operands.trim().split_once(',')?;
        let register = format!("%{letter}mm");
        let store = if self.non_temporal {
            "movntps"
        } else {
            "movaps"
        };
        let (is_read, offset) = match (offset(from, "(%rdi)"), offset(to, "(%rsi)")) {
            (Some(offset), None) if mnemonic == "movaps" && is_numbered(to, &register) => {
                (true, offset)
            }
            (None, Some(offset)) if mnemonic == store && is_numbered(from, &register) => {
                (false, offset)
            }
            _ => return None,
        };
        Some(Access { is_read, offset })
    }

    fn accesses(&self, instructions: &[Instruction]) -> Result<Vec<Access>, String> {
        let mut run = Run {
            name: self,
            instructions,
            pattern: None,
            lines_left: None,
            carry: false,
            zero: false,
            moved: [0; 2],
            accesses: Vec::new(),
        };
        let mut at = 0;
        for _ in 0..20 * LINES {
            let (_, text) = instructions.get(at).ok_or("it goes on behind its end")?;
            match run
                .step(at, text)
                .ok_or_else(|| format!("{text:?} has no place in it"))?
            {
                Some(next) => at = next,
                None => return Ok(run.accesses),
            }
        }
        Err("it does not end".to_owned())
    }

    fn judge(&self, instructions: &[Instruction]) -> Result<(), String> {
        let accesses = self.accesses(instructions)?;
        let per_line = LINE / self.width;
        if accesses.len() != LINES * per_line {
            return Err(format!(
                "{} accesses of {} bytes",
                accesses.len(),
                self.width
            ));
        }
        // How many lines were read and stored to so far.
        let mut lines = [0; 2];
        for line in accesses.chunks(per_line) {
            let is_read = line[0].is_read;
            let so_far = &mut lines[usize::from(is_read)];
            for (part, access) in line.iter().enumerate() {
                let expected = Access {
                    is_read,
                    offset: *so_far * LINE + part * self.width,
                };
                if *access != expected {
                    return Err(format!("{access:?} where {expected:?} should be"));
                }
            }
            *so_far += 1;
            // Nowhere more than a line from an even mixture.
            let [stored, read] = lines;
            if (read * LINES).abs_diff((read + stored) * self.reads()) >= LINES {
                return Err(format!("{read} reads in the first {} lines", read + stored));
            }
        }
        match lines[1] == self.reads() {
            true => Ok(()),
            false => Err(format!("{} reads", lines[1])),
        }
    }
}

struct Run<'a> {
    name: &'a Name,
    instructions: &'a [Instruction],
    pattern: Option<u64>,
    lines_left: Option<u64>,
    carry: bool,
    zero: bool,
    /// What was added to the address of what is stored to, and of what is read.
    moved: [usize; 2],
    accesses: Vec<Access>,
}

impl Run<'_> {
    /// Does an instruction, and says which one is next, if any is. `None` if the instruction is not known.
    fn step(&mut self, at: usize, text: &str) -> Option<Option<usize>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["ret" | "retq"] => return Some(None),
            ["vzeroupper"] if self.name.width > 16 => {}
            ["movabs", operands] => self.pattern = Some(number(operands, ",%rax")?),
            ["mov", operands] => self.lines_left = Some(number(operands, ",%ecx")?),
            ["shr", "%rax" | "$1,%rax"] => {
                let pattern = self.pattern?;
                self.carry = pattern & 1 == 1;
                self.pattern = Some(pattern >> 1);
            }
            ["dec", "%ecx"] => {
                let left = self.lines_left?.checked_sub(1)?;
                self.zero = left == 0;
                self.lines_left = Some(left);
            }
            ["add", operands] => {
                let read = number(operands, ",%rdi");
                let bytes = read.or_else(|| number(operands, ",%rsi"))?;
                self.moved[usize::from(read.is_some())] += bytes as usize;
                self.zero = false;
            }
            ["jae", target, ..] if !self.carry => return self.jump(target),
            ["jne", target, ..] if !self.zero => return self.jump(target),
            ["jae" | "jne", ..] => {}
            _ => {
                let access = self.name.access(text)?;
                let offset = access.offset + self.moved[usize::from(access.is_read)];
                self.accesses.push(Access { offset, ..access });
            }
        }
        Some(Some(at + 1))
    }

    fn jump(&self, target: &str) -> Option<Option<usize>> {
        let target = u64::from_str_radix(target, 16).ok()?;
        let place = self
            .instructions
            .iter()
            .position(|(address, _)| *address == target)?;
        Some(Some(place))
    }
}

fn offset(operand: &str, base: &str) -> Option<usize> {
    match operand.strip_suffix(base)? {
        "" => Some(0),
        digits => usize::from_str_radix(digits.strip_prefix("0x")?, 16).ok(),
    }
}

/// Whether an operand is a whole register: a mask would stand behind the number.
fn is_numbered(operand: &str, register: &str) -> bool {
    operand
        .strip_prefix(register)
        .is_some_and(|number| number.parse::<u8>().is_ok())
}

fn number(operands: &str, register: &str) -> Option<u64> {
    let digits = operands.strip_suffix(register)?.strip_prefix("$0x")?;
    u64::from_str_radix(digits, 16).ok()
}

/// Its address and its text.
type Instruction = (u64, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    is_read: bool,
    offset: usize,
}

fn objdump(program: &Path, arguments: &[&str]) -> String {
    let objdump = [&["objdump"], arguments].concat();
    Program::under(&objdump, program, "")
        .env("LC_ALL", "C")
        .ends(0)
        .stdout
}

struct Place {
    start: u64,
    end: u64,
    name: Name,
}

/// The functions, by the program's table of symbols: address, flags, `F`, section, length, name.
fn places(program: &Path) -> Vec<Place> {
    let table = objdump(program, &["--syms", "--demangle"]);
    let place = |line: &str| {
        let name = Name::of(line)?;
        let (start, rest) = line.split_once(' ')?;
        let (_, rest) = rest.split_once(" F ")?;
        let length = u64::from_str_radix(rest.split_whitespace().nth(1)?, 16).ok()?;
        let start = u64::from_str_radix(start, 16).ok()?;
        Some(Place {
            start,
            end: start + length,
            name,
        })
    };
    table.lines().filter_map(place).collect()
}

fn functions(program: &Path) -> BTreeMap<Name, Vec<Instruction>> {
    let mut places = places(program);
    places.sort_by_key(|place| place.start);
    let mut functions = BTreeMap::new();
    // Neighbours are read at once. Equal functions may be one.
    for places in places.chunk_by(|one, next| next.start.saturating_sub(one.end) < 4096) {
        let start = format!("--start-address={}", places[0].start);
        let stop = format!("--stop-address={}", places[places.len() - 1].end);
        let text = objdump(
            program,
            &["--disassemble", "--no-show-raw-insn", &start, &stop],
        );
        let instructions: Vec<Instruction> = text.lines().filter_map(instruction_in).collect();
        for place in places {
            let own = instructions
                .iter()
                .filter(|(address, _)| (place.start..place.end).contains(address));
            functions.insert(place.name, own.cloned().collect());
        }
    }
    functions
}

/// The instruction of a line such as `  12ab: vmovaps (%rdi),%ymm0`.
fn instruction_in(line: &str) -> Option<Instruction> {
    let (address, instruction) = line.split_once(":\t")?;
    Some((
        u64::from_str_radix(address.trim(), 16).ok()?,
        instruction.trim().to_owned(),
    ))
}

#[test]
fn every_function_has_the_accesses_that_its_name_says_and_no_others() {
    let functions = functions(&program::path());
    let expected = Name::all();
    assert_eq!(expected.len(), 306);
    let wrong: Vec<String> = expected
        .iter()
        .filter_map(|name| match functions.get(name) {
            None => Some(format!("{name:?} is missing")),
            Some(instructions) => name
                .judge(instructions)
                .err()
                .map(|why| format!("{name:?}: {why}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(functions.len(), expected.len());
}

/// A function as it should be, but for one instruction, at addresses from 0.
fn made_up(name: &Name, wrong: Option<(usize, &str)>) -> Vec<Instruction> {
    let (set, letter) = match name.width {
        16 => ("", 'x'),
        32 => ("v", 'y'),
        _ => ("v", 'z'),
    };
    let store = if name.non_temporal {
        "movntps"
    } else {
        "movaps"
    };
    let is_read = |line: &usize| (line + 1) * name.reads() / LINES > line * name.reads() / LINES;
    let pattern: u64 = (0..LINES).filter(is_read).map(|line| 1 << line).sum();
    let parts = || (0..LINE / name.width).map(|part| part * name.width);
    let loads = parts().map(|part| format!("{set}movaps {part:#x}(%rdi),%{letter}mm0"));
    let stores = parts().map(|part| format!("{set}{store} %{letter}mm0,{part:#x}(%rsi)"));
    let mut texts = vec![
        format!("movabs ${pattern:#x},%rax"),
        "mov $0x32,%ecx".to_owned(),
        "shr $1,%rax".to_owned(),
    ];
    texts.push(format!("jae {:x} <somewhere>", 8 + LINE / name.width));
    for (accesses, register) in [
        (loads.collect::<Vec<_>>(), "%rdi"),
        (stores.collect(), "%rsi"),
    ] {
        texts.extend(accesses);
        texts.extend([
            format!("add $0x40,{register}"),
            "dec %ecx".to_owned(),
            "jne 2".to_owned(),
            "ret".to_owned(),
        ]);
    }
    if let Some((place, text)) = wrong {
        texts[place] = text.to_owned();
    }
    (0..).zip(texts).collect()
}

#[test]
fn a_function_that_is_not_as_its_name_says_is_found() {
    let name = Name {
        width: 32,
        non_temporal: true,
        percent: 26,
    };
    assert_eq!(name.judge(&made_up(&name, None)), Ok(()));
    for other in [
        Name { width: 16, ..name },
        Name { width: 64, ..name },
        Name {
            percent: 28,
            ..name
        },
        Name {
            non_temporal: false,
            ..name
        },
    ] {
        assert!(name.judge(&made_up(&other, None)).is_err(), "{other:?}");
    }
    for (place, text) in [
        // All reads first; a line too few, and too many.
        (0, "movabs $0x1fff,%rax"),
        (1, "mov $0x31,%ecx"),
        (1, "mov $0x33,%ecx"),
        // A part twice, of other widths, of other memory, of the other kind.
        (5, "vmovaps (%rdi),%ymm0"),
        (5, "vmovaps 0x20(%rdi),%xmm0"),
        (5, "vmovaps 0x20(%rdi),%ymm0{%k1}"),
        (5, "vmovaps 0x20(%rsp),%ymm0"),
        (5, "mov %rax,-0x8(%rsp)"),
        (5, "vzeroupper"),
        (10, "vmovntps %ymm0,0x40(%rsi)"),
        (10, "vmovaps %ymm0,0x20(%rsi)"),
        // Lines that are left out or come again, and no end.
        (6, "add $0x80,%rdi"),
        (12, "vzeroupper"),
        (13, "vzeroupper"),
        (14, "jne 0"),
        (9, "jne 2"),
    ] {
        let judged = name.judge(&made_up(&name, Some((place, text))));
        assert!(judged.is_err(), "{place} {text}");
    }
}

#[test]
fn symbols_are_known_with_and_without_a_hash() {
    let expected = Some(Name {
        width: 64,
        non_temporal: true,
        percent: 4,
    });
    for symbol in [
        "hcabench::generators::accesses::functions::avx512_non_temporal::reads_4",
        "hcabench::generators::accesses::functions::avx512_non_temporal::reads_4::h0123456789abcdef",
    ] {
        assert_eq!(Name::of(symbol), expected);
    }
    assert_eq!(
        Name::of("hcabench::generators::accesses::functions::of"),
        None
    );
}
