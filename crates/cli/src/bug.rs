// SPDX-License-Identifier: GPL-2.0-only
//! A panic is a bug of ours: it is told as one and gets an exit code of its own.

use std::panic::{self, PanicHookInfo, UnwindSafe};
use std::sync::Mutex;

use crate::exit::Exit;
use crate::terminal;

/// What the first panic said.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs `f`; a panic in any thread that reaches it is printed as one line.
pub(crate) fn guard(f: impl FnOnce() -> Exit + UnwindSafe) -> Exit {
    let backtrace = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        note(info);
        if backtrace {
            default(info);
        }
    }));
    panic::catch_unwind(f).unwrap_or_else(|_| {
        let first = FIRST.lock().map_or(None, |mut first| first.take());
        let text = first.unwrap_or_else(|| "no message".to_string());
        terminal::error(&format!("bug in schedlab: {text}"));
        terminal::message("please report it with the command line and the input");
        Exit::Bug
    })
}

fn note(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string());
    let text = text.replace('\n', " ");
    let place = info.location().map_or_else(String::new, |at| format!(" ({at})"));
    if let Ok(mut first) = FIRST.lock() {
        first.get_or_insert_with(|| format!("{text}{place}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_exit_code_of_a_bug() {
        assert_eq!(guard(|| panic!("made up\nby a test")), Exit::Bug);
        assert_eq!(guard(|| Exit::CheckFailed), Exit::CheckFailed);
    }
}
