// SPDX-License-Identifier: GPL-2.0-only
//! Objects that tasks share: semaphores, mutexes, conditions, barriers, futexes, lists.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use schedlab_units::Time;
use schedlab_workload::ir::{MarkId, ObjectId, Op};

use super::{Cut, Flow, Player};
use crate::calls;
use crate::objects::{Queue, sleep_in, wake_some};
use crate::played::Noted;
use crate::shared::Shared;
use crate::task::lock;

impl Player {
    pub(super) fn park(&mut self) -> Flow {
        if !self.me.park(|| self.ended()) {
            return Err(Cut::Ended);
        }
        self.release = None;
        Ok(())
    }

    /// Sleeps in a queue that it has entered.
    pub(super) fn sleep_in<T>(
        &mut self,
        object: impl Fn(&Shared) -> &std::sync::Mutex<T>,
        queue: impl Fn(&mut T) -> &mut Queue,
    ) -> Flow {
        if !sleep_in(object(&self.shared), queue, &self.me, || self.ended()) {
            return Err(Cut::Ended);
        }
        self.release = None;
        Ok(())
    }

    pub(super) fn synchronise(&mut self, op: &Op) -> Flow {
        let shared = Arc::clone(&self.shared);
        let objects = &shared.objects;
        match *op {
            Op::SemWait(id) => {
                let mut semaphore = lock(&objects.semaphores[id.0 as usize]);
                if semaphore.count > 0 {
                    semaphore.count -= 1;
                    return Ok(());
                }
                semaphore.waiters.push_back(Arc::clone(&self.me));
                drop(semaphore);
                self.sleep_in(|s| &s.objects.semaphores[id.0 as usize], |s| &mut s.waiters)
            }
            Op::SemPost(id) => {
                let mut semaphore = lock(&objects.semaphores[id.0 as usize]);
                match semaphore.waiters.pop_front() {
                    Some(waiter) => {
                        drop(semaphore);
                        waiter.unpark();
                    }
                    None => semaphore.count += 1,
                }
                Ok(())
            }
            Op::SemTry { semaphore, on_zero } => {
                let mut semaphore = lock(&objects.semaphores[semaphore.0 as usize]);
                match semaphore.count.checked_sub(1) {
                    Some(left) => semaphore.count = left,
                    None => self.vm.jump(on_zero),
                }
                Ok(())
            }
            Op::Lock(id) => self.lock_mutex(id),
            Op::Unlock(id) => self.unlock_mutex(id),
            Op::CondWait { condition, mutex } => {
                let held = lock(&objects.mutexes[mutex.0 as usize]).owner == Some(self.me.index);
                lock(&objects.conditions[condition.0 as usize]).push_back(Arc::clone(&self.me));
                if held {
                    self.unlock_mutex(mutex)?;
                }
                self.sleep_in(|s| &s.objects.conditions[condition.0 as usize], |q| q)?;
                if held { self.lock_mutex(mutex) } else { Ok(()) }
            }
            Op::CondSignal(id) => {
                wake_some(&mut lock(&objects.conditions[id.0 as usize]), 1);
                Ok(())
            }
            Op::CondBroadcast(id) => {
                wake_some(&mut lock(&objects.conditions[id.0 as usize]), u32::MAX);
                Ok(())
            }
            Op::Barrier(id) => {
                let parties = shared.workload.objects.barriers[id.0 as usize].parties as usize;
                let mut arrived = lock(&objects.barriers[id.0 as usize]);
                if arrived.len() + 1 >= parties {
                    wake_some(&mut arrived, u32::MAX);
                    return Ok(());
                }
                arrived.push_back(Arc::clone(&self.me));
                drop(arrived);
                self.sleep_in(|s| &s.objects.barriers[id.0 as usize], |q| q)
            }
            Op::FutexArm(id) => {
                lock(&objects.futexes[id.0 as usize]).blocked = true;
                Ok(())
            }
            Op::FutexWait(id) => {
                let mut futex = lock(&objects.futexes[id.0 as usize]);
                if !futex.blocked {
                    return Ok(());
                }
                futex.waiters.push_back(Arc::clone(&self.me));
                drop(futex);
                self.sleep_in(|s| &s.objects.futexes[id.0 as usize], |f| &mut f.waiters)
            }
            Op::FutexWake { futex, n } => {
                wake_futex(&shared, futex, n);
                Ok(())
            }
            Op::ListJoin { list, wake, mark } => {
                lock(&objects.lists[list.0 as usize]).push_back(Arc::clone(&self.me));
                wake_futex(&shared, wake, 1);
                self.sleep_in(|s| &s.objects.lists[list.0 as usize], |q| q)?;
                if let Some(MarkId(mark)) = mark {
                    let now = calls::now();
                    let served = Time::from_ns(self.me.served_at.load(Ordering::Acquire));
                    let ns = now.saturating_since(served).as_ns();
                    self.note(now, Noted::Latency { mark, ns });
                }
                Ok(())
            }
            Op::ListServe(list) => {
                let mut taken = std::mem::take(&mut *lock(&objects.lists[list.0 as usize]));
                let now = calls::now().as_ns();
                while let Some(member) = taken.pop_back() {
                    member.served_at.store(now, Ordering::Release);
                    member.unpark();
                }
                Ok(())
            }
            _ => unreachable!("{op:?} does not synchronise"),
        }
    }

    pub(super) fn lock_mutex(&mut self, id: ObjectId) -> Flow {
        let mut mutex = lock(&self.shared.objects.mutexes[id.0 as usize]);
        match mutex.owner {
            None => mutex.owner = Some(self.me.index),
            Some(owner) if owner == self.me.index => {
                drop(mutex);
                return Err(self.mutex_fault("locks", id, "which it holds already"));
            }
            Some(_) => {
                mutex.waiters.push_back(Arc::clone(&self.me));
                drop(mutex);
                return self.sleep_in(|s| &s.objects.mutexes[id.0 as usize], |m| &mut m.waiters);
            }
        }
        Ok(())
    }

    /// Hands the mutex to the longest waiter.
    pub(super) fn unlock_mutex(&self, id: ObjectId) -> Flow {
        let mut mutex = lock(&self.shared.objects.mutexes[id.0 as usize]);
        if mutex.owner != Some(self.me.index) {
            drop(mutex);
            return Err(self.mutex_fault("unlocks", id, "which it does not hold"));
        }
        let heir = mutex.waiters.pop_front();
        mutex.owner = heir.as_ref().map(|heir| heir.index);
        drop(mutex);
        if let Some(heir) = heir {
            heir.unpark();
        }
        Ok(())
    }

    pub(super) fn mutex_fault(&self, does: &str, id: ObjectId, why: &str) -> Cut {
        let task = self.shared.name(self.me.template, self.me.instance);
        let mutex = &self.shared.workload.objects.mutexes[id.0 as usize].name;
        Cut::Fault(format!("task `{task}` {does} mutex `{mutex}`, {why}"))
    }
}

fn wake_futex(shared: &Shared, futex: ObjectId, n: u32) {
    let mut futex = lock(&shared.objects.futexes[futex.0 as usize]);
    futex.blocked = false;
    wake_some(&mut futex.waiters, n);
}
