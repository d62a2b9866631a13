use std::sync::Mutex;

use super::*;
use crate::cluster::lanes::Lane;
use crate::cluster::testing::{Server, broken, channel_body, fixed_body, refusal, reply, settle, silence};

fn client(server: &Server, options: ApiClientOptions) -> ApiClient {
    ApiClient::new(server.client(), Clock::system(), options, RequestMetrics::default())
}

fn urgency(lane: Lane) -> Urgency {
    Urgency { lane, due: None, tenant: "ns".into() }
}

fn request(method: Method) -> Request<Vec<u8>> {
    Request::builder().method(method).uri("/x").body(b"{}".to_vec()).unwrap()
}

/// A client with a gate that stays open for `lasts`; `None`: shut.
fn gated(server: &Server, lasts: Option<Duration>) -> (ApiClient, Validity) {
    let (clock, options) = (Clock::system(), ApiClientOptions::default());
    let gate = Validity::new(clock.clone());
    if let Some(lasts) = lasts {
        gate.extend(gate.moment(), lasts);
    }
    (ApiClient::gated(server.client(), clock, options, RequestMetrics::default(), Some(gate.clone())), gate)
}

#[tokio::test(start_paused = true)]
async fn before_a_shut_gate_nothing_but_a_read_is_sent() {
    let server = Server::default();
    server.answer_rest(|_| reply(200, fixed_body(&["{}"])));
    let (client, gate) = gated(&server, None);
    for method in [Method::POST, Method::PATCH, Method::PUT, Method::DELETE] {
        let failure = client.send(urgency(Lane::Event), request(method)).await.unwrap_err();
        assert!(failure.is_withheld() && !failure.is_ambiguous(), "{failure:?}");
    }
    assert!(client.send(urgency(Lane::Read), request(Method::GET)).await.is_ok());
    assert_eq!(server.uris(), ["GET /x"]);
    gate.extend(gate.moment(), Duration::from_secs(1));
    assert!(client.send(urgency(Lane::Create), request(Method::POST)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_write_is_waited_for_as_long_as_the_gate_was_known_to_stay_open() {
    let server = Server::default();
    server.answer_rest(|_| silence());
    let (client, _) = gated(&server, Some(Duration::from_secs(7)));
    let begun = Clock::system().mono();
    let failure = client.send(urgency(Lane::Create), request(Method::POST)).await.unwrap_err();
    assert!(failure.is_ambiguous(), "{failure:?}");
    assert_eq!(Clock::system().mono() - begun, Duration::from_secs(7));
    // The next one is not even sent.
    assert!(client.send(urgency(Lane::Create), request(Method::POST)).await.unwrap_err().is_withheld());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_repetition_passes_the_gate_again() {
    let server = Server::default();
    server.answer(|_| refusal(429, "TooManyRequests", 7));
    let (client, _) = gated(&server, Some(Duration::from_secs(5)));
    assert!(client.send(urgency(Lane::Create), request(Method::POST)).await.unwrap_err().is_withheld());
    assert_eq!(server.seen().len(), 1);
}

async fn send(server: &Server, method: Method) -> Result<Bytes, ApiFailure> {
    client(server, ApiClientOptions::default()).send(urgency(Lane::Create), request(method)).await
}

#[tokio::test(start_paused = true)]
async fn a_successful_answer_is_its_body() {
    let server = Server::default();
    server.answer(|_| reply(201, fixed_body(&["{\"a\"", ":1}"])));
    assert_eq!(send(&server, Method::POST).await.unwrap(), r#"{"a":1}"#);
    assert_eq!(server.seen()[0].body, "{}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_with_code_and_reason() {
    let server = Server::default();
    server.answer(|_| refusal(409, "AlreadyExists", 0));
    let failure = send(&server, Method::POST).await.unwrap_err();
    assert!(failure.is_already_exists() && !failure.is_ambiguous());
}

#[tokio::test(start_paused = true)]
async fn a_write_refused_with_429_is_sent_again_after_the_wait_that_the_server_asks_for() {
    let server = Server::default();
    server.answer(|_| refusal(429, "TooManyRequests", 7));
    server.answer(|_| reply(201, fixed_body(&["done"])));
    let begun = Clock::system().mono();
    assert_eq!(send(&server, Method::POST).await.unwrap(), "done");
    assert_eq!(Clock::system().mono() - begun, Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_outcome_is_unknown_or_refused_otherwise_is_never_sent_twice() {
    for method in [Method::POST, Method::PATCH, Method::PUT, Method::DELETE] {
        for code in [0, 500, 502, 503, 504] {
            let server = Server::default();
            server.answer(move |_| if code == 0 { broken() } else { refusal(code, "x", 1) });
            let failure = send(&server, method.clone()).await.unwrap_err();
            assert_eq!((failure.code, server.seen().len()), (code, 1), "{method} {code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_is_sent_again_after_a_broken_connection_and_after_a_5xx_that_names_a_wait() {
    let server = Server::default();
    server.answer(|_| broken());
    server.answer(|_| refusal(503, "ServiceUnavailable", 2));
    server.answer(|_| refusal(500, "InternalError", 0));
    let failure = send(&server, Method::GET).await.unwrap_err();
    assert_eq!((failure.code, server.seen().len()), (500, 3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_off_in_its_body_is_ambiguous() {
    let server = Server::default();
    server.answer(|_| {
        let (chunks, body) = channel_body();
        chunks.unbounded_send(Ok("{\"ha".into())).unwrap();
        chunks.unbounded_send(Err("reset".into())).unwrap();
        reply(201, body)
    });
    let failure = send(&server, Method::POST).await.unwrap_err();
    assert!(failure.is_ambiguous());
    assert!(failure.message.contains("reset"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_request_without_answer_and_gives_its_slot_back() {
    let server = Server::default();
    server.answer(|_| silence());
    server.answer(|_| reply(200, fixed_body(&["next"])));
    let options = ApiClientOptions { concurrency: Concurrency { start: 1, min: 1, max: 1 }, ..Default::default() };
    let client = client(&server, options);
    let begun = Clock::system().mono();
    let failure = client.send(urgency(Lane::Create), request(Method::POST)).await.unwrap_err();
    assert!(failure.is_ambiguous());
    assert_eq!(Clock::system().mono() - begun, Duration::from_secs(30));
    assert_eq!(client.send(urgency(Lane::Event), request(Method::POST)).await.unwrap(), "next");
}

#[tokio::test(start_paused = true)]
async fn repetitions_end_before_the_deadline_with_the_last_refusal() {
    let server = Server::default();
    for _ in 0..20 {
        server.answer(|_| refusal(429, "TooManyRequests", 9));
    }
    let failure = send(&server, Method::POST).await.unwrap_err();
    // At 0, 9, 18 and 27 s; the next would be at 36 s.
    assert_eq!((failure.code, server.seen().len()), (429, 4));
}

#[tokio::test(start_paused = true)]
async fn repetitions_are_counted_and_bounded() {
    let server = Server::default();
    for _ in 0..20 {
        server.answer(|_| refusal(429, "TooManyRequests", 1));
    }
    let metrics = RequestMetrics::default();
    let client = ApiClient::new(server.client(), Clock::system(), ApiClientOptions::default(), metrics.clone());
    client.send(urgency(Lane::Create), request(Method::POST)).await.unwrap_err();
    assert_eq!((server.seen().len(), metrics.retries(429, &Method::POST)), (11, 10));
}

#[tokio::test(start_paused = true)]
async fn waits_that_nobody_asked_for_double() {
    let server = Server::default();
    for _ in 0..20 {
        server.answer(|_| refusal(429, "TooManyRequests", 0));
    }
    send(&server, Method::POST).await.unwrap_err();
    // At 0, 1, 3, 7 and 15 s; the next would be at 31 s, past the deadline.
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_creation_overtakes_events_that_wait() {
    let server = Server::default();
    let (first, body) = channel_body();
    server.answer(|_| reply(200, body));
    for _ in 0..3 {
        server.answer(|_| reply(200, fixed_body(&[""])));
    }
    let options = ApiClientOptions { concurrency: Concurrency { start: 1, min: 1, max: 1 }, ..Default::default() };
    let client = client(&server, options);
    let done = Mutex::new(Vec::new());
    let call = |lane: Lane| {
        let (client, done) = (&client, &done);
        async move {
            client.send(urgency(lane), request(Method::POST)).await.unwrap();
            done.lock().unwrap().push(lane);
        }
    };
    tokio::join!(call(Lane::Event), call(Lane::Event), call(Lane::Status), call(Lane::Create), async {
        settle().await;
        drop(first);
    });
    assert_eq!(*done.lock().unwrap(), [Lane::Event, Lane::Create, Lane::Status, Lane::Event]);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_spaces_requests_and_still_lets_the_most_urgent_first() {
    let server = Server::default();
    for _ in 0..4 {
        server.answer(|_| reply(200, fixed_body(&[""])));
    }
    let options = ApiClientOptions { rate: Some(RateLimit { qps: 2.0, burst: 1 }), ..Default::default() };
    let client = client(&server, options);
    let begun = Clock::system().mono();
    let done = Mutex::new(Vec::new());
    let call = |lane: Lane| {
        let (client, done) = (&client, &done);
        async move {
            client.send(urgency(lane), request(Method::POST)).await.unwrap();
            done.lock().unwrap().push((lane, (Clock::system().mono() - begun).as_millis()));
        }
    };
    tokio::join!(call(Lane::Read), call(Lane::Event), call(Lane::Status), call(Lane::Create));
    let done = done.lock().unwrap();
    // The first token is there; the second is waited for by whoever came next; then priority decides.
    assert_eq!(
        done.iter().map(|(lane, _)| *lane).collect::<Vec<_>>(),
        [Lane::Read, Lane::Event, Lane::Create, Lane::Status]
    );
    assert!(done[3].1 >= 1500, "{done:?}");
}
