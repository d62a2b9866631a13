use chrono::TimeZone;
use tokio::time::advance;

use super::*;

/// A correlator on a clock of its own, with sayings about one object.
struct Rig {
    clock: Clock,
    correlator: Correlator,
}

impl Rig {
    fn new() -> Self {
        let clock = Clock::starting_at(chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap());
        Self { correlator: Correlator::new(clock.clone()), clock }
    }

    fn say(&mut self, saying: Saying) -> Result<Event, Unwritten> {
        let at = self.clock.wall();
        self.correlator.correlate(Saying { at, ..saying })
    }

    /// Says it `times` times, a second apart; the last answer.
    async fn repeat(&mut self, saying: &Saying, times: usize) -> Result<Event, Unwritten> {
        for _ in 1..times {
            self.say(saying.clone()).ok();
            advance(Duration::from_secs(1)).await;
        }
        self.say(saying.clone())
    }
}

fn saying(object: &str, reason: &'static str, message: &str) -> Saying {
    let about =
        ObjectReference { kind: "CronJob".into(), namespace: "ns".into(), name: object.into(), ..Default::default() };
    let happening = Happening { event_type: EventType::Normal, reason, message: message.to_owned(), due_minutes: None };
    Saying { component: "test", about, happening, at: WallTime::UNIX_EPOCH }
}

fn at_instant(minutes: i64, message: &str) -> Saying {
    let mut saying = saying("train", "MissSchedule", message);
    saying.happening.due_minutes = Some(minutes);
    saying
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_the_first_one_with_a_higher_count() {
    let mut rig = Rig::new();
    let first = rig.say(saying("train", "Killing", "x")).unwrap();
    advance(Duration::from_secs(60)).await;
    let second = rig.say(saying("train", "Killing", "x")).unwrap();
    assert_eq!((first.count, second.count), (1, 2));
    assert_eq!((second.name, second.first), (first.name, first.first));
    assert_eq!(second.last - second.first, TimeDelta::seconds(60));
}

#[tokio::test(start_paused = true)]
async fn eleven_identical_events_are_counted_and_not_combined() {
    let event = Rig::new().repeat(&saying("train", "Killing", "x"), 11).await.unwrap();
    assert_eq!((event.count, event.message.as_str()), (11, "x"));
}

#[tokio::test(start_paused = true)]
async fn the_26th_event_of_an_object_is_dropped_and_a_later_one_carries_the_full_count() {
    let mut rig = Rig::new();
    assert_eq!(rig.repeat(&saying("train", "Killing", "x"), 26).await, Err(Unwritten::Spam));
    assert_eq!(rig.say(saying("train", "Other", "other")), Err(Unwritten::Spam), "the reason makes no difference");
    advance(Duration::from_secs(301)).await;
    assert_eq!(rig.say(saying("train", "Killing", "x")).unwrap().count, 27);
}

#[tokio::test(start_paused = true)]
async fn the_flood_of_one_object_or_type_leaves_others_alone() {
    let mut rig = Rig::new();
    rig.repeat(&saying("train", "Killing", "x"), 26).await.unwrap_err();
    assert!(rig.say(saying("other", "Killing", "x")).is_ok());
    let mut warning = saying("train", "Killing", "x");
    warning.happening.event_type = EventType::Warning;
    assert!(rig.say(warning).is_ok());
}

#[tokio::test(start_paused = true)]
async fn thirty_different_objects_pass() {
    let mut rig = Rig::new();
    for i in 0..30 {
        assert_eq!(rig.say(saying(&format!("train-{i}"), "Killing", "x")).unwrap().count, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tenth_similar_message_is_a_combined_event_and_the_eleventh_its_repetition() {
    let mut rig = Rig::new();
    for i in 1..10 {
        let event = rig.say(saying("train", "Killing", &format!("message {i}"))).unwrap();
        assert_eq!((event.count, event.message), (1, format!("message {i}")));
    }
    let tenth = rig.say(saying("train", "Killing", "message 10")).unwrap();
    assert_eq!((tenth.count, tenth.message.as_str()), (1, "(combined from similar events): message 10"));
    let eleventh = rig.say(saying("train", "Killing", "message 11")).unwrap();
    assert_eq!((eleventh.count, eleventh.message.as_str()), (2, "(combined from similar events): message 11"));
    assert_eq!(eleventh.name, tenth.name);
}

#[tokio::test(start_paused = true)]
async fn similar_messages_far_apart_are_not_combined() {
    let mut rig = Rig::new();
    for i in 0..20 {
        let event = rig.say(saying("train", "Killing", &format!("message {i}"))).unwrap();
        assert_eq!(event.message, format!("message {i}"));
        advance(Duration::from_secs(601)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_field_path_is_another_event() {
    let mut rig = Rig::new();
    let mut other = saying("train", "Killing", "x");
    other.about.field_path = "spec.containers{two}".into();
    rig.say(saying("train", "Killing", "x")).unwrap();
    assert_eq!(rig.say(other).unwrap().count, 1);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_a_due_instant_is_said_once_per_instant_under_a_name_that_tells_it() {
    let mut rig = Rig::new();
    let first = rig.say(at_instant(100, "missed")).unwrap();
    assert_eq!((first.name.as_str(), first.count), ("train.missschedule.100", 1));
    assert_eq!(rig.say(at_instant(100, "missed, said otherwise")), Err(Unwritten::SaidAlready));
    assert_eq!(rig.say(at_instant(101, "missed")).unwrap().name, "train.missschedule.101");
}

#[tokio::test(start_paused = true)]
async fn many_misses_with_different_messages_are_combined_too() {
    let mut rig = Rig::new();
    for i in 1..10 {
        rig.say(at_instant(i, &format!("missed {i}"))).unwrap();
    }
    let tenth = rig.say(at_instant(10, "missed 10")).unwrap();
    assert!(tenth.message.starts_with("(combined"));
    assert!(!tenth.name.starts_with("train.missschedule"));
}

#[tokio::test(start_paused = true)]
async fn two_events_at_one_moment_have_two_names() {
    let mut rig = Rig::new();
    let names = ["a", "b", "c"].map(|message| rig.say(saying("train", "R", message)).unwrap().name);
    assert!(names[0] != names[1] && names[1] != names[2]);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_remembered_than_a_fixed_number_of_objects() {
    let mut rig = Rig::new();
    for i in 0..5000 {
        rig.say(saying(&format!("train-{i}"), "Killing", "x")).unwrap();
    }
    let correlator = &rig.correlator;
    assert_eq!((correlator.similar.len(), correlator.counts.len(), correlator.spam.len()), (4096, 4096, 4096));
}
