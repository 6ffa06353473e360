// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-o1 §9 about 2.6.17 to 2.6.22, and what the variant does with sleeps and runs.

use schedlab_policy_api::SchedClass;
use schedlab_units::{Hz, Nice};

use super::rig::{CPU0, MS, Rig, knobs, nice, tunables};
use super::values::data;
use crate::linux_2_6::sleep_avg::Activated;
use crate::o1::linux_2_6_17::{charge, interactive_sleep, recalc_task_prio};
use crate::o1::prio::{delta, timeslice};
use crate::o1::task::TaskData;
use crate::o1::tunables::Knobs;

fn prio(n: i32) -> u8 {
    nice(n).prio().0
}

/// A task with this sleep average in ms after `sleep_ms` more, woken as `activated` says.
fn slept(sleep_avg_ms: u64, sleep_ms: u64, activated: Activated) -> TaskData {
    let mut task = data(Nice::ZERO);
    (task.avg.sleep_avg, task.avg.activated) = (sleep_avg_ms * MS, activated);
    recalc_task_prio(&mut task, sleep_ms * MS, true, false, &knobs("2.6.17"));
    task
}

#[test]
fn vectors_4_delta() {
    let knobs = knobs("2.6.17");
    let rows = [(-20, -3), (-19, -3), (-15, -2), (-10, -1), (-7, 0), (-3, 1), (0, 2), (19, 6)];
    for (n, points) in rows {
        assert_eq!(delta(prio(n), &knobs), points, "nice {n}");
    }
}

#[test]
fn vectors_43_44_timeslice_and_interactive_sleep() {
    let knobs = knobs("2.6.17");
    let slices =
        [(-20, 800), (-10, 600), (-1, 420), (0, 100), (1, 95), (10, 50), (15, 25), (19, 5)];
    for (n, ticks) in slices {
        assert_eq!(timeslice(prio(n), &knobs), ticks, "nice {n}");
    }
    for (n, ms) in [(-20, 299), (-10, 499), (0, 799), (10, 999), (19, 1199)] {
        assert_eq!(interactive_sleep(prio(n), &knobs), ms * MS, "nice {n}");
    }
}

#[test]
fn slices_at_other_rates_are_never_zero() {
    let at = |hz| Knobs::new(&tunables("2.6.17", ""), 1, Hz::new(hz));
    assert_eq!([timeslice(100, &at(100)), timeslice(120, &at(100))], [80, 10]);
    assert_eq!(timeslice(139, &at(100)), 1);
}

#[test]
fn a_long_sleep_lifts_to_the_threshold_and_its_wait_earns_nothing() {
    let task = slept(0, 800, Activated::ByInterrupt);
    assert_eq!((task.avg.sleep_avg, task.prio), (799 * MS, 118));
    assert!(!task.avg.has_waited());
    // Above the threshold already, or a shorter sleep: all of it counts, once.
    assert_eq!(slept(900, 800, Activated::ByTask).avg.sleep_avg, 1_000 * MS);
    assert_eq!(slept(0, 799, Activated::ByTask).avg.sleep_avg, 799 * MS);
    assert_eq!(slept(100, 10, Activated::ByTask).avg.sleep_avg, 110 * MS);
}

#[test]
fn an_uninterruptible_sleep_lifts_to_the_threshold_at_most() {
    let after = |before, ms| slept(before, ms, Activated::Uninterruptible).avg.sleep_avg;
    assert_eq!(after(700, 50), 750 * MS);
    assert_eq!(after(700, 99), 799 * MS);
    assert_eq!(after(700, 200), 799 * MS);
    assert_eq!(after(850, 50), 850 * MS);
}

#[test]
fn a_kernel_thread_is_not_held_at_the_threshold_and_batch_earns_nothing() {
    let knobs = knobs("2.6.17");
    let (mut thread, mut batch) = (data(Nice::ZERO), data(Nice::ZERO));
    recalc_task_prio(&mut thread, 900 * MS, false, false, &knobs);
    recalc_task_prio(&mut batch, 900 * MS, true, true, &knobs);
    assert_eq!((thread.avg.sleep_avg, batch.avg.sleep_avg), (900 * MS, 0));
}

#[test]
fn running_costs_every_task_by_its_bonus() {
    let knobs = knobs("2.6.17");
    let left = |before| {
        let mut task = data(Nice::ZERO);
        task.avg.sleep_avg = before * MS;
        charge(&mut task, 100 * MS, &knobs);
        task.avg.sleep_avg
    };
    assert_eq!(left(1_000), 990 * MS);
    assert_eq!(left(500), 480 * MS);
    assert_eq!(left(150), 50 * MS);
    assert_eq!(left(50), 0);
}

#[test]
fn a_batch_task_stays_without_bonus_on_the_machine() {
    for (class, sleep_avg) in [(SchedClass::Normal, 500 * MS as i64), (SchedClass::Batch, 0)] {
        let mut rig = Rig::up("2.6.17");
        let mut new = rig.process();
        new.class = class;
        let task = rig.start(&new, 0);
        rig.settle();
        rig.block(CPU0);
        rig.ticks(500);
        rig.wake(task);
        assert_eq!(rig.figure(task, "sleep_avg"), sleep_avg, "{class:?}");
    }
}
