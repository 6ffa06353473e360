// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab top`: the tasks of a live run, again and again.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use schedlab_live::control::{Answer, Ask, StatusReply, TaskReply, TasksReply};
use schedlab_units::Nanos;

use crate::commands::live_control::{NoAnswer, ask, ask_status, unexpected};
use crate::exit::{Exit, Failure};
use crate::live_args::{SortArg, TopArgs};
use crate::output::Destination;
use crate::table::{printable, table};
use crate::{interrupt, terminal};

/// Cursor to the upper left corner, and everything below it cleared.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// How soon ^C is noticed.
const NOTICE: Duration = Duration::from_millis(50);

/// Shows the tasks until ^C or the end of the live run, or once.
///
/// # Errors
/// When nobody answers at the socket from the beginning.
pub(crate) fn top(args: &TopArgs) -> Result<Exit, Failure> {
    let (status, tasks) = sample(&args.socket)?;
    if args.once {
        let text = render(&status, &tasks, None, args.sort);
        Destination::Stdout.write(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let stop = interrupt::flag()?;
    let interval = Duration::from_nanos(args.interval.as_ns());
    let mut shown = (status, tasks);
    let mut before = None;
    loop {
        let text = render(&shown.0, &shown.1, before.as_ref(), args.sort);
        let text = fitted(&text, terminal::size());
        let mut out = anstream::stdout().lock();
        // Whoever read standard output has seen enough.
        if write!(out, "{CLEAR}{text}").and_then(|()| out.flush()).is_err() {
            return Ok(Exit::Done);
        }
        drop(out);
        if !waited(interval, &stop) {
            return Ok(Exit::Done);
        }
        before = Some(shown.1);
        shown = match sample(&args.socket) {
            Ok(sample) => sample,
            Err(NoAnswer::Absent(_)) => {
                terminal::message("the live run has ended");
                return Ok(Exit::Done);
            }
            Err(NoAnswer::Failed(failure)) => return Err(failure),
        };
    }
}

/// What is shown in one table.
fn sample(socket: &Path) -> Result<(StatusReply, TasksReply), NoAnswer> {
    let status = ask_status(socket)?;
    match ask(socket, &Ask::Tasks)? {
        Answer::Tasks(tasks) => Ok((status, tasks)),
        other => Err(NoAnswer::Failed(unexpected(&other))),
    }
}

/// Waits for `interval`; false when the user has ended it.
fn waited(interval: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + interval;
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NOTICE));
    }
}

/// A task and its shares of the time between two samples, in parts of 1.
struct Row<'a> {
    task: &'a TaskReply,
    run: f64,
    wait: f64,
}

/// Shares since `before`, or since the policy took over.
fn rows<'a>(tasks: &'a TasksReply, before: Option<&TasksReply>) -> Vec<Row<'a>> {
    let earlier: BTreeMap<u32, &TaskReply> = before
        .map(|before| before.tasks.iter().map(|task| (task.pid, task)).collect())
        .unwrap_or_default();
    let span = tasks.now_ns.saturating_sub(before.map_or(0, |before| before.now_ns));
    let share = |now: u64, then: Option<u64>| match span {
        0 => 0.0,
        // A smaller figure is that of another task with the same number.
        span => now.checked_sub(then.unwrap_or(0)).unwrap_or(now) as f64 / span as f64,
    };
    let row = |task: &'a TaskReply| {
        let then = earlier.get(&task.pid);
        Row {
            task,
            run: share(task.run_ns, then.map(|then| then.run_ns)),
            wait: share(task.wait_ns, then.map(|then| then.wait_ns)),
        }
    };
    tasks.tasks.iter().map(row).collect()
}

/// Puts those first that `sort` asks for; equal ones by pid.
fn sort_rows(rows: &mut [Row<'_>], sort: SortArg) {
    rows.sort_by_key(|row| row.task.pid);
    match sort {
        SortArg::Cpu => rows.sort_by(|a, b| b.run.total_cmp(&a.run)),
        SortArg::Wait => rows.sort_by(|a, b| b.wait.total_cmp(&a.wait)),
        SortArg::Prio => rows.sort_by_key(|row| Reverse(row.task.prio.map(Reverse))),
    }
}

/// The head and the table.
fn render(
    status: &StatusReply,
    tasks: &TasksReply,
    before: Option<&TasksReply>,
    sort: SortArg,
) -> String {
    const TEXTS: [usize; 3] = [1, 2, 5];
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in tasks.tasks.iter().flat_map(|task| &task.values) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let fixed = ["PID", "COMM", "CLASS", "NI", "PRI", "STATE", "CPU", "%RUN", "%WAIT"];
    let fixed = fixed.into_iter().chain(["RUN [ms]", "WAIT [ms]"]);
    let header: Vec<String> = fixed.chain(names.iter().copied()).map(str::to_string).collect();
    let mut sorted = rows(tasks, before);
    sort_rows(&mut sorted, sort);
    let cells = |row: &Row<'_>| {
        let task = row.task;
        let ms = |ns: u64| format!("{}.{:03}", ns / 1_000_000, ns / 1000 % 1000);
        let mut cells = vec![
            task.pid.to_string(),
            task.comm.clone(),
            task.class.clone(),
            task.nice.to_string(),
            task.prio.map_or_else(|| "–".to_string(), |prio| prio.to_string()),
            task.state.clone(),
            task.cpu.to_string(),
            format!("{:.1}", row.run * 100.0),
            format!("{:.1}", row.wait * 100.0),
            ms(task.run_ns),
            ms(task.wait_ns),
        ];
        for name in &names {
            let value = task.values.iter().find(|(own, _)| own == name);
            cells.push(value.map_or_else(|| "–".to_string(), |(_, value)| value.to_string()));
        }
        cells
    };
    let cells: Vec<Vec<String>> = sorted.iter().map(cells).collect();
    let table = table(&header, &cells, |column| TEXTS.contains(&column));
    format!("{}\n{table}\n", head(status, tasks, before))
}

/// What runs where, and how many tasks do what.
fn head(status: &StatusReply, tasks: &TasksReply, before: Option<&TasksReply>) -> String {
    let count = |state: &str| tasks.tasks.iter().filter(|task| task.state == state).count();
    let span = match before {
        Some(before) => {
            let span = tasks.now_ns.saturating_sub(before.now_ns);
            format!("of the last {:.1} s", span as f64 / 1e9)
        }
        None => "since the policy took over".to_string(),
    };
    let command = match status.command.join(" ") {
        command if command.is_empty() => String::new(),
        command => format!(": {command}"),
    };
    let first = format!(
        "{} on {}, HZ {}, CPUs {}, for {}; scope {}{command}",
        status.policy,
        status.kernel,
        status.hz,
        status.cpus,
        Nanos::from_s(status.since_s),
        status.scope,
    );
    format!(
        "{}\n{} tasks: {} running, {} waiting, {} sleeping; shares {span}\n",
        printable(&first),
        tasks.tasks.len(),
        count("running"),
        count("waiting"),
        count("sleeping"),
    )
}

/// As much of `text` as a terminal of `size` (columns, rows) shows without scrolling.
fn fitted(text: &str, size: Option<(usize, usize)>) -> String {
    let Some((columns, rows)) = size else { return text.to_string() };
    let lines: Vec<String> =
        text.lines().map(|line| line.chars().take(columns).collect()).collect();
    let room = rows.saturating_sub(1).max(1);
    if lines.len() <= room {
        return lines.join("\n") + "\n";
    }
    let kept = room - 1;
    let mut shown = lines[..kept].join("\n");
    if kept > 0 {
        shown.push('\n');
    }
    shown + &format!("… and {} more lines\n", lines.len() - kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(pid: u32, comm: &str, state: &str, prio: Option<i64>, run_ms: u64) -> TaskReply {
        TaskReply {
            pid,
            comm: comm.to_string(),
            tgid: pid,
            class: "normal".to_string(),
            state: state.to_string(),
            cpu: pid % 2,
            prio,
            run_ns: run_ms * 1_000_000,
            wait_ns: (pid as u64 * 7) * 1_000_000,
            values: vec![("deadline".to_string(), i64::from(pid) * 100)],
            ..TaskReply::default()
        }
    }

    fn status() -> StatusReply {
        StatusReply {
            policy: "bfs@0.357".to_string(),
            scope: "workload".to_string(),
            kernel: "6.12.117".to_string(),
            hz: 1000,
            cpus: "0-1".to_string(),
            since_s: 2,
            command: vec!["make".to_string(), "-j2".to_string()],
            ..StatusReply::default()
        }
    }

    fn tasks() -> TasksReply {
        let mut odd = task(12, "ev\x1b[2Jil", "sleeping", None, 0);
        odd.values = vec![("quota".to_string(), -5)];
        odd.nice = -20;
        let tasks = vec![
            task(10, "cc1", "running", Some(25), 1500),
            odd,
            task(11, "make", "waiting", Some(20), 250),
        ];
        TasksReply { now_ns: 2_000_000_000, tasks }
    }

    fn order(sort: SortArg) -> Vec<u32> {
        let tasks = tasks();
        let mut rows = rows(&tasks, None);
        sort_rows(&mut rows, sort);
        rows.iter().map(|row| row.task.pid).collect()
    }

    #[test]
    fn first_table_has_shares_since_the_beginning() {
        insta::assert_snapshot!(render(&status(), &tasks(), None, SortArg::Cpu));
    }

    #[test]
    fn later_table_has_shares_of_the_interval() {
        let mut later = tasks();
        later.now_ns += 1_000_000_000;
        later.tasks[0].run_ns += 250_000_000;
        later.tasks[2].run_ns += 750_000_000;
        later.tasks[2].wait_ns += 250_000_000;
        insta::assert_snapshot!(render(&status(), &later, Some(&tasks()), SortArg::Cpu));
    }

    #[test]
    fn sorting_puts_first_what_was_asked_for() {
        assert_eq!(order(SortArg::Cpu), [10, 11, 12]);
        assert_eq!(order(SortArg::Wait), [12, 11, 10]);
        assert_eq!(order(SortArg::Prio), [11, 10, 12], "a task without priority comes last");
    }

    #[test]
    fn reused_pid_and_equal_samples_give_no_nonsense() {
        let now = tasks();
        assert!(rows(&now, Some(&now)).iter().all(|row| row.run == 0.0 && row.wait == 0.0));
        let mut before = tasks();
        before.now_ns = 0;
        before.tasks[0].run_ns = u64::MAX;
        let rows = rows(&now, Some(&before));
        assert_eq!(rows[0].run, 0.75);
    }

    #[test]
    fn table_without_tasks_is_a_header() {
        let text = render(&status(), &TasksReply::default(), None, SortArg::Cpu);
        assert!(text.contains("0 tasks: 0 running"), "{text}");
        assert!(text.contains("PID"), "{text}");
    }

    #[test]
    fn small_terminal_gets_what_fits() {
        let text = "one line\ntwo\nthree\nfour\n";
        assert_eq!(fitted(text, None), text);
        assert_eq!(fitted(text, Some((3, 5))), "one\ntwo\nthr\nfou\n");
        assert_eq!(fitted(text, Some((9, 4))), "one line\ntwo\n… and 2 more lines\n");
        assert_eq!(fitted(text, Some((9, 0))), "… and 4 more lines\n");
    }
}
