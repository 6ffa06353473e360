// SPDX-License-Identifier: GPL-2.0-only
//! A policy by its spec, behind a pointer: which one it is, nobody needs to know from here on.

use schedlab_lab::spec::PolicySpec;
use schedlab_policies::with_policy;
use schedlab_policy_api::{Build, Policy, PolicyDef, PolicyVisitor, Topology};
use schedlab_units::Hz;

/// The policy and the rate at which it counts ticks.
pub(crate) fn build(spec: &PolicySpec, topo: &Topology, n_tasks: usize) -> (Box<dyn Policy>, Hz) {
    let builder = Builder { spec, topo, n_tasks };
    with_policy(spec.info().name, builder).expect("a parsed spec names a policy")
}

struct Builder<'a> {
    spec: &'a PolicySpec,
    topo: &'a Topology,
    n_tasks: usize,
}

impl PolicyVisitor for Builder<'_> {
    type Out = (Box<dyn Policy>, Hz);

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let tunables = self.spec.tunables::<P::Tunables>();
        let hz = P::time(&tunables).hz;
        let build = Build { topo: self.topo, hz, n_tasks: self.n_tasks };
        (Box::new(P::build(&tunables, build)), hz)
    }
}
