// SPDX-License-Identifier: GPL-2.0-only
//! Kernel images: what kind a file is, and the ELF kernel inside a bzImage.
//!
//! QEMU starts an ELF kernel at its PVH entry, which skips the boot code and the decompression.
//! Sources: Linux, Documentation/arch/x86/boot.rst (header of a bzImage); Xen,
//! public/elfnote.h (the note of the PVH entry); the ELF specification.

use std::io::Read;

use flate2::read::GzDecoder;

/// Offset and text of the mark of a bzImage.
const HEADER_MARK: (usize, &[u8]) = (0x202, b"HdrS");
/// First version of the boot protocol that tells where the compressed kernel lies.
const PAYLOAD_SINCE: u16 = 0x0208;
/// Type of the note with the PVH entry, `XEN_ELFNOTE_PHYS32_ENTRY`; its owner is `Xen`.
const PVH_NOTE: u32 = 18;
/// Program header types.
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// Larger kernels are taken for damaged images.
const KERNEL_MAX: u64 = 1 << 30;

/// A kernel image, as far as it matters for its start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// An ELF kernel with PVH entry.
    Pvh,
    /// A bzImage with such a kernel inside, which is here.
    Packed(Vec<u8>),
    /// A bzImage that must be started as it is.
    Opaque,
}

/// Looks at the image of a kernel.
///
/// # Errors
/// When QEMU cannot start it; the text completes "FILE ...".
pub(crate) fn inspect(image: &[u8]) -> Result<Image, &'static str> {
    if image.starts_with(b"\x7fELF") {
        return match has_pvh_entry(image) {
            true => Ok(Image::Pvh),
            false => {
                Err("is an ELF kernel without PVH entry: build it with CONFIG_PVH=y, or give \
                          its bzImage")
            }
        };
    }
    if at(image, HEADER_MARK.0, 4).is_none_or(|mark| mark != HEADER_MARK.1) {
        return Err("is no x86 kernel: expected a bzImage, or a vmlinux with PVH entry");
    }
    let payload = payload(image).ok_or("is a damaged bzImage: its kernel lies outside the file")?;
    if !payload.starts_with(b"\x1f\x8b\x08") {
        return Ok(Image::Opaque);
    }
    let mut kernel = Vec::new();
    GzDecoder::new(payload)
        .take(KERNEL_MAX)
        .read_to_end(&mut kernel)
        .map_err(|_| "is a damaged bzImage: its kernel does not decompress")?;
    Ok(if has_pvh_entry(&kernel) { Image::Packed(kernel) } else { Image::Opaque })
}

/// Whether an ELF program needs no loader, so that it runs in an initramfs.
pub(crate) fn is_static(program: &[u8]) -> bool {
    program.starts_with(b"\x7fELF")
        && segments(program).is_some_and(|all| all.iter().all(|segment| segment.kind != PT_INTERP))
}

/// The compressed kernel of a bzImage; none when the header points outside the file.
fn payload(image: &[u8]) -> Option<&[u8]> {
    if u16_at(image, 0x206)? < PAYLOAD_SINCE {
        return Some(&[]);
    }
    // Zero stands for four: so old boot loaders understand it.
    let sectors = match usize::from(*image.get(0x1f1)?) {
        0 => 4,
        n => n,
    };
    let (offset, length) = (u32_at(image, 0x248)? as usize, u32_at(image, 0x24c)? as usize);
    at(image, ((sectors + 1) * 512).checked_add(offset)?, length)
}

/// A segment of an ELF file.
struct Segment<'a> {
    kind: u32,
    bytes: &'a [u8],
}

/// The segments of a little-endian 64-bit ELF file; none when it is another or damaged one.
fn segments(elf: &[u8]) -> Option<Vec<Segment<'_>>> {
    if at(elf, 4, 2)? != [2, 1] {
        return None;
    }
    let table = usize::try_from(u64_at(elf, 0x20)?).ok()?;
    let (size, n) = (usize::from(u16_at(elf, 0x36)?), usize::from(u16_at(elf, 0x38)?));
    let headers = at(elf, table, size.checked_mul(n)?)?;
    let mut segments = Vec::new();
    for header in headers.chunks_exact(size.max(1)) {
        let offset = usize::try_from(u64_at(header, 8)?).ok()?;
        let length = usize::try_from(u64_at(header, 32)?).ok()?;
        segments.push(Segment { kind: u32_at(header, 0)?, bytes: at(elf, offset, length)? });
    }
    Some(segments)
}

fn has_pvh_entry(elf: &[u8]) -> bool {
    let notes = |segment: &Segment<'_>| segment.kind == PT_NOTE && has_pvh_note(segment.bytes);
    segments(elf).is_some_and(|segments| segments.iter().any(notes))
}

fn has_pvh_note(mut notes: &[u8]) -> bool {
    let mut next = || {
        let name_size = u32_at(notes, 0)? as usize;
        let content_size = u32_at(notes, 4)? as usize;
        let kind = u32_at(notes, 8)?;
        let name = at(notes, 12, name_size)?;
        let size = name_size.checked_next_multiple_of(4)?;
        let size = size.checked_add(content_size.checked_next_multiple_of(4)?)?;
        notes = notes.get(size.checked_add(12)?..)?;
        Some(kind == PVH_NOTE && name == b"Xen\0")
    };
    std::iter::from_fn(&mut next).any(|found| found)
}

fn at(bytes: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    bytes.get(offset..offset.checked_add(length)?)
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    at(bytes, offset, 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    at(bytes, offset, 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    at(bytes, offset, 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// An ELF file with one segment.
    fn elf(kind: u32, content: &[u8]) -> Vec<u8> {
        let mut elf = vec![0; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[0x20] = 64;
        elf[0x36] = 56;
        elf[0x38] = 1;
        elf[64..68].copy_from_slice(&kind.to_le_bytes());
        elf[72] = 64 + 56;
        elf[96..104].copy_from_slice(&(content.len() as u64).to_le_bytes());
        elf.extend_from_slice(content);
        elf
    }

    /// Two notes, the second one of this owner and type.
    fn notes(owner: &[u8; 4], kind: u8) -> Vec<u8> {
        let mut notes = b"\x04\0\0\0\x01\0\0\0\x06\0\0\0GNU\0x\0\0\0".to_vec();
        notes.extend_from_slice(&[4, 0, 0, 0, 8, 0, 0, 0, kind, 0, 0, 0]);
        notes.extend_from_slice(owner);
        notes.extend_from_slice(&[0; 8]);
        notes
    }

    fn pvh_kernel() -> Vec<u8> {
        elf(PT_NOTE, &notes(b"Xen\0", 18))
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    /// A bzImage with one sector of boot code and three bytes before its payload.
    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024 + 3];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[0x248] = 3;
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(payload);
        image.extend_from_slice(b"after");
        image
    }

    #[test]
    fn gzip_kernel_of_a_bzimage_is_unpacked() {
        let image = bzimage(&gzip(&pvh_kernel()));
        assert_eq!(inspect(&image), Ok(Image::Packed(pvh_kernel())));
    }

    #[test]
    fn bzimage_with_another_compression_is_started_as_it_is() {
        assert_eq!(inspect(&bzimage(b"\xfd7zXZ\0")), Ok(Image::Opaque));
        let mut old = bzimage(&gzip(&pvh_kernel()));
        old[0x206] = 7;
        assert_eq!(inspect(&old), Ok(Image::Opaque));
    }

    #[test]
    fn kernel_without_pvh_entry_is_not_started_as_elf() {
        for other in [notes(b"Xen\0", 17), notes(b"Zen\0", 18), Vec::new()] {
            let kernel = elf(PT_NOTE, &other);
            assert_eq!(inspect(&bzimage(&gzip(&kernel))), Ok(Image::Opaque));
            assert!(inspect(&kernel).expect_err("no entry").contains("CONFIG_PVH"));
        }
        assert_eq!(inspect(&pvh_kernel()), Ok(Image::Pvh));
    }

    #[test]
    fn damaged_images_are_told() {
        let whole = bzimage(&gzip(&pvh_kernel()));
        for n in 0..whole.len() - 5 {
            assert!(inspect(&whole[..n]).is_err(), "{n} bytes");
        }
        let kernel = pvh_kernel();
        for n in 0..kernel.len() {
            assert!(inspect(&kernel[..n]).is_err(), "{n} bytes");
        }
    }

    #[test]
    fn program_with_a_loader_is_not_static() {
        assert!(is_static(&elf(PT_NOTE, b"")));
        assert!(!is_static(&elf(PT_INTERP, b"/lib64/ld-linux-x86-64.so.2\0")));
        assert!(!is_static(b"#!/bin/sh\n"));
    }
}
