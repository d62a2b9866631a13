//! The load benchmark (`benches/herd`) still works: a few CronJobs on the sandbox, no word on how fast.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../benches/herd/main.rs"]
mod bench;

use clap::Parser;
use serde_json::Value;

fn measure(arguments: &[&str]) -> Value {
    let args = bench::args::Args::try_parse_from(["herd"].iter().chain(arguments)).unwrap();
    let report = bench::measure(&args).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(report.curves.iter().all(|curve| !curve.at_s.is_empty()), "{report}");
    report.json()
}

#[test]
fn a_herd_is_counted_by_the_server_and_beside_the_floor() {
    let report = measure(&["herd", "--cronjobs=12", "--namespaces=3", "--history=2", "--pairs=1", "--every=6"]);
    let requests = &report["tables"]["requests, counted by the server"];
    // As each is due every six seconds, some may be due twice before all is quiet.
    for request in ["POST jobs 201", "PATCH cronjobs/status 200"] {
        assert!(requests[request]["ours"].as_f64().unwrap() >= 12.0, "{report:#}");
    }
    let arrivals = &report["tables"]["Job seen after instant + 100 ms"];
    assert_eq!(arrivals.as_object().unwrap().len(), 4, "{report:#}");
    assert!(arrivals["ours"]["p99 ms"].as_f64().unwrap() > 0.0, "{report:#}");
}

#[test]
fn what_is_due_alone_is_compared_with_plain_posts() {
    let report = measure(&["alone", "--cronjobs=4", "--every=2", "--length=6"]);
    // Six seconds, two CronJobs in each; the edges may take another one.
    let seen = report["tables"]["Job seen after instant + 100 ms"]["alone"]["Jobs"].as_f64().unwrap();
    assert!((5.0..=9.0).contains(&seen), "{report:#}");
}

#[test]
fn a_start_is_compared_with_a_bare_read() {
    let report = measure(&["cold-start", "--cronjobs=20", "--history=1", "--pairs=2"]);
    let first = &report["tables"]["cold start"]["process start to first Job seen, s"]["median"];
    assert!(first.as_f64().unwrap() > 0.0, "{report:#}");
}

#[test]
fn memory_is_asked_of_the_kernel_also_while_listing_anew() {
    let report = measure(&["memory", "--cronjobs=20", "--history=1", "--length=1"]);
    for row in ["steady, MiB", "peak while listing anew, MiB"] {
        assert!(report["tables"]["idle"][row]["measured"].as_f64().unwrap() > 1.0, "{report:#}");
    }
}

#[test]
fn each_hour_of_virtual_time_starts_every_cronjob_once() {
    let report = measure(&["steady", "--cronjobs=30", "--length=2"]);
    for hour in ["hour 1", "hour 2"] {
        assert_eq!(report["tables"]["steady"][hour]["started"], 30.0, "{report:#}");
    }
    let held = report["targets"].as_array().unwrap().iter().all(|target| target["holds"] == true);
    assert!(held, "{report:#}");
}

#[test]
fn curves_are_drawn_within_the_frame() {
    let curve = bench::report::Curve { name: "ours".into(), at_s: vec![0.1, 0.2, 0.4] };
    let svg = bench::plot::svg("a herd", &[curve]);
    assert!(svg.contains("840.0,60.0") && svg.ends_with("</svg>\n"), "{svg}");
}
