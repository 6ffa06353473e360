# SPDX-License-Identifier: GPL-2.0-only
"""Decodes a Perfetto trace with the official definitions and compares it with the CSV of the same
trace: events by kind and CPU, and, given --whole, that switches join up."""

import csv
import sys
from collections import Counter

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

NO_MESSAGE = {"sched_stat_runtime", "lost"}


def main():
    trace_file, csv_file, *flags = sys.argv[1:]
    trace = perfetto_trace_pb2.Trace()
    with open(trace_file, "rb") as file:
        trace.ParseFromString(file.read())
    found, current, breaks = Counter(), {}, 0
    last = {}
    for packet in trace.packet:
        bundle = packet.ftrace_events
        for event in bundle.event:
            if event.timestamp < last.get(bundle.cpu, 0):
                sys.exit(f"time goes back on CPU {bundle.cpu}")
            last[bundle.cpu] = event.timestamp
            kind = event.WhichOneof("event")
            if kind is None:
                continue
            found[kind, bundle.cpu] += 1
            if kind == "sched_switch":
                switch = event.sched_switch
                if current.get(bundle.cpu, switch.prev_pid) != switch.prev_pid:
                    breaks += 1
                current[bundle.cpu] = switch.next_pid
    expected = Counter()
    with open(csv_file, newline="") as file:
        for row in csv.DictReader(file):
            if row["event"] not in NO_MESSAGE:
                expected[row["event"], int(row["cpu"])] += 1
    if found != expected:
        sys.exit(f"counts differ: {found - expected} too many, {expected - found} missing")
    if "--whole" in flags and breaks:
        sys.exit(f"{breaks} switches leave another thread than came")
    print(f"{trace_file}: {sum(found.values())} events on {len(last)} CPUs agree")


main()
