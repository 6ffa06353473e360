// SPDX-License-Identifier: GPL-2.0-only
//! The objects that tasks share.
//!
//! Pipes and sockets are the kernel's. Semaphores, mutexes, conditions, barriers, futex words and
//! lists keep the simulator's rules (first come, first served; a mutex is handed over) in user
//! space; whoever sleeps there sleeps in a futex of its own and is woken by a futex call.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use schedlab_units::Time;
use schedlab_workload::Period;
use schedlab_workload::ir::{Objects as Specs, PipeSpec};

use crate::task::{Task, lock};

/// Tasks that sleep, the first to be served first.
pub(crate) type Queue = VecDeque<Arc<Task>>;

/// Both ends of a pipe or socket.
pub(crate) struct Pipe {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
}

#[derive(Default)]
pub(crate) struct Semaphore {
    pub(crate) count: u64,
    pub(crate) waiters: Queue,
}

#[derive(Default)]
pub(crate) struct Lock {
    /// Index of the owner.
    pub(crate) owner: Option<usize>,
    pub(crate) waiters: Queue,
}

#[derive(Default)]
pub(crate) struct Futex {
    pub(crate) blocked: bool,
    pub(crate) waiters: Queue,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Timer {
    pub(crate) next: Option<Time>,
    /// Set for good by the first absolute use.
    pub(crate) absolute: bool,
}

/// All objects of a play.
pub(crate) struct Objects {
    pub(crate) pipes: Vec<Pipe>,
    pub(crate) semaphores: Vec<Mutex<Semaphore>>,
    pub(crate) mutexes: Vec<Mutex<Lock>>,
    pub(crate) conditions: Vec<Mutex<Queue>>,
    pub(crate) barriers: Vec<Mutex<Queue>>,
    pub(crate) futexes: Vec<Mutex<Futex>>,
    pub(crate) lists: Vec<Mutex<Queue>>,
    pub(crate) timers: Vec<Mutex<Timer>>,
    pub(crate) periods: Vec<Mutex<Period>>,
}

fn all<T: Default>(n: usize) -> Vec<Mutex<T>> {
    (0..n).map(|_| Mutex::default()).collect()
}

impl Objects {
    /// Makes them; what could not be made as asked for is told in `remarks`.
    ///
    /// # Errors
    /// The name of the pipe that the kernel refuses, and why.
    pub(crate) fn new(
        specs: &Specs,
        remarks: &mut Vec<String>,
    ) -> Result<Self, (String, io::Error)> {
        let mut pipes = Vec::with_capacity(specs.pipes.len());
        let mut resized = Vec::new();
        for spec in &specs.pipes {
            let (pipe, size) = make_pipe(spec).map_err(|error| (spec.name.clone(), error))?;
            if size != spec.capacity {
                resized.push((spec, size));
            }
            pipes.push(pipe);
        }
        if let Some((spec, size)) = resized.first() {
            let more = match resized.len() {
                1 => String::new(),
                n => format!(" (and {} other pipes likewise)", n - 1),
            };
            remarks.push(format!(
                "pipe `{}` holds {size} bytes here instead of {}: the kernel knows powers of two \
                 of pages only{more}",
                spec.name, spec.capacity
            ));
        }
        let semaphore = |initial| Mutex::new(Semaphore { count: initial, waiters: Queue::new() });
        Ok(Self {
            pipes,
            semaphores: specs.semaphores.iter().map(|spec| semaphore(spec.initial)).collect(),
            mutexes: all(specs.mutexes.len()),
            conditions: all(specs.conditions.len()),
            barriers: all(specs.barriers.len()),
            futexes: all(specs.futexes.len()),
            lists: all(specs.lists.len()),
            timers: all(specs.timers.len()),
            periods: all(specs.periods.len()),
        })
    }
}

/// A pipe, or a socket pair for a spec that charges writes; and how many bytes it holds.
fn make_pipe(spec: &PipeSpec) -> io::Result<(Pipe, u64)> {
    if spec.charge_per_write.is_some() {
        let flags = SocketFlags::CLOEXEC;
        let (read, write) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The kernel doubles what it is asked for, and charges writes itself.
        let half = usize::try_from(spec.capacity / 2).unwrap_or(usize::MAX).min(1 << 30);
        sockopt::set_socket_send_buffer_size(&write, half)?;
        let size = sockopt::socket_send_buffer_size(&write)? as u64;
        return Ok((Pipe { read, write }, size));
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let wanted = usize::try_from(spec.capacity).unwrap_or(usize::MAX).min(1 << 30);
    let size = fcntl_setpipe_size(&write, wanted)? as u64;
    Ok((Pipe { read, write }, size))
}

/// Takes `task` out of a queue it no longer waits in.
pub(crate) fn leave(queue: &mut Queue, task: &Arc<Task>) {
    queue.retain(|other| !Arc::ptr_eq(other, task));
}

/// Wakes up to `n` tasks of a queue.
pub(crate) fn wake_some(queue: &mut Queue, n: u32) {
    for _ in 0..n {
        let Some(task) = queue.pop_front() else { return };
        task.unpark();
    }
}

/// Sleeps in `queue`, already entered, until woken; false when `ended` came first.
pub(crate) fn sleep_in<T>(
    object: &Mutex<T>,
    queue: impl Fn(&mut T) -> &mut Queue,
    task: &Arc<Task>,
    ended: impl Fn() -> bool,
) -> bool {
    let woken = task.park(ended);
    if !woken {
        leave(queue(&mut lock(object)), task);
    }
    woken
}
