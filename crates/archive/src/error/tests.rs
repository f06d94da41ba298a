//! Platter errors keep their meaning when they become archive errors.

use fulgurite_units::error_chain;

use super::*;

#[test]
fn platter_errors_keep_their_kind() {
    let what = || "this".to_owned();
    let (platter, reason) = (PlatterId::from_bytes([7; 16]), "that");
    let source = std::io::Error::other("the disk");
    let all = [
        PlattersError::InvalidArgument { what: what() },
        PlattersError::Full { what: what() },
        PlattersError::Busy { what: what() },
        PlattersError::PlatterUnreadable { platter, reason: reason.to_owned() },
        PlattersError::Undecoded { platter, reason: reason.to_owned() },
        PlattersError::PlatterOutOfReach { platter, reason: reason.to_owned() },
        PlattersError::Corrupt { what: what() },
        PlattersError::Newer { what: what() },
        PlattersError::Unusable { path: what(), reason: reason.to_owned() },
        PlattersError::Stopping,
        PlattersError::Catalog(CatalogError::InUse),
        PlattersError::Io { action: "open", path: what(), source },
        PlattersError::Internal { what: what() },
    ];
    for error in all {
        let (kind, text) = (error.kind(), error_chain(&error));
        let archive_error = ArchiveError::from(error);
        assert_eq!(archive_error.kind(), kind, "{text}");
        assert_eq!(error_chain(&archive_error), text);
        let again = PlattersError::from(archive_error);
        assert_eq!((again.kind(), error_chain(&again)), (kind, text), "and back");
    }
}
