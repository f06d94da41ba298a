//! Errors of every crate map to their exit codes.

use fulgurite_archive::ArchiveError;
use fulgurite_client::s3::S3Error;
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
    assert_eq!(exit(ArchiveError::Stopping), Exit::Unavailable);
    assert_eq!(exit(ArchiveError::Corrupt { what: path() }), Exit::Corrupt);
    let short = S3Error::Short { target: path(), received: 1, expected: 2 };
    assert_eq!(exit_of(&short.into()), Exit::Corrupt);
}
