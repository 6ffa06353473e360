#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In the guest: does every policy schedule, and does the kernel always get its tasks back?
# Usage: live-suite.sh SCHEDLAB [REPETITIONS]. Prints ok or FAIL for each check.
cp "$1" /run/schedlab.bin
S=/run/schedlab.bin times=${2:-1} bad=0
export RUST_BACKTRACE=0

check() { if [ "$2" = "$3" ]; then echo "ok   $1"; else echo "FAIL $1: got '$2', want '$3'"; bad=1; fi; }
state() { cat /sys/kernel/sched_ext/state; }
# Waits until the state is $1, at most $2 tenths of a second.
until_state() { n=0; while [ "$(state)" != "$1" ] && [ $n -lt "$2" ]; do sleep 0.1; n=$((n + 1)); done; state; }
# What must be zero in a report.
faults() { tr ',{}' '\n\n\n' </run/o.json | grep -E '"live_(rescued|fallback|odd)"' | tr -dc '0-9\n' | tr '\n' ' '; }
host() { pidof schedlab.bin | tr ' ' '\n' | sort -n | head -1; }

# A tree of short processes, pipelines, a periodic task, all at once.
cat >/run/load.sh <<'L'
spin() { i=0; while [ $i -lt "$1" ]; do i=$((i + 1)); done; }
build() { for k in 1 2 3; do sh -c 'i=0; while [ $i -lt 1500 ]; do i=$((i + 1)); done' & sleep 0.01; done; wait; }
for g in 1 2 3; do build & done
for g in 1 2 3; do seq 1 2000 | cat | cat | cat >/dev/null & done
(for k in 1 2 3 4 5 6 7 8; do sleep 0.01; spin 100; done) &
spin 2000
wait
L
# One that lasts for a while, and leaves a trace of its end.
long='i=0; while [ $i -lt 40000 ]; do i=$((i + 1)); done; echo end >/run/end'

check "state and name while it runs" \
    "$($S live -q -p fifo -- cat /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops | tr '\n' ' ')" \
    "enabled schedlab "
$S live -q -p rr -- sh -c 'exit 7'; check "exit code of the command" $? 7
check "gone after the command" "$(state)" disabled
for t in $(seq "$times"); do
    for p in bfs cfs eevdf fifo goodness mq o1 rr spa; do
        for s in workload system; do
            timeout 60 $S live -q -p $p --scope $s -o /run/o.json --format json -- sh /run/load.sh 2>/run/e
            check "$p, scope $s: the load ends ($t)" "$? $(faults)" "0 0 0 0 "
        done
    done
done

# Shares of nice 0 and nice 5 on one CPU, by the kernel's account, in thousandths.
cat >/run/share.sh <<'L'
taskset -p 2 $$ >/dev/null
sh -c 'while :; do :; done' & a=$!
sh -c 'while :; do :; done' & b=$!
renice -n 5 -p $b >/dev/null
sleep 0.3
a0=$(cut -d' ' -f1 /proc/$a/schedstat) b0=$(cut -d' ' -f1 /proc/$b/schedstat)
sleep 4
a1=$(cut -d' ' -f1 /proc/$a/schedstat) b1=$(cut -d' ' -f1 /proc/$b/schedstat)
kill $a $b
echo $(((a1 - a0) * 1000 / (a1 - a0 + b1 - b0)))
L
share=$($S live -q -p eevdf -- sh /run/share.sh 2>/dev/null)
echo "     eevdf, nice 0 against nice 5: $share thousandths of one CPU (1024 : 335 = 753)"
[ "$share" -ge 743 ] && [ "$share" -le 763 ]; check "nice 0 : nice 5 as 75.3 : 24.7 within 1 %" $? 0

for t in $(seq "$times"); do
    rm -f /run/end; $S live -q -p eevdf -- sh -c "$long" 2>/run/e & until_state enabled 100 >/dev/null; sleep 0.2
    kill -9 "$(host)"; check "kill -9: the kernel takes over ($t)" "$(until_state disabled 50)" disabled
    n=0; while [ ! -e /run/end ] && [ $n -lt 200 ]; do sleep 0.1; n=$((n + 1)); done
    check "kill -9: the load ends ($t)" "$(cat /run/end)" end; wait

    rm -f /run/end; $S live -q -p bfs -- sh -c "$long" 2>/run/e & until_state enabled 100 >/dev/null; sleep 0.2
    h=$(host); kill -STOP "$h"; check "stopped host: the kernel takes over ($t)" "$(until_state disabled 80)" disabled
    kill -CONT "$h"; wait; check "stopped host: the load ends ($t)" "$(cat /run/end)" end

    rm -f /run/end; $S live -q -p o1 --fault hang=300ms -- sh -c "$long" 2>/run/e & until_state enabled 100 >/dev/null
    sleep 0.3; check "hanging policy: the kernel takes over ($t)" "$(until_state disabled 80)" disabled
    n=0; while [ ! -e /run/end ] && [ $n -lt 200 ]; do sleep 0.1; n=$((n + 1)); done
    check "hanging policy: the load ends ($t)" "$(cat /run/end)" end; kill -9 "$(host)"; wait

    rm -f /run/end; $S live -q -p spa --fault panic=300ms -- sh -c "$long" 2>/run/e
    check "panicking policy: exit code and state ($t)" "$? $(state) $(cat /run/end)" "1 disabled end"

    rm -f /run/end; $S live -q -p cfs -- sh -c "$long" 2>/run/e & until_state enabled 100 >/dev/null
    $S live -q -p fifo -- true 2>/run/e2
    check "second scheduler is refused ($t)" "$? $(head -1 /run/e2)" \
        "4 error: another sched_ext scheduler is loaded: schedlab; stop it first"
    wait; check "second scheduler: the load ends ($t)" "$(cat /run/end)" end

    rm -f /run/end; $S live -q -p mq -- sh -c "$long" 2>/run/e & until_state enabled 100 >/dev/null; sleep 0.2
    echo S >/proc/sysrq-trigger; check "SysRq-S: the kernel takes over ($t)" "$(until_state disabled 50)" disabled
    wait; check "SysRq-S: told, and the load ends ($t)" "$(grep -c 'stopped by SysRq-S' /run/e) $(cat /run/end)" "1 end"
done
exit $bad
