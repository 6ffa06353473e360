// SPDX-License-Identifier: GPL-2.0-only
//! Builds the guest's kernel: the source's smallest configuration and our fragment over it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::args::KernelArgs;
use crate::exit::{FAILED, Failure, HOST, INPUT, USAGE, tell};
use crate::follow::last_lines;
use crate::image::{self, Image};
use crate::kconfig;
use crate::locate;
use crate::tools::{self, Missing};

/// Name of the ELF kernel among the results.
pub(crate) const KERNEL: &str = "vmlinux";
/// Where Debian's package puts the source.
pub(crate) const SOURCE: &str = "/usr/src/linux-source-6.12.tar.xz";

/// What the guest's kernel has beyond `make tinyconfig`.
const FRAGMENT: &str = include_str!("../../vm/schedlab.config");

/// Programs the build needs, and their packages.
const PROGRAMS: [Missing; 8] = [
    Missing { what: "make", package: "build-essential" },
    Missing { what: "gcc", package: "build-essential" },
    Missing { what: "flex", package: "flex" },
    Missing { what: "bison", package: "bison" },
    Missing { what: "bc", package: "bc" },
    Missing { what: "pahole", package: "dwarves" },
    Missing { what: "tar", package: "tar" },
    Missing { what: "xz", package: "xz-utils" },
];
/// A header of the library that the build's own tools use.
const LIBELF: (&str, Missing) =
    ("/usr/include/gelf.h", Missing { what: "gelf.h of libelf", package: "libelf-dev" });

/// So that neither the builder nor the hour is in the kernel.
const STAMPS: [(&str, &str); 4] = [
    ("KBUILD_BUILD_USER", "schedlab"),
    ("KBUILD_BUILD_HOST", "build"),
    ("KBUILD_BUILD_TIMESTAMP", "2026-11-30"),
    ("KBUILD_BUILD_VERSION", "1"),
];

/// Lines of the build's log that a failure shows.
const LOG_LINES: usize = 40;

/// Builds the kernel; always 0.
///
/// # Errors
/// What the host lacks, all at once; a configuration that the source does not take; a build that
/// fails, with the end of its log.
pub(crate) fn kernel(args: &KernelArgs) -> Result<u8, Failure> {
    require_all(args)?;
    let out = args.out.clone().unwrap_or_else(locate::cache);
    let out = fs::create_dir_all(&out).and_then(|()| out.canonicalize()).map_err(|error| {
        Failure::new(USAGE, format!("cannot make the directory {}: {error}", out.display()))
    })?;
    let build = Build { tree: out.join("build"), log: out.join("build.log"), jobs: args.jobs };
    build.unpack(&args.source)?;
    build.configure()?;
    tell("building, which takes about 12 minutes of CPU time");
    build.make(&["bzImage"])?;
    keep(&build.tree, &out)?;
    fs::remove_dir_all(&build.tree).map_err(|error| cannot("remove", &build.tree, &error))?;
    tell(format_args!("built {}", out.join(KERNEL).display()));
    Ok(0)
}

fn require_all(args: &KernelArgs) -> Result<(), Failure> {
    let mut missing: Vec<Missing> =
        PROGRAMS.into_iter().filter(|tool| tools::program(tool.what).is_none()).collect();
    if !Path::new(LIBELF.0).exists() {
        missing.push(LIBELF.1);
    }
    if args.source == Path::new(SOURCE) && !args.source.is_file() {
        missing.push(Missing { what: SOURCE, package: "linux-source-6.12" });
    }
    if missing.is_empty() { Ok(()) } else { Err(tools::lacks(&missing)) }
}

/// A tree of the source in work.
struct Build {
    tree: PathBuf,
    log: PathBuf,
    jobs: usize,
}

impl Build {
    /// Unpacks the source anew.
    fn unpack(&self, source: &Path) -> Result<(), Failure> {
        if self.tree.exists() {
            fs::remove_dir_all(&self.tree).map_err(|error| cannot("remove", &self.tree, &error))?;
        }
        fs::create_dir_all(&self.tree).map_err(|error| cannot("make", &self.tree, &error))?;
        File::create(&self.log).map_err(|error| cannot("write", &self.log, &error))?;
        if !source.is_file() {
            return Err(Failure::new(
                INPUT,
                format!("{} is no file: expected an archive of Linux 6.12", source.display()),
            ));
        }
        tell(format_args!("unpacking {}; the log is {}", source.display(), self.log.display()));
        let mut tar = Command::new("tar");
        tar.arg("--strip-components=1").arg("-C").arg(&self.tree).arg("-xf").arg(source);
        self.run(tar)
    }

    /// Writes `.config`, and checks that every line of the fragment is obeyed.
    fn configure(&self) -> Result<(), Failure> {
        self.make(&["tinyconfig"])?;
        let config = self.tree.join(".config");
        let read = || fs::read_to_string(&config).map_err(|error| cannot("read", &config, &error));
        let merged = kconfig::merge(&read()?, FRAGMENT);
        fs::write(&config, merged).map_err(|error| cannot("write", &config, &error))?;
        self.make(&["olddefconfig"])?;
        let lost = kconfig::lost(&read()?, FRAGMENT);
        if lost.is_empty() {
            return Ok(());
        }
        Err(Failure::new(
            INPUT,
            format!(
                "this source does not take the configuration in vm/schedlab.config: {} did not \
                 survive; it is made for Linux 6.12",
                lost.join(", ")
            ),
        ))
    }

    fn make(&self, targets: &[&str]) -> Result<(), Failure> {
        let jobs = match self.jobs {
            0 => thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let mut make = Command::new("make");
        make.current_dir(&self.tree).arg(format!("-j{jobs}")).args(targets).envs(STAMPS);
        self.run(make)
    }

    /// Runs a step; what it prints goes to the log.
    fn run(&self, mut command: Command) -> Result<(), Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let log = || File::options().append(true).open(&self.log);
        let status = log()
            .and_then(|out| command.stdin(Stdio::null()).stdout(out).stderr(log()?).status())
            .map_err(|error| Failure::new(HOST, format!("cannot run {name}: {error}")))?;
        if status.success() {
            return Ok(());
        }
        let end = last_lines(&fs::read(&self.log).unwrap_or_default(), LOG_LINES);
        let log = self.log.display();
        Err(Failure::new(FAILED, format!("{name} failed ({status}); end of {log}:\n{end}")))
    }
}

/// Takes the results out of the tree.
fn keep(tree: &Path, out: &Path) -> Result<(), Failure> {
    let read = |name: &str| {
        let file = tree.join(name);
        fs::read(&file).map_err(|error| cannot("read", &file, &error))
    };
    let image = read("arch/x86/boot/bzImage")?;
    let Ok(Image::Packed(kernel)) = image::inspect(&image) else {
        return Err(Failure::new(
            FAILED,
            "the bzImage that was built has no kernel with PVH entry",
        ));
    };
    for (name, content) in [("bzImage", &image), ("config", &read(".config")?), (KERNEL, &kernel)] {
        let file = out.join(name);
        locate::write_whole(&file, content).map_err(|error| cannot("write", &file, &error))?;
    }
    Ok(())
}

fn cannot(verb: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::new(HOST, format!("cannot {verb} {}: {error}", file.display()))
}
