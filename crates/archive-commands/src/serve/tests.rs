//! Small decisions of `serve`.

use fulgurite_archive::config::Fidelity;
use fulgurite_units::Ratio;

use super::{endpoint_of, fail_point, fidelity, tls_warning};
use crate::config;

#[test]
fn endpoint_is_reachable_from_this_machine() {
    let endpoint = |address: &str, tls| endpoint_of(address.parse().unwrap(), tls);
    assert_eq!(endpoint("127.0.0.1:9000", false), "http://127.0.0.1:9000");
    assert_eq!(endpoint("0.0.0.0:80", true), "https://127.0.0.1:80");
    assert_eq!(endpoint("[::]:9000", false), "http://[::1]:9000");
}

#[test]
fn plain_http_to_other_machines_warns() {
    let warns = |address: &str, tls| tls_warning(address.parse().unwrap(), tls).is_some();
    assert!(warns("0.0.0.0:9000", false));
    assert!(warns("[::]:9000", false));
    assert!(warns("192.168.1.7:9000", false));
    assert!(!warns("192.168.1.7:9000", true));
    assert!(!warns("127.0.0.1:9000", false));
    assert!(!warns("[::1]:9000", false));
}

#[test]
fn fail_points_are_a_name_and_a_count() {
    assert_eq!(fail_point(None).unwrap(), None);
    assert_eq!(fail_point(Some("")).unwrap(), None);
    assert_eq!(fail_point(Some("put-staged:3")).unwrap(), Some(("put-staged".to_owned(), 3)));
    for wrong in ["put-staged", "put-staged:", "put-staged:x", "put-staged:-1"] {
        assert!(fail_point(Some(wrong)).is_err(), "{wrong}");
    }
}

/// Fidelity `sector` takes rates or statistics, never both; `soft` needs statistics.
#[test]
fn statistics_and_rates_exclude_each_other() {
    let medium = |fidelity, statistics: Option<&str>, rate: f64| config::Medium {
        fidelity,
        statistics: statistics.map(Into::into),
        sector_failure_rate: Ratio::new(rate).unwrap(),
        ..config::Medium::default()
    };
    let sector = config::Fidelity::Sector;
    let rates = fidelity(&medium(sector, None, 0.1)).unwrap();
    assert!(matches!(rates, Fidelity::Sector { .. }), "{rates:?}");
    let drawn = fidelity(&medium(sector, Some("nominal.soft"), 0.0)).unwrap();
    assert!(matches!(drawn, Fidelity::Drawn { reads_max: 3, .. }), "{drawn:?}");
    let both = fidelity(&medium(sector, Some("nominal.soft"), 0.1)).unwrap_err();
    assert!(both.to_string().contains("leave medium.sector_failure_rate"), "{both}");
    let none = fidelity(&medium(config::Fidelity::Soft, None, 0.0)).unwrap_err();
    assert!(none.to_string().contains("lab calibrate"), "{none}");
}
