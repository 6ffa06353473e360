// SPDX-License-Identifier: GPL-2.0-only
//! Names of threads in whose context events were hit, which payloads do not hold.

use std::collections::BTreeMap;

/// Longest name the kernel keeps (`TASK_COMM_LEN` without the NUL).
const COMM_MAX: usize = 15;
/// Thread ids are lower on every kernel (`PID_MAX_LIMIT`).
const PID_MAX: u32 = 1 << 22;

/// A name as the kernel would keep it.
pub(crate) fn comm(name: &[u8]) -> &[u8] {
    &name[..name.len().min(COMM_MAX)]
}

/// The latest name of each thread; memory is bounded, whatever a file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    names: BTreeMap<u32, Box<[u8]>>,
}

impl Names {
    /// Thread `pid` is called `name` from now on; an id that cannot be is passed over.
    pub(crate) fn set(&mut self, pid: u32, name: &[u8]) {
        if pid < PID_MAX {
            self.names.insert(pid, comm(name).into());
        }
    }
    /// Thread `child` has the name of `parent` from now on, where that is known.
    pub(crate) fn fork(&mut self, child: u32, parent: u32) {
        if let Some(name) = self.names.get(&parent).cloned() {
            self.set(child, &name);
        }
    }
    /// The name of thread `pid`.
    pub(crate) fn get(&self, pid: u32) -> Option<&[u8]> {
        self.names.get(&pid).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_inherited() {
        let mut names = Names::default();
        names.set(5, b"a name longer than fifteen bytes");
        names.fork(6, 5);
        names.fork(7, 99);
        assert_eq!(names.get(6), Some(&b"a name longer t"[..]));
        assert_eq!(names.get(7), None);
        names.set(u32::MAX, b"x");
        assert_eq!(names.get(u32::MAX), None);
    }
}
