//! The Markov chain of a group: the mean time to data loss (MTTDL).
//!
//! ```text
//!       16 f        15 f             14 f              13 f
//!   0 -------> 1 ---------> 2 -----------------> 3 ----------> lost
//!     <-------   <---------   \  <--------------   --- 13 e -->
//!         r         2 r        '--> lost     3 r
//! ```
//!
//! `f`, `r` and `e` are the rates of failures, repairs and errors that segments cannot correct. On
//! the transition to the last state the group is lost at once with the probability that one of the
//! remaining disks is unreadable. The picture shows a group of 16 that survives 3 failures, with
//! parallel repairs; times are exponential (Pergamum (FAST 2008), section 5.2, table 4).

use super::group::Group;

/// Returns the mean time until a group loses data, in hours, with all times exponential.
///
/// For each state, the time to the next state or to the loss, and the probability that it is the
/// loss, follow from those of the state below. Only positive numbers are added, so no precision is
/// lost; solving the equations would lose ten digits.
///
/// # Errors
/// When a value of the group is out of range, or repairs take a fixed time.
pub fn mttdl_by_chain(group: &Group) -> Result<f64, String> {
    group.validate()?;
    if group.repair_is_fixed {
        return Err(
            "group: the chain needs exponential repair times; set repair_is_fixed to false"
                .to_owned(),
        );
    }
    let (fails, stuck) = (group.failures(), group.stuck());
    let (mut takes, mut loses) = (0.0, 0.0);
    let (mut total, mut here) = (0.0, 1.0);
    for failed in 0..=group.inter {
        let left = f64::from(group.disks - failed);
        let failures = left * fails;
        let (up, lost) = if failed == group.inter {
            (0.0, failures + left * group.uncorrectable_errors())
        } else if failed + 1 == group.inter {
            (failures * (1.0 - stuck), failures * stuck)
        } else {
            (failures, 0.0)
        };
        let at_a_time = if group.repair_is_serial { failed.min(1) } else { failed };
        let down = f64::from(at_a_time) / group.repair_h;
        let rate = up + lost + down * loses;
        takes = (1.0 + down * takes) / rate;
        loses = (lost + down * loses) / rate;
        total += here * takes;
        here *= up / rate;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::mttdl_by_chain;
    use crate::tome::Group;

    fn check(group: Group, expected: f64, within: f64) {
        let ours = mttdl_by_chain(&group).unwrap();
        assert!((ours / expected - 1.0).abs() < within, "{ours:.4e} for {expected:.4e}");
    }

    #[test]
    fn one_failure_matches_the_textbook_formula() {
        let (disks, fails, repairs) = (16.0, 1e-5, 1e-2);
        let exact =
            ((2.0 * disks - 1.0) * fails + repairs) / (disks * (disks - 1.0) * fails * fails);
        check(Group { inter: 1, ..Group::default() }, exact, 1e-12);
    }

    /// Values from a solver of the chain's equations, in another language.
    #[test]
    fn several_failures_match_the_solved_equations() {
        let group = |inter| Group { inter, ..Group::default() };
        check(group(2), 6.091e7, 1e-3);
        check(group(3), 1.402e10, 1e-3);
        check(Group { repair_is_serial: true, ..group(2) }, 3.067e7, 1e-3);
        check(Group { repair_is_serial: true, ..group(3) }, 2.357e9, 1e-3);
    }

    #[test]
    fn without_segment_parity_one_failure_less_is_survived() {
        let group = |inter| Group { inter, intra: Some(0), ..Group::default() };
        check(group(1), 6_253.0, 1e-3);
        check(group(2), 4.299e5, 1e-3);
        check(group(3), 6.100e7, 1e-3);
    }

    #[test]
    fn chain_rejects_fixed_repair_times() {
        let group = Group { repair_is_fixed: true, ..Group::default() };
        assert!(mttdl_by_chain(&group).unwrap_err().contains("exponential"));
    }
}
