#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In the guest: does the transcript of every live run replay to the same decisions?
# Usage: live-transcripts.sh SCHEDLAB. Prints ok or FAIL for each check.
cp "$1" /run/schedlab.bin
S=/run/schedlab.bin T=/run/t.live bad=0
export RUST_BACKTRACE=0

# A tree of short processes, pipelines, a periodic task, all at once.
cat >/run/load.sh <<'L'
spin() { i=0; while [ $i -lt "$1" ]; do i=$((i + 1)); done; }
build() { for k in 1 2 3; do sh -c 'i=0; while [ $i -lt 500 ]; do i=$((i + 1)); done' & sleep 0.01; done; wait; }
for g in 1 2 3; do build & done
for g in 1 2; do seq 1 200 | cat | cat >/dev/null & done
(for k in 1 2 3 4 5 6 7 8; do sleep 0.01; spin 100; done) &
spin 1000
wait
L
long='i=0; while [ $i -lt 40000 ]; do i=$((i + 1)); done'

# The replay of the last run, which is to reach $2.
replay() {
    if $S diff $T >/run/d 2>&1 && grep -q "what a CPU runs next, $2" /run/d; then
        echo "ok   $1"
    else
        echo "FAIL $1"; cat /run/d; bad=1
    fi
}

for p in bfs cfs eevdf fifo goodness mq o1 rr spa; do
    for s in workload system; do
        timeout 60 $S live -q -p $p --scope $s --transcript $T -- sh /run/load.sh 2>/run/e
        replay "$p, scope $s" "to the end of the run"
    done
done
$S live -q -p eevdf --poll --transcript $T -- sh /run/load.sh 2>/run/e
replay "a host that polls" "to the end of the run"
$S live -q -p eevdf --transcript $T -- sh -c "$S live set base_slice=5ms; sh /run/load.sh" 2>/run/e
replay "a tunable that changes" "to the end of the run"
$S live -q -p spa --fault panic=300ms --transcript $T -- sh -c "$long" 2>/run/e
replay "a policy that panics" "to the end of the run"

$S live -q -p bfs --transcript $T -- sh -c "$long" 2>/run/e &
n=0; while [ "$(cat /sys/kernel/sched_ext/state)" != enabled ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
sleep 1
kill -9 "$(pidof schedlab.bin | tr ' ' '\n' | sort -n | head -1)"; wait
replay "a run that was killed" "up to where the run was killed"
exit $bad
