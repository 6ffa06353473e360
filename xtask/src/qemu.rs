// SPDX-License-Identifier: GPL-2.0-only
//! The command line of QEMU. No network, no display, no file of the user's configuration; only the
//! directory given for output is writable.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::accel::Accel;

/// What differs between guests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest<'a> {
    /// What executes it.
    pub(crate) accel: Accel,
    /// Number of CPUs.
    pub(crate) cpus: u8,
    /// Memory in MiB.
    pub(crate) memory: u32,
    /// The kernel, ELF or bzImage.
    pub(crate) kernel: &'a Path,
    /// The initramfs.
    pub(crate) initramfs: &'a Path,
    /// The host's directory that the guest may write, on its /mnt.
    pub(crate) out: &'a Path,
    /// Files that QEMU writes.
    pub(crate) files: Files<'a>,
    /// Whether the kernel tells all it has to tell.
    pub(crate) verbose: bool,
    /// More words for the kernel's command line; the last of contrary ones wins.
    pub(crate) append: &'a str,
}

/// What comes out of the guest, a file each. Files never make the guest wait for a slow reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files<'a> {
    /// The kernel's messages.
    pub(crate) console: &'a Path,
    /// Standard output of the command.
    pub(crate) stdout: &'a Path,
    /// Standard error of the command.
    pub(crate) stderr: &'a Path,
    /// How the command ended.
    pub(crate) result: &'a Path,
}

/// The arguments after the program's name.
pub(crate) fn arguments(guest: &Guest<'_>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut option = |words: &[&str]| all.extend(words.iter().map(OsString::from));
    match guest.accel {
        // With that feature QEMU 7.2 fails on AMD: it cannot set the register.
        Accel::Kvm => option(&["-accel", "kvm", "-cpu", "host,-arch-capabilities"]),
        Accel::Tcg => option(&["-accel", "tcg,thread=multi", "-cpu", "max"]),
        Accel::Icount(shift) => option(&[
            "-accel",
            "tcg,thread=single",
            "-cpu",
            "max",
            "-icount",
            &format!("shift={shift},sleep=off,align=off"),
        ]),
    }
    option(&["-smp", &guest.cpus.to_string(), "-m", &guest.memory.to_string()]);
    option(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    option(&["-append", &kernel_words(guest)]);
    // Writing 3 to this I/O port ends QEMU with status 7: a way out for a guest that can no more.
    option(&["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
    option(&["-device", "virtio-serial-pci"]);
    all.extend(["-kernel".into(), guest.kernel.into()]);
    all.extend(["-initrd".into(), guest.initramfs.into()]);
    all.extend([
        "-virtfs".into(),
        with_path(
            "local,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap,path=",
            Path::new("/"),
        ),
        "-virtfs".into(),
        with_path("local,mount_tag=out,security_model=none,path=", guest.out),
        "-chardev".into(),
        with_path("file,id=console,path=", guest.files.console),
        "-serial".into(),
        "chardev:console".into(),
    ]);
    let ports = [
        ("stdout", guest.files.stdout),
        ("stderr", guest.files.stderr),
        ("result", guest.files.result),
    ];
    for (number, (name, file)) in (1..).zip(ports) {
        all.extend([
            "-chardev".into(),
            with_path(&format!("file,id={name},path="), file),
            "-device".into(),
            format!("virtserialport,chardev={name},name={name},nr={number}").into(),
        ]);
    }
    all
}

/// The kernel's command line. `lpj`, loops per jiffy, saves its measurement at the start, and
/// without terminals of the BSD kind there are 512 devices less to make.
fn kernel_words(guest: &Guest<'_>) -> String {
    let level = if guest.verbose { 8 } else { 5 };
    let words = format!(
        "console=ttyS0 loglevel={level} panic=-1 reboot=t lpj=5000000 pty.legacy_count=0 {}",
        guest.append
    );
    words.trim_end().to_string()
}

/// A path as the last value of an option, where a comma is written twice.
fn with_path(before: &str, path: &Path) -> OsString {
    let mut value = OsString::from(before);
    for (n, part) in path.as_os_str().as_encoded_bytes().split(|byte| *byte == b',').enumerate() {
        if n > 0 {
            value.push(",,");
        }
        value.push(bytes_as_os(part));
    }
    value
}

/// Bytes of a path as part of one.
fn bytes_as_os(bytes: &[u8]) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(accel: Accel) -> Guest<'static> {
        let path = Path::new;
        Guest {
            accel,
            cpus: 4,
            memory: 2048,
            kernel: path("/k/vmlinux"),
            initramfs: path("/t/init.cpio"),
            out: path("/home/a,b/out"),
            files: Files {
                console: path("/t/console.log"),
                stdout: path("/t/stdout"),
                stderr: path("/t/stderr"),
                result: path("/t/result"),
            },
            verbose: false,
            append: "",
        }
    }

    /// The arguments, an option with its value on each line.
    fn text(guest: &Guest<'_>) -> String {
        let words: Vec<_> =
            arguments(guest).into_iter().map(|word| word.into_string().expect("UTF-8")).collect();
        let mut text = String::new();
        for word in words {
            text.push_str(if word.starts_with('-') { "\n" } else { " " });
            text.push_str(&word);
        }
        text.trim_start().to_string()
    }

    #[test]
    fn arguments_of_an_emulated_guest_are_complete() {
        assert_eq!(
            text(&guest(Accel::Tcg)),
            "\
-accel tcg,thread=multi
-cpu max
-smp 4
-m 2048
-nodefaults
-no-user-config
-no-reboot
-display none
-append console=ttyS0 loglevel=5 panic=-1 reboot=t lpj=5000000 pty.legacy_count=0
-device isa-debug-exit,iobase=0xf4,iosize=0x04
-device virtio-serial-pci
-kernel /k/vmlinux
-initrd /t/init.cpio
-virtfs local,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap,path=/
-virtfs local,mount_tag=out,security_model=none,path=/home/a,,b/out
-chardev file,id=console,path=/t/console.log
-serial chardev:console
-chardev file,id=stdout,path=/t/stdout
-device virtserialport,chardev=stdout,name=stdout,nr=1
-chardev file,id=stderr,path=/t/stderr
-device virtserialport,chardev=stderr,name=stderr,nr=2
-chardev file,id=result,path=/t/result
-device virtserialport,chardev=result,name=result,nr=3"
        );
    }

    #[test]
    fn accelerators_differ_in_the_first_options_only() {
        let first = |accel| -> Vec<String> {
            text(&guest(accel))
                .lines()
                .take_while(|line| !line.starts_with("-smp"))
                .map(String::from)
                .collect()
        };
        assert_eq!(first(Accel::Kvm), ["-accel kvm", "-cpu host,-arch-capabilities"]);
        assert_eq!(
            first(Accel::Icount(3)),
            ["-accel tcg,thread=single", "-cpu max", "-icount shift=3,sleep=off,align=off"]
        );
    }

    #[test]
    fn words_of_the_user_come_last_on_the_kernels_command_line() {
        let guest = Guest { append: "lpj=1 nosmp", verbose: true, ..guest(Accel::Tcg) };
        assert_eq!(
            kernel_words(&guest),
            "console=ttyS0 loglevel=8 panic=-1 reboot=t lpj=5000000 pty.legacy_count=0 lpj=1 nosmp"
        );
    }
}
