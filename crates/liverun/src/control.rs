// SPDX-License-Identifier: GPL-2.0-only
//! Answers to whoever asks a live run through its control socket.

use schedlab_lab::spec::PolicySpec;
use schedlab_live::control::{
    Answer, Ask, Control, StatusReply, TaskReply, TasksReply, TunableReply,
};
use schedlab_live::host::{Host, LiveObserver};
use schedlab_live::kernel::Counters;
use schedlab_live::transcript::Keeper;
use schedlab_policy_api::{Policy, TaskState, Tunable, TunableUnit, TunableValue};
use schedlab_units::Time;

/// Values of a policy that say which priority it shows to user space, best known first.
const SHOWN_PRIORITY: &[&str] = &["prio_shown", "pri", "prio"];

/// The control socket's side in the host's loop.
pub(crate) struct Answers<'a> {
    control: Option<&'a Control>,
    /// What does not change.
    status: StatusReply,
    /// Tunables with their present values.
    values: Vec<(&'static Tunable, TunableValue)>,
    /// Keeps the changes of tunables.
    keeper: Option<Keeper>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(
        control: Option<&'a Control>,
        spec: &PolicySpec,
        status: StatusReply,
        keeper: Option<Keeper>,
    ) -> Self {
        let values = spec.settings().iter().map(|set| (set.tunable, set.value)).collect();
        Self { control, status, values, keeper }
    }

    /// The tunables as they are now.
    pub(crate) fn values(&self) -> &[(&'static Tunable, TunableValue)] {
        &self.values
    }

    /// Answers one question, if there is one; never waits.
    pub(crate) fn answer<P: Policy, O: LiveObserver>(
        &mut self,
        host: &mut Host<P, O>,
        counters: &Counters,
    ) {
        let Some((ask, reply)) = self.control.and_then(Control::poll) else { return };
        reply.send(match ask {
            Ask::Status => Answer::Status(self.status(host, counters)),
            Ask::Tasks => Answer::Tasks(tasks(host)),
            Ask::Set { key, value } => self.set(host, &key, &value),
        });
    }

    fn status<P: Policy, O: LiveObserver>(
        &self,
        host: &Host<P, O>,
        counters: &Counters,
    ) -> StatusReply {
        let changeable = host.core().policy().live_tunables();
        let tunable = |(tunable, value): &(&'static Tunable, TunableValue)| TunableReply {
            name: tunable.name.to_string(),
            value: tunable.show(*value),
            unit: unit_name(tunable.unit).to_string(),
            range: tunable.range(),
            changeable: changeable.contains(&tunable.name),
            doc: tunable.doc.to_string(),
        };
        let named = counters.named();
        StatusReply {
            since_s: host.now().as_ns() / 1_000_000_000,
            counters: named.iter().map(|(name, n)| ((*name).to_string(), *n)).collect(),
            tunables: self.values.iter().map(tunable).collect(),
            ..self.status.clone()
        }
    }

    fn set<P: Policy, O: LiveObserver>(
        &mut self,
        host: &mut Host<P, O>,
        key: &str,
        text: &str,
    ) -> Answer {
        let Some((tunable, held)) = self.values.iter_mut().find(|(t, _)| t.name == key) else {
            return Answer::refused(format!("there is no tunable `{key}`"));
        };
        let value = match tunable.parse(text) {
            Ok(value) => value,
            Err(error) => return Answer::refused(error.to_string()),
        };
        if !host.set_tunable(tunable.name, value) {
            return Answer::refused(format!("`{key}` is fixed while the policy runs"));
        }
        *held = value;
        if let Some(keeper) = &self.keeper {
            keeper.tunable(tunable.name, value);
        }
        Answer::Done
    }
}

fn unit_name(unit: TunableUnit) -> &'static str {
    match unit {
        TunableUnit::Ns => "ns",
        TunableUnit::Flag => "flag",
        TunableUnit::Int => "int",
        TunableUnit::Choice(_) => "choice",
    }
}

fn tasks<P: Policy, O: LiveObserver>(host: &Host<P, O>) -> TasksReply {
    let (now, core) = (host.now(), host.core());
    let task = |(id, thread, run): (_, &schedlab_live::host::Thread, schedlab_units::Nanos)| {
        let facts = core.tasks().get(id);
        let values = core.inspect(now, id);
        let shown = SHOWN_PRIORITY
            .iter()
            .find_map(|name| values.iter().find(|(other, _)| other == name).map(|(_, n)| *n));
        let account = core.task_account(now, id);
        TaskReply {
            pid: thread.pid,
            comm: thread.comm.clone(),
            tgid: thread.tgid,
            nice: i32::from(thread.nice),
            class: facts.class.name().to_string(),
            state: state_name(facts.state).to_string(),
            cpu: facts.cpu.0,
            prio: shown,
            run_ns: run.as_ns(),
            wait_ns: account.wait.as_ns(),
            values: values.into_iter().map(|(name, n)| (name.to_string(), n)).collect(),
        }
    };
    TasksReply { now_ns: (now - Time::ZERO).as_ns(), tasks: host.threads().map(task).collect() }
}

fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Running => "running",
        TaskState::Runnable | TaskState::Waking => "waiting",
        _ => "sleeping",
    }
}
