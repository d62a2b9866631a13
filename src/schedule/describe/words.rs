//! Sets of values as English.

use crate::schedule::field::STAR;

/// A set of a field without its flag.
#[derive(Clone, Copy)]
pub(super) struct Values(u64);

/// Values an equal step apart, at least three.
pub(super) struct Progression {
    pub(super) first: u32,
    pub(super) step: u32,
    pub(super) last: u32,
}

impl Values {
    pub(super) fn of(set: u64) -> Self {
        Self(set & !STAR)
    }

    pub(super) fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        (0..63).filter(move |value| self.0 & 1 << value != 0)
    }

    /// The only value.
    pub(super) fn only(self) -> Option<u32> {
        (self.len() == 1).then(|| self.0.trailing_zeros())
    }

    pub(super) fn progression(self) -> Option<Progression> {
        let values: Vec<u32> = self.iter().collect();
        let (first, second, last) = match values.as_slice() {
            [first, second, .., last] => (*first, *second, *last),
            _ => return None,
        };
        let step = second - first;
        let even = values.iter().zip(values.iter().skip(1)).all(|(one, next)| next - one == step);
        even.then_some(Progression { first, step, last })
    }

    /// `Monday`, `Monday and Friday`, `Monday to Friday and Sunday`: three or more in a row become a range.
    pub(super) fn list(self, name: impl Fn(u32) -> String) -> String {
        let mut items = Vec::new();
        let mut rest = self.0;
        while rest != 0 {
            let start = rest.trailing_zeros();
            let length = (rest >> start).trailing_ones();
            let end = start + length - 1;
            match length {
                1 => items.push(name(start)),
                2 => items.extend([name(start), name(end)]),
                _ => items.push(format!("{} to {}", name(start), name(end))),
            }
            rest &= u64::MAX << end << 1;
        }
        join(&items)
    }
}

impl Progression {
    /// Whether it goes on unbroken from one round of `size` values to the next, e.g. minutes 5, 20, 35, 50 of 60.
    pub(super) fn goes_round(&self, size: u32) -> bool {
        size.is_multiple_of(self.step) && self.first < self.step && self.last + self.step >= size
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn join(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// `1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`.
pub(super) fn ordinal(value: u32) -> String {
    let ending = match (value % 10, value % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{value}{ending}")
}

/// `02:30`.
pub(super) fn clock(minute_of_day: u32) -> String {
    format!("{:02}:{:02}", minute_of_day / 60, minute_of_day % 60)
}

pub(super) fn month_name(month: u32) -> String {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    named(&NAMES, month.wrapping_sub(1))
}

pub(super) fn weekday_name(weekday: u32) -> String {
    const NAMES: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    named(&NAMES, weekday)
}

fn named(names: &[&str], index: u32) -> String {
    usize::try_from(index).ok().and_then(|index| names.get(index)).map_or_else(String::new, |name| (*name).to_owned())
}

/// A first letter in upper case.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `1h 30m`, `90d 1s`.
pub(super) fn seconds(total: i64) -> String {
    let parts = [(total / 86_400, "d"), (total / 3_600 % 24, "h"), (total / 60 % 60, "m"), (total % 60, "s")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count != 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    parts.join(" ")
}
