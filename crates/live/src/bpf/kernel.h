/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of the kernel that the relay looks at. Only fields that are used; where they are in the
 * running kernel is found out when the program is loaded (CO-RE), and so are the values of flags.
 */
#ifndef SCHEDLAB_KERNEL_H
#define SCHEDLAB_KERNEL_H

typedef unsigned char u8, __u8;
typedef signed char s8, __s8;
typedef unsigned short u16, __u16, __be16;
typedef signed short s16, __s16;
typedef unsigned int u32, __u32, __be32, __wsum;
typedef signed int s32, __s32;
typedef unsigned long long u64, __u64;
typedef signed long long s64, __s64;
typedef _Bool bool;
#define true 1
#define false 0

/* Of the BPF interface, fixed. */
enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_AVAIL_DATA = 0 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { CLOCK_MONOTONIC = 1 };

struct bpf_timer { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_iter_num { u64 opaque[1]; } __attribute__((aligned(8)));

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask { unsigned long bits[1]; };
struct sched_entity { u64 sum_exec_runtime; };
struct sched_ext_entity { u32 flags; u64 slice; };

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int prio;
	int static_prio;
	unsigned int policy;
	struct sched_entity se;
	struct sched_ext_entity scx;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	char comm[16];
};

struct scx_init_task_args { bool fork; };
struct scx_cpu_release_args { struct task_struct *task; };
enum scx_exit_kind { SCX_EXIT_NONE };
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};
struct pcpu_hot { int preempt_count; };

#pragma clang attribute pop

/* The callbacks used; the loader matches them to the kernel's by name. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *mask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* Macros in the kernel, therefore not to be looked up; unchanged since before sched_ext. */
#define PF_EXITING		0x00000004
#define PF_KTHREAD		0x00200000
#define TASK_UNINTERRUPTIBLE	0x00000002
#define SCHED_EXT		7
#define MAX_RT_PRIO		100
#define NICE_0_PRIO		120

/* Named values of the running kernel. The numbers here are those of 6.12 and are not used. */
enum scx_public_consts { SCX_SLICE_DFL = 20000000, SCX_SLICE_INF = ~0ULL };
enum scx_dsq_id_flags { SCX_DSQ_LOCAL = (1ULL << 63) | 2 };
enum scx_ent_flags { SCX_TASK_QUEUED = 1 };
enum scx_enq_flags { SCX_ENQ_WAKEUP = 1, SCX_ENQ_PREEMPT = 1ULL << 32, SCX_ENQ_REENQ = 1ULL << 40 };
enum scx_deq_flags { SCX_DEQ_SLEEP = 1 };
enum scx_wake_flags { SCX_WAKE_FORK = 4, SCX_WAKE_SYNC = 16 };
enum scx_kick_flags { SCX_KICK_IDLE = 1, SCX_KICK_PREEMPT = 2 };
#define K(type, value) ((u64)bpf_core_enum_value(enum type, value))

/* Functions of the kernel. Of a renamed one both names are tried: the loader drops `___…`. */
void scx_bpf_dispatch___old(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
void scx_bpf_dsq_insert___new(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
bool scx_bpf_consume___old(u64 dsq) __ksym __weak;
bool scx_bpf_dsq_move_to_local___new(u64 dsq) __ksym __weak;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *mask) __ksym;
u32 bpf_cpumask_any_and_distribute(const struct cpumask *a, const struct cpumask *b) __ksym;
s32 scx_bpf_create_dsq(u64 dsq, s32 node) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
u32 scx_bpf_nr_cpu_ids(void) __ksym;
u32 scx_bpf_reenqueue_local(void) __ksym __weak;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *m) __ksym;
u32 bpf_cpumask_first(const struct cpumask *m) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
extern struct pcpu_hot pcpu_hot __ksym __weak;

static inline void insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___new))
		scx_bpf_dsq_insert___new(p, dsq, slice, flags);
	else
		scx_bpf_dispatch___old(p, dsq, slice, flags);
}

static inline void insert_local(struct task_struct *p, u64 slice, u64 flags)
{
	insert(p, K(scx_dsq_id_flags, SCX_DSQ_LOCAL), slice, flags);
}

static inline bool move_to_local(u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___new))
		return scx_bpf_dsq_move_to_local___new(dsq);
	return scx_bpf_consume___old(dsq);
}

#endif
