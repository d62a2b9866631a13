//! Claiming, renewing, losing and releasing.

use super::*;

#[tokio::test(start_paused = true)]
async fn s1_without_a_lease_one_is_created() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    assert!(matches!(elector.attempt().await, Attempt::Won));
    assert_eq!(world.requests(), "get create");
    assert_eq!((world.spec("holderIdentity"), world.spec("leaseTransitions")), (json!("me"), json!(0)));
    assert_eq!(validity.remaining(), Some(Duration::from_millis(13_500)));
    assert!(elector.leadership().is_ours() && elector.leadership().holder() == "me");
}

#[tokio::test(start_paused = true)]
async fn s2_s4_s6_a_record_that_nobody_holds_is_claimed_at_once() {
    for spec in [
        Value::Null,
        json!({}),
        json!({"leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"}),
        json!({"holderIdentity": "", "leaseDurationSeconds": 3600, "renewTime": "2099-01-01T00:00:00.000000Z"}),
    ] {
        let world = World::new();
        world.write(spec);
        let (mut elector, _) = world.candidate("me");
        assert!(matches!(elector.attempt().await, Attempt::Won));
        assert_eq!(world.requests(), "get update");
        assert_eq!(world.spec("leaseTransitions"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn s3_s5_another_holder_is_waited_for_from_when_we_first_saw_it() {
    let world = World::new();
    // Its time of renewal says that it expired long ago. That is its clock's opinion.
    world.write(json!({"holderIdentity": "other", "leaseDurationSeconds": 3, "renewTime": "2000-01-01T00:00:00.000000Z", "leaseTransitions": 4}));
    let (mut elector, _) = world.candidate("me");
    assert!(matches!(elector.attempt().await, Attempt::Held { changed: true }));
    advance(Duration::from_millis(2_999)).await;
    assert!(matches!(elector.attempt().await, Attempt::Held { changed: false }));
    advance(Duration::from_millis(1)).await;
    assert!(matches!(elector.attempt().await, Attempt::Won));
    assert_eq!(world.requests(), "get get get update");
    assert_eq!((world.spec("holderIdentity"), world.spec("leaseTransitions")), (json!("me"), json!(5)));
}

#[tokio::test(start_paused = true)]
async fn s7_a_holder_that_renews_keeps_it() {
    let world = World::new();
    let (mut elector, _) = world.candidate("me");
    for _ in 0..10 {
        world.held_by("other", 3);
        assert!(matches!(elector.attempt().await, Attempt::Held { .. }));
        advance(Duration::from_millis(2_999)).await;
    }
    assert_eq!(world.requests(), ["get"; 10].join(" "));
    assert_eq!(world.spec("holderIdentity"), "other");
}

#[tokio::test(start_paused = true)]
async fn s8_our_own_record_is_renewed_without_a_transition() {
    let world = World::new();
    world.write(
        json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 4, "acquireTime": "then"}),
    );
    let (mut elector, _) = world.candidate("me");
    assert!(matches!(elector.attempt().await, Attempt::Won));
    assert_eq!((world.spec("leaseTransitions"), world.spec("acquireTime")), (json!(4), json!("then")));
}

#[tokio::test(start_paused = true)]
async fn s9_a_leader_renews_with_one_request_every_retry_period() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    elector.acquire().await;
    assert!(!run_for(Duration::from_millis(4_100), async { drop(elector.hold().await) }).await);
    assert_eq!(world.requests(), "get create update update");
    assert!(validity.remaining().unwrap() > Duration::from_millis(13_300));
    assert_eq!(world.metrics.of("l").slow_path.get(), 0);
    assert_eq!(world.metrics.of("l").master.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn s10_when_the_server_knows_better_it_is_read() {
    let world = World::new();
    let (mut elector, _) = world.candidate("me");
    elector.acquire().await;
    assert!(!run_for(Duration::from_millis(2_100), async { drop(elector.hold().await) }).await);
    // Somebody labels the Lease.
    world.set(|kept| {
        let mut lease = kept.lease.clone().unwrap();
        lease["metadata"]["labels"] = json!({"a": "b"});
        kept.store(lease);
    });
    assert!(!run_for(Duration::from_millis(4_100), async { drop(elector.hold().await) }).await);
    assert_eq!(world.requests(), "get create update update get update update");
    assert_eq!(world.metrics.of("l").slow_path.get(), 1);
    assert_eq!(world.kept.lock().unwrap().lease.as_ref().unwrap()["metadata"]["labels"]["a"], "b");
}

#[tokio::test(start_paused = true)]
async fn s11_s12_a_release_reads_first_and_leaves_no_holder() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    elector.acquire().await;
    elector.release().await;
    assert_eq!(world.requests(), "get create get update");
    assert_eq!((world.spec("holderIdentity"), world.spec("leaseTransitions")), (json!(""), json!(0)));
    assert_eq!(validity.remaining(), None);
    assert_eq!(world.told().await, ["me became leader", "me stopped leading"]);
    assert_eq!(world.metrics.of("l").master.get(), 0);
    elector.release().await;
    assert_eq!(world.requests(), "get create get update");
}

#[tokio::test(start_paused = true)]
async fn s13_told_to_end_in_the_middle_of_a_renewal_it_still_releases() {
    for dies_at in ["update", "get"] {
        let world = World::new();
        let (mut elector, _) = world.candidate("me");
        elector.acquire().await;
        if dies_at == "get" {
            world.server.answer(|_| refusal(409, "Conflict", 0));
        }
        world.server.answer(|_| silence());
        assert!(!run_for(Duration::from_millis(2_500), async { drop(elector.hold().await) }).await);
        assert!(world.requests().ends_with(dies_at), "{}", world.requests());
        elector.release().await;
        assert_eq!(world.spec("holderIdentity"), "");
        assert_eq!(world.told().await, ["me became leader", "me stopped leading"]);
    }
}

#[tokio::test(start_paused = true)]
async fn s13_told_to_end_in_the_middle_of_a_claim_it_releases_what_it_may_hold() {
    let world = World::new();
    world.held_by("other", 1);
    let (mut elector, _) = world.candidate("me");
    assert!(matches!(elector.attempt().await, Attempt::Held { .. }));
    advance(secs(1)).await;
    world.set(|kept| kept.loses_answer = true);
    assert!(matches!(elector.attempt().await, Attempt::Failed(_)));
    assert_eq!(world.spec("holderIdentity"), "me");
    elector.release().await;
    assert_eq!(world.spec("holderIdentity"), "");
    assert_eq!(world.told().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn s15_only_a_leader_that_has_not_renewed_for_long_is_unhealthy() {
    let (world, health) = (World::new(), Health::default());
    let (mut elector, _) = world.candidate("me");
    elector.leadership().check(&health, &world.clock, secs(15));
    let asked = || health.one_live("leaderElection");
    advance(secs(1000)).await;
    assert_eq!(asked(), Some(Ok(())));
    elector.acquire().await;
    advance(secs(35)).await;
    assert_eq!(asked(), Some(Ok(())));
    advance(secs(1)).await;
    assert!(asked().unwrap().unwrap_err().contains("36 s ago"));
    elector.release().await;
    assert_eq!(asked(), Some(Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_late_release_leaves_a_successor_alone() {
    let world = World::new();
    let ((mut a, _), (mut b, _)) = (world.candidate("a"), world.candidate("bb"));
    a.acquire().await;
    assert!(matches!(b.attempt().await, Attempt::Held { .. }));
    advance(secs(15)).await;
    assert!(matches!(b.attempt().await, Attempt::Won));
    // a still believes what it saw last.
    a.release().await;
    assert_eq!(world.spec("holderIdentity"), "bb");
    assert!(world.requests().ends_with("update get"), "{}", world.requests());
}

#[tokio::test(start_paused = true)]
async fn a_successor_between_read_and_write_of_a_release_is_saved_by_the_version() {
    let world = World::new();
    let (mut elector, _) = world.candidate("me");
    elector.acquire().await;
    let kept = world.kept.clone();
    world.server.answer(move |_| {
        let mut kept = kept.lock().unwrap();
        let read = kept.lease.clone().unwrap();
        let mut taken = read.clone();
        taken["spec"]["holderIdentity"] = json!("successor");
        kept.store(taken);
        reply(200, fixed_body(&[&read.to_string()]))
    });
    elector.release().await;
    assert_eq!(world.spec("holderIdentity"), "successor");
}

#[tokio::test(start_paused = true)]
async fn writing_has_ended_before_the_release_is_sent() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    elector.acquire().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..2 {
        let (seen, validity, kept) = (seen.clone(), validity.clone(), world.kept.clone());
        world.server.answer(move |_| {
            seen.lock().unwrap().push(validity.remaining());
            reply(200, fixed_body(&[&kept.lock().unwrap().lease.clone().unwrap().to_string()]))
        });
    }
    elector.release().await;
    assert_eq!(*seen.lock().unwrap(), [None, None]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_costs_a_read_and_not_the_lead() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    elector.acquire().await;
    world.set(|kept| kept.loses_answer = true);
    assert!(!run_for(Duration::from_millis(4_100), async { drop(elector.hold().await) }).await);
    assert_eq!(world.requests(), "get create update update get update");
    assert!(validity.remaining().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_answers_gives_up_while_nobody_can_have_taken_over() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    elector.acquire().await;
    world.set(|kept| kept.dead = true);
    let begun = world.clock.mono();
    assert_eq!(elector.hold().await, Lost::Unrenewed);
    let lasted = world.clock.mono() - begun;
    assert!(lasted <= secs(12), "{lasted:?}");
    assert_eq!(validity.remaining(), None);
    assert_eq!(world.told().await, ["me became leader", "me stopped leading"]);
    // The server is back, and nobody took over: it leads again, in a new term.
    world.set(|kept| kept.dead = false);
    elector.acquire().await;
    assert_eq!((world.spec("holderIdentity"), world.spec("leaseTransitions")), (json!("me"), json!(0)));
    assert!(validity.remaining().is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_another_in_the_record_stops_at_once() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    elector.acquire().await;
    world.held_by("other", 15);
    let begun = world.clock.mono();
    assert_eq!(elector.hold().await, Lost::To("other".into()));
    assert_eq!((world.clock.mono() - begun, validity.remaining()), (secs(2), None));
    assert_eq!(world.spec("holderIdentity"), "other");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_or_emptied_under_a_leader_is_taken_again() {
    let world = World::new();
    let (mut elector, _) = world.candidate("me");
    elector.acquire().await;
    world.set(|kept| kept.lease = None);
    assert!(!run_for(secs(3), async { drop(elector.hold().await) }).await);
    assert_eq!(world.spec("holderIdentity"), "me");
    world.held_by("", 1);
    assert!(!run_for(secs(3), async { drop(elector.hold().await) }).await);
    assert_eq!(world.spec("holderIdentity"), "me");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_slept_writes_nothing_before_it_has_renewed() {
    let world = World::new();
    let (mut elector, validity) = world.candidate("me");
    elector.acquire().await;
    // An hour passes for everybody but our monotonic clock.
    let (held, sleeping) = (elector.hold(), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.clock.step(chrono::TimeDelta::hours(1));
        assert_eq!(validity.remaining(), None);
        settle().await;
        // It renewed at once, and nobody had taken over.
        assert!(validity.remaining().is_some());
        assert_eq!(world.requests(), "get create update");
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.held_by("other", 15);
        world.clock.step(chrono::TimeDelta::hours(1));
        assert_eq!(validity.remaining(), None);
    });
    let (lost, ()) = tokio::join!(held, sleeping);
    assert_eq!((lost, validity.remaining()), (Lost::To("other".into()), None));
}
