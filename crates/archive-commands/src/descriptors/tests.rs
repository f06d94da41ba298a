//! The soft limit is raised to the hard one, and too low a limit is refused with a remedy.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{check, limit, raise};
use crate::limits::DESCRIPTORS_MIN;

#[test]
fn soft_limit_is_raised_to_the_hard_limit() {
    let before = getrlimit(Resource::Nofile);
    let hard = before.maximum.unwrap_or(u64::MAX);
    let lowered = Rlimit { current: Some(hard.min(512)), maximum: before.maximum };
    setrlimit(Resource::Nofile, lowered).unwrap();
    raise().unwrap();
    assert_eq!(limit(), hard);
}

#[test]
fn too_few_descriptors_are_refused() {
    assert!(check(DESCRIPTORS_MIN).is_ok());
    let error = check(DESCRIPTORS_MIN - 1).unwrap_err();
    assert!(error.to_string().contains("ulimit -Hn"), "{error}");
}
