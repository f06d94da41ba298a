//! Setup of a process that stores bytes: file permissions, fail points for crash tests, and random
//! bytes for ids.

use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_tier::FailPoints;

/// Restricts files that this process creates to its owner: an archive holds secrets.
pub(crate) fn restrict_umask() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Parses `NAME:COUNT`: die at this named step, for crash tests; or with `:panic` after it, panic
/// in that thread.
pub(crate) fn fail_point(text: Option<&str>) -> anyhow::Result<Option<(String, u32)>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let (step, suffix) = match text.strip_suffix(":panic") {
        Some(step) => (step, ":panic"),
        None => (text, ""),
    };
    let parsed = step.split_once(':').and_then(|(name, count)| {
        let count = count.parse().ok()?;
        Some((format!("{name}{suffix}"), count))
    });
    parsed.map(Some).ok_or_else(|| {
        let message =
            format!("FULGURITE_FAIL_POINT \"{text}\" is not NAME:COUNT or NAME:COUNT:panic");
        ExitError::new(Exit::Config, message).into()
    })
}

/// Returns these fail points, with that of a crash test armed if it is one of them.
pub(crate) fn fail_points(points: &'static [&'static str]) -> anyhow::Result<FailPoints> {
    match fail_point(std::env::var("FULGURITE_FAIL_POINT").ok().as_deref())? {
        Some((name, count)) if points.contains(&name.trim_end_matches(":panic")) => {
            FailPoints::armed(points, &name, count)
                .map_err(|reason| ExitError::new(Exit::Config, reason).into())
        }
        Some(_) | None => Ok(FailPoints::unarmed(points)),
    }
}

/// Returns unpredictable random bytes.
pub(crate) fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    let drawn = getrandom::fill(&mut bytes);
    assert!(drawn.is_ok(), "the operating system provides random bytes");
    bytes
}
