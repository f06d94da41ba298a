//! Errors of every crate map to their exit codes.

use fulgurite_archive::{ArchiveError, CatalogError};
use fulgurite_client::s3::S3Error;
use fulgurite_gateway::GatewayError;
use fulgurite_platter::PlatterError;
use fulgurite_terminal::exit::Exit;

use super::exit_of;

#[test]
fn errors_map_to_exit_codes() {
    let path = String::new;
    let exit = |error: ArchiveError| exit_of(&error.into());
    assert_eq!(exit(ArchiveError::Locked { path: path() }), Exit::Locked);
    let what = path();
    assert_eq!(exit(ArchiveError::WrongMasterKey { what }), Exit::Config);
    let reason = path();
    assert_eq!(exit(ArchiveError::Unusable { path: path(), reason }), Exit::Config);
    // Written by a newer program: not damage, and no wrong command line.
    assert_eq!(exit(ArchiveError::Newer { what: path() }), Exit::Config);
    let version = CatalogError::Version { path: path().into(), found: Some(2), expected: 1 };
    assert_eq!(exit(ArchiveError::Catalog(version)), Exit::Config);
    let version = PlatterError::UnsupportedVersion { found: 2, known: 1 };
    assert_eq!(exit_of(&version.into()), Exit::Config);
    let address = ([127, 0, 0, 1], 9000).into();
    let source = std::io::ErrorKind::AddrInUse.into();
    assert_eq!(exit_of(&GatewayError::Listen { address, source }.into()), Exit::Config);
    assert_eq!(exit(ArchiveError::Stopping), Exit::Unavailable);
    assert_eq!(exit(ArchiveError::Corrupt { what: path() }), Exit::Corrupt);
    let short = S3Error::Short { target: path(), received: 1, expected: 2 };
    assert_eq!(exit_of(&short.into()), Exit::Corrupt);
}
