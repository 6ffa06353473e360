# SPDX-License-Identifier: GPL-2.0-only
# The guest after the change of root: completes its file systems, runs the command, hands out its result.
b=/run/schedlab/busybox
die() {
    echo "schedlab-vm: $1"
    $b poweroff -f
}
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/run TMPDIR=/run LANG=C.UTF-8

$b mkdir -p /dev/shm /dev/pts
$b mount -t tmpfs shm /dev/shm
$b mount -t devpts pts /dev/pts
# The kernel makes devices, but not these links.
$b ln -s /proc/self/fd /dev/fd
$b ln -s fd/0 /dev/stdin
$b ln -s fd/1 /dev/stdout
$b ln -s fd/2 /dev/stderr
# A kernel may lack these; the command then says what it misses.
$b mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
$b mount -t bpf bpf /sys/fs/bpf 2>/dev/null
$b mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
$b mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
$b ip link set lo up
$b mount -t 9p -o trans=virtio,version=9p2000.L,rw,msize=512000 out /mnt ||
    die "the output directory cannot be mounted on /mnt"

# The ports appear when a kernel worker has seen them.
n=0
while ! [ -c /dev/vport0p1 -a -c /dev/vport0p2 -a -c /dev/vport0p3 ]; do
    n=$((n + 1))
    [ $n -le 500 ] || die "no virtio ports: the kernel needs CONFIG_VIRTIO_CONSOLE"
    $b usleep 10000
done

# A port can be opened once only, and /dev/stdout opens again: the command gets pipes.
$b mkfifo /run/schedlab/out /run/schedlab/err
$b cat /run/schedlab/out >/dev/vport0p1 &
out=$!
$b cat /run/schedlab/err >/dev/vport0p2 &
err=$!
directory=$($b cat /run/schedlab/directory)
cd "$directory" 2>/dev/null || cd /run
$b setsid /bin/sh -c "$($b cat /run/schedlab/command)" </dev/null >/run/schedlab/out 2>/run/schedlab/err
code=$?
# Processes left behind hold the pipes open: they end with the command. Kernel threads have no program.
left=1
while [ $left -gt 0 ]; do
    left=0
    for process in /proc/[0-9]*; do
        pid=${process#/proc/}
        [ $pid -ne 1 -a $pid -ne $out -a $pid -ne $err -a -e $process/exe ] || continue
        kill -9 $pid
        left=$((left + 1))
    done
done
wait $out $err
echo "exit $code" >/dev/vport0p3
$b sync
$b poweroff -f
