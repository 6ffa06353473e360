// SPDX-License-Identifier: GPL-2.0-only
//! The control socket: questions and answers, clients that mean ill, and whose socket it is.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use schedlab_live::control::{
    Answer, Ask, AskError, CLIENTS_MAX, Control, ControlError, REQUEST_MAX, StatusReply,
    TasksReply, ask,
};

/// A folder that does not exist yet and is removed at the end. Names of sockets must be short, so
/// it is not in the build's folder.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("slc-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("live.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn status() -> Answer {
    let counters = vec![("switches".to_string(), 7)];
    Answer::Status(StatusReply { policy: "rr".to_string(), counters, ..StatusReply::default() })
}

/// Runs `clients` while a host answers at a socket of its own.
fn served(name: &str, clients: impl FnOnce(&Path)) {
    /// Ends the host when the clients are done or have failed.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let folder = Folder::new(name);
    let control = Control::open(&folder.socket()).expect("a socket");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                match control.poll() {
                    None => thread::yield_now(),
                    Some((Ask::Status, reply)) => reply.send(status()),
                    Some((Ask::Tasks, reply)) => reply.send(Answer::Tasks(TasksReply::default())),
                    Some((Ask::Set { key, .. }, reply)) if key == "slice" => {
                        reply.send(Answer::Done);
                    }
                    Some((Ask::Set { key, .. }, reply)) => {
                        reply.send(Answer::refused(format!("there is no tunable `{key}`")));
                    }
                }
            }
        });
        let _end = End(&done);
        clients(&folder.socket());
    });
}

/// What the live run says to these bytes.
fn said(path: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).expect("it listens");
    // A request that is refused early need not be taken to its end.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

/// Asks until there is a place among the clients that are served.
fn status_at_last(path: &Path) -> Answer {
    loop {
        match ask(path, &Ask::Status) {
            Err(AskError::Unavailable { why, .. }) if why.starts_with("too many") => {
                thread::yield_now();
            }
            answer => return answer.expect("an answer"),
        }
    }
}

#[test]
fn each_question_gets_its_answer() {
    served("answers", |path| {
        let set = |key: &str| Ask::Set { key: key.to_string(), value: "3ms".to_string() };
        assert_eq!(ask(path, &Ask::Status).expect("an answer"), status());
        let tasks = Answer::Tasks(TasksReply::default());
        assert_eq!(ask(path, &Ask::Tasks).expect("an answer"), tasks);
        assert_eq!(ask(path, &set("slice")).expect("an answer"), Answer::Done);
        let refused = Answer::Refused { message: "there is no tunable `slcie`".to_string() };
        assert_eq!(ask(path, &set("slcie")).expect("an answer"), refused);
    });
}

#[test]
fn garbage_is_refused_and_the_next_client_served() {
    served("garbage", |path| {
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\xff\xfe\x00\n", b"{\"ask\":[[[[\n"] {
            let text = said(path, garbage);
            assert!(text.contains("\"answer\":\"refused\""), "{text}");
            assert!(text.contains("expected a line"), "{text}");
        }
        let deep = "[".repeat(REQUEST_MAX - 1) + "\n";
        assert!(said(path, deep.as_bytes()).contains("\"answer\":\"refused\""));
        assert_eq!(said(path, b""), "");
        assert_eq!(status_at_last(path), status());
    });
}

#[test]
fn huge_request_is_refused_without_being_read_to_its_end() {
    served("huge", |path| {
        let text = said(path, &vec![b' '; REQUEST_MAX + 1]);
        assert!(text.contains("the request is longer than 65536 bytes"), "{text}");
        said(path, &vec![b'x'; 100 * REQUEST_MAX]);
        assert_eq!(status_at_last(path), status());
    });
}

#[test]
fn silent_client_makes_no_other_wait() {
    served("silent", |path| {
        let silent = UnixStream::connect(path).expect("it listens");
        let mut half = UnixStream::connect(path).expect("it listens");
        half.write_all(b"{\"ask\":").expect("room");
        assert_eq!(ask(path, &Ask::Status).expect("an answer"), status());
        drop((silent, half));
    });
}

#[test]
fn client_that_leaves_before_its_answer_harms_nobody() {
    served("leaving", |path| {
        for _ in 0..50 {
            let mut stream = UnixStream::connect(path).expect("it listens");
            let _ = stream.write_all(b"{\"ask\":\"status\"}\n");
        }
        assert_eq!(status_at_last(path), status());
    });
}

#[test]
fn two_hundred_silent_clients_are_sent_away_but_for_a_few() {
    served("crowd", |path| {
        let crowd: Vec<UnixStream> =
            (0..200).map(|_| UnixStream::connect(path).expect("it listens")).collect();
        // The first ones have the places until they leave; the others are told at once.
        for mut stream in &crowd[CLIENTS_MAX..] {
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("a refusal");
            assert!(text.contains("too many clients"), "{text}");
        }
        drop(crowd);
        assert_eq!(status_at_last(path), status());
    });
}

#[test]
fn two_hundred_clients_at_once_all_get_their_answer_in_the_end() {
    served("many", |path| {
        thread::scope(|scope| {
            let asking: Vec<_> = (0..200).map(|_| scope.spawn(|| status_at_last(path))).collect();
            for asker in asking {
                assert_eq!(asker.join().expect("no panic"), status());
            }
        });
    });
}

#[test]
fn folder_and_socket_are_for_their_user_alone_and_the_socket_goes_at_the_end() {
    let folder = Folder::new("modes");
    let control = Control::open(&folder.socket()).expect("a socket");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&folder.0), 0o700);
    assert_eq!(mode(&folder.socket()), 0o600);
    drop(control);
    assert!(!folder.socket().exists());
    assert!(matches!(ask(&folder.socket(), &Ask::Status), Err(AskError::NotRunning(_))));
}

#[test]
fn socket_of_a_dead_process_is_replaced() {
    let folder = Folder::new("stale");
    fs::create_dir(&folder.0).expect("ours");
    drop(UnixListener::bind(folder.socket()).expect("a socket"));
    assert!(folder.socket().exists());
    let error = ask(&folder.socket(), &Ask::Status).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("no schedlab live runs here: nothing answers at {}", folder.socket().display())
    );
    let control = Control::open(&folder.socket()).expect("the place is free");
    let asked = thread::spawn({
        let path = folder.socket();
        move || ask(&path, &Ask::Status)
    });
    let (question, reply) = loop {
        match control.poll() {
            Some(taken) => break taken,
            None => thread::yield_now(),
        }
    };
    assert_eq!(question, Ask::Status);
    reply.send(Answer::Done);
    assert_eq!(asked.join().expect("no panic").expect("an answer"), Answer::Done);
}

#[test]
fn second_live_run_is_refused_with_the_pid_of_the_first() {
    let folder = Folder::new("second");
    let first = Control::open(&folder.socket()).expect("a socket");
    let error = Control::open(&folder.socket()).unwrap_err();
    let expected = format!("another schedlab live runs (pid {})", std::process::id());
    assert_eq!(error.to_string(), expected);
    drop(first);
    assert!(Control::open(&folder.socket()).is_ok());
}

#[test]
fn file_in_the_way_is_left_alone() {
    let folder = Folder::new("file");
    fs::create_dir(&folder.0).expect("ours");
    fs::write(folder.socket(), "precious").expect("ours");
    let error = Control::open(&folder.socket()).unwrap_err();
    assert!(matches!(error, ControlError::InTheWay(_)), "{error}");
    assert_eq!(fs::read_to_string(folder.socket()).expect("still there"), "precious");
}

#[test]
fn folder_that_others_can_write_is_refused() {
    let folder = Folder::new("open");
    fs::create_dir(&folder.0).expect("ours");
    fs::set_permissions(&folder.0, Permissions::from_mode(0o777)).expect("ours");
    let error = Control::open(&folder.socket()).unwrap_err();
    assert!(matches!(error, ControlError::OpenFolder(_)), "{error}");
    assert!(!folder.socket().exists());
}

#[test]
fn socket_that_somebody_put_in_our_place_is_not_removed() {
    let folder = Folder::new("foreign");
    let control = Control::open(&folder.socket()).expect("a socket");
    fs::remove_file(folder.socket()).expect("ours");
    let other = UnixListener::bind(folder.socket()).expect("a socket");
    drop(control);
    assert!(folder.socket().exists());
    drop(other);
}

#[test]
fn questions_that_are_open_at_the_end_are_told_so() {
    let folder = Folder::new("ending");
    let control = Control::open(&folder.socket()).expect("a socket");
    let asked = thread::spawn({
        let path = folder.socket();
        move || ask(&path, &Ask::Status)
    });
    let taken = loop {
        match control.poll() {
            Some(taken) => break taken,
            None => thread::yield_now(),
        }
    };
    drop((control, taken));
    let error = asked.join().expect("no panic").unwrap_err();
    assert!(error.to_string().ends_with(": live scheduling is just ending"), "{error}");
}

#[test]
fn answer_of_another_program_is_not_taken_for_ours() {
    let folder = Folder::new("other");
    fs::create_dir(&folder.0).expect("ours");
    let listener = UnixListener::bind(folder.socket()).expect("a socket");
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"220 mail ready\n");
        let (stream, _) = listener.accept().expect("a client");
        drop(stream);
    });
    let error = ask(&folder.socket(), &Ask::Status).unwrap_err();
    assert!(matches!(error, AskError::Foreign { .. }), "{error}");
    let error = ask(&folder.socket(), &Ask::Status).unwrap_err();
    assert!(error.is_absent(), "{error}");
    other.join().expect("no panic");
}
