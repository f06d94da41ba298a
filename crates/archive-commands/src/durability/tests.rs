//! The table against published numbers.

use fulgurite_platter::Geometry;

use super::{DurabilityArgs, Row, rows};

fn table(profile: &str, samples: u64) -> Vec<Row> {
    let args = DurabilityArgs {
        profile: None,
        config: None,
        sector_loss: 1e-3,
        variation: 1.0,
        platter_loss: 1e-3,
        disk_failures: 0.0131,
        rebuild_hours: 24.0,
        verify_days: 30.0,
        samples,
        seed: 1,
    };
    rows(&args, &Geometry::profile(profile).unwrap()).unwrap()
}

fn find<'a>(rows: &'a [Row], what: &str) -> &'a Row {
    rows.iter().find(|row| row.what.starts_with(what)).expect("the row is there")
}

#[test]
fn silica_has_the_known_figures() {
    let rows = table("silica", 5000);
    assert_eq!(find(&rows, "track, independent").chance, "5.9e-27");
    assert_eq!(find(&rows, "track, rate varies").chance, "1.1e-13");
    assert_eq!(find(&rows, "platter-set").chance, "3.8e-9");
    let claim = find(&rows, "smallest track below 1e-24, R_t <= 8 % of I_t");
    assert!(claim.inputs.starts_with("188 + 15 sectors"), "{claim:?}");
    for row in rows.iter().filter(|row| row.simulated.is_some()) {
        let simulated: f64 = row.simulated.as_ref().unwrap().parse().unwrap();
        let ratio = simulated.log10() - row.log10;
        // Two digits, and five standard errors of a few percent.
        assert!(ratio.abs() < 0.15, "{row:?}");
        assert!(row.relative_error.unwrap() < 0.06, "{row:?}");
    }
}

#[test]
fn rack_rows_show_nines_and_detection_delay() {
    let rows = table("demo", 0);
    let at_once = find(&rows, "blob of a rack in a year, found at once");
    assert_eq!(at_once.chance, "1.8e-12");
    assert!(at_once.inputs.ends_with("T = 1.00 d; 11.7 nines"), "{at_once:?}");
    let late = find(&rows, "blob of a rack in a year, found by verifying");
    assert_eq!(late.chance, "5.4e-8");
    assert!(late.inputs.contains("found within 30 d, rebuilt within 1.00 d"), "{late:?}");
}

#[test]
fn every_profile_has_all_rows_and_groups_beat_tracks() {
    for profile in ["demo", "desk", "silica"] {
        let rows = table(profile, 0);
        assert_eq!(rows.len(), 10, "{profile}");
        for kind in ["independent", "rate varies"] {
            let chance = |level: &str| {
                let row =
                    rows.iter().find(|row| row.what.contains(kind) && row.what.starts_with(level));
                row.expect("the row is there").log10
            };
            assert!(chance("large group") < chance("track"), "{profile}, {kind}");
        }
        assert!(rows.iter().all(|row| row.simulated.is_none()));
    }
}
