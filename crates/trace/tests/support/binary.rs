// SPDX-License-Identifier: GPL-2.0-only
//! Writes small perf.data and trace.dat files of machines that are not at hand: the other order of
//! bytes, 32-bit words, old kernels.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// What kind of machine and kernel a file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) big_endian: bool,
    pub(crate) long_size: usize,
    /// Formats of 3.10 rather than of 6.12.
    pub(crate) is_old: bool,
}

impl Machine {
    pub(crate) const ALL: [Self; 4] = [
        Self { big_endian: false, long_size: 8, is_old: false },
        Self { big_endian: true, long_size: 8, is_old: false },
        Self { big_endian: false, long_size: 4, is_old: true },
        Self { big_endian: true, long_size: 4, is_old: true },
    ];
    pub(crate) fn out(self) -> Out {
        Out { machine: self, bytes: Vec::new() }
    }
    /// Mark of a preempted thread in `prev_state`.
    pub(crate) fn preempted(self) -> u64 {
        if self.is_old { 0x400 } else { 0x100 }
    }
}

/// Bytes in the order of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Out {
    pub(crate) machine: Machine,
    pub(crate) bytes: Vec<u8>,
}

impl Out {
    pub(crate) fn number(&mut self, n: u64, size: usize) -> &mut Self {
        let little = n.to_le_bytes();
        let bytes = little[..size].iter();
        match self.machine.big_endian {
            true => self.bytes.extend(bytes.rev()),
            false => self.bytes.extend(bytes),
        }
        self
    }
    pub(crate) fn u16(&mut self, n: u16) -> &mut Self {
        self.number(n.into(), 2)
    }
    pub(crate) fn u32(&mut self, n: u32) -> &mut Self {
        self.number(n.into(), 4)
    }
    pub(crate) fn u64(&mut self, n: u64) -> &mut Self {
        self.number(n, 8)
    }
    pub(crate) fn long(&mut self, n: u64) -> &mut Self {
        self.number(n, self.machine.long_size)
    }
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
    /// A name in 16 bytes.
    fn comm(&mut self, name: &str) -> &mut Self {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(16, 0);
        self.raw(&bytes)
    }
    /// Puts `n` at `at`.
    pub(crate) fn patch(&mut self, at: usize, n: u64) {
        let mut word = self.machine.out();
        word.u64(n);
        self.bytes[at..at + 8].copy_from_slice(&word.bytes);
    }
}

/// An event that was hit.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) pid: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) const SWITCH: u16 = 300;
pub(crate) const WAKING: u16 = 301;
pub(crate) const RUNTIME: u16 = 302;
/// A probe of the user's, called as an event of the scheduler.
pub(crate) const PROBE: u16 = 900;

fn common(machine: Machine, id: u16, flags: u8, pid: u32) -> Out {
    let mut out = machine.out();
    out.u16(id).raw(&[flags, 0]).u32(pid);
    out
}

/// `sched_switch`, in the context of the thread that leaves.
pub(crate) fn switch(
    machine: Machine,
    time: u64,
    cpu: u32,
    prev: u32,
    state: u64,
    next: u32,
) -> Event {
    let mut out = common(machine, SWITCH, 1, prev);
    out.comm(&format!("t{prev}")).u32(prev).u32(120).long(state);
    out.comm(&format!("t{next}")).u32(next).u32(u32::MAX);
    Event { time, cpu, pid: prev, payload: out.bytes }
}

/// `sched_waking` of `pid` in the context of `by`.
pub(crate) fn waking(machine: Machine, time: u64, cpu: u32, flags: u8, by: u32, pid: u32) -> Event {
    let mut out = common(machine, WAKING, flags, by);
    out.comm(&format!("t{pid}")).u32(pid).u32(120);
    if machine.is_old {
        out.u32(1);
    }
    out.u32(1);
    Event { time, cpu, pid: by, payload: out.bytes }
}

/// `sched_stat_runtime`, its name elsewhere in the payload.
pub(crate) fn runtime(machine: Machine, time: u64, cpu: u32, pid: u32, ns: u64) -> Event {
    let mut out = common(machine, RUNTIME, 0, pid);
    out.u32(if machine.is_old { 32 } else { 24 } | 3 << 16).u32(pid).u64(ns);
    if machine.is_old {
        out.u64(12345);
    }
    out.raw(b"ab\0\0");
    Event { time, cpu, pid, payload: out.bytes }
}

/// The probe.
pub(crate) fn probe(machine: Machine, time: u64, cpu: u32, pid: u32) -> Event {
    Event { time, cpu, pid, payload: common(machine, PROBE, 0, pid).bytes }
}

/// A small run on two CPUs that has every event.
pub(crate) fn run(machine: Machine) -> Vec<Event> {
    let second = 1_000_000_000;
    vec![
        switch(machine, second, 0, 11, 1, 12),
        waking(machine, second + 5, 0, 0x10, 12, 14),
        waking(machine, second + 5, 1, 0x08, 0, 11),
        probe(machine, second + 6, 0, 12),
        waking(machine, second + 7, 0, 0x00, 12, 13),
        runtime(machine, second + 200, 0, 12, 199),
        switch(machine, second + 200, 0, 12, machine.preempted(), 11),
        switch(machine, second + 300_000_000, 1, 0, 0, 13),
        switch(machine, second + 900_000_000, 0, 11, 2, 12),
    ]
}

/// Systems and their format texts.
pub(crate) fn formats(machine: Machine) -> Vec<(&'static str, Vec<String>)> {
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
    let text = |name: &str, id: u16, fields: &[(&str, usize, usize)], print: &str| {
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, at, size)| {
                format!("\tfield:{name};\toffset:{at};\tsize:{size};\tsigned:1;\n")
            })
            .collect();
        format!(
            "name: {name}\nID: {id}\nformat:\n{common}\n{}\nprint fmt: {print}\n",
            fields.concat()
        )
    };
    let letters = match machine.is_old {
        true => [
            (1, "S"),
            (2, "D"),
            (4, "T"),
            (8, "t"),
            (16, "Z"),
            (32, "X"),
            (64, "x"),
            (128, "K"),
            (256, "W"),
            (512, "P"),
        ]
        .as_slice(),
        false => {
            &[(1, "S"), (2, "D"), (4, "T"), (8, "t"), (16, "X"), (32, "Z"), (64, "P"), (128, "I")]
        }
    };
    let letters: Vec<String> =
        letters.iter().map(|(bit, letter)| format!("{{ {bit}, \"{letter}\" }}")).collect();
    let print = format!(
        "\"%s%s\", __print_flags(REC->prev_state, \"|\", {}) : \"R\", x ? \"+\" : \"\"",
        letters.join(", ")
    );
    let (long, comm) = (
        machine.long_size,
        if machine.is_old { "char comm[TASK_COMM_LEN]" } else { "char comm[16]" },
    );
    let switch = [
        ("char prev_comm[16]", 8, 16),
        ("pid_t prev_pid", 24, 4),
        ("int prev_prio", 28, 4),
        ("long prev_state", 32, long),
        ("char next_comm[16]", 32 + long, 16),
        ("pid_t next_pid", 48 + long, 4),
        ("int next_prio", 52 + long, 4),
    ];
    let mut waking = vec![(comm, 8, 16), ("pid_t pid", 24, 4), ("int prio", 28, 4)];
    let mut runtime =
        vec![("__data_loc char[] comm", 8, 4), ("pid_t pid", 12, 4), ("u64 runtime", 16, 8)];
    if machine.is_old {
        waking.extend([("int success", 32, 4), ("int target_cpu", 36, 4)]);
        runtime.push(("u64 vruntime", 24, 8));
    } else {
        waking.push(("int target_cpu", 32, 4));
    }
    let sched = vec![
        text("sched_switch", SWITCH, &switch, &print),
        text("sched_waking", WAKING, &waking, "\"\""),
        text("sched_stat_runtime", RUNTIME, &runtime, "\"\""),
        // Never hit, so that it may lack its fields.
        text("sched_process_fork", 303, &[], "\"\""),
    ];
    vec![("probes", vec![text("sched_switch", PROBE, &[], "\"\"")]), ("sched", sched)]
}

fn format_sections(out: &mut Out) {
    let systems = formats(out.machine);
    out.u32(systems.len() as u32);
    for (name, texts) in systems {
        out.raw(name.as_bytes()).raw(&[0]).u32(texts.len() as u32);
        for text in texts {
            out.u64(text.len() as u64).raw(text.as_bytes());
        }
    }
}

/// Descriptions of pages and of the events in them.
fn header_info(out: &mut Out) {
    let size = out.machine.long_size;
    let page = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{size};\tsigned:1;\n"
    );
    out.raw(b"header_page\0").u64(page.len() as u64).raw(page.as_bytes());
    out.raw(b"header_event\0").u64(0);
}

const CMDLINES: &[u8] = b"0 <idle>\n11 t11\n12 t12\n";

/// The block of format texts up to the names of threads.
pub(crate) fn tracing_data(machine: Machine, version: &[u8]) -> Out {
    let mut out = machine.out();
    out.raw(b"\x17\x08\x44tracing").raw(version).raw(&[0, machine.big_endian.into()]);
    // A program of 32 bits on a kernel of 64: what its pages look like counts.
    out.raw(&[4]).u32(4096);
    header_info(&mut out);
    out.u32(0);
    format_sections(&mut out);
    out.u32(0).u32(0).u64(CMDLINES.len() as u64).raw(CMDLINES);
    out
}

/// Pages of one CPU. Events that are close stand on one page; `lost` is the commit word's flags of
/// the second page, with the number of lost events behind its data.
pub(crate) fn pages(machine: Machine, events: &[Event], lost: Option<u64>) -> Vec<u8> {
    let (mut out, mut is_first) = (machine.out(), true);
    for page in events.chunks(2) {
        let mut data = machine.out();
        let (start, mut last) = (page[0].time - 3, page[0].time - 3);
        for event in page {
            let delta = event.time - last;
            let word = |kind: u32, low: u64| match machine.big_endian {
                true => kind << 27 | low as u32,
                false => (low as u32) << 5 | kind,
            };
            let low = delta & ((1 << 27) - 1);
            if delta >> 27 > 0 {
                data.u32(word(30, low)).u32((delta >> 27) as u32);
                data.u32(word(event.payload.len() as u32 / 4, 0));
            } else {
                data.u32(word(event.payload.len() as u32 / 4, low));
            }
            data.raw(&event.payload);
            last = event.time;
        }
        let flags = if is_first { 0 } else { lost.map_or(0, |_| 3 << 30) };
        out.u64(start).long(data.bytes.len() as u64 | flags).raw(&data.bytes);
        if flags > 0 {
            out.long(lost.unwrap_or(0));
        }
        out.bytes.resize(out.bytes.len().next_multiple_of(4096), 0);
        is_first = false;
    }
    out.bytes
}

fn by_cpu(events: &[Event]) -> Vec<Vec<Event>> {
    let of = |cpu| events.iter().filter(|e| e.cpu == cpu).cloned().collect();
    (0..2).map(of).collect()
}

/// A trace.dat of version 6.
pub(crate) fn trace_dat_6(machine: Machine, events: &[Event], lost: Option<u64>) -> Vec<u8> {
    let mut out = tracing_data(machine, b"6");
    out.u32(2).raw(b"options  \0").u16(0).raw(b"flyrecord\0");
    let table = out.bytes.len();
    out.raw(&[0; 32]);
    for (index, events) in by_cpu(events).iter().enumerate() {
        out.bytes.resize(out.bytes.len().next_multiple_of(4096), 0);
        let pages = pages(machine, events, lost);
        out.patch(table + 16 * index, out.bytes.len() as u64);
        out.patch(table + 16 * index + 8, pages.len() as u64);
        out.raw(&pages);
    }
    out.bytes
}

/// A trace.dat of version 7, perhaps packed with zlib; `buffers` are the names of its buffers, all
/// of which lead to the same pages.
pub(crate) fn trace_dat_7(
    machine: Machine,
    events: &[Event],
    is_packed: bool,
    buffers: &[&str],
) -> Vec<u8> {
    let mut out = machine.out();
    out.raw(b"\x17\x08\x44tracing7\0").raw(&[machine.big_endian.into(), 4]);
    out.u32(4096).raw(if is_packed { b"zlib\x001.2\0" } else { b"none\0\0" });
    let first = out.bytes.len();
    out.u64(0);
    let mut text = machine.out();
    format_sections(&mut text);
    let formats = section(&mut out, 18, &text.bytes, is_packed);
    let mut text = machine.out();
    header_info(&mut text);
    let header = section(&mut out, 16, &text.bytes, is_packed);
    let mut text = machine.out();
    text.u64(CMDLINES.len() as u64).raw(CMDLINES);
    let cmdlines = section(&mut out, 21, &text.bytes, is_packed);
    let mut cpus = machine.out();
    for (cpu, events) in by_cpu(events).iter().enumerate() {
        let (at, pages) = (out.bytes.len() as u64, pages(machine, events, None));
        if is_packed {
            let chunks: Vec<&[u8]> = pages.chunks(8192).collect();
            out.u32(chunks.len() as u32);
            chunks.iter().for_each(|chunk| packed(&mut out, chunk));
        } else {
            out.raw(&pages);
        }
        cpus.u32(cpu as u32).u64(at).u64(out.bytes.len() as u64 - at);
    }
    let mut options = machine.out();
    for (id, at) in [(16, header), (18, formats), (21, cmdlines)] {
        options.u16(id).u32(8).u64(at);
    }
    for name in buffers {
        let mut buffer = machine.out();
        buffer.u64(0).raw(name.as_bytes()).raw(b"\0local\0").u32(4096);
        match name.is_empty() || buffers.len() == 1 {
            true => buffer.u32(2).raw(&cpus.bytes),
            false => buffer.u32(0),
        };
        options.u16(3).u32(buffer.bytes.len() as u32).raw(&buffer.bytes);
    }
    options.u16(0).u32(8).u64(0);
    let options = section(&mut out, 0, &options.bytes, is_packed);
    out.patch(first, options);
    out.bytes
}

fn section(out: &mut Out, id: u16, body: &[u8], is_packed: bool) -> u64 {
    let at = out.bytes.len() as u64;
    let mut content = out.machine.out();
    if is_packed {
        packed(&mut content, body);
    } else {
        content.raw(body);
    }
    out.u16(id).u16(is_packed.into()).u32(0).u64(content.bytes.len() as u64).raw(&content.bytes);
    at
}

fn packed(out: &mut Out, bytes: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("a Vec takes any write");
    let packed = encoder.finish().expect("a Vec takes any write");
    out.u32(packed.len() as u32).u32(bytes.len() as u32).raw(&packed);
}

/// A record of perf's.
pub(crate) fn record(out: &mut Out, kind: u32, misc: u16, body: &[u8]) {
    out.u32(kind).u16(misc).u16(body.len() as u16 + 8).raw(body);
}

/// `sample_type` of the files below: TID, TIME, CPU, RAW.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;

fn attr(machine: Machine) -> Vec<u8> {
    let mut out = machine.out();
    let sample_id_all = 1u64 << if machine.big_endian { 63 - 18 } else { 18 };
    out.u32(2).u32(64).u64(SWITCH.into()).u64(1).u64(SAMPLE_TYPE).u64(0).u64(sample_id_all);
    out.bytes.resize(64, 0);
    out.bytes
}

/// Ids behind a record that is no sample.
fn ids(out: &mut Out, pid: u32, time: u64, cpu: u32) {
    out.u32(pid).u32(pid).u64(time).u32(cpu).u32(0);
}

/// The samples, in the order given.
pub(crate) fn samples(machine: Machine, events: &[Event]) -> Out {
    let mut out = machine.out();
    for event in events {
        let mut body = machine.out();
        body.u32(event.pid).u32(event.pid).u64(event.time).u32(event.cpu).u32(0);
        // The size of the payload makes up for its own four bytes.
        let length = (event.payload.len() + 4).next_multiple_of(8) - 4;
        let mut payload = event.payload.clone();
        payload.resize(length, 0);
        body.u32(length as u32).raw(&payload);
        record(&mut out, 9, 2, &body.bytes);
    }
    out
}

/// A record of a thread's name, long before the events.
pub(crate) fn comm_record(out: &mut Out, pid: u32) {
    let mut body = out.machine.out();
    body.u32(pid).u32(pid).raw(format!("t{pid}").as_bytes());
    body.bytes.resize(16, 0);
    ids(&mut body, pid, 5, 0);
    record(out, 3, 0, &body.bytes);
}

/// A record of lost events: kind 2 announces them, kind 13 counts them.
pub(crate) fn lost_record(out: &mut Out, kind: u32, misc: u16, time: u64, cpu: u32, count: u64) {
    let mut body = out.machine.out();
    if kind == 2 {
        body.u64(77);
    }
    body.u64(count);
    ids(&mut body, 0, time, cpu);
    record(out, kind, misc, &body.bytes);
}

/// A seekable perf.data of these records.
pub(crate) fn perf_data(machine: Machine, records: &[u8]) -> Vec<u8> {
    let mut out = machine.out();
    out.raw(if machine.big_endian { b"2ELIFREP" } else { b"PERFILE2" });
    let data = 104 + 64 + 16;
    out.u64(104).u64(80).u64(104).u64(80).u64(data).u64(records.len() as u64).u64(0).u64(0);
    // The one feature: event formats.
    out.u64(1 << 1).u64(0).u64(0).u64(0);
    out.raw(&attr(machine)).u64(0).u64(0);
    out.raw(records);
    let formats = tracing_data(machine, b"0.6").bytes;
    out.u64(out.bytes.len() as u64 + 16).u64(formats.len() as u64).raw(&formats);
    out.bytes
}

/// The same as a pipe.
pub(crate) fn perf_pipe(machine: Machine, records: &[u8]) -> Vec<u8> {
    let mut out = machine.out();
    out.raw(if machine.big_endian { b"2ELIFREP" } else { b"PERFILE2" }).u64(16);
    record(&mut out, 64, 0, &attr(machine));
    let mut feature = machine.out();
    feature.u64(4).u32(8).raw(b"3.10.0\0\0");
    record(&mut out, 80, 0, &feature.bytes);
    let mut formats = tracing_data(machine, b"0.6").bytes;
    formats.resize(formats.len().next_multiple_of(8), 0);
    let mut size = machine.out();
    size.u32(formats.len() as u32);
    record(&mut out, 66, 0, &size.bytes);
    out.raw(&formats).raw(records);
    out.bytes
}

/// Records as `perf record -z` packs them: one stream of zstd that is never ended, here of blocks
/// that are stored as they are, cut into pieces without regard to blocks and records.
pub(crate) fn compressed(machine: Machine, records: &[u8]) -> Out {
    // Magic number, no checksum and no length, a window of 512 KiB.
    let mut stream = b"\x28\xb5\x2f\xfd\0\x48".to_vec();
    for block in records.chunks(100) {
        stream.extend(&((block.len() as u32) << 3).to_le_bytes()[..3]);
        stream.extend(block);
    }
    let mut out = machine.out();
    for (index, piece) in stream.chunks(77).enumerate() {
        if index % 2 == 0 {
            record(&mut out, 81, 0, piece);
        } else {
            let mut body = machine.out();
            body.u64(piece.len() as u64).raw(piece);
            body.bytes.resize(body.bytes.len().next_multiple_of(8), 0);
            record(&mut out, 83, 0, &body.bytes);
        }
        // The end of a round, which says nothing while unpacking lags behind.
        record(&mut out, 68, 0, &[]);
    }
    out
}
