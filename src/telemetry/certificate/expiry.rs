//! The end of a certificate's validity, the one field of it that operators have to know.
//!
//! X.509 is DER: nested values of tag, length and content. Only the way to `notAfter` is walked (RFC 5280, section 4.1); what is not
//! as it should be there has no end, and nothing panics.

use chrono::{DateTime, NaiveDateTime, Utc};

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version, which the first edition of certificates lacks.
const VERSION: u8 = 0xa0;

/// `notAfter` of a certificate in DER.
pub(super) fn not_after(certificate: &[u8]) -> Option<DateTime<Utc>> {
    let (certificate, _) = value(certificate, SEQUENCE)?;
    let (mut rest, _) = value(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        (_, rest) = value(rest, VERSION)?;
    }
    for before in [INTEGER, SEQUENCE, SEQUENCE] {
        // Serial number, algorithm, issuer.
        (_, rest) = value(rest, before)?;
    }
    let (validity, _) = value(rest, SEQUENCE)?;
    let (_not_before, rest) = value(validity, *validity.first()?)?;
    time(rest)
}

/// Content of the first value, whose tag must be `tag`, and what follows it.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(first) {
        short @ 0..=0x7f => (short, rest),
        // The length itself takes up to three bytes: 16 MiB are enough for a certificate.
        long @ 0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(long - 0x80)?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    (found == tag).then_some((content, rest))
}

/// Years of two digits belong to 1950 to 2049.
fn time(der: &[u8]) -> Option<DateTime<Utc>> {
    let (content, _) = value(der, *der.first()?)?;
    let text = str::from_utf8(content).ok()?;
    let text = match *der.first()? {
        UTC_TIME if text >= "50" => format!("19{text}"),
        UTC_TIME => format!("20{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    Some(NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok()?.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn ending(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, month, day);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_is_read_in_both_forms_of_time() {
        for (year, month, day) in [(1999, 12, 31), (2027, 2, 3), (2049, 12, 31), (2050, 1, 1), (4096, 1, 1)] {
            let end = not_after(&ending(year, month, day)).unwrap();
            assert_eq!(end.to_rfc3339(), format!("{year}-{month:02}-{day:02}T00:00:00+00:00"));
        }
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_never_a_panic() {
        let whole = ending(2027, 2, 3);
        for end in 0..whole.len() {
            let _no_panic = not_after(&whole[..end]);
            for byte in [0x00, 0x17, 0x30, 0x7f, 0x80, 0x83, 0xff] {
                let mut damaged = whole.clone();
                damaged[end] = byte;
                let _no_panic = not_after(&damaged);
            }
        }
        assert_eq!(not_after(&whole[..40]), None);
    }
}
