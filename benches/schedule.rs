//! Parsing and `next` beside the crates `cron` and `croner`, in one run on the same instants.
//!
//! Besides criterion's own output the run ends with two tables: nanoseconds per call (the least pass seen), ours against the faster
//! peer, and the geometric mean of the ratios. Peers get the zone as they take it, `cron` also a seconds field.
//!
//! `next` is asked from 1,024 random instants of 2025-2034 in America/New_York. Note that `cron` joins the day fields of
//! `0 12 13 * FRI` by AND: its answers there are others.

#![allow(clippy::unwrap_used, reason = "a benchmark of constant inputs")]

use std::cell::Cell;
use std::hint::black_box;
use std::str::FromStr;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;
use criterion::{BenchmarkId, Criterion};
use cronjob_controller::schedule::{Schedule, Zone};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const EXPRESSIONS: [&str; 11] = [
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 9-17 * * MON-FRI",
    "15 3 * * SUN",
    "0 0 1 * *",
    "0 0 1 1 *",
    "0 12 13 * FRI",
    "0 0 29 2 *",
    NEVER,
];
/// croner takes milliseconds to find out.
const NEVER: &str = "0 0 30 2 *";
/// Texts parsed between two readings of the clock.
const BATCH: usize = 64;
const ZONE: &str = "America/New_York";

/// Nanoseconds per call of the three.
struct Row {
    expression: &'static str,
    ours: f64,
    cron: f64,
    croner: f64,
}

impl Row {
    fn fastest_peer(&self) -> f64 {
        self.cron.min(self.croner)
    }

    fn ratio(&self) -> f64 {
        self.fastest_peer() / self.ours
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(60))
        .measurement_time(Duration::from_millis(250))
        .without_plots()
        .configure_from_args();
    let instants = instants();
    let next: Vec<Row> = EXPRESSIONS.iter().map(|expression| next_row(&mut criterion, expression, &instants)).collect();
    let parse: Vec<Row> = EXPRESSIONS.iter().map(|expression| parse_row(&mut criterion, expression)).collect();
    criterion.final_summary();
    print_table("next", &next);
    print_table("parse", &parse);
}

fn instants() -> Vec<DateTime<Utc>> {
    let mut random = StdRng::seed_from_u64(20_261_130);
    let bound = |year| Utc.with_ymd_and_hms(year, 1, 1, 0, 0, 0).unwrap().timestamp();
    let (first, last) = (bound(2025), bound(2035));
    (0..1_024).map(|_| DateTime::from_timestamp(random.random_range(first..last), 0).unwrap()).collect()
}

fn next_row(criterion: &mut Criterion, expression: &'static str, instants: &[DateTime<Utc>]) -> Row {
    let zone = Zone::load(ZONE, Zone::UTC).unwrap();
    let tz: Tz = ZONE.parse().unwrap();
    let local: Vec<DateTime<Tz>> = instants.iter().map(|at| at.with_timezone(&tz)).collect();
    let few = if expression == NEVER { &local[..2] } else { &local[..] };
    let (ours, cron, croner) = parsed(expression);

    let mut bench = Bench { criterion, group: "next", expression };
    Row {
        expression,
        ours: bench.least("ours", instants, |at| ours.next(*at, zone)),
        cron: bench.least("cron", &local, |at| cron.after(at).next()),
        croner: bench.least("croner", few, |at| croner.find_next_occurrence(at, false).ok()),
    }
}

fn parse_row(criterion: &mut Criterion, expression: &'static str) -> Row {
    let text = vec![expression; BATCH];
    let with_seconds = vec![format!("0 {expression}"); BATCH];
    let mut bench = Bench { criterion, group: "parse", expression };
    Row {
        expression,
        ours: bench.least("ours", &text, |text| Schedule::parse(text)),
        cron: bench.least("cron", &with_seconds, |text| cron::Schedule::from_str(text)),
        croner: bench.least("croner", &text, |text| croner::Cron::from_str(text)),
    }
}

fn parsed(expression: &str) -> (Schedule, cron::Schedule, croner::Cron) {
    (
        Schedule::parse(expression).unwrap(),
        cron::Schedule::from_str(&format!("0 {expression}")).unwrap(),
        croner::Cron::from_str(expression).unwrap(),
    )
}

struct Bench<'a> {
    criterion: &'a mut Criterion,
    group: &'static str,
    expression: &'static str,
}

impl Bench<'_> {
    /// Nanoseconds per call in the fastest pass over `inputs`.
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    fn least<I, O>(&mut self, who: &str, inputs: &[I], call: impl Fn(&I) -> O) -> f64 {
        let least = Cell::new(Duration::MAX);
        let mut group = self.criterion.benchmark_group(format!("{}/{}", self.group, self.expression));
        group.bench_function(BenchmarkId::from_parameter(who), |bencher| {
            bencher.iter_custom(|passes| {
                (0..passes)
                    .map(|_| {
                        let start = Instant::now();
                        for input in inputs {
                            black_box(call(black_box(input)));
                        }
                        let took = start.elapsed();
                        least.set(least.get().min(took));
                        took
                    })
                    .sum()
            });
        });
        group.finish();
        least.get().as_secs_f64() * 1e9 / inputs.len() as f64
    }
}

fn print_table(what: &str, rows: &[Row]) {
    println!("\n{what:<22}{:>10}{:>10}{:>12}{:>16}{:>8}", "ours ns", "cron ns", "croner ns", "fastest peer", "ratio");
    for row in rows {
        let Row { expression, ours, cron, croner } = row;
        println!(
            "{expression:<22}{ours:>10.0}{cron:>10.0}{croner:>12.0}{:>16.0}{:>7.1}x",
            row.fastest_peer(),
            row.ratio()
        );
    }
    let logs: f64 = rows.iter().map(|row| row.ratio().ln()).sum();
    println!("{:<22}{:>55.1}x", "geometric mean", (logs / rows.len() as f64).exp());
}
