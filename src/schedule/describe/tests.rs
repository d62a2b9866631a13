use super::*;

/// Text and zone of each case; all are described as of 2026-01-01.
const CASES: &[(&str, &str)] = &[
    ("* * * * *", "UTC"),
    ("*/5 * * * *", "UTC"),
    ("5/15 * * * *", "UTC"),
    ("*/7 * * * *", "UTC"),
    ("1,2,5-9 * * * *", "UTC"),
    ("0 * * * *", "Asia/Tokyo"),
    ("17 * * * *", "UTC"),
    ("* 3 * * *", "UTC"),
    ("* 9-17 * * *", "UTC"),
    ("0 9-17 * * MON-FRI", "UTC"),
    ("*/15 9-17 * * *", "UTC"),
    ("0 */2 * * *", "UTC"),
    ("0,30 */6 * * *", "UTC"),
    ("0 0,12 * * *", "UTC"),
    ("30 2 * * *", "UTC"),
    ("0 0 1 1 *", "UTC"),
    ("0 0 1,15 * *", "UTC"),
    ("0 0 * * SUN,SAT", "UTC"),
    ("0 12 13 * FRI", "UTC"),
    ("0 0 */2 * 1", "UTC"),
    ("0 0 1-31 * 1", "UTC"),
    ("0 0 13 * 0-6", "UTC"),
    ("0 0 1,* * 1", "UTC"),
    ("0 0 29 2 *", "UTC"),
    ("0 0 29 2 1", "UTC"),
    ("0 0 30 2 *", "UTC"),
    ("0 0 31 4,6 *", "UTC"),
    ("0 0 , * 1", "UTC"),
    (", * * * *", "UTC"),
    ("0 0 1 */3 *", "UTC"),
    ("0 6 * 6-8 MON", "UTC"),
    ("@every 1h30m", "America/New_York"),
    ("@every 25h", "UTC"),
    ("@daily", "Asia/Kolkata"),
    ("@yearly", "America/New_York"),
    ("TZ=Europe/London 0 1 * * *", "America/New_York"),
    ("30 2 * * *", "America/New_York"),
    ("30 1 * * *", "America/New_York"),
    ("0 12 * * *", "America/New_York"),
    ("0 * * * *", "America/New_York"),
    ("*/15 1-3 * * *", "America/New_York"),
    ("* * * * *", "Europe/Berlin"),
    ("0 2 * * MON", "America/New_York"),
    ("0 0 * * *", "America/Havana"),
    ("0 12 * * 0", "Asia/Beirut"),
    ("0 9 * * 4", "Africa/Cairo"),
    ("45 1 * * *", "Australia/Lord_Howe"),
    ("0 2 * * *", "Australia/Lord_Howe"),
    ("50 3 * * *", "Pacific/Chatham"),
    ("0 0 * * *", "Africa/Casablanca"),
    ("0 0 * * *", "Factory"),
];

#[test]
fn schedules_read_as_english() {
    let from = "2026-01-01T00:00:00Z".parse().unwrap();
    let described: Vec<String> = CASES
        .iter()
        .map(|(text, zone)| {
            let local = Zone::load(zone, Zone::UTC).unwrap();
            format!("{text}  |  {zone}\n    {}", describe(&Schedule::parse(text).unwrap(), local, from))
        })
        .collect();
    insta::assert_snapshot!(described.join("\n"));
}

#[test]
fn instants_at_the_ends_of_time_are_described_too() {
    let schedule = Schedule::parse("30 2 * * *").unwrap();
    let zone = Zone::load("America/New_York", Zone::UTC).unwrap();
    for from in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        assert!(describe(&schedule, zone, from).starts_with("At 02:30 every day"));
    }
}
