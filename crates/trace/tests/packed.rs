// SPDX-License-Identifier: GPL-2.0-only
//! Traces packed with gzip or zstd.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use schedlab_trace::{Read, detect, read};
use schedlab_units::Located;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("a Vec takes any write");
    encoder.finish().expect("a Vec takes any write")
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

/// A name, and what it packs with.
type Packing = (&'static str, fn(&[u8]) -> Vec<u8>);

const PACKINGS: [Packing; 2] = [("gzip", gzip), ("zstd", zstd)];

fn switch(time: &str) -> String {
    format!(
        "a 5 [000] {time}: sched:sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=S \
         ==> next_comm=b next_pid=6 next_prio=120\n"
    )
}

/// More than fits the buffers.
fn long_text() -> String {
    (0..3000).map(|n| switch(&format!("1.{n:09}"))).collect()
}

fn parts_of(text: &str) -> (&[u8], &[u8]) {
    text.as_bytes().split_at(text.len() / 2)
}

fn good(bytes: &[u8]) -> Read {
    read(bytes).unwrap_or_else(|fault| panic!("{fault}"))
}

fn fault(bytes: &[u8]) -> Located {
    read(bytes).expect_err("damaged")
}

#[test]
fn packed_text_reads_like_the_text() {
    let text = long_text();
    let plain = good(text.as_bytes());
    for (name, pack) in PACKINGS {
        assert_eq!(good(&pack(text.as_bytes())), plain, "{name}");
    }
}

#[test]
fn packed_file_of_several_parts_is_read_to_its_end() {
    let text = long_text();
    let plain = good(text.as_bytes());
    let (first, second) = parts_of(&text);
    for (name, pack) in PACKINGS {
        assert_eq!(good(&[pack(first), pack(second)].concat()), plain, "{name}");
    }
    let skipped = [&b"\x53\x2a\x4d\x18\x03\0\0\0xyz"[..], &zstd(first)].concat();
    assert!(detect(&skipped).is_some());
    let parts = [&skipped[..], &skipped[..11], &zstd(second), &skipped[..11]].concat();
    assert_eq!(good(&parts), plain);
}

#[test]
fn packed_file_cut_between_its_parts_or_in_the_second_says_so() {
    let text = long_text();
    let (first, second) = parts_of(&text);
    for (name, pack) in PACKINGS {
        let whole = [pack(first), pack(second)].concat();
        for cut in [1, 3, 5, 40] {
            let fault = fault(&whole[..pack(first).len() + cut]);
            let at = fault.at.expect("a line");
            assert!(at.line > 1000, "{name} {cut}: {fault}");
            let expect = format!("the {name} file was cut: it ends after");
            assert!(fault.message.contains(&expect), "{name} {cut}: {fault}");
        }
    }
}

#[test]
fn packed_file_followed_by_something_else_is_an_error() {
    let text = long_text();
    for (name, pack) in PACKINGS {
        let fault = fault(&[&pack(text.as_bytes())[..], b"some other bytes"].concat());
        assert!(fault.message.contains("is damaged before its byte"), "{name}: {fault}");
    }
}

#[test]
fn packed_file_with_a_changed_checksum_is_an_error() {
    let text = long_text();
    let mut packed = gzip(text.as_bytes());
    let at = packed.len() - 8;
    packed[at] ^= 1;
    assert!(fault(&packed).message.contains("damaged before its byte"), "{}", fault(&packed));

    // Made by zstd, with a checksum at its end.
    let mut packed = include_bytes!("fixtures/vm-jobs.txt.zst").to_vec();
    assert!(read(&packed[..]).is_ok());
    *packed.last_mut().expect("not empty") ^= 1;
    assert!(fault(&packed).message.contains("checksum"), "{}", fault(&packed));
    // A text that fits the first look is checked all the same.
    let mut packed = gzip(switch("1.5").as_bytes());
    let at = packed.len() - 8;
    packed[at] ^= 1;
    assert!(fault(&packed).message.contains("gzip"), "{}", fault(&packed));
}

#[test]
fn fault_in_a_packed_text_counts_its_lines() {
    let text = long_text() + "Segmentation fault\n";
    for (name, pack) in PACKINGS {
        let at = fault(&pack(text.as_bytes())).at.map(|at| (at.line, at.column));
        assert_eq!(at, Some((3001, 1)), "{name}");
    }
}

#[test]
fn file_packed_twice_is_refused_with_advice() {
    for (outer, pack) in PACKINGS {
        for (_, inner) in PACKINGS {
            let fault = fault(&pack(&inner(switch("1.5").as_bytes())));
            let expect = format!("the file is packed twice, the outer time with {outer}");
            assert_eq!((fault.message, fault.hint), (expect, "unpack it once".to_string()));
        }
    }
}

#[test]
fn packed_stream_is_read_while_it_arrives() {
    /// Counts what was asked for beyond the first part.
    struct Slow<'a>(&'a [u8], u64);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.read(buf)?;
            self.1 += n as u64;
            Ok(n)
        }
    }
    // A fault in the first line ends the reading at once, however much follows.
    let noise: Vec<u8> = (0..2_000_000u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .map(|byte| byte | 1)
        .collect();
    let text = [b"[workload]\nname = 1\n", &noise[..]].concat();
    for (name, pack) in PACKINGS {
        let packed = pack(&text);
        let mut input = Slow(&packed, 0);
        assert!(read(&mut input).is_err());
        assert!(input.1 * 4 < packed.len() as u64, "{name}: {} of {}", input.1, packed.len());
    }
}
