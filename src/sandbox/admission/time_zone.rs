//! The check of time zone names that the API server and Volcano's webhook share.

/// The first step of both: no path part that could name something outside a zone database. Counts the bad parts.
pub(super) fn bad_parts(name: &str) -> usize {
    name.split('/').filter(|part| !good_part(part)).count()
}

/// One part between slashes: 1-14 characters of `A-Z a-z 0-9 . - _ +`, neither `.` nor `..`, not starting with `-`.
fn good_part(part: &str) -> bool {
    let characters = part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'));
    characters && (1..=14).contains(&part.len()) && part != "." && part != ".." && !part.starts_with('-')
}

/// Whether a zone database has zones below `name`: then the name is a folder, and the server says so.
pub(super) fn is_folder(name: &str) -> bool {
    let below = format!("{name}/");
    chrono_tz::TZ_VARIANTS.iter().any(|zone| zone.name().starts_with(&below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_zone_name_are_short_plain_words() {
        for good in ["UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "a..b", "..."] {
            assert_eq!(bad_parts(good), 0, "{good}");
        }
        for bad in ["America//New_York", "/UTC", "../UTC", "./UTC", "-x", "a b", "a:b", "abcdefghijklmno"] {
            assert_eq!(bad_parts(bad), 1, "{bad}");
        }
        assert_eq!(bad_parts("a b/c d"), 2);
    }
}
