//! Tests the transitions between power states and their power draw.

use std::fmt::Write as _;

use crate::{Draw, Power};

#[test]
fn the_steps_of_a_disk_are_those_of_the_picture() {
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
fn what_counts_for_power_and_cooling_turns() {
    let turning: Vec<_> = Power::ALL.into_iter().filter(|power| power.is_spinning()).collect();
    assert_eq!(turning, [Power::SpinningUp, Power::Active, Power::Unmounting]);
    assert!(Power::ALL.iter().all(|power| !(power.is_spinning() && power.is_out_of_service())));
}

/// The paper's rack of 1,152 disks: 1.8 kW in standby, 10.85 kW spinning.
#[test]
fn a_rack_takes_what_its_disks_take() {
    let rack = |power| Draw::PELICAN.of(power) * 1152 / 1_000_000;
    assert_eq!(rack(Power::Standby), 1);
    assert_eq!(rack(Power::Active), 10);
    assert_eq!(rack(Power::SpinningUp), 24);
    assert_eq!(rack(Power::Absent), 0);
}
