//! The sandbox beside the real kube-apiserver: the same scripts of requests (`scripts/`) against both, answers compared.
//!
//! What the real server says is kept in `golden/`, so that the sandbox is compared without it. With it (see
//! `tests/controlplane/build`) a second test asks whether it still says so; `CRONJOB_RECORD_CONFORMANCE=1` writes the files
//! anew. Differences that stay are listed in `allowed.rs`, each with its reason; one that is not seen any more fails.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a script that cannot go on has failed")]

mod allowed;
mod answer;
mod compare;
mod normal;
mod script;
mod servers;

#[path = "../support/mod.rs"]
mod support;

use allowed::Allowances;
use script::Script;
use servers::{Real, Sandboxed};
use support::controlplane::{ControlPlane, Options};

const RECORD: &str = "CRONJOB_RECORD_CONFORMANCE";

#[tokio::test(start_paused = true)]
async fn the_sandbox_answers_as_the_real_server_does() {
    let mut allowances = Allowances::new();
    let mut faults = Vec::new();
    let mut steps = 0;
    for script in Script::all() {
        let golden = answer::read(&script.name);
        let answers = script.run(&mut Sandboxed::new()).await;
        assert_eq!(
            golden.len(),
            answers.len(),
            "{}: golden answers are of another script; record them anew",
            script.name
        );
        steps += answers.len();
        for (golden, answer) in golden.iter().zip(&answers) {
            let differences = compare::differences(golden, answer);
            faults.extend(allowances.unexplained(&script.name, &answer.step, differences));
        }
    }
    faults.extend(allowances.unused());
    println!("{steps} requests compared; allowed differences: {}", allowances.summary());
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test]
async fn the_recorded_answers_are_what_the_real_server_says() {
    let test = "conformance";
    let Some(plane) = ControlPlane::start(test, Options::default()).await else { return };
    let definitions = concat!(env!("CARGO_MANIFEST_DIR"), "/config/crd");
    plane.kubectl_ok(&["apply", "-f", definitions]);
    plane.kubectl_ok(&["wait", "--for=condition=Established", "--timeout=30s", "-f", definitions]);
    let record = std::env::var(RECORD).is_ok_and(|value| value == "1");
    let mut faults = Vec::new();
    for script in Script::all() {
        let answers = script.run(&mut Real::new(&plane).await).await;
        if record {
            answer::write(&script.name, &answers);
            continue;
        }
        let golden = answer::read(&script.name);
        assert_eq!(golden.len(), answers.len(), "{}: another number of answers than recorded", script.name);
        for (golden, answer) in golden.iter().zip(&answers) {
            let differences = compare::differences(golden, answer);
            faults.extend(differences.iter().map(|found| format!("{} / {}: {found}", script.name, answer.step)));
        }
    }
    assert!(faults.is_empty(), "not as recorded ({RECORD}=1 records anew):\n{}", faults.join("\n"));
}
