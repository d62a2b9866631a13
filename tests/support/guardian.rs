//! Ends processes and removes their folder when a test is over, however it ends: returned, panicked, or killed.
//!
//! A shell reads pids and folders from a pipe whose other end only this process holds. The pipe closes when the guardian is
//! dropped or when the test process is gone; then the shell kills and removes what it was told.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=""
while read -r pid; do pids="$pids $pid"; done
[ -z "$pids" ] || kill -CONT $pids 2>/dev/null
[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
sleep 0.1
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
"#;

pub(crate) struct Guardian {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    /// Guards `folder`, which is removed in the end.
    pub(crate) fn new(folder: &Path) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "guardian"])
            .arg(folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let pipe = shell.stdin.take();
        Self { shell, pipe }
    }

    /// Ends `child` as well, in the end.
    pub(crate) fn guard(&mut self, child: &Child) {
        let pipe = self.pipe.as_mut().expect("open until dropped");
        writeln!(pipe, "{}", child.id()).expect("the guardian reads");
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.shell.wait();
    }
}
