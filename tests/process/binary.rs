//! The binary as a process of its own, which ends with the value.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::Value;

/// The binary with nothing in its environment that could set a flag.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
    command.env_clear().current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    binary().args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `run`, logging JSON.
pub(crate) struct Running {
    child: Child,
    log: std::io::Lines<BufReader<ChildStderr>>,
    /// What was logged so far.
    pub(crate) seen: Vec<Value>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, log, seen: Vec::new() }
    }

    /// Reads the log up to the line with this message, which may have been read before.
    pub(crate) fn logged(&mut self, message: &str, of: impl Fn(&Value) -> bool) -> Value {
        let mut fits = self.seen.iter().position(|line| line["message"] == message && of(line));
        while fits.is_none() {
            let line = self.log.next().unwrap_or_else(|| panic!("no {message:?} in {:#?}", self.seen)).unwrap();
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            let found = line["message"] == message && of(&line);
            self.seen.push(line);
            fits = found.then(|| self.seen.len() - 1);
        }
        self.seen[fits.unwrap()].clone()
    }

    /// The port that a flag opened.
    pub(crate) fn port(&mut self, flag: &str) -> u16 {
        let line = self.logged("listening", |line| line["flag"] == flag);
        line["address"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
