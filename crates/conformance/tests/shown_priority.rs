// SPDX-License-Identifier: GPL-2.0-only
//! The priority that each policy's kernel shows to user space, as `schedlab top` prints it.

use schedlab_conformance::all_policies;
use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::with_policy;
use schedlab_policy_api::{Build, NoObserver, PolicyDef, PolicyVisitor, SchedClass, Topology};
use schedlab_units::{CpuId, Nice, Time};

struct Shown<'a> {
    policy: &'a PolicySpec,
    class: SchedClass,
    nice: i32,
}

impl PolicyVisitor for Shown<'_> {
    type Out = Option<i64>;

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let topo = Topology::flat(1).expect("legal");
        let tunables = self.policy.tunables::<P::Tunables>();
        let hz = P::time(&tunables).hz;
        let policy = P::build(&tunables, Build { topo: &topo, hz, n_tasks: 1 });
        let all = *topo.all();
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 1, check: true };
        let mut core = Core::new(policy, NoObserver, config);
        let rt_priority = if self.class.is_rt() { 50 } else { 0 };
        let nice = Nice::new(self.nice).expect("legal");
        let new = NewTask { nice, class: self.class, rt_priority, ..NewTask::normal(&all, 1) };
        let task = core.fork(Time::ZERO, CpuId(0), None, &new);
        core.wake_up_new(Time::ZERO, CpuId(0), task, None);
        let values = core.inspect(Time::ZERO, task);
        let of = |name: &str| values.iter().find(|(other, _)| *other == name).map(|(_, n)| *n);
        of("prio_shown").or_else(|| of("pri"))
    }
}

#[test]
fn new_task_shows_the_priority_of_its_policys_kernel() {
    for policy in all_policies() {
        let name = policy.info().name;
        let shown = |class, nice| {
            with_policy(name, Shown { policy: &policy, class, nice }).expect("a policy's name")
        };
        let normal = [0, 5, -20].map(|nice| shown(SchedClass::Normal, nice));
        let fifo = shown(SchedClass::Fifo, 0);
        let expected = match name {
            // They know no priorities.
            "fifo" | "rr" => ([None; 3], None),
            // 20 + nice.
            "cfs" | "eevdf" => ([Some(20), Some(25), Some(0)], Some(-51)),
            // Without any bonus, five worse.
            "o1" => ([Some(25), Some(30), Some(5)], Some(-51)),
            // Two slots below the best, with 816 of 1020 ms of sleep.
            "spa" => ([Some(22), Some(27), Some(2)], Some(-51)),
            // 20 less the quantum: 6, 4 and 11 ticks of 10 ms.
            "goodness" | "mq" => ([Some(14), Some(16), Some(9)], Some(14)),
            // The deadline of a task that starts the workload is 0, and so over.
            "bfs" => ([Some(1); 3], Some(-51)),
            other => panic!("`{other}` has no row here"),
        };
        assert_eq!((normal, fifo), expected, "{policy}");
    }
}
