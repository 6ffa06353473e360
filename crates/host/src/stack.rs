// SPDX-License-Identifier: GPL-2.0-only
//! Stacks of processes that share this one's memory.

use std::ffi::c_void;
use std::io;

/// What nobody may touch below a stack: an overflow ends the process instead of other data.
const GUARD: usize = 64 << 10;

/// Mapped memory that grows downwards, with a guard at its lower end.
pub(crate) struct Stack {
    base: usize,
    size: usize,
}

impl Stack {
    /// A stack of `size` bytes, a multiple of the page size.
    ///
    /// # Errors
    /// When the host has no more memory or mappings.
    pub(crate) fn new(size: usize) -> io::Result<Self> {
        let size = size + GUARD;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { base: base as usize, size };
        // SAFETY: the range is the lower end of the mapping just made, which nobody uses.
        if unsafe { libc::mprotect(base, GUARD, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }

    /// The end of it, where a stack begins.
    pub(crate) fn top(&self) -> *mut c_void {
        (self.base + self.size) as *mut c_void
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and who ran on it has left before.
        unsafe { libc::munmap(self.base as *mut c_void, self.size) };
    }
}
