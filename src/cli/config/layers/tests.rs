use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const HEAD: &str = "apiVersion: cronjob-controller.config/v1alpha1\nkind: ControllerConfiguration\n";

/// A file with `body` behind its head, two lines long.
fn file(body: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, format!("{HEAD}{body}")).unwrap();
    (folder, path)
}

fn loaded(file: Option<&Path>, variables: &[(&str, &str)], flags: &[&str]) -> Result<Loaded, LoadError> {
    let mut line: Vec<OsString> = vec!["cronjob-controller".into(), "run".into()];
    line.extend(flags.iter().map(Into::into));
    if let Some(file) = file {
        line.extend(["--config".into(), file.into()]);
    }
    load(&line, &Environment::of(variables))
}

/// Value and source of a flag.
fn flag(loaded: &Loaded, name: &str) -> (String, String) {
    let found = loaded.flags.iter().find(|flag| flag.name == name).unwrap();
    (found.value.clone(), found.source.clone())
}

fn faults(result: Result<Loaded, LoadError>, path: &Path) -> Vec<String> {
    match result {
        Err(LoadError::Faults(faults)) => {
            faults.iter().map(|fault| fault.to_string().replace(path.to_str().unwrap(), "FILE")).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flag_goes_before_a_variable_before_the_file_before_the_default() {
    let (_folder, path) = file("controllers:\n  concurrentCronJobSyncs: 3\n");
    let variable = [("CRONJOB_CONTROLLER_CONCURRENT_CRON_JOB_SYNCS", "2")];
    let syncs = |file, variables: &[_], flags: &[_]| {
        let loaded = loaded(file, variables, flags).unwrap();
        let shown = flag(&loaded, "concurrent-cron-job-syncs");
        let Chosen::Run(args) = loaded.args.command else { panic!() };
        assert_eq!(args.controller.concurrent_cron_job_syncs.to_string(), shown.0);
        shown
    };
    let path = path.as_path();
    let set = |value: &str, source: String| (value.to_owned(), source);
    assert_eq!(syncs(Some(path), &variable, &["--concurrent-cron-job-syncs=1"]), set("1", "flag".into()));
    let from_variable = format!("environment variable {}", variable[0].0);
    assert_eq!(syncs(Some(path), &variable, &[]), set("2", from_variable));
    let from_file = format!("{}:4: controllers.concurrentCronJobSyncs", path.display());
    assert_eq!(syncs(Some(path), &[], &[]), set("3", from_file));
    assert_eq!(syncs(None, &[], &[]), set("256", "default".into()));
    // By its other name, too.
    assert_eq!(syncs(Some(path), &variable, &["--worker-threads-for-cronjob=1"]), set("1", "flag".into()));
}

#[test]
fn every_flag_is_reached_from_the_file_and_from_its_variable() {
    let values = [
        ("clientConnection: {kubeconfig: /k}", "kubeconfig", "/k"),
        ("clientConnection: {master: 'https://m'}", "master", "https://m"),
        ("clientConnection: {qps: 5}", "kube-api-qps", "5"),
        ("clientConnection: {burst: 6}", "kube-api-burst", "6"),
        ("controllers: {enabled: [volcano-cronjob]}", "controllers", "volcano-cronjob"),
        ("controllers: {concurrentCronJobSyncs: 7}", "concurrent-cron-job-syncs", "7"),
        ("controllers: {defaultTimeZone: Asia/Tokyo}", "default-time-zone", "Asia/Tokyo"),
        ("controllers: {concurrentJobSyncs: 8}", "concurrent-job-syncs", "8"),
        ("controllers: {jobController: marked}", "job-controller", "marked"),
        ("controllers: {jobControllerName: acme.io/x}", "job-controller-name", "acme.io/x"),
        ("controllers: {jobManagedBy: acme.io/y}", "job-managed-by", "acme.io/y"),
        ("controllers: {queueRateLimiter: peers}", "queue-rate-limiter", "peers"),
        ("featureGates: {VolcanoJobSupport: false}", "feature-gates", "VolcanoJobSupport=false"),
        ("health: {bindAddress: ':1'}", "health-probe-bind-address", ":1"),
        ("leaderElection: {leaderElect: false}", "leader-elect", "false"),
        ("leaderElection: {leaseDuration: 1m}", "leader-elect-lease-duration", "1m"),
        ("leaderElection: {renewDeadline: 9s}", "leader-elect-renew-deadline", "9s"),
        ("leaderElection: {resourceName: l}", "leader-elect-resource-name", "l"),
        ("leaderElection: {resourceNamespace: n}", "leader-elect-resource-namespace", "n"),
        ("leaderElection: {retryPeriod: 1s}", "leader-elect-retry-period", "1s"),
        ("logging: {level: debug}", "log-level", "debug"),
        ("logging: {format: json}", "logging-format", "json"),
        ("metrics: {bindAddress: ':2'}", "metrics-bind-address", ":2"),
        ("metrics: {secure: false}", "metrics-secure", "false"),
        ("metrics: {tlsCertFile: /c, tlsPrivateKeyFile: /p}", "tls-cert-file", "/c"),
        ("metrics: {tlsCertFile: /c, tlsPrivateKeyFile: /p}", "tls-private-key-file", "/p"),
        ("shadow: {enabled: true}", "shadow", "true"),
        ("shadow: {report: /r}", "shadow-report", "/r"),
        ("shutdownBudget: 1m", "shutdown-budget", "1m"),
    ];
    let mut missing: Vec<String> = loaded(None, &[], &[]).unwrap().flags.into_iter().map(|flag| flag.name).collect();
    missing.retain(|name| name != "config");
    for (body, name, value) in values {
        let (_folder, path) = file(body);
        let from_file = loaded(Some(&path), &[], &[]).unwrap();
        assert_eq!(flag(&from_file, name).0, value, "{body}");
        let variable = super::super::environment::variable(name);
        let mut variables = vec![(variable.as_str(), value)];
        // One of a pair alone is refused.
        variables.extend(match name {
            "tls-cert-file" => Some(("CRONJOB_CONTROLLER_TLS_PRIVATE_KEY_FILE", "/p")),
            "tls-private-key-file" => Some(("CRONJOB_CONTROLLER_TLS_CERT_FILE", "/c")),
            _ => None,
        });
        let from_variable = loaded(None, &variables, &[]).unwrap();
        assert_eq!(flag(&from_variable, name), (value.to_owned(), format!("environment variable {variable}")));
        missing.retain(|known| known != name);
    }
    assert_eq!(missing, [""; 0], "flags that this test forgets");
}

#[test]
fn all_faults_are_told_where_they_stand() {
    let (_folder, path) = file(
        "metrics:\n  bindAdress: x\nlogging:\n  format: xml\ncontrollers:\n  queueRateLimiter: none\n  concurrentCronJobSyncs: 0\n\
         featureGates: {Other: true}\n",
    );
    let variables = [("CRONJOB_CONTROLLER_SHUTDOWN_BUDGET", "soon")];
    let told = faults(loaded(Some(&path), &variables, &[]), &path);
    assert_eq!(
        told,
        [
            "FILE:4: metrics.bindAdress: unknown field; the fields here are bindAddress, secure, tlsCertFile, tlsPrivateKeyFile",
            "FILE:6: logging.format: \"xml\" is not a log format: text or json",
            "FILE:8: controllers.queueRateLimiter: invalid value 'none' for '--queue-rate-limiter <LIMITER>' [possible values: default, peers]",
            "FILE:9: controllers.concurrentCronJobSyncs: concurrent-cron-job-syncs must be greater than 0, but got 0",
            "FILE:10: featureGates: unrecognized feature gate: Other",
            "environment variable CRONJOB_CONTROLLER_SHUTDOWN_BUDGET: \"soon\" is not a duration such as 90s, 1h30m or 500ms",
        ]
    );
    let without_variable = validate(&path).unwrap();
    assert_eq!(without_variable.len(), told.len() - 1);
}

#[test]
fn a_file_that_leaves_no_controller_to_run_is_refused() {
    for (body, told) in [
        (
            "controllers:\n  enabled: [-volcano-cronjob]\n",
            "FILE:4: controllers.enabled: no controller runs with -volcano-cronjob: write \"*,-NAME\" to run all but one",
        ),
        (
            "controllers:\n  enabled: [volcano-cronjob]\nfeatureGates: {VolcanoJobSupport: false}\n",
            "FILE:5: featureGates: no controller runs: the feature gates switch off all that --controllers names (volcano-cronjob)",
        ),
    ] {
        let (_folder, path) = file(body);
        assert_eq!(faults(loaded(Some(&path), &[], &[]), &path), [told]);
        assert_eq!(validate(&path).unwrap().len(), 1);
    }
    let told = faults(loaded(None, &[("CRONJOB_CONTROLLER_CONTROLLERS", "-volcano-cronjob")], &[]), Path::new("FILE"));
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("environment variable CRONJOB_CONTROLLER_CONTROLLERS: no controller runs"), "{told:?}");
}

#[test]
fn a_contradiction_between_settings_is_told_where_one_of_them_stands() {
    let (_folder, path) =
        file("metrics:\n  tlsCertFile: /c\nhealth: {bindAddress: ':8443'}\nleaderElection:\n  renewDeadline: 20s\n");
    let told = faults(loaded(Some(&path), &[], &[]), &path);
    assert_eq!(
        told,
        [
            "FILE:7: leaderElection.renewDeadline: the lease duration must be greater than the renew deadline",
            "FILE:4: metrics.tlsCertFile: needs --tls-private-key-file beside it",
            "FILE:5: health.bindAddress: :8443 is for metrics and for probes, but probes show no token: take two ports",
        ]
    );
    let told = faults(loaded(None, &[], &["--leader-elect-lease-duration=5s"]), Path::new("FILE"));
    let both = "--leader-elect-lease-duration, --leader-elect-renew-deadline";
    assert_eq!(told, [format!("{both}: the lease duration must be greater than the renew deadline")]);
}

#[test]
fn the_file_may_be_named_by_a_variable_and_must_be_there() {
    let (_folder, path) = file("logging: {level: debug}\n");
    let variables = [("CRONJOB_CONTROLLER_CONFIG", path.to_str().unwrap())];
    let loaded_so = loaded(None, &variables, &[]).unwrap();
    assert_eq!(flag(&loaded_so, "log-level").0, "debug");
    let gone = loaded(None, &[("CRONJOB_CONTROLLER_CONFIG", "no/such/file")], &[]).unwrap_err();
    assert!(matches!(&gone, LoadError::Unreadable(error) if error.to_string().contains("no/such/file")), "{gone:?}");
}

#[test]
fn other_commands_know_no_layers() {
    let line = ["cronjob-controller", "next", "--schedule", "@daily"].map(OsString::from);
    let environment = Environment::of(&[("CRONJOB_CONTROLLER_LOG_LEVEL", "in fo"), ("CRONJOB_CONTROLLER_X", "")]);
    let loaded = load(&line, &environment).unwrap();
    assert_eq!((loaded.flags, loaded.warnings), (Vec::new(), Vec::new()));
}

#[test]
fn a_variable_of_no_flag_is_warned_of() {
    let loaded = loaded(None, &[("CRONJOB_CONTROLLER_KUBE_API_QSP", "1")], &[]).unwrap();
    assert_eq!(loaded.warnings, ["CRONJOB_CONTROLLER_KUBE_API_QSP is the variable of no flag"]);
}
