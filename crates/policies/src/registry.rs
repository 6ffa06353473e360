// SPDX-License-Identifier: GPL-2.0-only
//! All policies by name. A new policy is one line in the list below.

use schedlab_policy_api::{PolicyDef, PolicyInfo, PolicyVisitor};

macro_rules! registry {
    ($($name:literal => $policy:ty),+ $(,)?) => {
        /// Names of all policies in alphabetical order.
        pub const NAMES: &[&str] = &[$($name),+];

        /// What every policy says about itself, in the order of [`NAMES`].
        pub fn infos() -> impl Iterator<Item = &'static PolicyInfo> {
            [$(&<$policy as PolicyDef>::INFO),+].into_iter()
        }

        /// Calls `visitor` with the policy called `name`; `None` if there is none.
        pub fn with_policy<V: PolicyVisitor>(name: &str, visitor: V) -> Option<V::Out> {
            match name {
                $($name => Some(visitor.visit::<$policy>()),)+
                _ => None,
            }
        }
    };
}

registry! {
    "bfs" => crate::Bfs,
    "cfs" => crate::Cfs,
    "eevdf" => crate::Eevdf,
    "fifo" => crate::Fifo,
    "goodness" => crate::Goodness,
    "mq" => crate::mq::Mq,
    "o1" => crate::O1,
    "rr" => crate::Rr,
    "spa" => crate::Spa,
}

/// Other names of variants: the EEVDF patches of March 2023 were changes of the code of CFS, and are
/// variants of it here, but people ask for them as EEVDF.
pub const ALIASES: &[(&str, &str)] = &[
    ("eevdf@v1", "cfs@eevdf-v1"),
    ("eevdf@v1-fs", "cfs@eevdf-v1-fs"),
    ("eevdf@v1.1", "cfs@eevdf-v1.1"),
];
