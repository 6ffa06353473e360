// SPDX-License-Identifier: GPL-2.0-only
//! A writer of archives in cpio's `newc` form, which Linux unpacks as initramfs.
//!
//! Format: Linux, Documentation/driver-api/early-userspace/buffer-format.rst.

/// File type bits of a directory and of a regular file, as in `st_mode`.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// An archive under construction, in memory.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    /// The kernel takes files of one number for links to each other.
    last_inode: u32,
}

impl Archive {
    /// Adds a directory; its parents must have been added.
    pub(crate) fn directory(&mut self, name: &str) {
        self.member(name, DIRECTORY | 0o755, &[]);
    }

    /// Adds a regular file with these permission bits.
    pub(crate) fn file(&mut self, name: &str, permissions: u32, content: &[u8]) {
        self.member(name, REGULAR | permissions, content);
    }

    /// The finished archive.
    ///
    /// # Panics
    /// Never for contents under 4 GiB.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.member("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn member(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.last_inode += 1;
        let size = u32::try_from(content.len()).expect("files under 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("names under 4 GiB");
        let links = if mode & DIRECTORY == 0 { 1 } else { 2 };
        // Owner and group root, no time, no device.
        let fields = [self.last_inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0_u32];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    /// Names and contents begin at multiples of four.
    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, mode and content of each member, read by the rules of the format.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut members = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).expect("ASCII");
                u32::from_str_radix(text, 16).expect("a number")
            };
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = std::str::from_utf8(&bytes[110..110 + name_size - 1]).expect("UTF-8");
            assert_eq!(bytes[110 + name_size - 1], 0);
            let content = (110 + name_size).next_multiple_of(4);
            let end = content + size.next_multiple_of(4);
            if name == "TRAILER!!!" {
                assert_eq!(bytes.len(), end);
                return members;
            }
            members.push((name.to_string(), mode, bytes[content..content + size].to_vec()));
            bytes = &bytes[end..];
        }
    }

    #[test]
    fn members_of_all_lengths_are_read_back() {
        let mut archive = Archive::default();
        archive.directory("bin");
        for n in 0..9 {
            archive.file(&"x".repeat(n + 1), 0o644, &vec![b'y'; n]);
        }
        let members = read(&archive.finish());
        assert_eq!(members[0], ("bin".to_string(), 0o040_755, Vec::new()));
        for n in 0..9 {
            assert_eq!(members[n + 1], ("x".repeat(n + 1), 0o100_644, vec![b'y'; n]));
        }
    }

    #[test]
    fn header_of_a_script_is_that_of_the_format() {
        let mut archive = Archive::default();
        archive.file("init", 0o755, b"hello");
        let bytes = archive.finish();
        let header = "070701\
            00000001000081ed0000000000000000000000010000000000000005\
            000000000000000000000000000000000000000500000000init\0\0";
        assert_eq!(std::str::from_utf8(&bytes[..header.len()]), Ok(header));
    }
}
