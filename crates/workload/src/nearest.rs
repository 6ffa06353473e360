// SPDX-License-Identifier: GPL-2.0-only
//! The nearest legal spelling of a mistyped name.

/// Longest name that is compared; mistypings are short.
const MAX_LEN: usize = 64;

/// The candidates nearest to `name`, the best first, at most three; one letter may differ, or a
/// third of the letters of the longer of the two.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.chars().count() > MAX_LEN {
        return Vec::new();
    }
    let mut ranked: Vec<(usize, &str)> = candidates
        .filter(|candidate| candidate.chars().count() <= MAX_LEN)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(d, candidate)| {
            let longer = name.chars().count().max(candidate.chars().count());
            *d <= (longer / 3).max(1)
        })
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.truncate(3);
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// `; did you mean X?` for the nearest candidate, or nothing.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, candidates).first() {
        Some(best) => format!("; did you mean `{best}`?"),
        None => String::new(),
    }
}

/// Number of letters to add, drop, change or swap with a neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, d) in [("", "abc", 3), ("abc", "abc", 0), ("abdc", "abcd", 1), ("cat", "bad", 2)]
        {
            assert_eq!(distance(a, b), d, "{a} {b}");
            assert_eq!(distance(b, a), d, "{b} {a}");
        }
    }

    #[test]
    fn nearest_prefers_the_closest_and_drops_the_far() {
        let names = ["hogs", "nice-hogs", "hackbench", "schbench"];
        assert_eq!(nearest("hog", names.into_iter()), ["hogs"]);
        assert_eq!(nearest("hackbecnh", names.into_iter()), ["hackbench"]);
        assert_eq!(nearest("zzzzzz", names.into_iter()), [""; 0]);
        assert_eq!(nearest("frag", ["ftrace"].into_iter()), [""; 0]);
    }
}
