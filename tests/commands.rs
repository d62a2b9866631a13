//! The binary as a user meets it: exit codes, what it prints, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output, Stdio};

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
    command.env_remove("RUST_LOG").env_remove("TZ").env_remove("KUBECONFIG").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    binary().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn next_says_when_a_schedule_starts_in_its_zone_and_in_utc() {
    let output = run(&["next", "--schedule", "30 2 * * *", "--time-zone", "America/New_York", "--from", "2026-03-07"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("2026-03-07T07:30:00Z") || shown.contains("2026-03-07 07:30:00"), "{shown}");
    assert!(!shown.contains("2026-03-08 02:30") && !shown.contains("2026-03-08T02:30"), "it does not exist: {shown}");
}

/// A root directory with the program and the libraries that the linker wants for it, and nothing else: no zone data, like an image
/// from scratch. `None` after the test has named itself as skipped.
#[cfg(target_os = "linux")]
fn bare_root(test: &str) -> Option<tempfile::TempDir> {
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        eprintln!("SKIPPED {test}: only root may change the root directory");
        return None;
    }
    let (folder, program) = (tempfile::tempdir().unwrap(), env!("CARGO_BIN_EXE_cronjob-controller"));
    std::fs::copy(program, folder.path().join("cronjob-controller")).unwrap();
    let linked = text(&Command::new("ldd").arg(program).output().unwrap().stdout);
    for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
        let place = folder.path().join(library.trim_start_matches('/'));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(library, place).unwrap();
    }
    Some(folder)
}

#[cfg(target_os = "linux")]
#[test]
fn zones_are_known_where_there_is_no_zone_data_and_an_unknown_one_ends_nothing_but_itself() {
    let Some(folder) = bare_root("zones_are_known_where_there_is_no_zone_data") else { return };
    let next = |zone: &str| {
        let mut command = Command::new("chroot");
        command.arg(folder.path()).args([
            "/cronjob-controller",
            "next",
            "--schedule",
            "30 2 * * *",
            "--time-zone",
            zone,
        ]);
        command.args(["--from", "2026-01-10T00:00:00Z"]).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.output().unwrap()
    };
    for (zone, first) in
        [("America/New_York", "07:30:00"), ("Asia/Singapore", "18:30:00"), ("Europe/Berlin", "01:30:00")]
    {
        let output = next(zone);
        assert_eq!(output.status.code(), Some(0), "{zone}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(first), "{zone}: {}", text(&output.stdout));
    }
    let output = next("Mars/Olympus");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("unknown time zone Mars/Olympus"), "{}", text(&output.stderr));
}

#[test]
fn invalid_input_ends_with_code_2_and_the_message_of_the_controllers() {
    for (arguments, message) in [
        (["next", "--schedule", "61 * * * *"], "end of range (61) above maximum (59): 61"),
        (["next", "--schedule", "* * * *"], "expected exactly 5 fields, found 4: [* * * *]"),
        (["next", "-f", "config/samples/invalid-minute.yaml"], "end of range (61) above maximum (59): 61"),
        (["run", "--log-level", "loud=everything"], "invalid"),
        (["run", "--concurrent-cron-job-syncs", "0"], "concurrent-cron-job-syncs must be greater than 0, but got 0"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(message), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named_and_ends_with_code_1() {
    let output = run(&["run", "--kubeconfig", "no/such/file.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no/such/file.yaml"), "{}", text(&output.stderr));
}

#[test]
fn the_version_names_the_data_of_the_zones() {
    let shown = text(&run(&["--version"]).stdout);
    assert!(shown.starts_with("cronjob-controller 0.1.0 (tzdb 20"), "{shown}");
}

#[cfg(feature = "sandbox")]
mod sandbox {
    use std::io::{BufRead, BufReader};
    use std::process::Child;

    use super::*;

    /// Sends a signal as `kill` does.
    fn signal(child: &Child, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Reads lines until one contains `needle`; all lines so far.
    fn read_until(lines: &mut impl Iterator<Item = std::io::Result<String>>, needle: &str) -> Vec<String> {
        let mut seen = Vec::new();
        for line in lines {
            let line = line.unwrap();
            let found = line.contains(needle);
            seen.push(line);
            if found {
                return seen;
            }
        }
        panic!("the output ended without {needle:?}: {seen:#?}");
    }

    #[test]
    fn the_sandbox_starts_jobs_of_both_apis_and_ends_when_told() {
        let mut child = binary()
            .args(["sandbox", "--speed", "20000", "--seed", "1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let head = read_until(&mut lines, "created 11 of 12 objects");
        assert!(head.iter().any(|line| line.contains("refused  CronJob shop/invalid-minute")), "{head:#?}");
        read_until(&mut lines, "shop/allow-metrics        started");
        read_until(&mut lines, "ml/gpu-training           started");
        signal(&child, "TERM");
        // The rest must be read, or the child may wait for room in the pipe.
        let rest = lines.count();
        assert_eq!(child.wait().unwrap().code(), Some(0), "after {rest} more lines");
    }

    #[test]
    fn a_reader_that_goes_away_costs_the_sandbox_nothing() {
        let mut child =
            binary().args(["sandbox", "--speed", "20000", "--for", "1s"]).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }

    #[test]
    fn a_kubeconfig_of_somebody_else_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let path = file.to_str().unwrap();
        std::fs::write(&file, "precious").unwrap();
        let output = run(&["sandbox", "--for", "1s", "--kubeconfig", path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("left as it is"), "{}", text(&output.stderr));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        std::fs::remove_file(&file).unwrap();
        for _twice in 0..2 {
            assert_eq!(run(&["sandbox", "--for", "1s", "--kubeconfig", path]).status.code(), Some(0));
        }
    }

    #[test]
    fn run_works_against_a_server_over_http_and_ends_with_code_0_on_sigterm() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig.yaml");
        let path = kubeconfig.to_str().unwrap();
        let mut server = binary()
            .args(["sandbox", "--controllers=-cronjob-controller", "--speed", "1", "--kubeconfig", path])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server_lines = BufReader::new(server.stdout.take().unwrap()).lines();
        read_until(&mut server_lines, "created 11 of 12 objects");
        let mut child = binary()
            .args(["run", "--kubeconfig", path, "--logging-format", "json"])
            .args(["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        for _controller in 0..2 {
            read_until(&mut log, "caches have synced");
        }
        signal(&child, "TERM");
        let rest: Vec<_> = log.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:#?}");
        assert!(rest.last().is_some_and(|line| line.contains("ended")), "{rest:#?}");
        signal(&server, "INT");
        let rest = server_lines.count();
        assert_eq!(server.wait().unwrap().code(), Some(0), "after {rest} more lines");
    }
}
