//! Maps an error of any crate to its exit code.

use fulgurite_archive::{ArchiveError, CatalogError};
use fulgurite_archive_commands::config::ConfigError;
use fulgurite_client::s3::S3Error;
use fulgurite_gateway::GatewayError;
use fulgurite_geo::objects::GeoError;
use fulgurite_geo::remote::NodeError;
use fulgurite_platter::PlatterError;
use fulgurite_rack::RackError;
use fulgurite_terminal::exit::Exit;
use fulgurite_tier::TierError;
use fulgurite_tome::TomesError;
use fulgurite_tome::objects::StoreError;
use fulgurite_tome::remote::NetError;

/// Returns the exit code of `error`: the first of its causes that has one decides.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    fulgurite_terminal::exit::exit_of(error, exit_of_cause)
}

fn exit_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if cause.is::<ConfigError>() {
        return Some(Exit::Config);
    }
    if let Some(error) = cause.downcast_ref::<S3Error>() {
        return Some(error.kind().exit());
    }
    if let Some(error) = cause.downcast_ref::<ArchiveError>() {
        return Some(exit_of_archive(error));
    }
    if let Some(error) = cause.downcast_ref::<GatewayError>() {
        return Some(exit_of_gateway(error));
    }
    if let Some(error) = cause.downcast_ref::<PlatterError>() {
        return Some(exit_of_glass(error));
    }
    if let Some(error) = cause.downcast_ref::<RackError>() {
        return Some(exit_of_stacks(error));
    }
    if let Some(error) = cause.downcast_ref::<TierError>() {
        return Some(exit_of_tier(error));
    }
    if let Some(error) = cause.downcast_ref::<NetError>() {
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<TomesError>() {
        if matches!(error, TomesError::InUse { .. }) {
            return Some(Exit::Locked);
        }
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<GeoError>() {
        return Some(exit_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<NodeError>() {
        return Some(exit_of_kind(error.kind()));
    }
    None
}

fn exit_of_archive(error: &ArchiveError) -> Exit {
    use fulgurite_archive::ErrorKind;
    if matches!(error, ArchiveError::Locked { .. }) {
        return Exit::Locked;
    }
    if matches!(error, ArchiveError::KeysFailed { .. }) {
        return Exit::KeysFailed;
    }
    if matches!(
        error,
        ArchiveError::Unusable { .. }
            | ArchiveError::WrongMasterKey { .. }
            | ArchiveError::WrongSharedKey { .. }
            | ArchiveError::Newer { .. }
            | ArchiveError::Catalog(
                CatalogError::Version { found: Some(_), .. } | CatalogError::Newer { .. }
            )
    ) {
        return Exit::Config;
    }
    match error.kind() {
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Unavailable => Exit::Unavailable,
        ErrorKind::Corrupt => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Usage,
        ErrorKind::Conflict | ErrorKind::Internal | _ => Exit::Failure,
    }
}

fn exit_of_gateway(error: &GatewayError) -> Exit {
    use fulgurite_gateway::ErrorKind;
    if error.kind() == ErrorKind::Invalid { Exit::Config } else { Exit::Failure }
}

fn exit_of_kind(kind: fulgurite_units::ErrorKind) -> Exit {
    use fulgurite_units::ErrorKind;
    match kind {
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Unavailable => Exit::Unavailable,
        ErrorKind::Corrupt => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Config,
        ErrorKind::Conflict | ErrorKind::Internal | _ => Exit::Failure,
    }
}

/// The same as when a server answers: see `AdminClient`.
fn exit_of_tier(error: &TierError) -> Exit {
    use fulgurite_units::ErrorKind;
    if error.is_busy {
        return Exit::Unavailable;
    }
    // What is wrong is the request: the tier is open, so its configuration is right.
    if error.kind == ErrorKind::Invalid { Exit::Usage } else { exit_of_kind(error.kind) }
}

fn exit_of_glass(error: &PlatterError) -> Exit {
    use fulgurite_platter::ErrorKind;
    if matches!(error, PlatterError::UnsupportedVersion { .. }) {
        return Exit::Config;
    }
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Conflict => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Usage,
        ErrorKind::Unavailable | _ => Exit::Failure,
    }
}

fn exit_of_stacks(error: &RackError) -> Exit {
    use fulgurite_gateway::ErrorKind;
    if matches!(error, RackError::Catalog(CatalogError::Locked { .. })) {
        return Exit::Locked;
    }
    // An error of the configuration, or a disk in the wrong place of it.
    if matches!(
        error,
        RackError::Invalid { .. }
            | RackError::Incomplete { .. }
            | RackError::Rack(_)
            | RackError::WrongDisk { .. }
    ) {
        return Exit::Config;
    }
    match error.kind() {
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Unavailable => Exit::Unavailable,
        ErrorKind::Corrupt => Exit::Corrupt,
        ErrorKind::Invalid => Exit::Usage,
        ErrorKind::Conflict | ErrorKind::Internal | _ => Exit::Failure,
    }
}

#[cfg(test)]
mod tests;
