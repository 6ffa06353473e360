// SPDX-License-Identifier: GPL-2.0-only
/*
 * The relay between the kernel's sched_ext class and the host, which runs the policy in user space.
 *
 * It decides nothing. What happens to tasks goes to the host as records of one ring; what the host
 * wrote into the slot of a CPU is what that CPU runs next. Only what must never wait for user space
 * is served here: kernel threads, the host's own threads, tasks that arrive while the ring is full,
 * tasks that may use none of the policy's CPUs, and the end of a host that fell silent.
 */
#include "kernel.h"
#include "message.h"

char _license[] SEC("license") = "GPL";

#define SPARE_DSQ	0		/* first in, first out: tasks nobody is asked about	*/
#define RING_BYTES	(4 << 20)
#define WATCH_NS	50000000	/* period of the watch over the host			*/
#define CRUMB_NS	100000		/* less than this of a slice is not worth a switch	*/
#define ENOMEM		12
#define ENOENT		2

/* Set by the host before the program is loaded. */
const volatile u32 host_tgid;
const volatile u64 silence_ns = 1000000000;
const volatile bool whole_system;
const volatile bool polling;		/* the host never sleeps: it need not be woken		*/
const volatile bool report_runs;	/* send MSG_RUN						*/
const volatile bool quiet_enqueue;	/* a waiting task is of interest only to a waiting CPU	*/
const volatile bool idle_dispatch;	/* an idle CPU takes a woken task without asking	*/
const volatile bool direct_ticks;	/* such a run sends MSG_TICK				*/
const volatile u64 policy_cpus[MASK_WORDS];

/* Shared with the host, which maps it. */
u32 layout = LAYOUT;
struct slot slots[MAX_CPUS];
struct run stops[MAX_CPUS];		/* runs to be ended, with commit.preempt		*/
struct commit commit;
struct counters counters;
u64 heartbeat;				/* the host adds one after every batch			*/
u32 host_awake;				/* the host looks at the ring before it sleeps		*/
u32 exit_kind;
s64 exit_code;
char exit_reason[64], exit_text[256];

/* The relay's own view of each CPU; the host reads it to explain itself. */
u32 asked[MAX_CPUS];			/* MSG_PICK is outstanding				*/
u32 foreign[MAX_CPUS];			/* a task of another class runs there			*/
struct run pushed_aside[MAX_CPUS];	/* the run that a kernel thread was put in front of	*/
struct run current_run[MAX_CPUS];

/*
 * Whether the host has anything to decide: CPUs that have asked, and tasks that wait. Whoever adds
 * to one looks at the other afterwards, so of two that come at once at least one sees both.
 */
u32 waiting;
u32 queued;
u32 last_queued;			/* the pid that was added last				*/
u32 host_cpu;				/* where the host runs now, and one more; 0: it sleeps	*/

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} ring SEC(".maps");

struct task_ctx {
	u32 lease;
	u32 run_flags;		/* RUN_TICKS						*/
	u64 reported;		/* sum_exec_runtime at the last record			*/
	u64 blocked_at;
	u64 granted;		/* slice of the present run, and sum_exec_runtime at	*/
	u64 granted_at;		/* its beginning					*/
	u32 run_lease;		/* MSG_RUN was sent for this lease			*/
	u32 stop_lease;		/* the run of this lease is to end			*/
	u32 why;		/* reason of the next MSG_ENQ; 0 = not known		*/
	u32 wake_flags;
	u32 unint;
	u32 is_new;		/* forked, not yet queued				*/
	u32 joined;
	u32 queued;		/* counts in `queued`					*/
	u32 direct;		/* flags of the MSG_ENQ to be sent when it runs		*/
	u32 waker, waker_cpu;	/* fields of that					*/
	u32 exit_reported;	/* MSG_BLOCK with F_EXITING was sent			*/
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

struct watch_timer { struct bpf_timer timer; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct watch_timer);
} watch_timers SEC(".maps");

static void count(u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static struct task_ctx *ctx_of(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, 0, 0);
}

static bool known_cpu(s32 cpu)
{
	return cpu >= 0 && cpu < MAX_CPUS;
}

static bool is_policy_cpu(u32 cpu)
{
	return cpu < MAX_CPUS && policy_cpus[cpu / 64] & 1ULL << cpu % 64;
}

/* Kernel threads and the host's own threads are nobody's business: user space may wait for them. */
static bool may_be_ours(const struct task_struct *p)
{
	return !(p->flags & PF_KTHREAD) && p->tgid != host_tgid;
}

static bool is_ours(const struct task_struct *p, const struct task_ctx *tc)
{
	return tc && tc->joined && may_be_ours(p);
}

static void set_asked(u32 cpu, u32 value)
{
	u32 old;

	if (cpu >= MAX_CPUS)
		return;
	old = __sync_lock_test_and_set(&asked[cpu], value);
	if (value && !old)
		__sync_fetch_and_add(&waiting, 1);
	else if (old && !value)
		__sync_fetch_and_sub(&waiting, 1);
}

static void set_queued(struct task_ctx *tc, u32 value)
{
	if (value && !tc->queued)
		__sync_fetch_and_add(&queued, 1);
	else if (tc->queued && !value)
		__sync_fetch_and_sub(&queued, 1);
	tc->queued = value;
}

static u32 now_in(u32 *counter)
{
	return *(volatile u32 *)counter;
}

/* CPU time since the last record, by the kernel's own account. */
static u64 take_run(struct task_struct *p, struct task_ctx *tc)
{
	u64 sum = p->se.sum_exec_runtime, span = sum - tc->reported;

	tc->reported = sum;
	return span;
}

static void fill_at(struct msg *m, u64 t_ns, u16 kind, u32 pid, u32 lease, s32 cpu, u32 flags)
{
	m->t_ns = t_ns;
	m->run_ns = 0;
	m->pid = pid;
	m->lease = lease;
	m->kind = kind;
	m->cpu = cpu;
	m->flags = flags;
	m->a = m->b = 0;
	m->c = 0;
}

static void fill(struct msg *m, u16 kind, u32 pid, u32 lease, s32 cpu, u32 flags)
{
	fill_at(m, bpf_ktime_get_ns(), kind, pid, lease, cpu, flags);
}

static struct msg *open_msg(u16 kind, u32 pid, u32 lease, s32 cpu, u32 flags)
{
	struct msg *m = bpf_ringbuf_reserve(&ring, sizeof(*m), 0);

	if (!m) {
		count(&counters.ring_full);
		return 0;
	}
	fill(m, kind, pid, lease, cpu, flags);
	return m;
}

/*
 * Nothing is sent "adaptively": the kernel would wake the host only if it had caught up to exactly
 * that record, and records sent silently before keep it from that. A host that is awake looks once
 * more after it has said that it goes to sleep, so it need not be woken either; if it said so while
 * the record was under way, a second, empty record wakes it.
 */
static bool host_sleeps(void)
{
	return !polling && !now_in(&host_awake);
}

static void wake_host(void)
{
	struct msg *wake = host_sleeps() ? bpf_ringbuf_reserve(&ring, sizeof(*wake), 0) : 0;

	if (wake) {
		fill(wake, MSG_WAKE, 0, 0, 0, 0);
		bpf_ringbuf_submit(wake, BPF_RB_FORCE_WAKEUP);
	}
}

static void send(void *m, bool silent)
{
	u64 flags = BPF_RB_NO_WAKEUP;

	if (!silent && host_sleeps())
		flags = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_submit(m, flags);
	if (!silent && flags != BPF_RB_FORCE_WAKEUP)
		wake_host();
}

/* A record with name and CPUs of a task. */
static void send_long(u16 kind, struct task_struct *p, struct task_ctx *tc, u32 flags, u64 b)
{
	struct long_msg *m = bpf_ringbuf_reserve(&ring, sizeof(*m), 0);
	u32 bytes = (scx_bpf_nr_cpu_ids() + 63) / 64 * 8;

	if (!m) {
		count(&counters.ring_full);
		return;
	}
	fill(&m->msg, kind, p->pid, tc->lease,
	     flags & F_FORKED ? bpf_get_smp_processor_id() : scx_bpf_task_cpu(p), flags);
	m->msg.a = p->policy;
	m->msg.b = b;
	m->msg.c = p->static_prio - NICE_0_PRIO;
	__builtin_memset(m->allowed, 0, sizeof(m->allowed));
	if (bytes > sizeof(m->allowed))
		bytes = sizeof(m->allowed);
	bpf_probe_read_kernel(m->allowed, bytes, p->cpus_ptr);
	bpf_probe_read_kernel(m->comm, sizeof(m->comm), p->comm);
	send(m, true);
}

static bool may_use_policy_cpus(const struct cpumask *mask)
{
	u64 words[MASK_WORDS] = {};
	u32 i, bytes = (scx_bpf_nr_cpu_ids() + 63) / 64 * 8;

	if (bytes > sizeof(words))
		bytes = sizeof(words);
	bpf_probe_read_kernel(words, bytes, mask);
	bpf_for(i, 0, MASK_WORDS) {
		if (i < MASK_WORDS && words[i] & policy_cpus[i])
			return true;
	}
	return false;
}

static void join(struct task_struct *p, struct task_ctx *tc, u32 flags)
{
	tc->joined = 1;
	tc->reported = p->se.sum_exec_runtime;
	/* Of a fork the parent is the thread that forks, which is the one that runs here. */
	send_long(MSG_JOIN, p, tc, flags, (u64)p->tgid << 32 |
		  (u32)(flags & F_FORKED ? bpf_get_current_task_btf()->pid : p->real_parent->pid));
}

static void leave(struct task_struct *p, struct task_ctx *tc)
{
	struct msg *m;

	tc->joined = 0;
	set_queued(tc, 0);
	m = open_msg(MSG_LEAVE, p->pid, tc->lease, scx_bpf_task_cpu(p),
		     p->flags & PF_EXITING ? F_EXITING : 0);
	if (m) {
		m->run_ns = take_run(p, tc);
		send(m, false);
	}
	/* A decision under way must not meet it should it come back. */
	tc->lease++;
}

/* Hard and soft interrupts and NMIs, in the preempt count where this kernel keeps it. */
static bool in_interrupt(void)
{
	struct pcpu_hot *hot;

	if (!bpf_ksym_exists(&pcpu_hot))
		return bpf_get_current_task_btf()->pid == 0;
	hot = bpf_this_cpu_ptr(&pcpu_hot);
	return hot->preempt_count & 0x00ff0100;
}

/*
 * A CPU has nothing to run. Two callbacks come here, since each misses a case: update_idle() is not
 * called when an idle CPU looks for work and stays idle, and dispatch() is called before a task that
 * still wants to run has been handed back.
 */
static void ask(s32 cpu)
{
	struct msg *m;

	if (!known_cpu(cpu) || !is_policy_cpu(cpu))
		return;
	if (asked[cpu]) {
		/* It was kicked, or the host has left it: what waits was meant for it. */
		if (idle_dispatch && now_in(&queued))
			wake_host();
		return;
	}
	m = open_msg(MSG_PICK, 0, 0, cpu, 0);
	if (m) {
		set_asked(cpu, 1);
		send(m, !now_in(&queued));
	}
}

/* Takes a decision back; false when it was taken up already, or there is none. */
static bool revoke(u32 cpu)
{
	if (cpu >= MAX_CPUS || __sync_val_compare_and_swap(&slots[cpu].state, SLOT_FULL, SLOT_EMPTY) != SLOT_FULL)
		return false;
	set_asked(cpu, 0);
	count(&counters.revoked);
	return true;
}

/* The same, and the host is told. */
static void take_back(u32 cpu)
{
	struct msg *m;
	u32 pid, lease;

	if (cpu >= MAX_CPUS)
		return;
	pid = slots[cpu].pid;
	lease = slots[cpu].lease;
	if (!revoke(cpu))
		return;
	m = open_msg(MSG_BUSY, pid, lease, cpu, 0);
	if (m)
		send(m, false);
}

/* The task is the CPU's without our having asked; whatever was decided about it is void. */
static void begin_directly(struct task_struct *p, struct task_ctx *tc, s32 cpu)
{
	tc->lease++;
	tc->is_new = tc->why = tc->wake_flags = tc->unint = 0;
	tc->run_flags = direct_ticks ? RUN_TICKS : 0;
	tc->granted = K(scx_public_consts, SCX_SLICE_INF);
	tc->granted_at = p->se.sum_exec_runtime;
	set_asked(cpu, 0);
	set_queued(tc, 0);
	count(&counters.direct);
	insert_local(p, tc->granted, 0);
}

/*
 * Nobody waits, and this CPU does: the policy has said that it would run a woken task at once
 * anyway. The record is sent when the task begins to run, after that of the task it follows; the
 * host reads it when it looks next.
 */
static bool wake_directly(struct task_struct *p, struct task_ctx *tc, s32 cpu)
{
	/* The kernel keeps an exiting task by itself. */
	if (!known_cpu(cpu) || !is_policy_cpu(cpu) || p->flags & PF_EXITING)
		return false;
	tc->direct = (tc->is_new ? WHY_FORK : WHY_WAKE) | F_DIRECT | tc->wake_flags |
		     (tc->unint ? F_UNINT : 0);
	tc->waker = bpf_get_current_task_btf()->pid;
	tc->waker_cpu = bpf_get_smp_processor_id();
	begin_directly(p, tc, cpu);
	return true;
}

static void report_direct(struct task_struct *p, struct task_ctx *tc, s32 cpu)
{
	struct msg *m = open_msg(MSG_ENQ, p->pid, tc->lease, cpu, tc->direct);

	tc->direct = 0;
	if (m) {
		m->run_ns = take_run(p, tc);
		m->a = tc->blocked_at ? m->t_ns - tc->blocked_at : 0;
		m->b = tc->waker;
		m->c = tc->waker_cpu;
		send(m, true);
	}
}

/* The only task that waits goes to a CPU that looks for one, if it may run there. */
static bool pick_directly(s32 cpu)
{
	struct task_struct *p;
	struct task_ctx *tc;
	struct msg *m;
	bool runs = false;

	if (!idle_dispatch || now_in(&queued) != 1 || !is_policy_cpu(cpu))
		return false;
	p = bpf_task_from_pid(last_queued);
	if (!p)
		return false;
	tc = ctx_of(p);
	if (is_ours(p, tc) && tc->queued && !p->migration_disabled &&
	    bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	    (!p->on_cpu || scx_bpf_task_cpu(p) == cpu)) {
		/* The stamp is left out: the record about the task that left the CPU is just before it. */
		m = bpf_ringbuf_reserve(&ring, sizeof(*m), 0);
		if (m) {
			fill_at(m, 0, MSG_RUN, p->pid, tc->lease + 1, cpu, F_DIRECT);
			begin_directly(p, tc, cpu);
			send(m, true);
			runs = true;
		}
	}
	bpf_task_release(p);
	return runs;
}

SEC("struct_ops")
s32 BPF_PROG(relay_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tc = ctx_of(p);

	if (!is_ours(p, tc)) {
		bool idle = false;
		s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

		if (idle)
			insert_local(p, K(scx_public_consts, SCX_SLICE_DFL), 0);
		return cpu;
	}
	tc->wake_flags = (wake_flags & K(scx_wake_flags, SCX_WAKE_SYNC) ? F_SYNC : 0) |
			  (in_interrupt() ? F_IRQ : 0);
	if (wake_flags & K(scx_wake_flags, SCX_WAKE_FORK))
		tc->is_new = 1;
	if (idle_dispatch && !now_in(&queued) && !(p->flags & PF_EXITING)) {
		bool idle = false;
		s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

		if (idle && wake_directly(p, tc, cpu))
			return cpu;
	}
	/* The policy chooses a CPU later. This one is woken meanwhile, which warms it up. */
	if (bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr))
		return prev_cpu;
	return bpf_cpumask_first(p->cpus_ptr);
}

/*
 * Whether the host must hear at once that `p` waits, under a policy that would not let it disturb a
 * running task: only if a CPU waits that nobody else sends to work.
 */
static bool needs_decision(struct task_struct *p)
{
	u32 at = now_in(&host_cpu), others = now_in(&waiting), cpu;
	const struct cpumask *idle;

	if (!idle_dispatch)
		return others;
	/* The CPU on which the host runs looks for work when the host goes to sleep. */
	if (at && at <= MAX_CPUS && asked[at - 1])
		others--;
	if (!others)
		return false;
	/* Its mark as idle stays: it would not come back if the CPU found the task gone. */
	idle = scx_bpf_get_idle_cpumask();
	cpu = bpf_cpumask_any_and_distribute(p->cpus_ptr, idle);
	scx_bpf_put_idle_cpumask(idle);
	if (cpu >= scx_bpf_nr_cpu_ids())
		return true;
	scx_bpf_kick_cpu(cpu, K(scx_kick_flags, SCX_KICK_IDLE));
	return false;
}

SEC("struct_ops")
void BPF_PROG(relay_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = ctx_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	bool woken = enq_flags & K(scx_enq_flags, SCX_ENQ_WAKEUP);
	struct msg *m;
	u32 why;

	if (!is_ours(p, tc)) {
		u64 flags = enq_flags;

		if (may_be_ours(p)) {
			/* It may use none of the policy's CPUs: nobody can be asked. */
			insert_local(p, K(scx_public_consts, SCX_SLICE_DFL), flags);
			return;
		}
		count(&counters.kernel_threads);
		if (woken) {
			if (known_cpu(cpu))
				pushed_aside[cpu] = current_run[cpu];
			flags |= K(scx_enq_flags, SCX_ENQ_PREEMPT);
		}
		insert_local(p, K(scx_public_consts, SCX_SLICE_DFL), flags);
		return;
	}

	/* Pushed aside by one of those: it gets its CPU back with what was left, unasked. */
	if (known_cpu(cpu) && pushed_aside[cpu].pid == p->pid &&
	    pushed_aside[cpu].lease == tc->lease && tc->why == WHY_SLICE && tc->stop_lease != tc->lease) {
		u64 used = p->se.sum_exec_runtime - tc->granted_at, inf = K(scx_public_consts, SCX_SLICE_INF);

		pushed_aside[cpu].pid = 0;
		if (tc->granted == inf || used + CRUMB_NS < tc->granted) {
			tc->why = 0;
			insert_local(p, tc->granted == inf ? inf : tc->granted - used, 0);
			return;
		}
	}

	if (idle_dispatch && (woken || tc->is_new) && known_cpu(cpu) && asked[cpu] &&
	    !now_in(&queued) && now_in(&slots[cpu].state) == SLOT_EMPTY &&
	    wake_directly(p, tc, cpu))
		return;
	if (tc->is_new)
		why = WHY_FORK;
	else if (woken)
		why = WHY_WAKE;
	else if (enq_flags & K(scx_enq_flags, SCX_ENQ_REENQ))
		why = WHY_CLASS;
	else if (tc->why)
		why = tc->why;
	else
		why = WHY_RESTORE;
	tc->is_new = 0;
	tc->why = 0;
	tc->lease++;
	m = open_msg(MSG_ENQ, p->pid, tc->lease, cpu, why | tc->wake_flags | (tc->unint ? F_UNINT : 0));
	if (!m) {
		count(&counters.fallback);
		insert(p, SPARE_DSQ, K(scx_public_consts, SCX_SLICE_DFL), enq_flags);
		return;
	}
	m->run_ns = take_run(p, tc);
	if (why == WHY_WAKE || why == WHY_FORK) {
		m->a = tc->blocked_at ? m->t_ns - tc->blocked_at : 0;
		m->b = bpf_get_current_task_btf()->pid;
		m->c = bpf_get_smp_processor_id();
	}
	tc->direct = 0;
	tc->wake_flags = tc->unint = 0;
	last_queued = p->pid;
	set_queued(tc, 1);
	send(m, quiet_enqueue && !needs_decision(p));
}

SEC("struct_ops")
void BPF_PROG(relay_dequeue, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = ctx_of(p);
	struct msg *m;

	if (!is_ours(p, tc))
		return;
	set_queued(tc, 0);
	m = open_msg(MSG_DEQ, p->pid, tc->lease, scx_bpf_task_cpu(p), 0);
	if (m)
		send(m, true);
}

/* Tries to run what the slot, in use by us, says; 0 or the reason why not. -1: the slot stays full. */
static int run_slot(struct slot *slot, s32 cpu, s32 *pinned_to)
{
	struct task_struct *p = bpf_task_from_pid(slot->pid);
	struct task_ctx *tc;
	int outcome = 0;

	if (!p)
		return REJECT_GONE;
	tc = ctx_of(p);
	if (!is_ours(p, tc) || tc->lease != slot->lease) {
		outcome = REJECT_STALE;
	} else if (p->on_cpu && scx_bpf_task_cpu(p) != cpu) {
		/*
		 * The CPU it comes from has reported it but is still on its stack, where a BPF program
		 * may pin it; to move a pinned task would end the scheduler.
		 */
		outcome = -1;
	} else if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
		outcome = REJECT_CPU;
	} else if (p->migration_disabled && scx_bpf_task_cpu(p) != cpu) {
		outcome = REJECT_PINNED;
		*pinned_to = scx_bpf_task_cpu(p);
	} else {
		tc->run_flags = slot->flags;
		tc->granted = slot->slice_ns ?: K(scx_public_consts, SCX_SLICE_DFL);
		tc->granted_at = p->se.sum_exec_runtime;
		set_queued(tc, 0);
		insert_local(p, tc->granted, 0);
	}
	bpf_task_release(p);
	return outcome;
}

SEC("struct_ops")
void BPF_PROG(relay_dispatch, s32 cpu, struct task_struct *prev)
{
	struct slot *slot;
	struct msg *m;
	int rejected;
	u32 pid, lease;
	s32 pinned_to = 0;

	if (!known_cpu(cpu))
		return;
	if (scx_bpf_dsq_nr_queued(SPARE_DSQ) && move_to_local(SPARE_DSQ))
		return;
	slot = &slots[cpu];
	if (__sync_val_compare_and_swap(&slot->state, SLOT_FULL, SLOT_IN_USE) != SLOT_FULL) {
		if ((!prev || !(prev->scx.flags & K(scx_ent_flags, SCX_TASK_QUEUED))) &&
		    !pick_directly(cpu))
			ask(cpu);
		return;
	}
	pid = slot->pid;
	lease = slot->lease;
	rejected = run_slot(slot, cpu, &pinned_to);
	if (rejected < 0) {
		count(&counters.retries);
		__sync_lock_test_and_set(&slot->state, SLOT_FULL);
		scx_bpf_kick_cpu(cpu, 0);
		return;
	}
	set_asked(cpu, 0);
	__sync_lock_test_and_set(&slot->state, SLOT_EMPTY);
	if (!rejected) {
		count(&counters.dispatched);
		return;
	}
	count(&counters.rejected);
	m = open_msg(MSG_PICK, pid, lease, cpu, F_REJECTED);
	if (m) {
		set_asked(cpu, 1);
		m->a = rejected;
		m->b = pinned_to;
		send(m, false);
	}
}

SEC("struct_ops")
void BPF_PROG(relay_update_idle, s32 cpu, bool idle)
{
	if (idle)
		ask(cpu);
}

/*
 * No callback tells that another class took a CPU that was idle or had asked; its decision, given or
 * about to be given, must come back. commit() looks at `foreign` for those about to be given.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(relay_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	bool other = next->pid && next->tgid != host_tgid &&
		     (next->prio < MAX_RT_PRIO || (!whole_system && next->policy != SCHED_EXT));

	if (next->tgid == host_tgid)
		host_cpu = cpu + 1;
	else if (prev->tgid == host_tgid)
		host_cpu = 0;
	if (cpu >= MAX_CPUS || foreign[cpu] == other)
		return 0;
	__sync_lock_test_and_set(&foreign[cpu], other);
	if (other)
		take_back(cpu);
	return 0;
}

SEC("struct_ops")
void BPF_PROG(relay_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	/* The host's own visits are short: what waits here goes on right after them. */
	if (args->task->tgid != host_tgid)
		scx_bpf_reenqueue_local();
}

SEC("struct_ops")
void BPF_PROG(relay_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct task_ctx *tc = ctx_of(p);
	struct msg *m;

	if (!tc || !known_cpu(cpu))
		return;
	current_run[cpu].pid = p->pid;
	current_run[cpu].lease = tc->lease;
	if (!is_ours(p, tc))
		return;
	pushed_aside[cpu].pid = 0;
	if (tc->direct) {
		/* It may have asked between the wake-up and now: to the host this run is the answer. */
		set_asked(cpu, 0);
		report_direct(p, tc, cpu);
	}
	/*
	 * A request to end this run was lost on a task of a higher class. Not for an exiting task:
	 * the kernel puts it back itself, under the same lease, and this would never end.
	 */
	if (tc->stop_lease && tc->stop_lease == tc->lease && !(p->flags & PF_EXITING)) {
		tc->why = WHY_PREEMPT;
		scx_bpf_kick_cpu(cpu, K(scx_kick_flags, SCX_KICK_PREEMPT));
	}
	/* Once for each lease: the record wakes the host, which may push this very task aside. */
	if (report_runs && tc->run_lease != tc->lease) {
		tc->run_lease = tc->lease;
		m = open_msg(MSG_RUN, p->pid, tc->lease, cpu, 0);
		if (m)
			send(m, true);
	}
}

static void report_block(struct task_struct *p, struct task_ctx *tc, u32 flags)
{
	struct msg *m;

	if (tc->exit_reported)
		return;
	if (p->flags & PF_EXITING) {
		tc->exit_reported = 1;
		flags |= F_EXITING;
	}
	m = open_msg(MSG_BLOCK, p->pid, tc->lease, scx_bpf_task_cpu(p), flags);
	if (m) {
		m->run_ns = take_run(p, tc);
		/* MSG_PICK of this CPU follows at once and wakes the host, unless another class is next. */
		send(m, true);
	}
}

/* Must be there: only then the kernel has brought a task's CPU time up to date in quiescent(). */
SEC("struct_ops")
void BPF_PROG(relay_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct task_ctx *tc = ctx_of(p);

	if (known_cpu(cpu))
		current_run[cpu].pid = 0;
	if (!tc || !runnable)
		return;
	if (!tc->why)
		tc->why = WHY_SLICE;
	/*
	 * An exiting task is never handed over again: the kernel keeps it on this CPU by itself, which
	 * may seem idle, and so ask, for a moment.
	 */
	if (is_ours(p, tc) && p->flags & PF_EXITING)
		report_block(p, tc, 0);
}

SEC("struct_ops")
void BPF_PROG(relay_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = ctx_of(p);

	if (!is_ours(p, tc) || !(deq_flags & K(scx_deq_flags, SCX_DEQ_SLEEP)))
		return;
	tc->why = 0;
	tc->unint = p->__state & TASK_UNINTERRUPTIBLE;
	tc->blocked_at = bpf_ktime_get_ns();
	report_block(p, tc, tc->unint ? F_UNINT : 0);
}

SEC("struct_ops")
bool BPF_PROG(relay_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = ctx_of(from);

	if (tc)
		tc->why = WHY_YIELD;
	from->scx.slice = 0;
	return false;
}

SEC("struct_ops")
void BPF_PROG(relay_tick, struct task_struct *p)
{
	struct task_ctx *tc = ctx_of(p);
	struct msg *m;

	if (!is_ours(p, tc) || !(tc->run_flags & RUN_TICKS))
		return;
	m = open_msg(MSG_TICK, p->pid, tc->lease, scx_bpf_task_cpu(p), 0);
	if (m) {
		m->run_ns = take_run(p, tc);
		send(m, false);
	}
}

SEC("struct_ops")
void BPF_PROG(relay_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tc = ctx_of(p);
	struct msg *m;

	if (!is_ours(p, tc))
		return;
	m = open_msg(MSG_NICE, p->pid, tc->lease, scx_bpf_task_cpu(p), 0);
	if (m) {
		m->c = p->static_prio - NICE_0_PRIO;
		send(m, false);
	}
}

SEC("struct_ops")
void BPF_PROG(relay_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct task_ctx *tc = ctx_of(p);
	bool inside;

	if (!tc || !may_be_ours(p))
		return;
	inside = may_use_policy_cpus(mask);
	if (tc->joined && !inside)
		leave(p, tc);
	else if (tc->joined)
		send_long(MSG_AFFINE, p, tc, 0, 0);
	else if (inside)
		join(p, tc, 0);
}

SEC("struct_ops")
s32 BPF_PROG(relay_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -ENOMEM;		/* the fork fails, and says why */
	tc->is_new = args->fork;
	return 0;
}

SEC("struct_ops")
void BPF_PROG(relay_enable, struct task_struct *p)
{
	struct task_ctx *tc = ctx_of(p);

	if (tc && may_be_ours(p) && may_use_policy_cpus(p->cpus_ptr))
		join(p, tc, tc->is_new ? F_FORKED : 0);
}

SEC("struct_ops")
void BPF_PROG(relay_disable, struct task_struct *p)
{
	struct task_ctx *tc = ctx_of(p);

	if (is_ours(p, tc))
		leave(p, tc);
}

static void report_cpu(s32 cpu, bool online)
{
	struct msg *m = open_msg(MSG_CPU, 0, 0, cpu, 0);

	if (m) {
		m->a = online;
		send(m, false);
	}
}

SEC("struct_ops")
void BPF_PROG(relay_cpu_online, s32 cpu)
{
	report_cpu(cpu, true);
}

SEC("struct_ops")
void BPF_PROG(relay_cpu_offline, s32 cpu)
{
	if (known_cpu(cpu)) {
		take_back(cpu);
		/* The host forgets that it asked: once it is back it must ask anew. */
		set_asked(cpu, 0);
	}
	report_cpu(cpu, false);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(relay_exec, struct task_struct *p, s32 old_pid, void *bprm)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, 0, 0);

	if (is_ours(p, tc))
		send_long(MSG_EXEC, p, tc, 0, (u64)p->tgid << 32 | (u32)p->real_parent->pid);
	return 0;
}

/* The new name; the task still has the old one. */
SEC("tp_btf/task_rename")
int BPF_PROG(relay_rename, struct task_struct *p, const char *comm)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, 0, 0);
	struct long_msg *m;

	if (!is_ours(p, tc))
		return 0;
	m = bpf_ringbuf_reserve(&ring, sizeof(*m), 0);
	if (!m)
		return 0;
	fill(&m->msg, MSG_NAME, p->pid, tc->lease, scx_bpf_task_cpu(p), 0);
	__builtin_memset(m->allowed, 0, sizeof(m->allowed));
	bpf_probe_read_kernel_str(m->comm, sizeof(m->comm), comm);
	send(m, true);
	return 0;
}

static void stop_run(u32 cpu)
{
	struct task_struct *p = bpf_task_from_pid(stops[cpu].pid);
	struct task_ctx *tc;

	if (!p)
		return;
	tc = ctx_of(p);
	if (tc && tc->lease == stops[cpu].lease && !(p->flags & PF_EXITING)) {
		/* Stays until the lease changes: running() repeats it when the kick is lost. */
		tc->stop_lease = tc->lease;
		if (current_run[cpu].pid == stops[cpu].pid) {
			tc->why = WHY_PREEMPT;
			scx_bpf_kick_cpu(cpu, K(scx_kick_flags, SCX_KICK_PREEMPT));
			count(&counters.kicks);
		}
	}
	bpf_task_release(p);
}

/* Makes a batch of decisions known: wakes CPUs whose slot was filled, ends runs. */
SEC("syscall")
int relay_commit(void *unused)
{
	u32 n = scx_bpf_nr_cpu_ids(), w, bit;

	bpf_for(w, 0, MASK_WORDS) {
		u64 kick, preempt, busy = 0;

		if (w * 64 >= n || w >= MASK_WORDS)
			break;
		kick = commit.kick[w];
		preempt = commit.preempt[w];
		if (!(kick | preempt))
			continue;
		bpf_for(bit, 0, 64) {
			u32 cpu = w * 64 + bit;

			if (cpu >= n || cpu >= MAX_CPUS)
				break;
			if (preempt >> bit & 1)
				stop_run(cpu);
			if (!(kick >> bit & 1))
				continue;
			count(&counters.kicks);		/* a full barrier before `foreign` is read */
			if (foreign[cpu] && revoke(cpu))
				busy |= 1ULL << bit;
			/* In both cases: it may have looked for work just before. */
			scx_bpf_kick_cpu(cpu, K(scx_kick_flags, SCX_KICK_IDLE));
		}
		commit.kick[w] = busy;
	}
	return 0;
}

/* Watches the host, and decisions that nobody takes up. */
u64 last_beat, silent_since;
u64 seen[MAX_CPUS];

static int watch(void *map, u32 *key, struct bpf_timer *timer)
{
	u64 now = bpf_ktime_get_ns(), beat = heartbeat;
	u32 cpu, n = scx_bpf_nr_cpu_ids();

	if (beat != last_beat || !bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA)) {
		last_beat = beat;
		silent_since = now;
	} else if (now - silent_since > silence_ns) {
		static char text[] = "policy silent for %llu ms";
		unsigned long long args[1] = { (now - silent_since) / 1000000 };

		scx_bpf_error_bstr(text, args, sizeof(args));
		return 0;
	}
	/*
	 * A decision that lies for a whole period means that a kick was lost, which is a bug: it is
	 * mended here, and counted so that tests can insist on none.
	 */
	bpf_for(cpu, 0, MAX_CPUS) {
		u64 what;

		if (cpu >= n || cpu >= MAX_CPUS)
			break;
		what = slots[cpu].state == SLOT_FULL ? (u64)slots[cpu].pid << 32 | slots[cpu].lease : 0;
		if (what && what == seen[cpu] && !foreign[cpu]) {
			count(&counters.rescued);
			scx_bpf_kick_cpu(cpu, K(scx_kick_flags, SCX_KICK_IDLE));
		}
		seen[cpu] = what;
	}
	bpf_timer_start(timer, WATCH_NS, 0);
	return 0;
}

SEC("struct_ops.s")
s32 BPF_PROG(relay_init)
{
	u32 key = 0;
	struct watch_timer *w = bpf_map_lookup_elem(&watch_timers, &key);
	s32 failed;

	if (!w)
		return -ENOENT;
	failed = scx_bpf_create_dsq(SPARE_DSQ, -1);
	if (failed)
		return failed;
	silent_since = bpf_ktime_get_ns();
	bpf_timer_init(&w->timer, &watch_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&w->timer, watch);
	return bpf_timer_start(&w->timer, WATCH_NS, 0);
}

SEC("struct_ops")
void BPF_PROG(relay_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_text, sizeof(exit_text), info->msg);
	exit_code = info->exit_code;
	__sync_lock_test_and_set(&exit_kind, info->kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops relay = {
	.select_cpu = (void *)relay_select_cpu,
	.enqueue = (void *)relay_enqueue,
	.dequeue = (void *)relay_dequeue,
	.dispatch = (void *)relay_dispatch,
	.tick = (void *)relay_tick,
	.running = (void *)relay_running,
	.stopping = (void *)relay_stopping,
	.quiescent = (void *)relay_quiescent,
	.yield = (void *)relay_yield,
	.set_weight = (void *)relay_set_weight,
	.set_cpumask = (void *)relay_set_cpumask,
	.update_idle = (void *)relay_update_idle,
	.cpu_release = (void *)relay_cpu_release,
	.init_task = (void *)relay_init_task,
	.enable = (void *)relay_enable,
	.disable = (void *)relay_disable,
	.cpu_online = (void *)relay_cpu_online,
	.cpu_offline = (void *)relay_cpu_offline,
	.init = (void *)relay_init,
	.exit = (void *)relay_exit,
	.name = "schedlab",
};
