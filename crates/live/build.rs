// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the relay for the kernel's BPF machine and makes its skeleton, with the feature `bpf`.

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-env-changed=SCHEDLAB_CLANG");
    #[cfg(feature = "bpf")]
    relay::build();
}

#[cfg(feature = "bpf")]
mod relay {
    use std::env;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    /// Where Debian's versioned packages and other distributions put clang, best first.
    const CLANGS: &[&str] = &["clang-19", "clang-20", "clang-18", "clang-17", "clang"];

    pub(crate) fn build() {
        let out =
            PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("relay.skel.rs");
        let clang = clang();
        let built = libbpf_cargo::SkeletonBuilder::new()
            .source("src/bpf/relay.bpf.c")
            .clang(&clang)
            .clang_args(["-Isrc/bpf", "-mcpu=v3", "-Wall", "-Werror"])
            .build_and_generate(&out);
        if let Err(error) = built {
            panic!("{clang} does not build the relay: {error:#}");
        }
    }

    fn clang() -> String {
        if let Ok(clang) = env::var("SCHEDLAB_CLANG") {
            return clang;
        }
        let works = |name: &&&str| {
            let version = Command::new(name).arg("--version").stdout(Stdio::null()).status();
            version.is_ok_and(|status| status.success())
        };
        CLANGS.iter().find(works).map_or_else(
            || {
                panic!(
                    "the feature `live` needs clang 17 or later with its BPF back end: on Debian \
                     `apt install clang-19 libelf-dev zlib1g-dev pkg-config`, elsewhere the packages \
                     clang, elfutils-libelf-devel and zlib-devel; SCHEDLAB_CLANG names another"
                )
            },
            |name| (*name).to_string(),
        )
    }
}
