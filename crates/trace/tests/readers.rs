// SPDX-License-Identifier: GPL-2.0-only
//! The text readers on small inputs: names, line ends, notices, faults with their place.

#[path = "support/form.rs"]
mod form;

use std::io::BufRead;

use form::read_form;
use schedlab_policy_api::{Pid, RecordContext, RecordEvent, RecordedState, Recording};
use schedlab_trace::{Format, MAX_LINE_BYTES, Read, read};
use schedlab_units::{CpuId, Located, Time};

/// The name tests of the format specification, §2.4 rule 6; the last is cut inside a character.
const NAMES: [&[u8]; 9] = [
    b"my prog: a",
    b"x-1",
    b"==>",
    b"(bad)",
    b"kworker/u16:1",
    b"<...>",
    b"",
    b"exactly15bytes!",
    b"caf\xc3\xa9-\xe4\xb8\xad\xe6\x96\x87\xe5\xad",
];

/// A way to print one switch of thread 5 `prev` on CPU 1, in state S, to thread 6 `next`.
type Print = fn(prev: &[u8], next: &[u8]) -> Vec<u8>;

fn printk_body(prev: &[u8], next: &[u8]) -> Vec<u8> {
    [
        b"prev_comm=",
        prev,
        b" prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=",
        next,
        b" next_pid=6 next_prio=98",
    ]
    .concat()
}
fn plugin_body(prev: &[u8], next: &[u8]) -> Vec<u8> {
    [prev, b":5 [120] S ==> ", next, b":6 [98]"].concat()
}
fn padded(name: &[u8]) -> Vec<u8> {
    let mut text = vec![b' '; 16usize.saturating_sub(name.len())];
    text.extend_from_slice(name);
    text
}
fn perf(prev: &[u8], next: &[u8]) -> Vec<u8> {
    let head = b"       5/5       [001]    12.345678901:       sched:sched_switch: ";
    [&padded(prev), &head[..], &printk_body(prev, next), b"\n"].concat()
}
fn perf_tid_only(prev: &[u8], next: &[u8]) -> Vec<u8> {
    let head = b"     5 [001]    12.345678901:       sched:sched_switch: ";
    [&padded(prev), &head[..], &printk_body(prev, next), b"\n"].concat()
}
fn perf_plugin(prev: &[u8], next: &[u8]) -> Vec<u8> {
    let head = b"     5 [001]    12.345678901:       sched:sched_switch: ";
    [&padded(prev), &head[..], &plugin_body(prev, next), b"\n"].concat()
}
fn tracefs(prev: &[u8], next: &[u8]) -> Vec<u8> {
    let head = b"-5       [001] d..2.    12.345678901: sched_switch: ";
    [&padded(prev), &head[..], &printk_body(prev, next), b"\n"].concat()
}
fn tracefs_tgid(prev: &[u8], next: &[u8]) -> Vec<u8> {
    let head = b"-5       (      5) [001] dN.2    12.345678901: sched_switch: ";
    [&padded(prev), &head[..], &printk_body(prev, next), b"\n"].concat()
}
fn tracefs_no_tgid(prev: &[u8], next: &[u8]) -> Vec<u8> {
    let head = b"-5     (-------) [001]    12.345678901: sched_switch: ";
    [&padded(prev), &head[..], &printk_body(prev, next), b"\n"].concat()
}
fn trace_cmd(prev: &[u8], next: &[u8]) -> Vec<u8> {
    let head = b"-5     [001]    12.345678901: sched_switch:         ";
    [&padded(prev), &head[..], &plugin_body(prev, next), b"\n"].concat()
}
fn trace_cmd_buffer(prev: &[u8], next: &[u8]) -> Vec<u8> {
    [b"buffer:  ", &trace_cmd(prev, next)[..]].concat()
}

fn name_of(recording: &Recording, event: &RecordEvent) -> (String, String) {
    let RecordEvent::Switch { prev_comm, next_comm, .. } = event else { panic!("{event:?}") };
    let name = |id: schedlab_policy_api::CommId| recording.comms[id.0 as usize].clone();
    (name(*prev_comm), name(*next_comm))
}

#[test]
fn names_survive_in_every_form() {
    let forms: [(&str, Print); 8] = [
        ("perf", perf),
        ("perf tid only", perf_tid_only),
        ("perf plugin", perf_plugin),
        ("tracefs", tracefs),
        ("tracefs tgid", tracefs_tgid),
        ("tracefs no tgid", tracefs_no_tgid),
        ("trace-cmd", trace_cmd),
        ("trace-cmd buffer", trace_cmd_buffer),
    ];
    for (form, print) in forms {
        for prev in NAMES {
            for next in NAMES {
                let text = print(prev, next);
                let shown = String::from_utf8_lossy(&text);
                let got = read(&text[..]).unwrap_or_else(|e| panic!("{form}: {e}\n{shown}"));
                let record = got.recording.records[0];
                let names = name_of(&got.recording, &record.event);
                let lossy = |name| String::from_utf8_lossy(name).into_owned();
                assert_eq!(names, (lossy(prev), lossy(next)), "{form}\n{shown}");
                assert_eq!(
                    (record.time, record.cpu, record.pid),
                    (Time::from_ns(12_345_678_901), CpuId(1), Pid(5)),
                    "{form}\n{shown}"
                );
                let context = &got.recording.comms[record.comm.0 as usize];
                assert_eq!(*context, lossy(prev), "{form}\n{shown}");
                let RecordEvent::Switch { prev, prev_state, next, next_prio, .. } = record.event
                else {
                    panic!("{record:?}")
                };
                assert_eq!(
                    (prev, prev_state, next, next_prio),
                    (Pid(5), RecordedState::Sleeping, Pid(6), 98)
                );
            }
        }
    }
}

#[test]
fn name_that_looks_like_a_prefix_is_kept() {
    for comm in [&b"a-1 [0] 2.3: b:"[..], b"[001] 1.5: x: y"] {
        for print in [perf as Print, tracefs, tracefs_tgid] {
            let got = read(&print(comm, b"next")[..]).expect("readable");
            let record = got.recording.records[0];
            let context = &got.recording.comms[record.comm.0 as usize];
            assert_eq!(context.as_bytes(), comm);
            assert_eq!(record.time, Time::from_ns(12_345_678_901));
        }
    }
}

#[test]
fn body_that_holds_a_trace_line_is_no_record() {
    let inner = "x-7 [003] d..2. 99.000001: sched_switch: prev_comm=a prev_pid=1 prev_prio=1 \
                 prev_state=S ==> next_comm=b next_pid=2 next_prio=3";
    let text = format!(
        "          writer-9       [000] .....     1.000001: tracing_mark_write: {inner}\n\
                   a-5       [000] d..2.     1.000002: sched_switch: prev_comm=a prev_pid=5 \
         prev_prio=120 prev_state=S ==> next_comm=b next_pid=6 next_prio=120\n"
    );
    let got = read(text.as_bytes()).expect("readable");
    assert_eq!(got.recording.records.len(), 1);
    assert_eq!(got.summary.other_events.get("tracing_mark_write"), Some(&1));
    assert_eq!(got.recording.n_cpus, 1);
}

fn switch(cpu: u32, time: &str) -> String {
    format!(
        "               a     5 [{cpu:03}] {time}: sched:sched_switch: prev_comm=a prev_pid=5 \
         prev_prio=120 prev_state=S ==> next_comm=b next_pid=6 next_prio=120\n"
    )
}

#[test]
fn crlf_and_missing_final_newline_change_nothing() {
    let plain = switch(0, "1.000001") + &switch(1, "1.000002");
    let expect = read(plain.as_bytes()).expect("readable");
    assert!(expect.summary.final_newline);
    let crlf = read(plain.replace('\n', "\r\n").as_bytes()).expect("readable");
    assert_eq!(crlf.recording, expect.recording);
    let open = read(plain.trim_end().as_bytes()).expect("readable");
    assert_eq!(open.recording, expect.recording);
    assert!(!open.summary.final_newline);
    assert!(open.summary.to_string().contains("no line feed at the end"));
}

fn fault(text: impl AsRef<[u8]>) -> Located {
    match read(text.as_ref()) {
        Ok(read) => panic!("read: {}", read.summary),
        Err(error) => error,
    }
}

#[test]
fn file_empty_or_without_events_is_refused() {
    assert_eq!(fault("").message, "the file is empty");
    assert_eq!(fault("# tracer: nop\n#\n").message, "the trace holds no event");
    assert_eq!(fault("\n \n").message, "the trace holds no event");
    let other = "a-5 [000] d..2. 1.000001: irq_handler_entry: irq=1 name=x\n";
    assert_eq!(fault(other).message, "the trace holds no scheduling event, only 1 others");
    assert_eq!(
        read_form(Format::FtraceText, &b""[..]).expect_err("empty").message,
        "the file is empty"
    );
}

#[test]
fn file_of_another_kind_says_how_to_convert() {
    for (start, word) in
        [(&b"\xfd7zXZ\0\0\0"[..], "xz -d"), (b"<!DOCTYPE html>\n", "script element")]
    {
        let error = fault(start);
        assert!(error.to_string().contains(word), "{error}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn packed_or_binary_file_cut_in_its_head_says_so() {
    for (start, word) in [
        (&b"\x1f\x8b\x08\0\0\0"[..], "the gzip file was cut"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd"),
        (b"PERFILE2\0\0", "the file ends inside its header"),
        (b"PERFFILE\0\0\0\0\0\0\0\0", "old version"),
        (b"\x17\x08\x44tracing7\0", "the file ends inside its head"),
        (b"\x17\x08\x44tracing6\0", "ends too early"),
        (b"\x17\x08\x44tracing5\0", "version 5"),
    ] {
        let error = fault(start);
        assert!(error.message.contains(word), "{error}");
    }
}

#[test]
fn file_cut_in_the_middle_of_a_record_says_so_at_every_length() {
    let whole = switch(0, "1.000001") + &switch(0, "1.000002");
    let first = whole.len() / 2;
    let last = whole.trim_end();
    // The last number may lose digits without anybody noticing; everything before it not.
    let silent = last.len() - "20".len();
    for cut in first + 17..silent {
        let error = fault(&last[..cut]);
        assert!(
            error.message.contains("the file ends in the middle of a record"),
            "{cut}: {error}"
        );
        assert_eq!(error.at.map(|p| (p.line, p.column)), Some((2, cut - first + 1)), "{cut}");
    }
    for cut in silent..=last.len() {
        assert!(!read(&last.as_bytes()[..cut]).expect("readable").summary.final_newline);
    }
}

#[test]
fn line_malformed_is_refused_at_its_place() {
    let broken = switch(0, "1.000001") + &switch(0, "1.000002").replace("=S", "=Q");
    let error = fault(&broken);
    let column = broken.lines().nth(1).and_then(|l| l.find("=Q")).map(|at| at + 2);
    assert_eq!(error.at.map(|p| (p.line, Some(p.column))), Some((2, column)));
    assert_eq!(error.message, "unknown task state `Q`");

    let garbage = switch(0, "1.000001") + "Segmentation fault\n" + &switch(0, "1.000002");
    assert_eq!(fault(&garbage).at.map(|p| (p.line, p.column)), Some((2, 1)));

    let body = switch(0, "1.000001") + &switch(0, "1.000002").replace(" next_pid=6", "");
    assert!(fault(&body).message.contains("sched_switch without"), "{}", fault(&body));

    let cpu = switch(0, "1.000001") + &switch(4096, "1.000002");
    assert!(fault(&cpu).message.contains("CPU 4096 is beyond"), "{}", fault(&cpu));
}

#[test]
fn column_counts_characters_also_behind_broken_utf8() {
    let mut line = switch(0, "1.000001").into_bytes();
    let at = line.windows(2).position(|w| w == b" a").expect("name") + 1;
    line.splice(at..=at, *b"\xc3\xa9\xe4\xb8");
    let text = String::from_utf8_lossy(&line).replace("=S", "=Q");
    let bytes: Vec<u8> = {
        let from = line.windows(2).position(|w| w == b"=S").expect("state");
        line[from + 1] = b'Q';
        line
    };
    let column = text.chars().position(|c| c == 'Q').map(|i| i + 1);
    assert_eq!(fault(bytes).at.map(|p| p.column), column);
}

#[test]
fn raw_fields_and_foreign_clocks_are_explained() {
    let raw = "a-5 [000] 1.000001: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 \
               prev_state=1 next_comm=b next_pid=6 next_prio=120\n";
    let error = fault(raw);
    assert_eq!(error.message, "the task state is a bare number");
    assert!(error.hint.contains("-N"));
    let tsc = "# tracer: nop\n  a-5 [000] d..2. 123456789012: sched_switch: x\n";
    let error = fault(tsc);
    assert!(error.message.contains("no fraction of seconds"), "{error}");
    assert!(error.hint.contains("trace_clock"));
}

#[test]
fn line_of_50_megabytes_is_refused_after_64_kilobytes() {
    struct Counting(u64);
    impl std::io::Read for Counting {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buf.len() as u64;
            buf.fill(b'[');
            Ok(buf.len())
        }
    }
    let mut input = std::io::BufReader::new(Counting(0));
    let error = read(&mut input).expect_err("garbage");
    assert_eq!(error.at.map(|p| (p.line, p.column)), Some((1, MAX_LINE_BYTES + 1)));
    assert!(input.get_ref().0 <= 2 * MAX_LINE_BYTES as u64);
}

#[test]
fn input_that_fails_is_reported_with_its_place() {
    struct Failing<'a>(&'a [u8]);
    impl std::io::Read for Failing<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return Err(std::io::Error::other("disk on fire"));
            }
            self.0.read(buf)
        }
    }
    let text = switch(0, "1.000001");
    let error = read(std::io::BufReader::new(Failing(text.as_bytes()))).expect_err("fails");
    assert_eq!(error.at.map(|p| p.line), Some(2));
    assert!(error.message.contains("disk on fire"));
}

#[test]
fn clock_that_wraps_is_refused_and_small_disorder_is_sorted() {
    // A clock of 32 bits of microseconds.
    let wrapped = switch(0, "4294.967295") + &switch(0, "0.000001");
    let error = fault(wrapped);
    assert!(error.message.contains("time on CPU 0 goes back by 4294.967294s"), "{error}");
    assert_eq!(error.at.map(|p| p.line), Some(2));

    let shuffled = switch(0, "2.000003") + &switch(0, "2.000001") + &switch(1, "2.000002");
    let got = read(shuffled.as_bytes()).expect("readable");
    let times: Vec<u64> = got.recording.records.iter().map(|r| r.time.as_ns() % 10_000).collect();
    assert_eq!(times, [1_000, 2_000, 3_000]);
    assert_eq!(got.summary.out_of_order, 1);
    assert!(got.summary.to_string().contains("1 records went back in time"));
}

#[test]
fn records_of_one_instant_keep_their_order() {
    let text = switch(1, "2.000001") + &switch(0, "2.000001") + &switch(2, "2.000000");
    let got = read(text.as_bytes()).expect("readable");
    let cpus: Vec<u32> = got.recording.records.iter().map(|r| r.cpu.0).collect();
    assert_eq!(cpus, [2, 1, 0]);
}

#[test]
fn event_without_its_system_is_taken() {
    let line = switch(0, "1.000001");
    assert!(line.contains("sched:sched_switch"));
    let bare = line.replace("sched:sched_switch", "sched_switch");
    let (whole, bare) = (read(line.as_bytes()), read(bare.as_bytes()));
    assert_eq!(bare.expect("readable").recording, whole.expect("readable").recording);
}

#[test]
fn cpu_that_comes_back_goes_on_with_its_last_thread() {
    // CPU 1 is silent from 1 s to 400 s, which is no step of its clock and no loss.
    let text = [(0, "1.0"), (1, "1.1"), (0, "2.0"), (0, "399.0"), (1, "400.0")]
        .map(|(cpu, time)| switch(cpu, time))
        .concat();
    let got = read(text.as_bytes()).expect("readable");
    let of_cpu_1: Vec<u64> = got
        .recording
        .records
        .iter()
        .filter(|record| record.cpu == CpuId(1))
        .map(|record| record.time.as_ns())
        .collect();
    assert_eq!(of_cpu_1, [1_100_000_000, 400_000_000_000]);
    assert_eq!((got.summary.out_of_order, got.summary.lost_unknown), (0, 0));
    assert_eq!(got.recording.n_cpus, 2);
}

#[test]
fn lost_events_become_records_of_their_cpu() {
    let line = |cpu: u32, time: &str| {
        format!("a-5 [{cpu:03}] d..2. {time}: sched_waking: comm=b pid=6 prio=120 target_cpu=001\n")
    };
    let text = format!(
        "# tracer: nop\n{}##### CPU 2 buffer started ####\n{}CPU:1 [LOST 17 EVENTS]\n{}{}{}\
         CPU:2 [EVENTS DROPPED]\n{}CPU 0: 5 EVENTS DROPPED\n",
        line(1, "1.000001"),
        line(2, "1.000002"),
        line(0, "1.000003"),
        line(1, "1.000004"),
        line(1, "1.000005"),
        line(2, "1.000006"),
    );
    let got = read(text.as_bytes()).expect("readable");
    let lost: Vec<(u64, u32, u64)> = got
        .recording
        .records
        .iter()
        .filter_map(|r| match r.event {
            RecordEvent::Lost { count } => Some((r.time.as_ns() % 10_000, r.cpu.0, count)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(2_000, 2, 0), (4_000, 1, 17), (6_000, 2, 0), (6_000, 0, 5)]);
    assert_eq!((got.summary.lost_events, got.summary.lost_unknown), (22, 2));
    assert!(got.summary.to_string().contains("lost events: 22"), "{}", got.summary);
}

#[test]
fn perf_side_records_are_counted_and_losses_kept() {
    let text =
        String::from("perf-exec     0 [000]     0.000000: PERF_RECORD_COMM: perf-exec:9/9\n")
            + &switch(0, "1.000001")
            + ":23420 23411 [000]  1.000002: PERF_RECORD_FORK(23411:23420):(23411:23411)\n"
            + "swapper     0 [000]  1.000003: PERF_RECORD_LOST lost 3\n"
            + &switch(0, "1.000004");
    let got = read(text.as_bytes()).expect("readable");
    let other: Vec<_> = got.summary.other_events.iter().map(|(k, n)| (k.as_str(), *n)).collect();
    assert_eq!(other, [("PERF_RECORD_COMM", 1), ("PERF_RECORD_FORK", 1), ("PERF_RECORD_LOST", 1)]);
    assert_eq!(got.recording.records[1].event, RecordEvent::Lost { count: 3 });
    assert_eq!(got.summary.lost_events, 3);
    assert_eq!(got.summary.span.map(|s| s.0), Some(Time::from_ns(1_000_001_000)));
}

#[test]
fn perf_thread_without_id_is_looked_up() {
    let text = switch(0, "1.000001")
        + "  :-1    -1/-1    [000] 1.000002: sched:sched_waking: comm=c pid=7 prio=120 target_cpu=000\n"
        + "  :-1    -1/-1    [001] 1.000003: sched:sched_waking: comm=c pid=7 prio=120 target_cpu=000\n";
    let got = read(text.as_bytes()).expect("readable");
    let pids: Vec<Pid> = got.recording.records.iter().map(|r| r.pid).collect();
    assert_eq!(pids, [Pid(5), Pid(6), schedlab_trace::UNKNOWN_PID]);
    assert_eq!(got.summary.unknown_contexts, 2);
}

#[test]
fn flags_tell_interrupts_apart() {
    let context = |flags: &str| {
        let text = format!(
            "a-5 [000] {flags} 1.000001: sched_waking: comm=b pid=6 prio=120 target_cpu=000\n"
        );
        read(text.as_bytes()).expect("readable").recording.records[0].context
    };
    for (flags, expect) in [
        ("d..2.", RecordContext::Task),
        ("dN.2", RecordContext::Task),
        ("d.h2.", RecordContext::Interrupt),
        ("dNH1", RecordContext::Interrupt),
        ("D.Z2.", RecordContext::Interrupt),
        ("d.s2.", RecordContext::Unknown),
        ("", RecordContext::Unknown),
    ] {
        assert_eq!(context(flags), expect, "{flags}");
    }
}

#[test]
fn unknown_events_and_fields_are_counted() {
    let text = switch(0, "1.000001").replace("next_prio=120", "next_prio=120 tsk=7")
        + "  a 5 [000] 1.000002: sched:sched_stat_sleep: comm=a pid=5 delay=7 [ns]\n"
        + "  a 5 [000] 1.000003: sched:sched_something_new: a\n"
        + "  a 5 [000] 1.000004:          1 cycles:ppp:  ffffffff81 x ([k])\n";
    let got = read(text.as_bytes()).expect("readable");
    assert_eq!(got.summary.extra_fields, 1);
    let other: Vec<_> = got.summary.other_events.keys().map(String::as_str).collect();
    assert_eq!(other, ["ppp", "sched_something_new", "sched_stat_sleep"]);
}

#[test]
fn processes_are_learned_from_both_forms() {
    let perf =
        "  a   10/12   [000] 1.000001: sched:sched_waking: comm=b pid=6 prio=120 target_cpu=000\n";
    let got = read(perf.as_bytes()).expect("readable");
    assert_eq!(got.recording.tgids, [(Pid(12), Pid(10))]);
    let ftrace = "a-12 (     10) [000] d..2. 1.000001: sched_waking: comm=b pid=6 prio=120 target_cpu=000\n\
                  b-13 (-------) [000] d..2. 1.000002: sched_waking: comm=b pid=6 prio=120 target_cpu=000\n";
    let got = read(ftrace.as_bytes()).expect("readable");
    assert_eq!(got.recording.tgids, [(Pid(12), Pid(10))]);
}

#[test]
fn forms_are_told_apart_and_can_be_forced() {
    let text = switch(0, "1.000001");
    let Read { summary, .. } = read(text.as_bytes()).expect("readable");
    assert_eq!(summary.format, Format::PerfScript);
    assert!(read_form(Format::PerfScript, text.as_bytes()).is_ok());
    assert!(read_form(Format::FtraceText, text.as_bytes()).is_err());
    // Any buffered input will do.
    fn takes(input: impl BufRead) -> bool {
        read(input).is_ok()
    }
    assert!(takes(std::io::BufReader::with_capacity(512, text.as_bytes())));
}
