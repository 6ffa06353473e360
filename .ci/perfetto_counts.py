# SPDX-License-Identifier: GPL-2.0-only
"""Decodes a Perfetto trace with the official definitions, goes by the rules of the trace
processor's importer, and compares what it would show with the CSV of the same trace.

Fails where the importer would count an error or show another thread state, CPU slice or wake-up.
With --whole (a recording without filter, or a run) switches must join up too."""

import csv
import sys
from collections import Counter

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

# Records that Perfetto has no message for: they stand in messages of ours.
NO_MESSAGE = {"sched_stat_runtime", "lost"}
FIRST_OWN = 50000
LENGTH_DELIMITED = 2
TYPE_COUNTER = 4
STATE_CLEARED = 1
CPUS_MAX = 1024


def need(holds, message):
    if not holds:
        sys.exit(message)


def read(path):
    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    return trace


def check_event(event):
    """What the importer wants of an event before it looks at its message."""
    need(event.HasField("timestamp"), "an event without a time")
    need(event.HasField("pid"), "an event without a thread")
    # Taken for one more event, and not used for wakings.
    need(not event.HasField("common_flags"), "an event with common_flags")
    own = [(field.field_number, field.wire_type) for field in UnknownFieldSet(event)]
    need(all(number >= FIRST_OWN for number, _ in own), f"unknown fields {own}")
    is_known = event.WhichOneof("event") is not None
    has_message = any(wire_type == LENGTH_DELIMITED for _, wire_type in own)
    need(is_known or has_message, "an event without a message")


def check_tracks(trace):
    """Counters are described before they are used, on a sequence that began, below threads of
    which there is one track each."""
    described, threads, n_values, began = set(), {}, 0, set()
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & STATE_CLEARED:
            began.add(sequence)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            need(track.HasField("uuid"), "a track without a number")
            if track.HasField("thread"):
                need(track.thread.pid and track.thread.tid, "a thread without numbers")
                need(track.thread.tid not in threads.values(), "a second track of a thread")
                threads[track.uuid] = track.thread.tid
                continue
            need(track.HasField("counter"), "a track that is no counter")
            need(track.parent_uuid in threads or not track.parent_uuid, "an unknown parent")
            described.add(track.uuid)
        if packet.HasField("track_event"):
            event = packet.track_event
            need(sequence in began, "a track event on a sequence that did not begin")
            need(packet.HasField("timestamp"), "a track event without a time")
            need(event.track_uuid in described, "a value of an unknown track")
            need(event.type == TYPE_COUNTER and event.HasField("counter_value"), "no value")
            n_values += 1
    return len(described), n_values


def check_processes(trace):
    for packet in trace.packet:
        processes = {process.pid for process in packet.process_tree.processes}
        need(0 not in processes, "the idle thread as a process")
        for thread in packet.process_tree.threads:
            need(thread.tgid in processes, f"thread {thread.tid} of an unknown process")


def kernel(trace):
    """The kernel by whose numbers states are read: known before the first event."""
    for packet in trace.packet:
        if packet.HasField("ftrace_events"):
            break
        # The importer looks at nothing else in a packet with a snapshot.
        if packet.HasField("system_info") and not packet.HasField("clock_snapshot"):
            name = packet.system_info.utsname
            need(name.sysname == "Linux", "not Linux")
            return tuple(int(part) for part in name.release.split(".")[:2])
    return (4, 4)


def state_name(state, version):
    need(version >= (4, 14), f"states read as those of kernel {version}")
    need(state & ~0x1FF == 0, f"state {state:#x} is invalid")
    names = "".join(c for bit, c in enumerate("SDTtXZPI") if state >> bit & 1)
    return names or ("R+" if state & 0x100 else "R")


def sorted_as_imported(queues):
    """Events in the order of the sorter: of the queues with the earliest event the first, up to
    the earliest time of the others, that included."""
    at, n_left = [0] * len(queues), sum(map(len, queues))
    while n_left:
        heads = [
            (queue[at[n]].timestamp, n) for n, queue in enumerate(queues) if at[n] < len(queue)
        ]
        heads.sort()
        n, until = heads[0][1], heads[1][0] if len(heads) > 1 else None
        while at[n] < len(queues[n]) and (until is None or queues[n][at[n]].timestamp <= until):
            yield n, queues[n][at[n]]
            at[n] += 1
            n_left -= 1


def thread_states(events, version):
    """The rows of the table of thread states by state, and wake-ups that open none."""
    states, rows, ignored = {}, Counter(), 0
    for event in events:
        kind = event.WhichOneof("event")
        if kind == "sched_switch":
            switch = event.sched_switch
            state = state_name(switch.prev_state, version)
            for pid, state in ((switch.prev_pid, state), (switch.next_pid, "Running")):
                if pid:
                    states[pid] = state
                    rows[state] += 1
        elif kind == "sched_waking":
            if states.get(event.sched_waking.pid, "") in ("R", "Running"):
                ignored += 1
            else:
                states[event.sched_waking.pid] = "R"
                rows["R"] += 1
    return rows, ignored


def main():
    trace_file, csv_file, *flags = sys.argv[1:]
    trace = read(trace_file)
    version = kernel(trace)
    n_tracks, n_values = check_tracks(trace)
    check_processes(trace)
    found, states, current, breaks, last = Counter(), Counter(), {}, 0, {}
    queues, written = {}, []
    for packet in trace.packet:
        if not packet.HasField("ftrace_events"):
            continue
        bundle = packet.ftrace_events
        need(bundle.HasField("cpu") and bundle.cpu < CPUS_MAX, f"CPU {bundle.cpu}")
        for event in bundle.event:
            check_event(event)
            need(event.timestamp >= last.get(bundle.cpu, 0), f"CPU {bundle.cpu} goes back in time")
            last[bundle.cpu] = event.timestamp
            written.append(event)
            queues.setdefault(bundle.cpu, []).append(event)
            kind = event.WhichOneof("event")
            if kind is None:
                continue
            found[kind, bundle.cpu] += 1
            if kind == "sched_switch":
                switch = event.sched_switch
                states[state_name(switch.prev_state, version), bundle.cpu] += 1
                if current.get(bundle.cpu, switch.prev_pid) != switch.prev_pid:
                    breaks += 1
                current[bundle.cpu] = switch.next_pid
    expected, expected_states = Counter(), Counter()
    with open(csv_file, newline="") as file:
        for row in csv.DictReader(file):
            if row["event"] not in NO_MESSAGE:
                expected[row["event"], int(row["cpu"])] += 1
            if row["event"] == "sched_switch":
                expected_states[row["state"], int(row["cpu"])] += 1
    need(found == expected, f"counts: {found - expected} too many, {expected - found} missing")
    need(states == expected_states, f"states: {states} instead of {expected_states}")
    need(not (breaks and "--whole" in flags), f"{breaks} switches leave another thread than came")
    rows, ignored = thread_states(written, version)
    imported = [event for _, event in sorted_as_imported(list(queues.values()))]
    imported_rows, imported_ignored = thread_states(imported, version)
    print(
        f"{trace_file}: {sum(found.values())} events on {len(last)} CPUs agree, "
        f"{breaks} breaks, {n_values} values of {n_tracks} counters; "
        f"{sum(rows.values())} thread states, {ignored} wakings of threads awake; "
        f"as sorted by the importer {sum(imported_rows.values())} and {imported_ignored}"
    )


main()
