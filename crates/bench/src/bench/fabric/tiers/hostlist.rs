//! Lists of hosts as Slurm writes them: `n[01-03,7],login`.

/// The most hosts that a list may have.
const MOST: usize = 1 << 17;

/// The hosts of a list, in its order. Numbers keep the zeros before them.
///
/// # Errors
/// What is wrong with the list.
pub fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    for part in split(list) {
        expand_into(&mut hosts, String::new(), part)
            .map_err(|why| format!("{list:?} is no list of hosts: {why}"))?;
    }
    Ok(hosts)
}

/// Parts between commas that are in no bracket.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0_u32, 0);
    for (place, letter) in list.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&list[begin..place]);
                begin = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    parts
}

/// The hosts that begin with a text and go on as a part says.
fn expand_into(hosts: &mut Vec<String>, begins: String, part: &str) -> Result<(), String> {
    let Some((before, rest)) = part.split_once('[') else {
        let host = begins + part;
        return match host.is_empty() || part.contains(']') || hosts.len() >= MOST {
            true if hosts.len() >= MOST => Err(format!("it has more than {MOST}")),
            true => Err("a name is empty, or a bracket is not opened".to_owned()),
            false => {
                hosts.push(host);
                Ok(())
            }
        };
    };
    let (ranges, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let digits =
                !text.is_empty() && text.len() < 10 && text.bytes().all(|it| it.is_ascii_digit());
            digits.then(|| text.parse::<usize>().ok()).flatten()
        };
        let (from, to) = number(first)
            .zip(number(last))
            .ok_or_else(|| format!("{range:?} is no range of numbers"))?;
        if from > to || to - from >= MOST {
            return Err(format!("{range:?} is no range of numbers"));
        }
        for number in from..=to {
            let width = first.len();
            expand_into(hosts, format!("{begins}{before}{number:0width$}"), after)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_those_of_slurm() {
        for (list, hosts) in [
            ("a", "a"),
            ("n[1-3],login", "n1 n2 n3 login"),
            ("n[08-10,2]", "n08 n09 n10 n2"),
            ("r[1-2]n[0-1]-ib", "r1n0-ib r1n1-ib r2n0-ib r2n1-ib"),
        ] {
            assert_eq!(expand(list).unwrap().join(" "), hosts);
        }
        for bad in [
            "",
            "a,",
            "n[1-",
            "n[]",
            "n[a-b]",
            "n[3-1]",
            "n1]",
            "n[1-999999999]",
            "n[1-9999]x[1-9999]",
        ] {
            assert!(expand(bad).is_err(), "{bad}");
        }
    }
}
