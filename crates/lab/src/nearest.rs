// SPDX-License-Identifier: GPL-2.0-only
//! "Did you mean": names near to a misspelt one.

/// Of `names` those that are near enough to `wrong` to be meant, the nearest first, at most three.
///
/// Near is: one contains the other, or at most a third of the letters differ.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // Nobody types longer names; without a bound a long line would take quadratic time.
    const LONGEST: usize = 64;
    if wrong.is_empty() || wrong.len() > LONGEST {
        return Vec::new();
    }
    let wrong = wrong.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let edits = edits(&wrong, &name.to_lowercase());
            let close = edits * 3 <= wrong.chars().count().max(3);
            let part = wrong.len() > 1 && (name.contains(&wrong) || wrong.contains(name));
            (close || part && !name.is_empty()).then_some((edits, name))
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// `nearest` as a hint, or all names when none is near.
pub(crate) fn hint(wrong: &str, names: &[&str]) -> String {
    let near = nearest(wrong, names.iter().copied());
    if near.is_empty() {
        return format!("there are: {}", names.join(", "));
    }
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", quoted.join(" or "))
}

/// What a message repeats of a text that may be of any length.
pub(crate) fn shorten(text: &str) -> String {
    const MAX: usize = 40;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Number of insertions, deletions, substitutions and swaps of neighbours from `a` to `b`.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substitution = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substitution.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_count_swaps_once() {
        for (a, b, n) in [("", "", 0), ("eevdf", "eevdf", 0), ("evedf", "eevdf", 1), ("o1", "o", 1)]
        {
            assert_eq!(edits(a, b), n, "{a} {b}");
        }
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn nearest_misspelt_name_is_found() {
        let names = ["bfs", "cfs", "eevdf", "fifo", "goodness"];
        assert_eq!(nearest("evdf", names), ["eevdf"]);
        assert_eq!(nearest("Goodnes", names), ["goodness"]);
        assert_eq!(nearest("good", names), ["goodness"]);
        assert_eq!(nearest("zfs", names), ["bfs", "cfs"]);
        assert_eq!(nearest("deadline", names), [""; 0]);
        assert_eq!(nearest(&"x".repeat(1 << 20), names), [""; 0]);
    }
}
