# SPDX-License-Identifier: GPL-2.0-only
"""Checks a Perfetto trace of several runs with the official definitions: every track is described
once and before its use, below the process of its run; times of a track do not go back; slices open
and close in turn; every flow begins before it ends."""

import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

BEGIN, END = 1, 2


def main():
    trace_file, n_runs = sys.argv[1], int(sys.argv[2])
    trace = perfetto_trace_pb2.Trace()
    with open(trace_file, "rb") as file:
        trace.ParseFromString(file.read())
    processes, tracks, is_open, last, flows, n_slices = set(), set(), set(), {}, set(), 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, "a track is described twice"
            tracks.add(track.uuid)
            if track.HasField("process"):
                processes.add(track.uuid)
            else:
                assert track.parent_uuid in processes, "a track without its process"
        if packet.HasField("track_event"):
            event = packet.track_event
            uuid = event.track_uuid
            assert uuid in tracks, "an event on a track that is not described"
            assert packet.timestamp >= last.get(uuid, 0), "time goes back"
            last[uuid] = packet.timestamp
            if event.type == BEGIN:
                assert uuid not in is_open, "a slice begins inside another"
                is_open.add(uuid)
                n_slices += 1
            elif event.type == END:
                is_open.remove(uuid)
            flows.update(event.flow_ids)
            assert flows.issuperset(event.terminating_flow_ids), "a flow ends that never began"
    assert not is_open, "a slice never ends"
    assert len(processes) == n_runs, f"{len(processes)} runs"
    print(f"{trace_file}: {len(processes)} runs, {n_slices} slices, {len(flows)} flows")


main()
