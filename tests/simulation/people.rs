//! The users of a cluster: the CronJobs they make, and what they do to them afterwards.

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::plan::{Action, Api, HOUR, MINUTE, Ms, Named, SECOND};
use crate::troubles::Trouble;

/// A CronJob that somebody makes.
#[derive(Clone, Debug)]
pub(crate) struct CronSpec {
    pub(crate) at: Ms,
    pub(crate) named: Named,
    /// Over the minimal spec.
    pub(crate) spec: Value,
    /// How its Jobs run.
    pub(crate) annotations: Value,
    /// Runs in a day, about.
    pub(crate) daily: u64,
}

/// Schedules with about how many runs they make in a day.
const SCHEDULES: [(&str, u64); 34] = [
    ("* * * * *", 1440),
    ("*/2 * * * *", 720),
    ("*/5 * * * *", 288),
    ("*/7 * * * *", 206),
    ("*/10 * * * *", 144),
    ("*/15 * * * *", 96),
    ("*/20 * * * *", 72),
    ("0,1 * * * *", 48),
    ("*/30 * * * *", 48),
    ("13 * * * *", 24),
    ("0 * * * *", 24),
    ("59 * * * *", 24),
    ("0 */2 * * *", 12),
    ("3,4,50 1,2,23 * * *", 9),
    ("0,1,17 */6 * * *", 12),
    ("5-9 */4 * * *", 30),
    ("30 2 * * *", 1),
    ("0 0 * * *", 1),
    ("30 1 * * *", 1),
    ("*/20 0-3 * * *", 12),
    ("0 12 29 2 *", 0),
    ("0 0 1 * *", 0),
    ("59 23 31 12 *", 0),
    ("1 0 1 1 *", 0),
    ("0 9 * * 1-5", 1),
    ("@hourly", 24),
    ("@daily", 1),
    ("@every 61s", 1416),
    ("@every 90s", 960),
    ("@every 5m", 288),
    ("@every 7m13s", 200),
    ("@every 1h30m", 16),
    ("@every 6h", 4),
    ("@every 33h", 0),
];

const ZONES: [&str; 10] = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Santiago",
    "Africa/Cairo",
    "Pacific/Auckland",
    "America/Havana",
    "Etc/GMT-1",
    "UTC",
];

/// As many as make a day of the wanted size.
pub(crate) fn draw_crons(dice: &mut Dice, namespaces: &[String], is_large: bool, hours: u64) -> Vec<CronSpec> {
    let budget = if is_large { dice.between(2000, 5000) } else { dice.between(200, 900) };
    let most = if is_large { dice.between(100, 300) } else { dice.between(8, 40) };
    // Short runs may be denser: each must have something to do.
    let budget = budget * 24 / hours.clamp(6, 24);
    let (mut crons, mut planned) = (Vec::new(), 0);
    for number in 0..most {
        let (schedule, daily) = *dice.pick(&SCHEDULES);
        if planned + daily > budget {
            continue;
        }
        planned += daily;
        crons.push(draw_cron(dice, namespaces, number, schedule, daily));
    }
    crons
}

fn draw_cron(dice: &mut Dice, namespaces: &[String], number: u64, schedule: &str, daily: u64) -> CronSpec {
    let api = if dice.percent(60) { Api::Kubernetes } else { Api::Volcano };
    let mut spec = json!({
        "schedule": schedule,
        "concurrencyPolicy": dice.pick(&["Allow", "Forbid", "Forbid", "Replace"]),
        "successfulJobsHistoryLimit": dice.pick(&[0, 1, 1, 2, 3]),
        "failedJobsHistoryLimit": dice.pick(&[0, 1, 1, 2]),
    });
    if dice.percent(30) {
        spec["timeZone"] = json!(dice.pick(&ZONES));
    }
    if dice.percent(35) {
        spec["startingDeadlineSeconds"] = json!(dice.pick(&[0, 1, 5, 30, 59, 120, 600, 3600, 86400]));
    }
    if dice.percent(7) {
        spec["suspend"] = json!(true);
    }
    let gap_s = 86_400 / daily.max(1);
    CronSpec {
        at: if dice.percent(80) { dice.between(0, 5 * SECOND) } else { dice.between(0, 2 * HOUR) },
        named: Named { api, namespace: dice.pick(namespaces).clone(), name: format!("c{number}") },
        spec,
        annotations: draw_fate(dice, gap_s),
        daily,
    }
}

/// Jobs that take less than the distance of two runs, as long, or longer; a few fail or hang.
fn draw_fate(dice: &mut Dice, gap_s: u64) -> Value {
    let longest = (gap_s * 5 / 2).min(3 * 3600);
    let duration_s =
        if dice.percent(60) { dice.between(1, gap_s.clamp(2, 120)) } else { dice.between(1, longest.max(2)) };
    let outcome = if dice.percent(80) { "complete" } else { *dice.pick(&["fail", "fail", "hang"]) };
    json!({
        "sandbox.cronjob-controller.dev/duration": format!("{duration_s}s"),
        "sandbox.cronjob-controller.dev/outcome": outcome,
    })
}

/// Times near the start of a minute, where most is due, or any.
pub(crate) fn draw_time(dice: &mut Dice, until: Ms) -> Ms {
    let at = dice.between(10 * SECOND, until);
    if dice.percent(50) { at } else { (at / MINUTE * MINUTE + dice.between(0, 1300)).saturating_sub(1000) }
}

/// What they do until `until`.
pub(crate) fn draw_script(
    dice: &mut Dice,
    crons: &[CronSpec],
    namespaces: &[String],
    until: Ms,
    actions: &mut Vec<(Ms, Action)>,
) {
    let deeds = dice.between(0, 2 + until / (20 * MINUTE));
    for number in 0..deeds {
        if crons.is_empty() {
            return;
        }
        let cron = dice.pick(crons).clone();
        let at = draw_time(dice, until);
        draw_deed(dice, cron, at, number, actions);
    }
    if namespaces.len() > 2 && dice.percent(30) {
        let (namespace, at) = (namespaces[1].clone(), draw_time(dice, until));
        actions.push((at, Action::Quota { namespace: namespace.clone(), jobs: Some(dice.between(0, 4)) }));
        actions.push((at + dice.between(MINUTE, 2 * HOUR), Action::Quota { namespace, jobs: None }));
    }
    if namespaces.len() > 3 && dice.percent(30) {
        actions.push((draw_time(dice, until), Action::DeleteNamespace(namespaces[3].clone())));
    }
}

/// What they do while something goes wrong: most mistakes take both.
pub(crate) fn draw_deeds_in_trouble(
    dice: &mut Dice,
    crons: &[CronSpec],
    troubles: &[Trouble],
    actions: &mut Vec<(Ms, Action)>,
) {
    let each = dice.between(0, 3);
    for (number, trouble) in troubles.iter().enumerate().filter(|_| !crons.is_empty()) {
        for _ in 0..dice.between(0, each) {
            let cron = dice.pick(crons).clone();
            let at = dice.between(trouble.at, trouble.at + trouble.lasts);
            draw_deed(dice, cron, at, 1_000_000 + number as u64, actions);
        }
    }
}

/// Other templates: what a run starts must be what stood there by then.
pub(crate) fn draw_templates(dice: &mut Dice, crons: &[CronSpec], until: Ms, actions: &mut Vec<(Ms, Action)>) {
    for number in 0..dice.between(0, 2 + until / (30 * MINUTE)) {
        let Some(cron) = crons.get(usize::try_from(dice.number() % crons.len().max(1) as u64).unwrap()) else { return };
        let mut template = json!({"spec": job_spec(cron.named.api, &format!("registry.example.com/c:{}", number + 2))});
        template["metadata"] = match number % 3 {
            0 => json!({"labels": {"edit": number.to_string()}}),
            1 => json!({"labels": null, "annotations": {"example.com/edit": number.to_string()}}),
            _ => json!({}),
        };
        let patch = json!({"spec": {"jobTemplate": template}});
        actions.push((draw_time(dice, until), Action::Edit { cron: cron.named.clone(), patch }));
    }
}

/// More Jobs of others under the names of runs; most of all such Jobs go again soon after that run was due. `start_ms` is the wall time at
/// which the run begins.
pub(crate) fn draw_names(
    dice: &mut Dice,
    crons: &[CronSpec],
    start_ms: Ms,
    until: Ms,
    actions: &mut Vec<(Ms, Action)>,
) {
    let often: Vec<&CronSpec> = crons.iter().filter(|cron| (96..=720).contains(&cron.daily)).collect();
    for _ in 0..dice.between(0, 2 + until / HOUR) {
        if often.is_empty() {
            break;
        }
        let cron = dice.pick(&often).named.clone();
        actions.push((draw_time(dice, until), Action::ForeignJob { cron, minutes_ahead: dice.between(1, 15) }));
    }
    let mut freed = Vec::new();
    for (at, action) in &*actions {
        if let Action::ForeignJob { cron, minutes_ahead } = action
            && dice.percent(70)
        {
            let due = ((start_ms + at) / MINUTE + minutes_ahead) * MINUTE - start_ms;
            freed.push((due.max(*at) + dice.between(SECOND, 2 * MINUTE), Action::FreeNames(cron.clone())));
        }
    }
    actions.extend(freed);
}

fn draw_deed(dice: &mut Dice, cron: CronSpec, at: Ms, number: u64, actions: &mut Vec<(Ms, Action)>) {
    let named = cron.named.clone();
    let edit = |patch: Value| Action::Edit { cron: named.clone(), patch: json!({"spec": patch}) };
    match dice.between(0, 12) {
        0 | 1 => {
            actions.push((at, edit(json!({"suspend": true}))));
            actions.push((at + dice.between(SECOND, 3 * HOUR), edit(json!({"suspend": false}))));
        }
        2 | 3 => {
            // Not much denser than before, or the day gets too long.
            let fitting: Vec<&str> =
                SCHEDULES.iter().filter(|(_, daily)| *daily <= cron.daily.max(24)).map(|(text, _)| *text).collect();
            actions.push((at, edit(json!({"schedule": dice.pick(&fitting)}))));
        }
        4 => actions.push((at, edit(json!({"timeZone": dice.pick(&ZONES)})))),
        5 => actions.push((at, edit(json!({"concurrencyPolicy": dice.pick(&["Allow", "Forbid", "Replace"])})))),
        6 => actions.push((at, edit(json!({"startingDeadlineSeconds": dice.pick(&[1, 10, 59, 600, 86400])})))),
        7 => actions.push((at, edit(json!({"successfulJobsHistoryLimit": dice.between(0, 3)})))),
        8 => {
            actions.push((at, Action::Delete(named)));
            if dice.percent(80) {
                let again = at + *dice.pick(&[0, 1, 50, 200, 1000, 30_000, 300_000]);
                actions.push((again, Action::Create(CronSpec { at: again, ..cron })));
            }
        }
        9 | 10 => actions.push((at, Action::DeleteJob { cron: named, pick: dice.number() })),
        11 => actions.push((at, Action::ManualJob { cron: named, number })),
        _ => actions.push((at, Action::ForeignJob { cron: named, minutes_ahead: dice.between(0, 20) })),
    }
}

/// The manifest of a CronJob.
pub(crate) fn manifest(cron: &CronSpec) -> Value {
    let api_version = api_version(cron.named.api);
    let job = job_spec(cron.named.api, "registry.example.com/c:1");
    let mut spec = cron.spec.clone();
    let labels = json!({"example.com/of": cron.named.name});
    spec["jobTemplate"] = json!({"metadata": {"labels": labels, "annotations": cron.annotations}, "spec": job});
    let metadata = json!({"namespace": cron.named.namespace, "name": cron.named.name});
    json!({"apiVersion": api_version, "kind": "CronJob", "metadata": metadata, "spec": spec})
}

fn api_version(api: Api) -> &'static str {
    match api {
        Api::Kubernetes => "batch/v1",
        Api::Volcano => "batch.volcano.sh/v1alpha1",
    }
}

/// The spec of a Job whose one container runs this image.
fn job_spec(api: Api, image: &str) -> Value {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]});
    match api {
        Api::Kubernetes => json!({"template": {"spec": pod}}),
        Api::Volcano => json!({"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": {"spec": pod}}]}),
    }
}

/// The manifest of a Job as users make one; `owner` is the CronJob's uid, if it shall be its controller.
pub(crate) fn job_manifest(cron: &Named, name: &str, owner: Option<&str>) -> Value {
    let (spec, api_version) = (job_spec(cron.api, "registry.example.com/c:1"), api_version(cron.api));
    let mut metadata = json!({"namespace": cron.namespace, "name": name,
        "annotations": {"sandbox.cronjob-controller.dev/duration": "100s"}});
    if let Some(uid) = owner {
        metadata["ownerReferences"] = json!([{"apiVersion": api_version, "kind": "CronJob", "name": cron.name,
            "uid": uid, "controller": true, "blockOwnerDeletion": true}]);
    }
    json!({"apiVersion": api_version, "kind": "Job", "metadata": metadata, "spec": spec})
}
