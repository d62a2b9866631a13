//! Waiting for one's turn.

use super::*;

/// Lets another renew every 2 s for `time`, in the name of `holder`.
async fn renews_for(world: &World, holder: &str, time: Duration) {
    let until = world.clock.mono() + time;
    while world.clock.mono() < until {
        world.held_by(holder, 15);
        tokio::time::sleep(secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_the_renewals_and_nothing_else_is_asked() {
    let world = World::new();
    world.held_by("other", 15);
    let (mut elector, _) = world.candidate("me");
    tokio::select! {
        biased;
        () = elector.acquire() => panic!("took it from a leader that renews"),
        () = renews_for(&world, "other", secs(600)) => {}
    }
    assert_eq!(world.requests(), "get watch");
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_is_taken_within_half_a_second() {
    let world = World::new();
    world.held_by("other", 15);
    let (mut elector, _) = world.candidate("me");
    tokio::select! {
        biased;
        () = elector.acquire() => panic!("too early"),
        () = renews_for(&world, "other", secs(20)) => {}
    }
    // Renewed for the last time two seconds ago; this candidate starts anew and must wait for a whole duration.
    let begun = world.clock.mono();
    elector.acquire().await;
    let waited = world.clock.mono() - begun;
    assert!((secs(13)..=Duration::from_millis(13_500)).contains(&waited), "{waited:?}");
    assert_eq!((world.spec("holderIdentity"), world.spec("leaseTransitions")), (json!("me"), json!(5)));
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once_by_one_of_those_who_wait() {
    let world = World::new();
    let (mut leader, validity) = world.candidate("leader");
    leader.acquire().await;
    let waiting: Vec<_> = ["a", "bb", "ccc"]
        .map(|name| {
            let (mut elector, _) = world.candidate(name);
            let clock = world.clock.clone();
            world.tasks.spawn(async move {
                elector.acquire().await;
                clock.mono()
            })
        })
        .into();
    assert!(!run_for(secs(30), async { drop(leader.hold().await) }).await);
    assert!(validity.remaining().is_some());
    let released = world.clock.mono();
    leader.release().await;
    settle().await;
    let won: Vec<_> = waiting.iter().filter(|candidate| candidate.is_finished()).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(world.clock.mono(), released);
    assert_eq!(world.spec("leaseTransitions"), 1);
    // Those who came too late still watch: they ask for nothing while the winner renews.
    let before = world.requests().len();
    renews_for(&world, "someone", secs(60)).await;
    assert!(world.requests().len() - before < 40, "{}", world.requests());
    waiting.iter().for_each(|candidate| candidate.abort());
}

#[tokio::test(start_paused = true)]
async fn where_it_may_not_be_watched_it_is_read_every_retry_period() {
    let world = World::new();
    world.set(|kept| kept.unwatchable = true);
    world.held_by("other", 15);
    let (mut elector, _) = world.candidate("me");
    tokio::select! {
        biased;
        () = elector.acquire() => panic!("took it from a leader that renews"),
        () = renews_for(&world, "other", secs(600)) => {}
    }
    let requests = world.requests();
    let (reads, watches) = (requests.matches("get").count(), requests.matches("watch").count());
    // Every 2 s to 4.4 s, and a watch is tried again once in a lease duration.
    assert!((136..=301).contains(&reads), "{reads} reads");
    assert!((30..=41).contains(&watches), "{watches} watches");
    world.held_by("", 1);
    assert!(run_for(Duration::from_millis(4_400), elector.acquire()).await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_noticed_at_the_expiry_and_replaced() {
    let world = World::new();
    world.held_by("other", 15);
    let (mut elector, _) = world.candidate("me");
    world.set(|kept| kept.deaf = true);
    tokio::select! {
        biased;
        () = elector.acquire() => panic!("took it from a leader that renews"),
        () = renews_for(&world, "other", secs(62)) => {}
    }
    assert_eq!(world.requests(), "get watch get watch get watch get watch get watch");
    assert_eq!(world.spec("holderIdentity"), "other");
}

#[tokio::test(start_paused = true)]
async fn who_loses_the_race_at_an_expiry_keeps_the_watch() {
    let world = World::new();
    world.held_by("other", 15);
    let (mut elector, _) = world.candidate("me");
    let race = async {
        tokio::time::sleep(Duration::from_millis(14_999)).await;
        // The quicker one is stored, and the read shows it before the watch does.
        world.set(|kept| kept.deaf = true);
        world.held_by("quicker", 15);
        tokio::time::sleep(secs(1)).await;
        world.set(|kept| kept.deaf = false);
        renews_for(&world, "quicker", secs(60)).await;
    };
    tokio::select! {
        biased;
        () = elector.acquire() => panic!("took it from a leader that renews"),
        () = race => {}
    }
    assert_eq!(world.requests(), "get watch get");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_opened_again_from_where_it_was() {
    let world = World::new();
    world.held_by("other", 15);
    let (mut elector, _) = world.candidate("me");
    tokio::select! {
        biased;
        () = elector.acquire() => panic!("took it from a leader that renews"),
        () = async {
            renews_for(&world, "other", secs(10)).await;
            world.set(|kept| kept.watches.clear());
            renews_for(&world, "other", secs(20)).await;
        } => {}
    }
    let uris: Vec<_> = world.server.uris().into_iter().filter(|uri| uri.contains("watch=true")).collect();
    assert_eq!(uris.len(), 2, "{uris:?}");
    assert!(uris[0].contains("fieldSelector=metadata.name%3Dl&resourceVersion=2&"), "{uris:?}");
    assert!(uris[1].contains("fieldSelector=metadata.name%3Dl&resourceVersion=7&"), "{uris:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_anew_at_once() {
    let world = World::new();
    world.held_by("other", 15);
    let (mut elector, _) = world.candidate("me");
    let begun = world.clock.mono();
    let deleting = async {
        tokio::time::sleep(secs(3)).await;
        world.set(|kept| {
            let gone = kept.lease.take().unwrap();
            let line = format!("{}\n", json!({"type": "DELETED", "object": gone}));
            kept.watches.iter().for_each(|watch| watch.unbounded_send(Ok(line.clone().into())).unwrap());
        });
    };
    tokio::join!(elector.acquire(), deleting);
    assert_eq!(world.clock.mono() - begun, secs(3));
    assert_eq!(world.requests(), "get watch get create");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nobody_is_asked_at_the_pace_of_retries() {
    let world = World::new();
    world.set(|kept| kept.dead = true);
    let (mut elector, _) = world.candidate("me");
    assert!(!run_for(secs(100), elector.acquire()).await);
    // Each try takes 5 s to give up and 2 to 4.4 s of rest.
    let tries = world.server.seen().len();
    assert!((11..=15).contains(&tries), "{tries}");
    world.set(|kept| kept.dead = false);
    assert!(run_for(secs(1), elector.acquire()).await);
}

#[tokio::test(start_paused = true)]
async fn a_free_lease_that_cannot_be_had_is_tried_at_the_pace_of_retries() {
    let world = World::new();
    world.write(json!({}));
    let lease = world.kept.lock().unwrap().lease.clone().unwrap().to_string();
    world.server.answer_rest(move |seen| match &*seen.method {
        "GET" => reply(200, fixed_body(&[&lease])),
        _ => refusal(409, "Conflict", 0),
    });
    let (mut elector, _) = world.candidate("me");
    assert!(!run_for(secs(100), elector.acquire()).await);
    // Two tries, each a read and a write, and 2 to 4.4 s of rest.
    let requests = world.server.seen().len();
    assert!((80..=210).contains(&requests), "{requests}");
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_that_cannot_be_had_is_tried_at_the_pace_of_retries() {
    let world = World::new();
    world.write(json!({"holderIdentity": "gone", "leaseDurationSeconds": 15}));
    let lease = world.kept.lock().unwrap().lease.clone().unwrap().to_string();
    world.server.answer_rest(move |seen| match &*seen.method {
        "GET" => reply(200, fixed_body(&[&lease])),
        _ => refusal(409, "Conflict", 0),
    });
    let (mut elector, _) = world.candidate("me");
    assert!(!run_for(secs(100), elector.acquire()).await);
    // 15 s of waiting for the expiry; then as above.
    let requests = world.server.seen().len();
    assert!((60..=210).contains(&requests), "{requests}");
}
