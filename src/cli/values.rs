//! Types of flag values: durations, listening addresses, zones.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::jobs::names::MANAGED_BY_BUILT_IN;
use crate::schedule::Zone;

/// Flags that are each sound by themselves, but not together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contradiction {
    /// The flags, without the dashes; one at least.
    pub(super) flags: &'static [&'static str],
    /// What is wrong.
    pub(super) message: String,
}

impl Contradiction {
    pub(super) fn new(flags: &'static [&'static str], message: impl Into<String>) -> Self {
        Self { flags, message: message.into() }
    }
}

/// Parses a duration: one or more numbers with a unit (`ms`, `s`, `m`, `h`, `d`), as in `1h30m`, `500ms`, `1.5s`; `0` alone.
///
/// # Errors
/// A sentence that says what is expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 90s, 1h30m or 500ms");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, behind) = rest.split_at(unit_at);
        let next_at = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(next_at);
        let seconds = number.parse::<f64>().map_err(|_| wrong())? * unit_seconds(unit).ok_or_else(wrong)?;
        let part = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = behind;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// Parses a name of a controller in `spec.managedBy` of Jobs: a path behind a domain.
///
/// # Errors
/// A sentence that says what is expected.
pub fn parse_manager(text: &str) -> Result<Arc<str>, String> {
    const LONGEST: usize = 63;
    let is_domain = |domain: &str| {
        let label = |label: &str| {
            let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.chars().all(known)
        };
        domain.split('.').all(label)
    };
    let is_path = |path: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
        !path.is_empty() && path.chars().all(known)
    };
    let (domain, path) = text.split_once('/').unwrap_or_default();
    if !is_domain(domain) || !is_path(path) || text.len() > LONGEST {
        return Err(format!("{text:?} is not a path behind a domain of at most {LONGEST} bytes, such as acme.io/foo"));
    }
    if text == MANAGED_BY_BUILT_IN {
        return Err(format!("{text} is the built-in controller, which looks after every Job that names nobody"));
    }
    Ok(text.into())
}

/// As [`parse_duration`], but zero is refused.
///
/// # Errors
/// A sentence that says what is expected.
pub fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("must be longer than 0".to_owned()),
        duration => Ok(duration),
    }
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    })
}

/// Where to listen, in the forms that Kubernetes' components take: `0` for nowhere, `:8080` for every address,
/// `127.0.0.1:8080`, `[::1]:8080`. Port 0 takes any free port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// Do not listen.
    Off,
    /// Listen on this port of every address.
    Every(u16),
    /// Listen here.
    At(SocketAddr),
}

impl BindAddress {
    /// Starts to listen; `None` when turned off.
    ///
    /// # Errors
    /// The address is taken or not ours.
    pub async fn bind(self) -> io::Result<Option<TcpListener>> {
        match self {
            Self::Off => Ok(None),
            Self::At(address) => TcpListener::bind(address).await.map(Some),
            // The IPv6 wildcard takes IPv4 as well; a kernel without IPv6 refuses it.
            Self::Every(port) => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.map(Some)
                }
                bound => bound.map(Some),
            },
        }
    }
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self::Off);
        }
        let address = match text.strip_prefix(':') {
            Some(port) => port.parse().ok().map(Self::Every),
            None => text.parse().ok().map(Self::At),
        };
        address.ok_or_else(|| {
            format!("{text:?} is not an address such as :8080, 127.0.0.1:8080 or [::1]:8080 (0 turns it off)")
        })
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::Every(port) => write!(f, ":{port}"),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// Parses the name of a time zone, in the letters and case of the IANA database.
///
/// # Errors
/// The peers' message.
pub fn parse_zone(name: &str) -> Result<Zone, String> {
    Zone::load(name, Zone::utc()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_a_path_behind_a_domain_and_not_the_built_in_one() {
        assert_eq!(parse_manager("acme.io/foo").as_deref(), Ok("acme.io/foo"));
        let long = format!("a.io/{}", "x".repeat(60));
        for wrong in ["", "foo", "acme.io/", "/foo", "Acme.io/foo", "a..b/c", "acme.io/a b", MANAGED_BY_BUILT_IN, &long]
        {
            assert!(parse_manager(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_add_up_their_parts() {
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "10", "s", "1x", "-1s", "1..5s", "1h30", "99999999999999999999d"] {
            assert_eq!(
                parse_duration(text),
                Err(format!("{text:?} is not a duration such as 90s, 1h30m or 500ms")),
                "{text}"
            );
        }
        assert!(parse_positive_duration("0s").is_err());
    }

    #[test]
    fn addresses_come_in_the_forms_of_kubernetes() {
        assert_eq!("0".parse(), Ok(BindAddress::Off));
        assert_eq!(":8080".parse(), Ok(BindAddress::Every(8080)));
        assert_eq!("127.0.0.1:1".parse::<BindAddress>().unwrap().to_string(), "127.0.0.1:1");
        assert_eq!(":8081".parse::<BindAddress>().unwrap().to_string(), ":8081");
        assert!("8080".parse::<BindAddress>().is_err());
        assert!("localhost:8080".parse::<BindAddress>().is_err());
    }

    #[tokio::test]
    async fn an_address_is_bound_unless_turned_off() {
        assert!(BindAddress::Off.bind().await.unwrap().is_none());
        let everywhere = BindAddress::Every(0).bind().await.unwrap().unwrap();
        assert!(everywhere.local_addr().unwrap().ip().is_unspecified());
        let taken = BindAddress::Every(everywhere.local_addr().unwrap().port());
        assert_eq!(taken.bind().await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
