//! Metrics of the process, read from `/proc` at each scrape (names as in Prometheus' own client libraries). Where there is
//! no `/proc`, only the start time is told.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::model::WallTime;

/// Clock ticks a second in `/proc/self/stat`: 100 on every architecture that Linux still supports (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

/// Resident pages in `/proc/self/statm` are avoided: their size differs between machines. `/proc/self/status` says kB.
const RESIDENT: &str = "VmRSS:";
const VIRTUAL: &str = "VmSize:";

/// Collects the metrics of this process.
#[derive(Debug)]
pub(super) struct Process {
    start: WallTime,
}

impl Process {
    /// A collector that says that the process started at `start`.
    pub(super) fn started_at(start: WallTime) -> Self {
        Self { start }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let start_s = self.start.timestamp_micros() as f64 / 1e6;
        let mut put = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        put(
            "process_start_time_seconds",
            "Start of the process in seconds since the Unix epoch",
            &ConstGauge::new(start_s),
        )?;
        if let Some(cpu_s) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_seconds) {
            put("process_cpu_seconds", "User and system CPU time spent in seconds", &ConstCounter::new(cpu_s))?;
        }
        if let Ok(status) = fs::read_to_string("/proc/self/status") {
            if let Some(bytes) = bytes_of(&status, RESIDENT) {
                put("process_resident_memory_bytes", "Resident memory size in bytes", &ConstGauge::new(bytes))?;
            }
            if let Some(bytes) = bytes_of(&status, VIRTUAL) {
                put("process_virtual_memory_bytes", "Virtual memory size in bytes", &ConstGauge::new(bytes))?;
            }
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            put("process_open_fds", "Number of open file descriptors", &ConstGauge::new(open.count()))?;
        }
        if let Some(most) = fs::read_to_string("/proc/self/limits").ok().as_deref().and_then(max_fds) {
            put("process_max_fds", "Maximum number of open file descriptors", &ConstGauge::new(most))?;
        }
        Ok(())
    }
}

/// User plus system time of `/proc/self/stat`. The command in parentheses may hold blanks and parentheses itself, so fields
/// are counted from the last closing one.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let user = times.next()?.ok()?;
    let system = times.next()?.ok()?;
    Some((user + system) as f64 / TICKS_PER_S)
}

/// The value of a `kB` line of `/proc/self/status`, in bytes.
fn bytes_of(status: &str, line: &str) -> Option<u64> {
    let value = status.lines().find_map(|found| found.strip_prefix(line))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit of `/proc/self/limits`; none when it is `unlimited`.
fn max_fds(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_a_command_with_blanks_and_parentheses() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 8 20 0 3 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("nonsense"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmSize:\t    2000 kB\nVmRSS:\t     12 kB\n";
        assert_eq!(bytes_of(status, RESIDENT), Some(12 * 1024));
        assert_eq!(bytes_of(status, VIRTUAL), Some(2_048_000));
        assert_eq!(bytes_of("VmRSS: many kB", RESIDENT), None);
    }

    #[test]
    fn an_unlimited_number_of_files_is_not_told() {
        assert_eq!(max_fds("Max open files            1024                 524288               files\n"), Some(1024));
        assert_eq!(max_fds("Max open files            unlimited            unlimited            files\n"), None);
    }
}
