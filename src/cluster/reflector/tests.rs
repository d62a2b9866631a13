use std::sync::Mutex;

use bytes::Bytes;
use futures::channel::mpsc::UnboundedSender;
use tokio::time::advance;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::BoxError;

use super::*;
use crate::cluster::testing::{
    Server, ServerBody, Thing, broken, channel_body, fixed_body, refusal, reply, settle, silence, thing_json,
};

/// A running reflector over a scripted server, and what its sink heard.
struct Rig {
    server: Server,
    store: Store<Thing>,
    health: ReflectorHealth,
    heard: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Rig {
    /// With paged lists only; the script must have been written before.
    fn paged(server: &Server) -> Self {
        Self::start(server, false)
    }

    fn streamed(server: &Server) -> Self {
        Self::start(server, true)
    }

    fn start(server: &Server, streamed_lists: bool) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let heard = heard.clone();
            move |change: Change<Thing>| heard.lock().unwrap().push(words(&change))
        };
        let options = ReflectorOptions { streamed_lists, ..ReflectorOptions::new("/things", "things", 7) };
        let clock = Clock::system();
        let metrics = ReflectorMetrics::default();
        let reflector = Reflector::new(server.client(), clock, options, Thing::decode, sink, &metrics);
        let (store, health) = (reflector.store(), reflector.health());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(reflector.run(stop.clone()));
        Self { server: server.clone(), store, health, heard, stop, tasks }
    }

    /// What the sink heard since the last call.
    async fn heard(&self) -> Vec<String> {
        settle().await;
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    async fn uris(&self) -> Vec<String> {
        settle().await;
        self.server.uris().iter().map(|uri| without_timeout(uri)).collect()
    }

    async fn finish(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn words(change: &Change<Thing>) -> String {
    let name = |t: &Thing| format!("{}/{}@{}", t.key.name, t.uid, t.version);
    match change {
        Change::Applied { old: None, new, initial: true } => format!("list {}", name(new)),
        Change::Applied { old: None, new, initial: false } => format!("add {}", name(new)),
        Change::Applied { old: Some(old), new, .. } => format!("update {} from {}", name(new), old.version),
        Change::Deleted { last } => format!("delete {}", name(last)),
        Change::Unreadable { key, .. } => format!("unreadable {}", key.name),
        Change::Synced => "synced".into(),
        Change::Relisted => "relisted".into(),
    }
}

fn without_timeout(uri: &str) -> String {
    let (path, query) = uri.split_once('?').unwrap();
    let kept: Vec<_> = query.split('&').filter(|part| !part.starts_with("timeoutSeconds")).collect();
    format!("{path}?{}", kept.join("&"))
}

fn page(version: &str, next: &str, items: &[String]) -> ServerBody {
    let items = items.join(",");
    fixed_body(&[&format!(r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#)])
}

/// A thing whose uid follows from its name.
fn thing(name: &str, version: &str) -> String {
    thing_json(name, &format!("u{name}"), version)
}

/// The server's side of an open watch.
struct Stream(UnboundedSender<Result<Bytes, BoxError>>);

impl Stream {
    fn frame(&self, kind: &str, object: &str) {
        self.raw(&format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"));
    }

    fn bookmark(&self, version: &str) {
        self.frame("BOOKMARK", &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#));
    }

    fn end_of_list(&self, version: &str) {
        let annotations = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
        self.frame("BOOKMARK", &format!(r#"{{"metadata":{{"resourceVersion":"{version}",{annotations}}}}}"#));
    }

    fn gone(&self) {
        self.frame("ERROR", r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}"#);
    }

    fn raw(&self, text: &str) {
        self.0.unbounded_send(Ok(Bytes::copy_from_slice(text.as_bytes()))).unwrap();
    }

    fn cut(self) {
        self.0.unbounded_send(Err("connection reset".into())).unwrap();
    }
}

/// Adds the opening of a watch to the script.
fn watch(server: &Server) -> Stream {
    let (send, body) = channel_body();
    server.answer(|_| reply(200, body));
    Stream(send)
}

fn list(server: &Server, version: &str, items: &[String]) {
    let body = page(version, "", items);
    server.answer(|_| reply(200, body));
}

const LIST: &str = "GET /things?limit=500";
const STREAM: &str =
    "GET /things?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

fn watch_from(version: &str) -> String {
    format!("GET /things?watch=true&allowWatchBookmarks=true&resourceVersion={version}")
}

/// Longer than any first pause.
const PAUSE: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn a_list_of_several_pages_is_handed_over_to_a_watch() {
    let server = Server::default();
    server.answer(|_| reply(200, page("10", "more", &[thing("a", "1"), thing("b", "2")])));
    server.answer(|_| reply(200, page("10", "", &[thing("c", "3")])));
    let stream = watch(&server);
    let rig = Rig::paged(&server);
    assert_eq!(rig.heard().await, ["list a/ua@1", "list b/ub@2", "list c/uc@3", "synced"]);
    stream.frame("MODIFIED", &thing("a", "11"));
    stream.frame("ADDED", &thing("d", "12"));
    stream.frame("DELETED", &thing("b", "13"));
    assert_eq!(rig.heard().await, ["update a/ua@11 from 1", "add d/ud@12", "delete b/ub@13"]);
    assert_eq!(rig.uris().await, [LIST, "GET /things?limit=500&continue=more", &watch_from("10")]);
    assert_eq!(rig.health.report().phase, Phase::Watching);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_goes_on_as_the_watch_on_the_same_connection() {
    let server = Server::default();
    let stream = watch(&server);
    let rig = Rig::streamed(&server);
    stream.frame("ADDED", &thing("a", "1"));
    assert_eq!(rig.heard().await, ["list a/ua@1"]);
    assert!(!rig.store.has_synced());
    stream.end_of_list("10");
    stream.frame("MODIFIED", &thing("a", "11"));
    assert_eq!(rig.heard().await, ["synced", "update a/ua@11 from 1"]);
    assert_eq!(rig.uris().await, [STREAM]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_streamed_lists_is_listed_by_pages_from_then_on() {
    let server = Server::default();
    server.answer(|_| refusal(422, "Invalid", 0));
    list(&server, "10", &[thing("a", "1")]);
    let stream = watch(&server);
    let rig = Rig::streamed(&server);
    assert_eq!(rig.heard().await, ["list a/ua@1", "synced"]);
    list(&server, "20", &[thing("a", "1")]);
    stream.gone();
    settle().await;
    advance(PAUSE).await;
    assert_eq!(rig.uris().await, [STREAM, LIST, &watch_from("10"), LIST, &watch_from("20")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_ends_a_streamed_list_is_listed_by_pages() {
    let server = Server::default();
    let stream = watch(&server);
    list(&server, "10", &[thing("a", "1")]);
    let rig = Rig::streamed(&server);
    stream.frame("ADDED", &thing("a", "1"));
    settle().await;
    advance(Duration::from_secs(31)).await;
    assert_eq!(rig.heard().await, ["list a/ua@1", "synced"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_that_breaks_starts_clean() {
    let server = Server::default();
    let first = watch(&server);
    let second = watch(&server);
    let rig = Rig::streamed(&server);
    first.frame("ADDED", &thing("a", "1"));
    first.frame("ADDED", &thing("b", "2"));
    first.cut();
    settle().await;
    advance(PAUSE).await;
    second.frame("ADDED", &thing("b", "2"));
    second.end_of_list("10");
    assert_eq!(rig.heard().await, ["list a/ua@1", "list b/ub@2", "delete a/ua@1", "synced"]);
    assert_eq!(rig.uris().await, [STREAM, STREAM], "no version was taken from the first stream");
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_as_asked_goes_on_at_once_after_the_last_version_bookmarks_included() {
    let server = Server::default();
    list(&server, "10", &[]);
    let first = watch(&server);
    let second = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    first.frame("ADDED", &thing("a", "11"));
    first.bookmark("30");
    settle().await;
    advance(Duration::from_secs(2)).await;
    drop(first);
    assert_eq!(rig.uris().await, [LIST, &watch_from("10"), &watch_from("30")]);
    second.frame("DELETED", &thing("a", "31"));
    assert_eq!(rig.heard().await, ["synced", "add a/ua@11", "delete a/ua@31"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_resumes_after_a_pause_and_loses_nothing() {
    let server = Server::default();
    list(&server, "10", &[]);
    let first = watch(&server);
    let second = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    first.frame("ADDED", &thing("a", "11"));
    // Half a frame is no frame.
    first.raw("{\"type\":\"DELETED\",\"obj");
    first.cut();
    assert_eq!(rig.uris().await.len(), 2);
    assert_eq!(rig.health.report().phase, Phase::Pausing);
    advance(PAUSE).await;
    second.frame("ADDED", &thing("b", "12"));
    assert_eq!(rig.uris().await[2..], [watch_from("11")]);
    assert_eq!(rig.heard().await, ["synced", "add a/ua@11", "add b/ub@12"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_vanished_or_was_recreated_during_a_gap_is_heard_when_the_new_list_ends() {
    let server = Server::default();
    list(&server, "10", &[thing("kept", "1"), thing("lost", "2"), thing("reborn", "3")]);
    let stream = watch(&server);
    list(&server, "90", &[thing("kept", "1"), thing_json("reborn", "other", "50"), thing("fresh", "60")]);
    let _second = watch(&server);
    let rig = Rig::paged(&server);
    rig.heard().await;
    stream.gone();
    settle().await;
    advance(PAUSE).await;
    let heard = rig.heard().await;
    let reborn = ["delete reborn/ureborn@3", "add reborn/other@50"];
    assert_eq!(heard, [&reborn[..], &["add fresh/ufresh@60", "delete lost/ulost@2", "relisted"]].concat());
    assert_eq!(rig.store.len(), 3);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_http_410_lists_anew_without_a_version() {
    let server = Server::default();
    list(&server, "10", &[]);
    server.answer(|_| refusal(410, "Expired", 0));
    list(&server, "20", &[]);
    let _stream = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    advance(PAUSE).await;
    assert_eq!(rig.uris().await, [LIST, &watch_from("10"), LIST, &watch_from("20")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_throttled_watch_waits_as_asked_and_never_lists() {
    let server = Server::default();
    list(&server, "10", &[]);
    server.answer(|_| refusal(429, "TooManyRequests", 20));
    let _stream = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    advance(Duration::from_secs(19)).await;
    assert_eq!(rig.uris().await.len(), 2);
    advance(Duration::from_secs(2)).await;
    assert_eq!(rig.uris().await[2..], [watch_from("10")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_also_when_each_list_succeeds_and_only_the_watch_fails() {
    let server = Server::default();
    for _ in 0..400 {
        list(&server, "10", &[]);
        let stream = watch(&server);
        stream.gone();
    }
    let rig = Rig::paged(&server);
    for _ in 0..300 {
        settle().await;
        advance(Duration::from_secs(1)).await;
    }
    let lists = rig.uris().await.iter().filter(|uri| *uri == LIST).count();
    assert!((5..=20).contains(&lists), "{lists} lists in five minutes");
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_tried_again_until_the_server_is_there() {
    let server = Server::default();
    server.answer(|_| broken());
    server.answer(|_| refusal(503, "ServiceUnavailable", 0));
    list(&server, "10", &[thing("a", "1")]);
    let rig = Rig::paged(&server);
    assert!(rig.heard().await.is_empty());
    for _ in 0..10 {
        settle().await;
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(rig.heard().await, ["list a/ua@1", "synced"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_after_a_bookmark_is_resumed_long_before_its_timeout() {
    let server = Server::default();
    list(&server, "10", &[]);
    let stream = watch(&server);
    let _second = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    stream.bookmark("15");
    settle().await;
    for _ in 0..12 {
        advance(Duration::from_secs(10)).await;
        settle().await;
    }
    assert_eq!(rig.uris().await, [LIST, &watch_from("10"), &watch_from("15")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_versions_went_back_is_listed_anew() {
    let server = Server::default();
    list(&server, "10", &[thing("a", "9")]);
    let stream = watch(&server);
    list(&server, "4", &[thing("b", "3")]);
    let _second = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    stream.bookmark("4");
    settle().await;
    advance(PAUSE).await;
    settle().await;
    assert_eq!(rig.heard().await, ["list a/ua@9", "synced", "add b/ub@3", "delete a/ua@9", "relisted"]);
    assert_eq!(rig.uris().await, [LIST, &watch_from("10"), LIST, &watch_from("4")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_not_reopened_without_a_pause() {
    let server = Server::default();
    list(&server, "10", &[]);
    let first = watch(&server);
    let _second = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    first.bookmark("15");
    drop(first);
    assert_eq!(rig.uris().await, [LIST, &watch_from("10")]);
    advance(PAUSE).await;
    settle().await;
    assert_eq!(rig.uris().await, [LIST, &watch_from("10"), &watch_from("15")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_stream_is_given_up_after_its_timeout_and_resumed() {
    let server = Server::default();
    list(&server, "10", &[]);
    let stream = watch(&server);
    let _second = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    stream.frame("ADDED", &thing("a", "15"));
    settle().await;
    for _ in 0..64 {
        advance(Duration::from_secs(10)).await;
        settle().await;
    }
    assert_eq!(rig.uris().await, [LIST, &watch_from("10"), &watch_from("15")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_shows_nothing_at_all_leads_to_a_list_since_its_version_may_lie_in_the_future() {
    let server = Server::default();
    list(&server, "1000", &[thing("a", "900")]);
    let stream = watch(&server);
    // The data were restored: smaller versions now.
    list(&server, "50", &[thing("a", "40")]);
    let _second = watch(&server);
    let rig = Rig::paged(&server);
    rig.heard().await;
    advance(Duration::from_secs(300)).await;
    drop(stream);
    settle().await;
    advance(PAUSE).await;
    assert_eq!(rig.heard().await, ["update a/ua@40 from 900", "relisted"]);
    assert_eq!(rig.uris().await[2..], [LIST.to_owned(), watch_from("50")]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_is_left_out_and_the_stream_goes_on() {
    let server = Server::default();
    let bad = |name: &str, version: &str| thing(name, version).replacen('{', r#"{"bad":true,"#, 1);
    list(&server, "10", &[thing("a", "1"), bad("b", "2")]);
    let stream = watch(&server);
    let rig = Rig::paged(&server);
    assert_eq!(rig.heard().await, ["list a/ua@1", "unreadable b", "synced"]);
    stream.frame("MODIFIED", &bad("a", "11"));
    stream.frame("DELETED", &bad("b", "12"));
    stream.frame("ADDED", &thing("c", "13"));
    assert_eq!(rig.heard().await, ["delete a/ua@1", "unreadable a", "add c/uc@13"]);
    assert_eq!(rig.uris().await.len(), 2);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_frame_leads_to_a_new_list() {
    let server = Server::default();
    list(&server, "10", &[]);
    let stream = watch(&server);
    list(&server, "20", &[thing("a", "15")]);
    let rig = Rig::paged(&server);
    settle().await;
    stream.raw("<html>\n");
    settle().await;
    advance(PAUSE).await;
    assert_eq!(rig.heard().await, ["synced", "add a/ua@15", "relisted"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_server_does_not_know_is_absent_until_it_appears() {
    let server = Server::default();
    server.answer(|_| reply(404, fixed_body(&["404 page not found\n"])));
    server.answer(|_| reply(404, fixed_body(&["404 page not found\n"])));
    let rig = Rig::streamed(&server);
    settle().await;
    assert_eq!(rig.health.report().phase, Phase::Absent);
    assert!(rig.heard().await.is_empty() && !rig.store.has_synced());
    advance(Duration::from_secs(29)).await;
    assert_eq!(rig.uris().await.len(), 1);
    advance(Duration::from_secs(2)).await;
    assert_eq!(rig.uris().await.len(), 2);
    let stream = watch(&server);
    stream.frame("ADDED", &thing("a", "1"));
    stream.end_of_list("5");
    advance(Duration::from_secs(31)).await;
    assert_eq!(rig.heard().await, ["list a/ua@1", "synced"]);
    assert_eq!(rig.health.report().phase, Phase::Watching);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_back_after_a_long_outage_is_listed_within_seconds_though_its_past_is_gone() {
    let server = Server::default();
    list(&server, "10", &[thing("a", "1")]);
    let stream = watch(&server);
    let rig = Rig::paged(&server);
    rig.heard().await;
    server.answer_rest(|_| broken());
    stream.cut();
    settle().await;
    for _ in 0..90 {
        advance(Duration::from_secs(1)).await;
        settle().await;
    }
    let asked = rig.uris().await.len();
    assert!((90 / 10..90 / 3).contains(&asked), "{asked} requests in 90 s");
    server.answer(|_| refusal(410, "Expired", 0));
    list(&server, "90", &[thing("a", "80")]);
    // 5 s, lengthened to 10 s at most, then the first pause before a list.
    for _ in 0..12 {
        advance(Duration::from_secs(1)).await;
        settle().await;
    }
    assert_eq!(rig.heard().await, ["update a/ua@80 from 1", "relisted"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_expires_again_and_again_is_no_hot_loop() {
    let server = Server::default();
    list(&server, "10", &[]);
    server.answer_rest(|_| refusal(410, "Expired", 0));
    let rig = Rig::paged(&server);
    for _ in 0..300 {
        settle().await;
        advance(Duration::from_secs(1)).await;
    }
    let asked = rig.uris().await.len();
    // The sum of six doublings from 0.8 s is 50 s; then one request each 30 to 60 s.
    assert!((6..=16).contains(&asked), "{asked} requests in 300 s");
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_absent_kind_stays_known_as_absent_while_the_server_is_away() {
    let server = Server::default();
    server.answer(|_| reply(404, fixed_body(&["404 page not found\n"])));
    server.answer(|_| broken());
    let rig = Rig::streamed(&server);
    settle().await;
    advance(Duration::from_secs(31)).await;
    settle().await;
    let report = rig.health.report();
    assert_eq!((report.phase, report.absent), (Phase::Pausing, true));
    let stream = watch(&server);
    advance(PAUSE).await;
    settle().await;
    stream.frame("ADDED", &thing("a", "1"));
    settle().await;
    assert!(!rig.health.report().absent, "it has appeared and is being listed");
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn when_a_kind_vanishes_its_objects_are_gone_and_the_store_is_not_synced() {
    let server = Server::default();
    list(&server, "10", &[thing("a", "1")]);
    let stream = watch(&server);
    server.answer(|_| refusal(404, "NotFound", 0));
    let rig = Rig::paged(&server);
    rig.heard().await;
    stream.bookmark("11");
    settle().await;
    advance(Duration::from_secs(2)).await;
    drop(stream);
    assert_eq!(rig.heard().await, ["delete a/ua@1"]);
    assert!(!rig.store.has_synced() && rig.store.is_empty());
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_without_answer_does_not_hang_the_reflector() {
    let server = Server::default();
    server.answer(|_| silence());
    list(&server, "10", &[]);
    let rig = Rig::paged(&server);
    settle().await;
    advance(Duration::from_secs(31)).await;
    settle().await;
    advance(PAUSE).await;
    assert_eq!(rig.heard().await, ["synced"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_it_in_the_middle_of_a_watch() {
    let server = Server::default();
    list(&server, "10", &[]);
    let _stream = watch(&server);
    let rig = Rig::paged(&server);
    settle().await;
    rig.finish().await;
}
