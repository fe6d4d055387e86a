//! The functions that generate memory load, as they are in the program: what `objdump` finds in them. What they access
//! when they run: `src/generators/traced.rs`.

#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Lines of a function.
const LINES: usize = 50;
const LINE: usize = 64;

/// What a function's name says of it.
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

    /// Of a symbol such as `hcabench::generators::accesses::functions::avx2_regular::reads_26`, behind which a hash may
    /// stand.
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

    /// What an instruction is in a function of this name: an access, or a part of its end.
    fn instruction(&self, text: &str) -> Result<Option<Access>, String> {
        let (set, letter) = match self.width {
            16 => ("", 'x'),
            32 => ("v", 'y'),
            _ => ("v", 'z'),
        };
        if text == "ret" || (text == "vzeroupper" && set == "v") {
            return Ok(None);
        }
        let access = || {
            let (mnemonic, operands) = text.strip_prefix(set)?.split_once(char::is_whitespace)?;
            let (from, to) = operands.trim().split_once(',')?;
            let register = format!("%{letter}mm");
            match (offset(from, "(%rdi)"), offset(to, "(%rsi)"), mnemonic) {
                (Some(offset), None, "movaps") if is_numbered(to, &register) => Some(Access {
                    is_read: true,
                    offset,
                }),
                (None, Some(offset), "movaps")
                    if !self.non_temporal && is_numbered(from, &register) =>
                {
                    Some(Access {
                        is_read: false,
                        offset,
                    })
                }
                (None, Some(offset), "movntps")
                    if self.non_temporal && is_numbered(from, &register) =>
                {
                    Some(Access {
                        is_read: false,
                        offset,
                    })
                }
                _ => None,
            }
        };
        access()
            .map(Some)
            .ok_or_else(|| format!("{text:?} has no place in it"))
    }

    /// What is wrong with a function of this name, if anything is.
    fn judge(&self, instructions: &[String]) -> Result<(), String> {
        let returns = instructions.iter().position(|text| text == "ret");
        if returns.is_none() || returns != instructions.len().checked_sub(1) {
            return Err("it does not return at its end".to_owned());
        }
        let found: Result<Vec<_>, _> = instructions
            .iter()
            .map(|text| self.instruction(text))
            .collect();
        let accesses: Vec<Access> = found?.into_iter().flatten().collect();
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

/// The offset of an operand such as `0x40(%rdi)` from its base.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    is_read: bool,
    offset: usize,
}

fn objdump(program: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("objdump");
    command.args(arguments).arg(program).env("LC_ALL", "C");
    let done = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}: is it installed? (ci/setup test)"));
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

/// A function's place in a program.
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

/// The instructions of the functions of a program.
fn functions(program: &Path) -> BTreeMap<Name, Vec<String>> {
    let mut places = places(program);
    places.sort_by_key(|place| place.start);
    let mut functions = BTreeMap::new();
    // Neighbours are read at once.
    for places in places.chunk_by(|one, next| next.start - one.end < 4096) {
        let start = format!("--start-address={}", places[0].start);
        let stop = format!("--stop-address={}", places[places.len() - 1].end);
        let text = objdump(
            program,
            &["--disassemble", "--no-show-raw-insn", &start, &stop],
        );
        let instructions: Vec<(u64, &str)> = text.lines().filter_map(instruction_in).collect();
        for place in places {
            let own = instructions
                .iter()
                .filter(|(address, _)| (place.start..place.end).contains(address));
            functions.insert(
                place.name,
                own.map(|(_, text)| (*text).to_owned()).collect(),
            );
        }
    }
    functions
}

/// The address and the instruction of a line such as `  12ab: vmovaps (%rdi),%ymm0`.
fn instruction_in(line: &str) -> Option<(u64, &str)> {
    let (address, instruction) = line.split_once(":\t")?;
    Some((
        u64::from_str_radix(address.trim(), 16).ok()?,
        instruction.trim(),
    ))
}

#[test]
fn every_function_has_the_accesses_that_its_name_says_and_no_others() {
    let functions = functions(Path::new(env!("CARGO_BIN_EXE_hcabench")));
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

/// A function as it should be.
fn made_up(name: &Name) -> Vec<String> {
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
    let mut instructions = Vec::new();
    let (mut read, mut stored) = (0, 0);
    for line in 0..LINES {
        let is_read = (line + 1) * name.reads() / LINES > line * name.reads() / LINES;
        for part in 0..LINE / name.width {
            instructions.push(match is_read {
                true => format!(
                    "{set}movaps {:#x}(%rdi),%{letter}mm{part}",
                    read * LINE + part * name.width
                ),
                false => format!(
                    "{set}{store} %{letter}mm0,{:#x}(%rsi)",
                    stored * LINE + part * name.width
                ),
            });
        }
        *(if is_read { &mut read } else { &mut stored }) += 1;
    }
    instructions.push("ret".to_owned());
    instructions
}

#[test]
fn a_function_that_is_not_as_its_name_says_is_found() {
    let name = Name {
        width: 32,
        non_temporal: true,
        percent: 26,
    };
    assert_eq!(name.judge(&made_up(&name)), Ok(()));
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
        assert!(name.judge(&made_up(&other)).is_err(), "{other:?}");
    }
    let wrong = |change: &dyn Fn(&mut Vec<String>)| {
        let mut instructions = made_up(&name);
        change(&mut instructions);
        name.judge(&instructions).unwrap_err()
    };
    let insert = |text: &str| wrong(&|instructions| instructions.insert(4, text.to_owned()));
    for text in [
        "mov %rax,-0x8(%rsp)",
        "movzbl (%rdi),%eax",
        "jmp 1000",
        "ret",
        "vmovaps (%rdi),%ymm0{%k1}",
    ] {
        insert(text);
    }
    // All reads first, a pair out of order, a line left out.
    wrong(&|instructions| instructions.sort_by_key(|text| (text == "ret", !text.contains("rdi"))));
    wrong(&|instructions| instructions.swap(0, 1));
    wrong(&|instructions| drop(instructions.drain(..2)));
    wrong(&|instructions| drop(instructions.pop()));
    // A regular store among the others.
    let regular = insert("vmovaps %ymm0,(%rsi)");
    assert!(regular.contains("has no place"), "{regular}");
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
