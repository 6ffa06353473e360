// SPDX-License-Identifier: GPL-2.0-only
//! Event bodies in libtraceevent's plugin form: `name:pid [prio] STATES ==> name:pid [prio]`.
//!
//! `trace-cmd report` prints switches and wake-ups this way, and so does `perf script` where the
//! plugins are installed.
//! Source: spec formats-and-ecosystem §2.3 (d), §2.4 rule 3.

use super::printk::{Side, Switch};
use super::scan::{Fault, find, rfind_each, take_pid, take_signed, take_unsigned};
use super::state;

/// `name:pid [prio] STATES ==> name:pid [prio]`.
pub(crate) fn switch(body: &[u8]) -> Result<Switch<'_>, Fault> {
    let arrow = b" ==> ";
    let mut fault = None;
    for at in rfind_each(body, arrow) {
        let Some((next, rest)) = sides(&body[at + arrow.len()..]).next() else { continue };
        for (prev, letters) in sides(&body[..at]) {
            let Some(letters) = letters.strip_prefix(b" ") else { continue };
            match state::plugin(letters) {
                Ok(state) => return Ok(Switch { prev, state, next, rest }),
                Err(why) => fault = fault.or(Some(why.shifted(at - letters.len()))),
            }
        }
    }
    Err(fault.unwrap_or_else(|| {
        Fault::new(
            0,
            "sched_switch is neither `prev_comm=… ==> next_comm=…` nor `name:pid [prio] …`",
        )
    }))
}

/// `name:pid [prio] [success=N] CPU:NNN`.
pub(crate) fn wakeup(body: &[u8]) -> Option<(Side<'_>, u64, &[u8])> {
    sides(body).find_map(|(side, rest)| {
        let key = b" CPU:";
        let at = find(rest, key)?;
        let (cpu, rest) = take_unsigned(&rest[at + key.len()..])?;
        Some((side, cpu, rest))
    })
}

/// Ways to read `text` as `name:pid [prio] rest`, the longest name first.
fn sides(text: &[u8]) -> impl Iterator<Item = (Side<'_>, &[u8])> {
    rfind_each(text, b":").filter_map(|at| {
        let (pid, rest) = take_pid(&text[at + 1..])?;
        let (prio, rest) = take_signed(rest.strip_prefix(b" [")?)?;
        let rest = rest.strip_prefix(b"]")?;
        Some((Side { comm: &text[..at], pid, prio: i32::try_from(prio).ok()? }, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy_api::RecordedState;

    const ODD_NAMES: [&[u8]; 10] = [
        b"my prog: a",
        b"x-1",
        b"==>",
        b" ==> ",
        b"(bad)",
        b"kworker/u16:1",
        b"<...>",
        b"",
        b"a:1 [2] S ==> b",
        b"caf\xc3\xa9-\xe4\xb8\xad\xe6\x96",
    ];

    #[test]
    fn switch_keeps_every_name() {
        for prev in ODD_NAMES {
            for next in ODD_NAMES {
                let body = [prev, b":12 [120] D|W ==> ", next, b":34 [-1]"].concat();
                // A name that holds a complete other reading cannot be told from it.
                if next == b"a:1 [2] S ==> b" {
                    continue;
                }
                let got = switch(&body).unwrap_or_else(|e| panic!("{body:?}: {e:?}"));
                assert_eq!(got.prev, Side { comm: prev, pid: 12, prio: 120 }, "{body:?}");
                assert_eq!(got.next, Side { comm: next, pid: 34, prio: -1 }, "{body:?}");
                assert_eq!(got.state, RecordedState::Uninterruptible);
            }
        }
    }

    #[test]
    fn wakeup_keeps_every_name_with_and_without_success() {
        for comm in ODD_NAMES {
            let side = Side { comm, pid: 5, prio: 120 };
            for middle in [&b""[..], b" success=1"] {
                let body = [comm, b":5 [120]", middle, b" CPU:003"].concat();
                assert_eq!(wakeup(&body), Some((side, 3, &b""[..])));
            }
        }
    }

    #[test]
    fn switch_broken_says_where() {
        assert_eq!(switch(b"a:1 [120] Q ==> b:2 [120]").expect_err("no such state").at, 10);
        assert!(switch(b"a:1 [120] S ==> ").is_err());
    }
}
