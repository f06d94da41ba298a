//! Tests the transitions between power states and their power draw.

use std::fmt::Write as _;

use crate::{Draw, Power};

#[test]
fn transitions_match_the_diagram() {
    let mut steps = String::new();
    for from in Power::ALL {
        let to = Power::ALL.into_iter().filter(|&to| from.can_become(to));
        let to: Vec<&str> = to.map(Power::name).collect();
        writeln!(steps, "{from}: {}", to.join(" ")).unwrap();
    }
    assert_eq!(
        steps,
        "standby: spinning-up failed absent unclean\n\
         spinning-up: standby active failed absent unclean\n\
         active: unmounting failed absent unclean\n\
         unmounting: standby failed absent unclean\n\
         failed: standby absent unclean\n\
         absent: standby failed unclean\n\
         unclean: standby failed absent\n"
    );
}

#[test]
fn spinning_disks_count_for_power_and_cooling() {
    let spinning: Vec<_> = Power::ALL.into_iter().filter(|power| power.is_spinning()).collect();
    assert_eq!(spinning, [Power::SpinningUp, Power::Active, Power::Unmounting]);
    assert!(Power::ALL.iter().all(|power| !(power.is_spinning() && power.is_out_of_service())));
}

/// The paper's rack of 1,152 disks: 1.8 kW in standby, 10.85 kW spinning.
#[test]
fn rack_power_is_the_sum_of_its_disks() {
    let rack = |power| Draw::PELICAN.milliwatts(power) * 1152 / 1_000_000;
    assert_eq!(rack(Power::Standby), 1);
    assert_eq!(rack(Power::Active), 10);
    assert_eq!(rack(Power::SpinningUp), 24);
    assert_eq!(rack(Power::Absent), 0);
}
