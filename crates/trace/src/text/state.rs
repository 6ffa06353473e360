// SPDX-License-Identifier: GPL-2.0-only
//! The letters of `prev_state`, of every kernel since 2.6.3x, reduced to what matters here.

use schedlab_policy_api::RecordedState;

use super::scan::Fault;

/// Reads the state letters of a printk body, such as `S`, `D|K`, `R+`.
///
/// The letters of a bit changed over time, but every letter kept its meaning for us: `Z`, `X` and
/// `x` are the ways of being gone, whichever bit they had.
/// Source: spec formats-and-ecosystem §2.2.
pub(crate) fn printk(text: &[u8]) -> Result<RecordedState, Fault> {
    let (letters, preempted) = match text.strip_suffix(b"+") {
        Some(letters) => (letters, true),
        None => (text, false),
    };
    let state = reduce(letters, b"SDTtZXxKWPNI", |seen| {
        // Idle kernel threads of 4.2 to 4.13 sleep as `D|N`: uninterruptible, but not a wait for a
        // device and not part of the load. From 4.14 on that is the letter `I`.
        let idle = seen(b'N');
        match () {
            () if seen(b'Z') || seen(b'X') || seen(b'x') => RecordedState::Exited,
            () if seen(b'D') && !idle => RecordedState::Uninterruptible,
            () => RecordedState::Sleeping,
        }
    })?;
    // A task preempted between setting its state and leaving the CPU stays on the runqueue; old
    // kernels show both (`S+`).
    Ok(if preempted { RecordedState::Preempted } else { state })
}

/// Reads the state letters of a plugin body.
///
/// The plugin prints the letters of old kernels whatever the kernel is, so `x` is a parked thread
/// (bit 0x40), `W` an idle kernel thread (bit 0x80), `Z` and `X` are swapped, and there is no `+`.
/// Source: spec formats-and-ecosystem §2.3 (d).
pub(crate) fn plugin(text: &[u8]) -> Result<RecordedState, Fault> {
    reduce(text, b"SDTtZXxW", |seen| match () {
        () if seen(b'Z') || seen(b'X') => RecordedState::Exited,
        () if seen(b'D') => RecordedState::Uninterruptible,
        () => RecordedState::Sleeping,
    })
}

fn reduce(
    letters: &[u8],
    known: &[u8],
    meaning: impl Fn(&dyn Fn(u8) -> bool) -> RecordedState,
) -> Result<RecordedState, Fault> {
    if letters == b"R" {
        return Ok(RecordedState::Runnable);
    }
    for (i, letter) in letters.split(|b| *b == b'|').enumerate() {
        if letter.len() != 1 || !known.contains(&letter[0]) {
            let letter = String::from_utf8_lossy(letter);
            return Err(Fault::new(2 * i, format!("unknown task state `{letter}`")));
        }
    }
    Ok(meaning(&|letter| letters.contains(&letter)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use RecordedState::{Exited, Preempted, Runnable, Sleeping, Uninterruptible};

    #[test]
    fn printk_states_match_the_spec() {
        for (text, state) in [
            ("R", Runnable),
            ("R+", Preempted),
            ("S", Sleeping),
            ("S+", Preempted),
            ("D+", Preempted),
            ("D", Uninterruptible),
            ("D|K", Uninterruptible),
            ("D|W", Uninterruptible),
            ("D|N", Sleeping),
            ("I", Sleeping),
            ("T", Sleeping),
            ("t", Sleeping),
            ("P", Sleeping),
            ("S|K", Sleeping),
            ("Z", Exited),
            ("X", Exited),
            ("x", Exited),
        ] {
            assert_eq!(printk(text.as_bytes()), Ok(state), "{text}");
        }
    }

    #[test]
    fn plugin_states_match_the_spec() {
        for (text, state) in [
            ("R", Runnable),
            ("S", Sleeping),
            ("D", Uninterruptible),
            ("D|W", Uninterruptible),
            ("x", Sleeping),
            ("W", Sleeping),
            ("Z", Exited),
            ("X", Exited),
        ] {
            assert_eq!(plugin(text.as_bytes()), Ok(state), "{text}");
        }
        assert!(plugin(b"R+").is_err());
    }

    #[test]
    fn state_unknown_is_refused_with_its_place() {
        assert_eq!(printk(b"S|Q").expect_err("no such letter").at, 2);
        for text in ["", "+", "SS", "S|", "R|S", "0"] {
            assert!(printk(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
