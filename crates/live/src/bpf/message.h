/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the relay and the host tell each other. crates/live/src/message.rs has the same layout; both
 * sides check sizes when they are compiled, and LAYOUT when they meet.
 *
 * Little endian, 8-byte aligned. The order of records in the ring is the order of truth: the ring's
 * lock serialises all CPUs, time stamps of different CPUs do not.
 */
#ifndef SCHEDLAB_MESSAGE_H
#define SCHEDLAB_MESSAGE_H

#define LAYOUT		0x5c4ed001
#define MAX_CPUS	1024
#define MASK_WORDS	(MAX_CPUS / 64)
#define COMM_LEN	16

/* Kinds of records, relay to host. */
enum {
	MSG_JOIN   = 1,		/* The task comes under the policy. Long record.		*/
	MSG_ENQ    = 2,		/* It is runnable and waits for a decision.			*/
	MSG_DEQ    = 3,		/* It waits no longer, without having run.			*/
	MSG_BLOCK  = 4,		/* It stopped being runnable.					*/
	MSG_PICK   = 5,		/* The CPU has nothing of ours to run and waits for a decision.	*/
	MSG_TICK   = 6,		/* Timer tick during a run that asked for ticks.		*/
	MSG_NICE   = 7,		/* Its nice value changed.					*/
	MSG_AFFINE = 8,		/* The CPUs it may use changed. Long record.			*/
	MSG_LEAVE  = 9,		/* It exited, or is not the policy's any more.			*/
	MSG_RUN    = 10,	/* It starts to run under this lease.				*/
	MSG_BUSY   = 11,	/* The decision was taken back: another class has the CPU.	*/
	MSG_EXEC   = 12,	/* It replaced its program. Long record.			*/
	MSG_NAME   = 13,	/* It has a new name. Long record.				*/
	MSG_CPU    = 14,	/* The CPU went online (a = 1) or offline (a = 0).		*/
	MSG_WAKE   = 15,	/* Nothing: it only wakes the host.				*/
};

/* Why a task waits, in the lowest bits of the flags of MSG_ENQ. */
enum {
	WHY_FORK = 1, WHY_WAKE = 2, WHY_SLICE = 3, WHY_PREEMPT = 4, WHY_YIELD = 5, WHY_RESTORE = 6,
	WHY_CLASS = 7,		/* a higher class took the CPU */
};
#define WHY_MASK	0xfu
#define F_SYNC		(1u << 4)	/* ENQ: the waker is about to sleep		*/
#define F_IRQ		(1u << 5)	/* ENQ: woken by an interrupt			*/
#define F_UNINT		(1u << 6)	/* ENQ, BLOCK: the sleep is uninterruptible	*/
#define F_EXITING	(1u << 7)	/* BLOCK, LEAVE: the task exits			*/
#define F_REJECTED	(1u << 8)	/* PICK: the last decision could not be used	*/
#define F_FORKED	(1u << 9)	/* JOIN: by fork; else it was there before	*/
#define F_DIRECT	(1u << 10)	/* ENQ, RUN: `cpu` runs it without a decision	*/

/* Why a decision was rejected, in `a` of MSG_PICK. After CPU and PINNED the task still waits. */
enum { REJECT_GONE = 1, REJECT_STALE = 2, REJECT_CPU = 3, REJECT_PINNED = 4 };

struct msg {
	u64 t_ns;		/* CLOCK_MONOTONIC when it was written; 0: as the one before	*/
	u64 run_ns;		/* CPU time of the task since its last record		*/
	u32 pid;		/* thread; 0 where none					*/
	u32 lease;		/* counts the times that the task was handed over	*/
	u16 kind;
	u16 cpu;
	u32 flags;
	u64 a;			/* ENQ: ns of sleep. PICK: why rejected. CPU: online.
				   JOIN: the kernel's scheduling policy			*/
	u64 b;			/* ENQ: pid of the waker. JOIN: tgid << 32 | parent.
				   PICK after PINNED: the CPU it is pinned to		*/
	s64 c;			/* ENQ: CPU of the waker. JOIN, NICE: nice		*/
};

struct long_msg {
	struct msg msg;
	char comm[COMM_LEN];
	u64 allowed[MASK_WORDS];	/* CPUs that the task may use			*/
};

/* Decision for one CPU. The host fills the fields and then sets state to SLOT_FULL (release). */
enum { SLOT_EMPTY = 0, SLOT_FULL = 1, SLOT_IN_USE = 2 };
struct slot {
	u32 state;
	u32 pid;
	u32 lease;
	u32 flags;
	u64 slice_ns;		/* all ones: until the host says otherwise		*/
	u64 pad[5];		/* a cache line for each CPU				*/
};
#define RUN_TICKS 1u		/* send MSG_TICK during this run			*/

/* A run, named so that a later run of the same task is not meant. */
struct run {
	u32 pid;
	u32 lease;
};

/* A batch of decisions, for the program relay_commit. */
struct commit {
	u64 kick[MASK_WORDS];	/* in: CPUs whose slot was filled. out: those that were not free	*/
	u64 preempt[MASK_WORDS];/* CPUs whose run in `stops` is to end				*/
};

/* Totals that only grow; the host reads them. */
struct counters {
	u64 ring_full, dispatched, rejected, revoked, fallback, rescued, kicks, retries,
	    kernel_threads, direct;
};

_Static_assert(sizeof(struct msg) == 56, "message.rs has the same size");
_Static_assert(sizeof(struct long_msg) == 56 + 16 + 128, "message.rs has the same size");
_Static_assert(sizeof(struct slot) == 64, "message.rs has the same size");
_Static_assert(sizeof(struct commit) == 256, "message.rs has the same size");
_Static_assert(sizeof(struct counters) == 80, "message.rs has the same size");

#endif
