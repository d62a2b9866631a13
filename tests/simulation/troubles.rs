//! What goes wrong, drawn from the seed. Each seed has its own mixture: about half of the kinds occur in it, each with its own weight.

use crate::dice::Dice;
use crate::people::draw_time;
use crate::plan::{HOUR, MINUTE, Ms, SECOND};

/// One thing that goes wrong for a while.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) at: Ms,
    pub(crate) lasts: Ms,
    /// After its end everything must have come right within this.
    pub(crate) settle: Ms,
    pub(crate) kind: Kind,
}

/// Which replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Leader,
    Number(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Requests are refused.
    Errors { code: u16, retry_after_s: Option<u32>, percent: u32 },
    /// Requests get lost.
    LostRequests { percent: u32 },
    /// Answers get lost after the request was applied.
    LostAnswers { percent: u32 },
    /// Creations of Jobs lose their answers, the first few.
    LostCreations { times: u32 },
    /// Requests wait before they are applied.
    Delays { longest: Ms, percent: u32 },
    /// Answers wait.
    DelayedAnswers { longest: Ms, percent: u32 },
    /// Requests are applied twice.
    Duplicates { percent: u32 },
    /// Status writes are refused.
    NoStatus { code: u16 },
    /// Watches end, again and again.
    CutWatches { after: Ms },
    /// Watches of a resource say nothing.
    StalledWatches { plural: &'static str },
    /// Watches answer 410, lists do not help at once.
    ExpiredWatches { percent: u32 },
    /// The log is compacted and watches are cut: what resumes must list again.
    Compaction,
    /// Watches of a resource lag behind, those of others do not.
    Reordering { plural: &'static str },
    /// Lists and watches of a resource show an old state.
    StaleLists { plural: &'static str },
    /// Lists of a resource take long, and the leader begins anew.
    SlowLists { plural: &'static str, takes: Ms },
    /// The server refuses everything, or does not answer at all.
    Outage { refuses: bool },
    /// A replica is killed, and comes back at the end.
    Crash(Who),
    /// A replica is killed at its so-many-th write from now, before it is applied or right after.
    CrashAt { who: Who, writes: u32, applied: bool },
    /// A replica is asked to end, and comes back at the end.
    Stop(Who),
    /// Nothing goes in or out of a replica, and then everything: as if it had been stopped and continued.
    Held(Who),
    /// All processes stand still while time passes.
    Frozen,
    /// A replica cannot reach the server.
    Partition(Who),
    /// A replica's wall clock is stepped, and stepped back at the end.
    ClockStep { who: Who, by_s: i64 },
    /// It is stepped for good.
    ClockShift { who: Who, by_s: i64 },
    /// It runs too fast or too slow: a small step every minute.
    Drift { who: Who, by_ms: i64 },
    /// The server's wall clock is stepped, and back at the end.
    ServerClock { by_s: i64 },
}

const KINDS: usize = 26;

/// The troubles of a run.
pub(crate) fn draw(dice: &mut Dice, until: Ms, replicas: usize, lease_settle: Ms) -> Vec<Trouble> {
    let weights: Vec<u64> = (0..KINDS).map(|_| if dice.percent(50) { dice.between(1, 10) } else { 0 }).collect();
    let total: u64 = weights.iter().sum();
    if total == 0 || dice.percent(4) {
        return Vec::new();
    }
    let count = dice.between(1, 4 + until / (15 * MINUTE));
    let mut troubles = Vec::new();
    for _ in 0..count {
        let mut at = dice.between(0, total - 1);
        let which = weights.iter().position(|weight| {
            let hit = at < *weight;
            at = at.saturating_sub(*weight);
            hit
        });
        let at = draw_time(dice, until.saturating_sub(10 * MINUTE));
        let (kind, lasts) = draw_kind(dice, which.unwrap_or(0), replicas);
        let settle = lease_settle + settle_of(&kind);
        troubles.push(Trouble { at, lasts: lasts.min(until - at), settle, kind });
    }
    troubles
}

/// How long after its end it may still be felt.
fn settle_of(kind: &Kind) -> Ms {
    match kind {
        // A watch that was opened silent is noticed at its time-out, unless bookmarks were seen before.
        Kind::StalledWatches { .. } => 14 * MINUTE,
        Kind::ClockShift { .. } | Kind::Drift { .. } | Kind::Duplicates { .. } => 10 * SECOND,
        Kind::ClockStep { .. } | Kind::ServerClock { .. } => 40 * SECOND,
        // The longest back-off of a step and of a reflector, and a server's wish to be left alone.
        _ => 3 * MINUTE,
    }
}

#[allow(clippy::too_many_lines, reason = "one arm for each kind")]
fn draw_kind(dice: &mut Dice, which: usize, replicas: usize) -> (Kind, Ms) {
    let who = if dice.percent(70) { Who::Leader } else { Who::Number(pick_replica(dice, replicas)) };
    let brief = dice.between(200, 20 * SECOND);
    let while_ = dice.between(10 * SECOND, 8 * MINUTE);
    let plural = *dice.pick(&["cronjobs", "jobs", "jobs"]);
    match which {
        0 | 1 => {
            let (code, retry_after_s) = *dice.pick(&[
                (409, None),
                (429, Some(1)),
                (429, None),
                (500, None),
                (503, Some(2)),
                (504, None),
                (403, None),
            ]);
            let retry_after_s = if dice.percent(10) { Some(40) } else { retry_after_s };
            (Kind::Errors { code, retry_after_s, percent: *dice.pick(&[3, 20, 60]) }, while_)
        }
        2 => (Kind::LostRequests { percent: *dice.pick(&[5, 30]) }, while_),
        3 => (Kind::LostAnswers { percent: *dice.pick(&[5, 30, 80]) }, while_),
        4 => (Kind::LostCreations { times: 1 + pick_u32(dice, 4) }, while_),
        5 => (Kind::Delays { longest: *dice.pick(&[50, 1000, 12_000]), percent: 40 }, while_),
        6 => (Kind::DelayedAnswers { longest: *dice.pick(&[50, 1000, 12_000]), percent: 40 }, while_),
        7 => (Kind::Duplicates { percent: 50 }, while_),
        8 => (Kind::NoStatus { code: *dice.pick(&[409, 403, 500]) }, while_),
        9 => (Kind::CutWatches { after: dice.between(1, 5000) }, while_),
        10 => (Kind::StalledWatches { plural }, while_),
        11 => (Kind::ExpiredWatches { percent: 60 }, brief),
        12 => (Kind::Compaction, 0),
        13 => (Kind::Reordering { plural }, dice.between(10, 2 * MINUTE)),
        14 => (Kind::StaleLists { plural }, dice.between(10, 2 * MINUTE)),
        15 => (Kind::SlowLists { plural, takes: dice.between(100, 25 * SECOND) }, while_),
        16 => (Kind::Outage { refuses: dice.percent(50) }, while_),
        17 => (Kind::Crash(who), dice.between(0, 90 * SECOND)),
        18 => (Kind::CrashAt { who, writes: 1 + pick_u32(dice, 5), applied: dice.percent(50) }, brief + while_),
        19 => (Kind::Stop(who), dice.between(0, 90 * SECOND)),
        20 => (Kind::Held(who), dice.between(100, 2 * MINUTE)),
        21 => (Kind::Frozen, dice.between(100, 3 * MINUTE)),
        22 => (Kind::Partition(who), while_),
        23 => {
            let by_s = *dice.pick(&[-7200, -600, -61, -2, 2, 61, 600, 7200]);
            if dice.percent(60) {
                (Kind::ClockStep { who, by_s }, dice.between(SECOND, HOUR))
            } else {
                (Kind::ClockShift { who, by_s: by_s.clamp(-700, 700) }, 0)
            }
        }
        24 => (Kind::Drift { who, by_ms: *dice.pick(&[-60, -6, 6, 60]) }, dice.between(MINUTE, HOUR)),
        _ => (Kind::ServerClock { by_s: *dice.pick(&[-7200, -90, -3, 3, 90, 7200]) }, dice.between(MINUTE, HOUR)),
    }
}

fn pick_replica(dice: &mut Dice, replicas: usize) -> usize {
    usize::try_from(dice.number() % replicas as u64).unwrap()
}

fn pick_u32(dice: &mut Dice, below: u64) -> u32 {
    u32::try_from(dice.between(0, below)).unwrap()
}

impl Kind {
    /// The replica that it strikes; `None` if it strikes whoever is there.
    pub(crate) fn who(&self) -> Option<Who> {
        match self {
            Self::SlowLists { .. } => Some(Who::Leader),
            Self::CrashAt { who, .. }
            | Self::Crash(who)
            | Self::Stop(who)
            | Self::Held(who)
            | Self::Partition(who)
            | Self::ClockStep { who, .. }
            | Self::ClockShift { who, .. }
            | Self::Drift { who, .. } => Some(*who),
            _ => None,
        }
    }

    /// Its name in traces and tables.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Errors { .. } => "errors",
            Self::LostRequests { .. } => "lost requests",
            Self::LostAnswers { .. } => "lost answers",
            Self::LostCreations { .. } => "lost creations",
            Self::Delays { .. } => "delays",
            Self::DelayedAnswers { .. } => "delayed answers",
            Self::Duplicates { .. } => "duplicates",
            Self::NoStatus { .. } => "no status writes",
            Self::CutWatches { .. } => "cut watches",
            Self::StalledWatches { .. } => "stalled watches",
            Self::ExpiredWatches { .. } => "expired watches",
            Self::Compaction => "compaction",
            Self::Reordering { .. } => "reordering",
            Self::StaleLists { .. } => "stale lists",
            Self::SlowLists { .. } => "slow lists",
            Self::Outage { .. } => "outage",
            Self::Crash(_) => "crash",
            Self::CrashAt { .. } => "crash at a write",
            Self::Stop(_) => "stop",
            Self::Held(_) => "held",
            Self::Frozen => "frozen",
            Self::Partition(_) => "partition",
            Self::ClockStep { .. } => "clock step",
            Self::ClockShift { .. } => "clock shift",
            Self::Drift { .. } => "drift",
            Self::ServerClock { .. } => "server clock",
        }
    }
}
