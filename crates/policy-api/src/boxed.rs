// SPDX-License-Identifier: GPL-2.0-only
//! A policy behind a pointer, for hosts that need not know which one it is.

use alloc::boxed::Box;
use alloc::string::String;

use schedlab_units::{CpuId, Nanos, TaskId};

use crate::{
    Change, Company, Ctx, Dequeue, Enqueue, Idle, Inspect, LiveHabits, Locking, Policy, PutPrev,
    TunableValue, View, Wake,
};

/// Hands every hook on; one that were missing here would silently be the default.
macro_rules! hand_on {
    ($(fn $name:ident(& $($mutable:ident)? , $($arg:ident : $kind:ty),* $(,)?) $(-> $out:ty)? ;)*) => {
        $(hand_on!(@one $name, [$($mutable)?], [$($arg: $kind),*], [$($out)?]);)*
    };
    (@one $name:ident, [mut], [$($arg:ident : $kind:ty),*], [$($out:ty)?]) => {
        #[inline]
        fn $name(&mut self, $($arg: $kind),*) $(-> $out)? {
            (**self).$name($($arg),*)
        }
    };
    (@one $name:ident, [], [$($arg:ident : $kind:ty),*], [$($out:ty)?]) => {
        #[inline]
        fn $name(&self, $($arg: $kind),*) $(-> $out)? {
            (**self).$name($($arg),*)
        }
    };
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    hand_on! {
        fn enqueue(&mut, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue);
        fn dequeue(&mut, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue);
        fn pick_next(&mut, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId>;
        fn set_next(&mut, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId);
        fn put_prev(&mut, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: PutPrev);
        fn push_aside(&mut, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId);
        fn finish_task_switch(&mut, cx: &mut Ctx<'_>, cpu: CpuId, prev: Option<TaskId>);
        fn select_cpu(&mut, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId;
        fn ttwu_queue(&, cx: &Ctx<'_>, task: TaskId, cpu: CpuId) -> bool;
        fn wakeup_preempt(&mut, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake);
        fn tick(&mut, cx: &mut Ctx<'_>, cpu: CpuId);
        fn yield_task(&mut, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId);
        fn task_fork(&mut, cx: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>);
        fn task_exit(&mut, cx: &mut Ctx<'_>, task: TaskId, parent: Option<TaskId>);
        fn task_changing(&mut, cx: &mut Ctx<'_>, task: TaskId, what: Change);
        fn task_changed(&mut, cx: &mut Ctx<'_>, task: TaskId, what: Change);
        fn prio_changed(&mut, cx: &mut Ctx<'_>, task: TaskId, what: Change);
        fn requeues_on_change(&, what: Change) -> bool;
        fn balance(&mut, cx: &mut Ctx<'_>, cpu: CpuId, idle: Idle);
        fn timer(&mut, cx: &mut Ctx<'_>, timer: u32);
        fn live_habits(&,) -> LiveHabits;
        fn live_tunables(&,) -> &'static [&'static str];
        fn set_tunable(&mut, name: &str, value: TunableValue);
        fn wait_bound(&, company: Company<'_>) -> Option<Nanos>;
        fn locking(&,) -> Locking;
        fn inspect(&, view: &View<'_>, task: TaskId, out: &mut Inspect);
        fn stats(&, out: &mut Inspect);
        fn invariants(&, view: &View<'_>) -> Result<(), String>;
    }
}
