// SPDX-License-Identifier: GPL-2.0-only
//! Event bodies as the kernel's own format strings print them: `key=value` text.
//!
//! Task names are not quoted and may hold anything, so keys are looked for from the right and a
//! place counts only when everything around it fits.
//! Source: spec formats-and-ecosystem §2.1, §2.4 rule 2.

use super::scan::{Fault, find, rfind_each, take_pid, take_signed, take_unsigned};
use super::state;
use schedlab_policy_api::RecordedState;

/// One side of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side<'a> {
    pub(crate) comm: &'a [u8],
    pub(crate) pid: u32,
    pub(crate) prio: i32,
}

/// A parsed `sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch<'a> {
    pub(crate) prev: Side<'a>,
    pub(crate) state: RecordedState,
    pub(crate) next: Side<'a>,
    /// What follows the known fields.
    pub(crate) rest: &'a [u8],
}

/// `prev_comm=… prev_pid=… prev_prio=… prev_state=… ==> next_comm=… next_pid=… next_prio=…`.
pub(crate) fn switch(body: &[u8]) -> Result<Switch<'_>, Fault> {
    let arrow = b" ==> next_comm=";
    let mut fault = None;
    for at in rfind_each(body, arrow) {
        let right = &body[at + arrow.len()..];
        for (comm, pid, rest) in named(right, b"", b" next_pid=") {
            let Some((prio, rest)) = prio(rest, b" next_prio=") else { continue };
            match prev(&body[..at]) {
                Ok((prev, state)) => {
                    return Ok(Switch { prev, state, next: Side { comm, pid, prio }, rest });
                }
                Err(why) => fault = fault.or(Some(why)),
            }
        }
    }
    Err(fault.unwrap_or_else(|| {
        // `trace-cmd report -R` prints bare fields; the bits of its numeric state mean different
        // things to different kernels.
        let raw = find(body, b" prev_state=").filter(|at| find(&body[*at..], b" ==> ").is_none());
        match raw.filter(|at| body.get(at + 12).is_some_and(u8::is_ascii_digit)) {
            Some(at) => Fault::new(at + 12, "the task state is a bare number")
                .hint("write the trace without raw fields: `trace-cmd report -t -N`"),
            None => Fault::new(
                0,
                "sched_switch without `prev_… ==> next_comm=… next_pid=… next_prio=…`",
            ),
        }
    }))
}

fn prev(left: &[u8]) -> Result<(Side<'_>, RecordedState), Fault> {
    let mut fault = None;
    for (comm, pid, rest) in named(left, b"prev_comm=", b" prev_pid=") {
        let Some((prio, rest)) = prio(rest, b" prev_prio=") else { continue };
        let Some(letters) = rest.strip_prefix(b" prev_state=") else { continue };
        match state::printk(letters) {
            Ok(state) => return Ok((Side { comm, pid, prio }, state)),
            Err(why) => fault = fault.or(Some(why.shifted(left.len() - letters.len()))),
        }
    }
    Err(fault.unwrap_or_else(|| {
        let expected = "`prev_comm=… prev_pid=… prev_prio=… prev_state=…`";
        Fault::new(0, format!("sched_switch without {expected} before `==>`"))
    }))
}

/// A wake-up: `comm=… pid=… prio=… [success=…] target_cpu=…`.
pub(crate) fn wakeup(body: &[u8]) -> Option<(Side<'_>, u64, &[u8])> {
    named(body, b"comm=", b" pid=").find_map(|(comm, pid, rest)| {
        let (prio, rest) = prio(rest, b" prio=")?;
        // Kernels before 4.3 have ` success=N` in between.
        let key = b" target_cpu=";
        let at = find(rest, key)?;
        let (cpu, rest) = take_unsigned(&rest[at + key.len()..])?;
        Some((Side { comm, pid, prio }, cpu, rest))
    })
}

/// `comm=… pid=… prio=… orig_cpu=N dest_cpu=N`: task, old CPU, new CPU.
pub(crate) fn migrate(body: &[u8]) -> Option<(Side<'_>, u64, u64, &[u8])> {
    named(body, b"comm=", b" pid=").find_map(|(comm, pid, rest)| {
        let (prio, rest) = prio(rest, b" prio=")?;
        let (orig, rest) = take_unsigned(rest.strip_prefix(b" orig_cpu=")?)?;
        let (dest, rest) = take_unsigned(rest.strip_prefix(b" dest_cpu=")?)?;
        Some((Side { comm, pid, prio }, orig, dest, rest))
    })
}

/// A named thread id.
type Who<'a> = (&'a [u8], u32);

/// `comm=… pid=… child_comm=… child_pid=…`: parent, child.
pub(crate) fn fork(body: &[u8]) -> Option<(Who<'_>, Who<'_>, &[u8])> {
    let key = b" child_comm=";
    rfind_each(body, key).find_map(|at| {
        let (parent_comm, parent, _) =
            named(&body[..at], b"comm=", b" pid=").find(|(_, _, rest)| rest.is_empty())?;
        let (child_comm, child, rest) =
            named(&body[at + key.len()..], b"", b" child_pid=").next()?;
        Some(((parent_comm, parent), (child_comm, child), rest))
    })
}

/// `filename=… pid=N old_pid=N`: the thread.
pub(crate) fn exec(body: &[u8]) -> Option<(u32, &[u8])> {
    named(body, b"filename=", b" pid=").find_map(|(_, pid, rest)| {
        let (_, rest) = take_pid(rest.strip_prefix(b" old_pid=")?)?;
        Some((pid, rest))
    })
}

/// `comm=… pid=… prio=… [group_dead=true|false]`.
pub(crate) fn exit(body: &[u8]) -> Option<(Side<'_>, &[u8])> {
    named(body, b"comm=", b" pid=").find_map(|(comm, pid, rest)| {
        let (prio, rest) = prio(rest, b" prio=")?;
        // Seen in 6.18, not in 6.12: whether it was the last thread of its process.
        let rest = match rest.strip_prefix(b" group_dead=") {
            Some(rest) => &rest[rest.iter().take_while(|b| b.is_ascii_lowercase()).count()..],
            None => rest,
        };
        Some((Side { comm, pid, prio }, rest))
    })
}

/// `comm=… pid=… runtime=N [ns] [vruntime=N [ns]]`: thread, ns.
pub(crate) fn stat_runtime(body: &[u8]) -> Option<(u32, u64, &[u8])> {
    named(body, b"comm=", b" pid=").find_map(|(_, pid, rest)| {
        let (runtime, rest) = take_unsigned(rest.strip_prefix(b" runtime=")?)?;
        let rest = rest.strip_prefix(b" [ns]")?;
        // Kernels before 6.12 have the virtual time as well.
        let rest = match rest.strip_prefix(b" vruntime=") {
            Some(rest) => take_unsigned(rest)?.1.strip_prefix(b" [ns]")?,
            None => rest,
        };
        Some((pid, runtime, rest))
    })
}

/// Ways to read `body` as `FIRST name KEY pid rest`, the name as long as possible first.
fn named<'a>(
    body: &'a [u8],
    first: &'a [u8],
    key: &'a [u8],
) -> impl Iterator<Item = (&'a [u8], u32, &'a [u8])> {
    let body = body.strip_prefix(first).unwrap_or(b"");
    rfind_each(body, key).filter_map(move |at| {
        let (pid, rest) = take_pid(&body[at + key.len()..])?;
        Some((&body[..at], pid, rest))
    })
}

fn prio<'a>(text: &'a [u8], key: &[u8]) -> Option<(i32, &'a [u8])> {
    let (prio, rest) = take_signed(text.strip_prefix(key)?)?;
    Some((i32::try_from(prio).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that try to look like something else; the last is cut inside a character.
    const ODD_NAMES: [&[u8]; 14] = [
        b"my prog: a",
        b"x-1",
        b"==>",
        b" ==> next_comm=",
        b"(bad)",
        b"kworker/u16:1",
        b"<...>",
        b"",
        b" pid=7",
        b" prev_pid=1",
        b"a next_pid=2",
        b" child_comm=",
        b"b [001] 1.0: x:",
        b"caf\xc3\xa9-\xe4\xb8\xad\xe6\x96",
    ];

    fn text(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn switch_keeps_every_name() {
        for prev in ODD_NAMES {
            for next in ODD_NAMES {
                let body = text(&[
                    b"prev_comm=",
                    prev,
                    b" prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=",
                    next,
                    b" next_pid=34 next_prio=-1",
                ]);
                let got = switch(&body).unwrap_or_else(|e| panic!("{body:?}: {e:?}"));
                assert_eq!(got.prev, Side { comm: prev, pid: 12, prio: 120 });
                assert_eq!(got.next, Side { comm: next, pid: 34, prio: -1 });
                assert_eq!((got.state, got.rest), (RecordedState::Sleeping, &b""[..]));
            }
        }
    }

    #[test]
    fn other_bodies_keep_every_name() {
        for comm in ODD_NAMES {
            let side = Side { comm, pid: 5, prio: 120 };
            let body = text(&[b"comm=", comm, b" pid=5 prio=120 target_cpu=003"]);
            assert_eq!(wakeup(&body), Some((side, 3, &b""[..])));
            let body = text(&[b"comm=", comm, b" pid=5 prio=120 success=1 target_cpu=003"]);
            assert_eq!(wakeup(&body), Some((side, 3, &b""[..])));
            let body = text(&[b"comm=", comm, b" pid=5 prio=120 orig_cpu=1 dest_cpu=2"]);
            assert_eq!(migrate(&body), Some((side, 1, 2, &b""[..])));
            let body = text(&[b"comm=", comm, b" pid=5 prio=120"]);
            assert_eq!(exit(&body), Some((side, &b""[..])));
            let body = text(&[b"comm=", comm, b" pid=5 runtime=77 [ns]"]);
            assert_eq!(stat_runtime(&body), Some((5, 77, &b""[..])));
            let body = text(&[b"filename=/bin/", comm, b" pid=5 old_pid=6"]);
            assert_eq!(exec(&body), Some((5, &b""[..])));
            for child in ODD_NAMES {
                let body = text(&[b"comm=", comm, b" pid=5 child_comm=", child, b" child_pid=6"]);
                assert_eq!(fork(&body), Some(((comm, 5), (child, 6), &b""[..])));
            }
        }
    }

    #[test]
    fn old_kernels_extra_fields_are_known() {
        let body = b"comm=a pid=5 runtime=77 [ns] vruntime=99 [ns]";
        assert_eq!(stat_runtime(body), Some((5, 77, &b""[..])));
    }

    #[test]
    fn trailing_fields_are_handed_back() {
        let body = b"prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 \
                     next_prio=120 expected_load=5";
        assert_eq!(switch(body).map(|s| s.rest), Ok(&b" expected_load=5"[..]));
        let body = b"comm=a pid=5 prio=120 group_dead=true more=1";
        assert_eq!(exit(body).map(|t| t.1), Some(&b" more=1"[..]));
    }

    #[test]
    fn switch_broken_says_where() {
        let fault = switch(
            b"prev_comm=a prev_pid=1 prev_prio=120 prev_state=Q ==> next_comm=b next_pid=2 \
              next_prio=120",
        )
        .expect_err("no such state");
        assert_eq!((fault.at, fault.message.as_str()), (48, "unknown task state `Q`"));
        for body in ["", "prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_p"]
        {
            assert!(switch(body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
