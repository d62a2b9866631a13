//! What is printed: tables of numbers, and the ratios that are promised, each with its bound.

use std::fmt;

use serde_json::{Map, Value, json};

use super::alone::Found as Alone;
use super::args::{Args, Choice};
use super::cold::Found as Cold;
use super::figures::{median, quantile, ratio};
use super::floor::IN_FLIGHT;
use super::herd::Row;
use super::idle::Found as Idle;
use super::steady::Hour;

/// One table; a cell without a number was not measured.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<(String, Vec<Option<f64>>)>,
}

/// A number that is promised.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) value: f64,
    pub(crate) bound: Bound,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// Things that come one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    /// When each came, in seconds, sorted.
    pub(crate) at_s: Vec<f64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) title: String,
    pub(crate) tables: Vec<Table>,
    pub(crate) targets: Vec<Target>,
    pub(crate) curves: Vec<Curve>,
}

impl Report {
    /// Everything but the curves.
    pub(crate) fn json(&self) -> Value {
        let table = |table: &Table| {
            let row = |cells: &Vec<Option<f64>>| -> Map<String, Value> {
                table.columns.iter().cloned().zip(cells.iter().map(|cell| json!(cell))).collect()
            };
            table.rows.iter().map(|(name, cells)| (name.clone(), row(cells).into())).collect::<Map<_, _>>()
        };
        let tables: Map<_, _> = self.tables.iter().map(|one| (one.title.to_owned(), table(one).into())).collect();
        let targets: Vec<_> =
            self.targets.iter().map(|t| json!({"what": t.what, "value": t.value, "holds": t.holds()})).collect();
        json!({"title": self.title, "tables": tables, "targets": targets})
    }
}

impl Target {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(bound) => self.value <= bound,
            Bound::AtLeast(bound) => self.value >= bound,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for table in &self.tables {
            writeln!(f, "\n{table}")?;
        }
        if !self.targets.is_empty() {
            writeln!(f)?;
        }
        self.targets.iter().try_for_each(|target| writeln!(f, "{target}"))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.rows.iter().map(|(name, _)| name.len()).chain([self.title.len()]).max().unwrap_or_default();
        write!(f, "{:wide$}", self.title)?;
        self.columns.iter().try_for_each(|column| write!(f, "  {column:>9}"))?;
        for (name, cells) in &self.rows {
            write!(f, "\n{name:wide$}")?;
            for (cell, column) in cells.iter().zip(&self.columns) {
                let width = column.len().max(9);
                write!(f, "  {:>width$}", cell.map(number).unwrap_or_else(|| "-".to_owned()))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, bound) = match self.bound {
            Bound::AtMost(bound) => ("at most", bound),
            Bound::AtLeast(bound) => ("at least", bound),
        };
        let verdict = if self.holds() { "holds" } else { "MISSED" };
        write!(f, "{verdict:6} {}: {} ({word} {})", self.what, number(self.value), number(bound))
    }
}

/// With three digits or so.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 || (size >= 1.0 && size.fract() == 0.0) => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// What was asked for and how busy the machine was, since figures of a busy machine are worth less.
fn title(args: &Args, what: &str) -> String {
    let server = match &args.server {
        Choice::Sandbox => "the sandbox over HTTP",
        Choice::Real => "kube-apiserver and etcd",
        Choice::Url(url) => url,
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let account = if args.service_account { ", as a service account" } else { "" };
    format!("{what}; {server}{account}; {cores} cores, load {load} at the end")
}

fn strings(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_owned()).collect()
}

/// `best` is the row of the fastest floor.
pub(crate) fn herd_report(args: &Args, rows: &[Row], best: usize) -> Report {
    let herd = rows[0].runs.first().map_or(0, |run| run.lags_s.len());
    let what = format!(
        "herd: {herd} CronJobs in {} namespaces, {} finished Jobs each, {} others, {} pairs, medians",
        args.namespaces,
        args.history.unwrap_or(0),
        args.others,
        args.pairs
    );
    let tables = vec![arrivals(rows, best), costs(rows), requests(rows)];
    Report { title: title(args, &what), tables, targets: ratios(args, rows, best), curves: Vec::new() }
}

fn arrivals(rows: &[Row], best: usize) -> Table {
    let row = |(at, row): (usize, &Row)| {
        let count = row.median(|run| run.lags_s.len() as f64);
        let ms = |q: f64| Some(row.lag(q) * 1e3);
        let name = if at == best { format!("{} (best)", row.name) } else { row.name.clone() };
        let span = row.median(|run| run.span_s);
        (name, vec![ratio(count, span), ms(0.5), ms(0.9), ms(0.99), ms(1.0), Some(span)])
    };
    let columns = strings(&["starts/s", "p50 ms", "p90 ms", "p99 ms", "max ms", "all s"]);
    Table { title: "Job seen after instant + 100 ms", columns, rows: rows.iter().enumerate().map(row).collect() }
}

fn costs(rows: &[Row]) -> Table {
    let row = |row: &Row| {
        let count = row.median(|run| run.lags_s.len() as f64);
        let (cpu, server) = (row.median(|run| run.cpu_s), row.median(|run| run.server_cpu_s));
        // The floor runs in the process that measures.
        let (steady, peak) = (row.median(|run| run.steady_mib), row.median(|run| run.peak_mib));
        let own = |value: f64| (peak > 0.0).then_some(value);
        let each_us = |cpu: f64| ratio(cpu * 1e6, count);
        let cells = vec![own(cpu), each_us(cpu).and_then(own), Some(server), each_us(server), own(steady), own(peak)];
        (row.name.clone(), cells)
    };
    let columns = strings(&["CPU s", "µs/start", "server s", "µs/start ", "MiB", "peak MiB"]);
    Table { title: "cost until nothing happens any more", columns, rows: rows.iter().map(row).collect() }
}

/// By kind and code, those of the last run: they do not depend on time.
fn requests(rows: &[Row]) -> Table {
    let last = |row: &Row| row.runs.last().map(|run| run.requests.clone()).unwrap_or_default();
    let subjects = &rows[IN_FLIGHT.len()..];
    let mut kinds: Vec<String> = subjects.iter().flat_map(|row| last(row).0.into_keys()).collect();
    kinds.sort();
    kinds.dedup();
    let count = |kind: &String, row: &Row| Some(last(row).0.get(kind).copied().unwrap_or_default() as f64);
    let cells = |kind: String| (kind.clone(), subjects.iter().map(|row| count(&kind, row)).collect());
    let columns = subjects.iter().map(|row| row.name.clone()).collect();
    Table { title: "requests, counted by the server", columns, rows: kinds.into_iter().map(cells).collect() }
}

fn ratios(args: &Args, rows: &[Row], best: usize) -> Vec<Target> {
    let (floor, ours, peer) = (&rows[best], &rows[IN_FLIGHT.len()], rows.get(IN_FLIGHT.len() + 1));
    let span = |row: &Row| row.median(|run| run.span_s);
    let mut targets = Vec::new();
    let mut add = |what, value: Option<f64>, bound| targets.extend(value.map(|value| Target { what, value, bound }));
    add("p99 / time of the floor", ratio(ours.lag(0.99), span(floor)), Bound::AtMost(1.2));
    let requests = ours.runs.iter().map(|run| &run.requests);
    let (conflicts, reads) = requests.fold((0, 0), |(c, r), all| (c + all.conflicts(), r + all.sum(&["GET", "LIST"])));
    add("refusals for a conflict", Some(conflicts as f64), Bound::AtMost(0.0));
    add("GET and LIST", Some(reads as f64), Bound::AtMost(0.0));
    let Some(peer) = peer else { return targets };
    let history = args.history.unwrap_or(0) > 0;
    let faster = if args.namespaces > 1 {
        2.5
    } else if history {
        10.0
    } else {
        6.0
    };
    add("times as fast as the peer", ratio(span(peer), span(ours)), Bound::AtLeast(faster));
    let cpu = ratio(ours.median(|run| run.cpu_s), peer.median(|run| run.cpu_s));
    add("CPU / the peer's", cpu, Bound::AtMost(if history { 0.1 } else { 1.0 }));
    let peak = ratio(ours.median(|run| run.peak_mib), peer.median(|run| run.peak_mib));
    add("peak memory / the peer's", peak, Bound::AtMost(0.2));
    let writes = |row: &Row| row.median(|run| run.requests.writes() as f64);
    add("writes / the peer's", ratio(writes(ours), writes(peer)), Bound::AtMost(1.0));
    targets
}

pub(crate) fn alone_report(args: &Args, found: &Alone, plain_s: f64) -> Report {
    let row = |name: &str, lags: &[f64]| {
        let ms = |q: f64| (!lags.is_empty()).then(|| quantile(lags, q) * 1e3);
        (name.to_owned(), vec![Some(lags.len() as f64), ms(0.5), ms(0.9), ms(0.99), ms(1.0)])
    };
    let rows = vec![
        row("plain POST, sent to seen", &found.plain_s),
        row("alone", &found.alone_s),
        row("while a herd runs", &found.beside_s),
    ];
    let columns = strings(&["Jobs", "p50 ms", "p90 ms", "p99 ms", "max ms"]);
    let mut targets = vec![Target {
        what: "p99 alone less one plain POST, ms",
        value: (quantile(&found.alone_s, 0.99) - plain_s) * 1e3,
        bound: Bound::AtMost(10.0),
    }];
    if !found.beside_s.is_empty() {
        let value = quantile(&found.beside_s, 0.99) * 1e3;
        targets.push(Target { what: "p99 beside a herd, ms", value, bound: Bound::AtMost(250.0) });
    }
    let what = format!("alone: one CronJob due at a time; a herd of {} took {:.2} s", args.beside, found.herd_s);
    let tables = vec![Table { title: "Job seen after instant + 100 ms", columns, rows }];
    Report { title: title(args, &what), tables, targets, curves: Vec::new() }
}

pub(crate) fn cold_report(args: &Args, found: &Cold) -> Report {
    let of = |values: &[f64]| median(values.iter().copied());
    let row = |name: &str, value: f64| (name.to_owned(), vec![Some(value)]);
    let rows = vec![
        row("a bare client reads both lists, s", of(&found.bare_s)),
        row("process start to first Job seen, s", of(&found.first_s)),
        row("to the last of 60 overdue, s", of(&found.all_s)),
        row("peak memory, MiB", of(&found.peak_mib)),
        row("pairs against the order of their instants", found.inversions as f64),
    ];
    let start = ratio(of(&found.first_s), of(&found.bare_s)).unwrap_or_default();
    let targets = vec![Target { what: "first decision / bare read", value: start, bound: Bound::AtMost(1.3) }];
    let what = format!("cold start, {} pairs, medians", args.pairs);
    let tables = vec![Table { title: "cold start", columns: strings(&["median"]), rows }];
    Report { title: title(args, &what), tables, targets, curves: Vec::new() }
}

pub(crate) fn idle_report(args: &Args, found: &Idle) -> Report {
    let row = |name: &str, value: Option<f64>| (name.to_owned(), vec![value]);
    let each_kib = ratio((found.steady_mib - found.base_mib) * 1024.0, found.cronjobs as f64).unwrap_or_default();
    let share = ratio(found.idle_cpu_s * 100.0, found.idle_s).unwrap_or_default();
    let rows = vec![
        row("without objects, MiB", Some(found.base_mib)),
        row("steady, MiB", Some(found.steady_mib)),
        row("a CronJob with its Jobs, KiB", Some(each_kib)),
        row("peak at the start, MiB", Some(found.start_peak_mib)),
        row("peak while listing anew, MiB", found.relist_peak_mib),
        row("ready after, s", Some(found.ready_s)),
        row("CPU of the start, s", Some(found.start_cpu_s)),
        row("CPU while idle, % of a core", Some(share)),
    ];
    let mut targets = vec![
        Target { what: "a CronJob with its Jobs, KiB", value: each_kib, bound: Bound::AtMost(8.0) },
        Target { what: "steady, MiB", value: found.steady_mib, bound: Bound::AtMost(1024.0) },
        Target { what: "CPU while idle, % of a core", value: share, bound: Bound::AtMost(1.0) },
    ];
    let peaks = [
        ("peak at the start / steady", Some(found.start_peak_mib)),
        ("peak listing anew / steady", found.relist_peak_mib),
    ];
    for (what, peak) in peaks {
        let value = peak.and_then(|peak| ratio(peak, found.steady_mib));
        targets.extend(value.map(|value| Target { what, value, bound: Bound::AtMost(1.3) }));
    }
    let what = format!("idle: {} CronJobs with {} finished Jobs each", found.cronjobs, found.history);
    let tables = vec![Table { title: "idle", columns: strings(&["measured"]), rows }];
    Report { title: title(args, &what), tables, targets, curves: Vec::new() }
}

pub(crate) fn steady_report(args: &Args, cronjobs: usize, hours: &[Hour]) -> Report {
    let row = |(at, hour): (usize, &Hour)| {
        let Hour { started, writes, reads, conflicts, cpu_s, resident_mib } = *hour;
        let cells = [started as f64, writes as f64, reads as f64, conflicts as f64, cpu_s, resident_mib].map(Some);
        (format!("hour {}", at + 1), cells.to_vec())
    };
    let columns = strings(&["started", "writes", "reads", "conflicts", "CPU s", "MiB"]);
    let sum = |of: fn(&Hour) -> u64| hours.iter().map(of).sum::<u64>() as f64;
    let started = sum(|hour| hour.started);
    let targets = vec![
        Target {
            what: "runs that did not start",
            value: (cronjobs * hours.len()) as f64 - started,
            bound: Bound::AtMost(0.0),
        },
        Target { what: "GET and LIST", value: sum(|hour| hour.reads), bound: Bound::AtMost(0.0) },
        Target { what: "refusals for a conflict", value: sum(|hour| hour.conflicts), bound: Bound::AtMost(0.0) },
    ];
    let what = format!(
        "steady: {cronjobs} CronJobs, {} hours of virtual time, server and controller in one process",
        hours.len()
    );
    let rows = hours.iter().enumerate().map(row).collect();
    Report {
        title: title(args, &what),
        tables: vec![Table { title: "steady", columns, rows }],
        targets,
        curves: Vec::new(),
    }
}
