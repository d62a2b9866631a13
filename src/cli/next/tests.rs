//! `next` from flags and files to text: what people see.

use super::*;
use crate::cli::{Args as CommandLine, Command};
use clap::Parser;

/// What `next FLAGS` prints, and its complaints. Without `--from` it is noon UTC on 2026-03-06.
fn ask(flags: &[&str]) -> (String, Vec<String>) {
    let line = ["cronjob-controller", "next"].iter().chain(flags);
    let Command::Next(args) = CommandLine::try_parse_from(line).unwrap().command else { panic!("another command") };
    let from = args.from.unwrap_or_else(|| "2026-03-06T12:00:00Z".parse().unwrap());
    answer(&args, from)
}

/// As [`ask`], of a file with this text.
fn ask_of_file(text: &str, flags: &[&str]) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cronjobs.yaml");
    std::fs::write(&file, text).unwrap();
    let all: Vec<&str> = ["-f", file.to_str().unwrap()].into_iter().chain(flags.iter().copied()).collect();
    let (text, complaints) = ask(&all);
    let place = format!("{}/", folder.path().display());
    (text, complaints.into_iter().map(|complaint| complaint.replace(&place, "")).collect())
}

#[test]
fn a_table_shows_zone_utc_and_the_start_that_the_clock_change_takes() {
    let (text, complaints) = ask(&["--schedule", "30 2 * * *", "--time-zone", "America/New_York", "-n", "3"]);
    assert_eq!(complaints, [""; 0]);
    insta::assert_snapshot!(text, @r"
    Schedule:  30 2 * * * in America/New_York
    Meaning:   At 02:30 every day (America/New_York). On 2026-03-08 the clock goes forward from 02:00 to 03:00: 02:30 doesn't exist and is skipped.
      AMERICA/NEW_YORK                UTC                   IN
      Sat 2026-03-07 02:30:00 -05:00  2026-03-07T07:30:00Z  19h30m
      Mon 2026-03-09 02:30:00 -04:00  2026-03-09T06:30:00Z  2d18h
      Tue 2026-03-10 02:30:00 -04:00  2026-03-10T06:30:00Z  3d18h
    ");
}

#[test]
fn a_doubled_hour_shows_both_of_its_starts() {
    let (text, _) = ask(&["-s", "30 1 * * *", "-z", "America/New_York", "--from", "2026-10-31T12:00:00Z", "-n", "4"]);
    insta::assert_snapshot!(text, @r"
    Schedule:  30 1 * * * in America/New_York
    Meaning:   At 01:30 every day (America/New_York). On 2026-11-01 the clock goes back from 02:00 to 01:00: 01:30 runs twice.
      AMERICA/NEW_YORK                UTC                   IN
      Sun 2026-11-01 01:30:00 -04:00  2026-11-01T05:30:00Z  17h30m  this local time comes twice; first
      Sun 2026-11-01 01:30:00 -05:00  2026-11-01T06:30:00Z  18h30m  this local time comes twice; second
      Mon 2026-11-02 01:30:00 -05:00  2026-11-02T06:30:00Z  1d18h
      Tue 2026-11-03 01:30:00 -05:00  2026-11-03T06:30:00Z  2d18h
    ");
}

#[test]
fn a_file_of_both_apis_is_told_object_by_object() {
    let text = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: a, namespace: shop}
spec: {schedule: '0 * * * *', suspend: true}
---
apiVersion: v1
kind: List
items:
- apiVersion: batch.volcano.sh/v1alpha1
  kind: CronJob
  metadata: {name: b}
  spec: {schedule: '0 0 30 2 *', timeZone: Asia/Shanghai}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: c}
";
    let (text, complaints) = ask_of_file(text, &["-n", "1"]);
    assert_eq!(complaints, [""; 0]);
    insta::assert_snapshot!(text, @r"
    CronJob:   shop/a (batch/v1)
    Schedule:  0 * * * * in UTC
    Meaning:   At minute 0 of each hour every day (UTC). No offset change in UTC within a year: nothing is skipped or repeated.
    Suspended: nothing starts until spec.suspend is false
      UTC                             UTC                   IN
      Fri 2026-03-06 13:00:00 +00:00  2026-03-06T13:00:00Z  1h0m
    Note:      spec.timeZone is not set: read in the controller's zone, here UTC

    CronJob:   default/b (batch.volcano.sh/v1alpha1)
    Schedule:  0 0 30 2 * in Asia/Shanghai
    Meaning:   Never: there is no such day in February.
    Starts:    none within the five years that the controllers look ahead
    ");
}

#[test]
fn json_holds_the_same_facts() {
    let (text, _) = ask(&["-s", "0 12 * * *", "-z", "Europe/Berlin", "-n", "1", "-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0]["starts"][0]["local"], "2026-03-07T12:00:00+01:00");
    assert_eq!(json[0]["starts"][0]["utc"], "2026-03-07T11:00:00Z");
    assert_eq!((&json[0]["timeZone"], &json[0]["never"]), (&"Europe/Berlin".into(), &false.into()));
    let (yaml, _) = ask(&["-s", "0 12 * * *", "-z", "Europe/Berlin", "-n", "1", "-o", "yaml"]);
    let from_yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(from_yaml, json);
}

#[test]
fn every_counts_from_the_last_run_where_the_file_tells_it() {
    let text = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: a, creationTimestamp: '2026-03-01T00:00:00Z'}
spec: {schedule: '@every 7m'}
status: {lastScheduleTime: '2026-03-06T11:58:00Z'}
";
    let (text, _) = ask_of_file(text, &["-n", "2", "-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0]["starts"][0]["utc"], "2026-03-06T12:05:00Z");
    assert_eq!(json[0]["starts"][1]["utc"], "2026-03-06T12:12:00Z");
}

#[test]
fn what_is_not_valid_is_told_in_the_peers_words() {
    let (text, complaints) = ask(&["-s", "61 * * * *"]);
    assert_eq!(text, "");
    assert_eq!(complaints, ["schedule \"61 * * * *\" is not valid: end of range (61) above maximum (59): 61"]);
    let (_, complaints) = ask(&["-s", "* * * * *", "-z", "Mars/Olympus"]);
    assert_eq!(complaints, ["time zone \"Mars/Olympus\" is not valid: unknown time zone Mars/Olympus"]);
}

#[test]
fn one_bad_cronjob_does_not_hide_the_others() {
    let text = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: bad, namespace: shop}
spec: {schedule: hourly}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: good}
spec: {schedule: '@hourly'}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: odd}
spec: {schedule: 5}
";
    let (text, complaints) = ask_of_file(text, &["-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 1);
    insta::assert_snapshot!(complaints.join("\n"), @r#"
    cronjobs.yaml: CronJob ?/odd: field spec.schedule: invalid type: integer `5`, expected a string
    CronJob shop/bad: schedule "hourly" is not valid: expected exactly 5 fields, found 1: [hourly]
    "#);
}

#[test]
fn a_file_without_cronjobs_or_without_yaml_is_invalid_input() {
    let (_, complaints) = ask_of_file("{apiVersion: v1, kind: ConfigMap}", &[]);
    assert_eq!(complaints, ["cronjobs.yaml holds no CronJob of batch/v1 or batch.volcano.sh/v1alpha1"]);
    let (_, complaints) = ask(&["-f", "no/such/file.yaml"]);
    assert_eq!(complaints, ["cannot read no/such/file.yaml: No such file or directory (os error 2)"]);
}

#[test]
fn the_samples_are_valid_but_for_the_one_that_is_not() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/config/samples");
    let (text, complaints) = ask(&["-f", samples, "-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 8);
    assert_eq!(
        complaints,
        ["CronJob shop/invalid-minute: schedule \"61 * * * *\" is not valid: end of range (61) above maximum (59): 61"]
    );
}

#[test]
fn times_to_ask_from_are_instants_or_dates() {
    assert_eq!(parse_instant("2026-03-07").unwrap().to_rfc3339(), "2026-03-07T00:00:00+00:00");
    assert_eq!(parse_instant("2026-03-07T18:00:00-05:00").unwrap().to_rfc3339(), "2026-03-07T23:00:00+00:00");
    assert!(parse_instant("tomorrow").is_err());
    assert!(parse_instant("+262142-12-31").is_err());
    let (_, complaints) = ask(&["-s", "* * * * *", "-z", "America/New_York", "--from", "9998-12-31", "-n", "1000"]);
    assert_eq!(complaints, [""; 0]);
}
