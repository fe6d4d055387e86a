//! Lists of nodes as Slurm writes them: `login,n[1-4,7],rack[01-02]-n[1-3]`.

/// A list that names more nodes than this is a mistake.
const MOST_NODES: usize = 1 << 20;

/// The nodes of a list, in its order; of ranges with leading zeros as wide as their first number.
///
/// # Errors
/// What is wrong with it.
pub fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut nodes = Vec::new();
    for element in elements(list)? {
        if element.is_empty() {
            return Err("it has an empty name".to_owned());
        }
        expand_element("", element, &mut nodes)?;
    }
    Ok(nodes)
}

/// The text between the commas outside of brackets.
fn elements(list: &str) -> Result<Vec<&str>, String> {
    let mut elements = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, letter) in list.char_indices() {
        match (letter, inside) {
            ('[', false) => inside = true,
            (']', true) => inside = false,
            ('[' | ']', _) => return Err(format!("a '{letter}' is not allowed in its place")),
            (',', false) => {
                elements.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err("a '[' is not closed".to_owned());
    }
    elements.push(&list[start..]);
    Ok(elements)
}

/// Adds the nodes of an element, whose first bracket stands for several, behind what was taken of it before.
fn expand_element(before: &str, element: &str, nodes: &mut Vec<String>) -> Result<(), String> {
    let Some((head, rest)) = element.split_once('[') else {
        if nodes.len() == MOST_NODES {
            return Err(format!("it names more than {MOST_NODES} nodes"));
        }
        nodes.push(format!("{before}{element}"));
        return Ok(());
    };
    let (numbers, tail) = rest.split_once(']').ok_or("a '[' is not closed")?;
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| text.parse::<u64>().ok()).flatten();
            number.ok_or_else(|| format!("'{range}' is neither a number nor a range of numbers"))
        };
        let (from, to) = (number(first)?, number(last)?);
        if from > to {
            return Err(format!("the range '{range}' ends before it begins"));
        }
        if to - from >= MOST_NODES as u64 {
            return Err(format!("it names more than {MOST_NODES} nodes"));
        }
        let width = first.len();
        for number in from..=to {
            expand_element(&format!("{before}{head}{number:0width$}"), tail, nodes)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn lists_name_their_nodes_in_order() {
        for (list, nodes) in [
            ("n1", "n1"),
            ("n[1-4,7]", "n1 n2 n3 n4 n7"),
            ("login,n[08-11]", "login n08 n09 n10 n11"),
            (
                "r[1-2]-n[01-02].lab,x",
                "r1-n01.lab r1-n02.lab r2-n01.lab r2-n02.lab x",
            ),
            ("n[3]", "n3"),
            ("n[08-10,2]", "n08 n09 n10 n2"),
            ("r[1-2]n[0-1]-ib", "r1n0-ib r1n1-ib r2n0-ib r2n1-ib"),
        ] {
            assert_eq!(expand(list).unwrap().join(" "), nodes, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for (list, words) in [
            ("", "empty"),
            ("a,,b", "empty"),
            ("a,", "empty"),
            ("n[1-9999]x[1-9999]", "more than"),
            ("n[1-", "not closed"),
            ("n[1[2]]", "'['"),
            ("n1]", "']'"),
            ("n[4-2]", "ends before"),
            ("n[a-b]", "'a-b'"),
            ("n[]", "''"),
            ("n[+1]", "'+1'"),
            ("n[0-99999999999]", "more than"),
            ("n[0-18446744073709551615]", "more than"),
        ] {
            expand(list).refused(&[words]);
        }
    }
}
