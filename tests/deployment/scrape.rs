//! The metrics of the binary, as it serves them while it runs against a sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const EACH_SECOND: &str = r#"
apiVersion: batch/v1
kind: CronJob
metadata: {name: each-second, namespace: default}
spec:
  schedule: "@every 1s"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}
"#;

/// One family as the exposition tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) labels: BTreeSet<String>,
}

/// The families by name, counters with their `_total`; read once.
pub(crate) fn families() -> &'static BTreeMap<String, Family> {
    static FAMILIES: OnceLock<BTreeMap<String, Family>> = OnceLock::new();
    FAMILIES.get_or_init(|| read_families(&scraped()))
}

/// A child that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Starts the binary and reads the stream that `pick` takes until a line contains `needle`; the rest is read and dropped.
fn start(arguments: &[&str], errors: bool, needle: &str, times: usize) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
    command.args(arguments).env_remove("RUST_LOG").env_remove("KUBECONFIG").stdin(Stdio::null());
    let (out, err) = if errors { (Stdio::null(), Stdio::piped()) } else { (Stdio::piped(), Stdio::null()) };
    let mut running = Running(command.stdout(out).stderr(err).spawn().unwrap());
    let stream: Box<dyn Read + Send> = match errors {
        true => Box::new(running.0.stderr.take().unwrap()),
        false => Box::new(running.0.stdout.take().unwrap()),
    };
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut seen = Vec::new();
    while seen.iter().filter(|line: &&String| line.contains(needle)).count() < times {
        seen.push(lines.next().unwrap_or_else(|| panic!("{arguments:?} ended: {seen:#?}")));
    }
    std::thread::spawn(move || lines.for_each(drop));
    running
}

fn scraped() -> String {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig.yaml");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let manifest = folder.path().join("cronjob.yaml");
    std::fs::write(&manifest, EACH_SECOND).unwrap();
    let manifest = manifest.to_str().unwrap();
    let idle = ["sandbox", "--controllers=-cronjob-controller", "--speed", "1"];
    let sandbox = [&idle[..], &["--kubeconfig", kubeconfig, "--filename", manifest]].concat();
    let _server = start(&sandbox, false, "created 1 of 1 objects", 1);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let metrics = format!("--metrics-bind-address=127.0.0.1:{port}");
    let ports = [&metrics, "--metrics-secure=false", "--health-probe-bind-address=0"];
    let all = "--controllers=*,kubernetes-job,kubernetes-ttl-after-finished";
    let run = [&["run", all, "--kubeconfig", kubeconfig], &ports[..]].concat();
    let _controllers = start(&run, true, "caches have synced", 4);
    // Some metrics of requests appear with the first request of their kind.
    for _try in 0..600 {
        let answer = get(port);
        if answer.contains("api_requests_queued{lane=\"event\"}")
            && answer.contains("method=\"PATCH\"")
            && answer.contains("jobs_by_external_controller_total{")
        {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("no Job is started, or no event written: {}", get(port));
}

fn get(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer
}

/// Reads `# HELP`, `# TYPE` and the labels of the samples.
fn read_families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines().map(str::trim_end) {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name.to_owned()).or_default().help = help.trim_end_matches('.').to_owned();
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((sample, rest)) = line.split_once('{') {
            let family = sample_family(&mut families, sample);
            let labels = rest.rsplit_once('}').unwrap().0;
            // Values of ours hold no commas or quotes but for help of a host, which has none either.
            let keys = labels.split(',').filter_map(|pair| pair.split_once('=')).map(|(key, _)| key.to_owned());
            family.labels.extend(keys.filter(|key| key != "le"));
        }
    }
    families
}

/// The family of a sample, of whose name a histogram's suffix may have to go.
fn sample_family<'a>(families: &'a mut BTreeMap<String, Family>, sample: &str) -> &'a mut Family {
    let stem = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| sample.strip_suffix(suffix));
    let name = stem.filter(|stem| families.contains_key(*stem)).unwrap_or(sample).to_owned();
    families.get_mut(&name).unwrap_or_else(|| panic!("a sample without a family: {sample}"))
}
