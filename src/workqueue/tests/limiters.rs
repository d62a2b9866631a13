//! What each limiter answers: scenarios 18 to 22 of client-go's own tests, and the additions.

use super::*;

const T0: Duration = Duration::ZERO;

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn waits(limiter: &mut dyn RateLimiter<&'static str>, key: &'static str, calls: usize) -> Vec<Duration> {
    (0..calls).map(|_| limiter.when(&key, T0)).collect()
}

#[test]
fn exponential_doubles_per_key_until_it_is_forgotten() {
    let mut limiter = ItemExponential::new(ms(1), secs(1));
    assert_eq!(waits(&mut limiter, "one", 5), [1, 2, 4, 8, 16].map(ms));
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&mut limiter, "two", 2), [1, 2].map(ms));
    assert_eq!((limiter.num_requeues(&"two"), limiter.records()), (2, 2));
    limiter.forget(&"one");
    assert_eq!((limiter.num_requeues(&"one"), limiter.records()), (0, 1));
    assert_eq!(waits(&mut limiter, "one", 1), [ms(1)]);
}

#[test]
fn exponential_never_overflows() {
    let mut short = ItemExponential::new(ms(1), secs(1000));
    assert_eq!(waits(&mut short, "one", 6)[5], ms(32));
    assert_eq!(waits(&mut short, "one", 1000)[999], secs(1000));
    let mut long = ItemExponential::new(secs(60), secs(1000 * 3600));
    assert_eq!(waits(&mut long, "two", 3)[2], secs(240));
    assert_eq!(waits(&mut long, "two", 1000)[999], secs(1000 * 3600));
}

#[test]
fn exponential_never_exceeds_a_maximum_below_its_base() {
    assert_eq!(waits(&mut ItemExponential::new(secs(5), secs(1)), "one", 2), [secs(1), secs(1)]);
}

#[test]
fn fast_slow_is_fast_for_the_first_attempts() {
    let mut limiter = FastSlow::new(ms(5), secs(10), 3);
    assert_eq!(waits(&mut limiter, "one", 5), [ms(5), ms(5), ms(5), secs(10), secs(10)]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&mut limiter, "two", 2), [ms(5), ms(5)]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(waits(&mut limiter, "one", 1), [ms(5)]);
}

#[test]
fn max_of_asks_all_members_and_takes_the_longest() {
    let mut limiter =
        MaxOf::new(vec![Box::new(FastSlow::new(ms(5), secs(3), 3)), Box::new(ItemExponential::new(ms(1), secs(1)))]);
    assert_eq!(waits(&mut limiter, "one", 5), [ms(5), ms(5), ms(5), secs(3), secs(3)]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&mut limiter, "two", 2), [ms(5), ms(5)]);
    limiter.forget(&"one");
    assert_eq!((limiter.num_requeues(&"one"), limiter.records()), (0, 1));
    assert_eq!(waits(&mut limiter, "one", 1), [ms(5)]);
}

#[test]
fn max_wait_cuts_waits_short() {
    let mut limiter = MaxWait::new(FastSlow::new(ms(5), secs(1000), 100), secs(500));
    assert_eq!(waits(&mut limiter, "one", 100), vec![ms(5); 100]);
    assert_eq!(waits(&mut limiter, "one", 1), [secs(500)]);
    assert_eq!(limiter.num_requeues(&"one"), 101);
}

#[test]
fn the_bucket_reserves_so_that_waits_grow_call_by_call() {
    let mut bucket = Bucket::new(10, 100);
    assert_eq!(waits(&mut bucket, "any", 100), vec![T0; 100]);
    assert_eq!(waits(&mut bucket, "any", 5), [100, 200, 300, 400, 500].map(ms));
    let limiter: &mut dyn RateLimiter<&str> = &mut bucket;
    assert_eq!(limiter.when(&"any", ms(500)), ms(100), "half a second earned five tokens back");
    assert_eq!(limiter.when(&"any", secs(3600)), T0);
    limiter.forget(&"any");
    assert_eq!((limiter.num_requeues(&"any"), limiter.records()), (0, 0));
    assert_eq!(
        (0..100).filter(|_| limiter.when(&"any", secs(3600)).is_zero()).count(),
        99,
        "a long rest saves the burst, no more"
    );
}

#[test]
fn jitter_stays_in_the_second_half_and_follows_the_seed() {
    let draw = |seed| waits(&mut Jittered::new(FastSlow::new(ms(100), ms(100), 0), seed), "one", 200);
    let waits = draw(7);
    assert!(waits.iter().all(|wait| (ms(50)..=ms(100)).contains(wait)));
    assert!(waits.iter().any(|wait| *wait < ms(60)) && waits.iter().any(|wait| *wait > ms(90)));
    assert_eq!(waits, draw(7));
    assert_ne!(waits, draw(8));
}

#[test]
fn the_configured_limiters_wait_as_documented() {
    let mut peers = RateLimiterConfig::Peers.build(0);
    assert_eq!(waits(&mut *peers, "one", 19)[18], secs(1000), "5 ms reach the cap on the 19th failure");
    assert_eq!(waits(&mut *peers, "two", 1), [ms(5)]);
    let mut default = RateLimiterConfig::default().build(0);
    let all = waits(&mut *default, "one", 40);
    assert!((ms(2)..=ms(5)).contains(&all[0]) && all[39] >= secs(15) && all.iter().all(|wait| *wait <= secs(30)));
    assert_eq!(waits(&mut *RateLimiterConfig::Job.build(0), "one", 7), [1, 2, 4, 8, 16, 32, 60].map(secs));
}

#[test]
fn a_limiter_is_configured_by_its_name() {
    for config in RateLimiterConfig::ALL {
        assert_eq!(config.to_string().parse(), Ok(config));
    }
    let error = "bucket".parse::<RateLimiterConfig>().unwrap_err();
    assert_eq!(error.to_string(), "unknown rate limiter \"bucket\": want per-key, peers or job");
}
