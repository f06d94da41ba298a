//! Platter errors keep their meaning when they become archive errors.

use fulgurite_units::error_chain;

use super::*;

#[test]
fn platter_errors_keep_their_kind() {
    let what = || "this".to_owned();
    let (platter, reason) = (PlatterId::from_bytes([7; 16]), "that");
    let source = std::io::Error::other("the disk");
    let all = [
        GlassError::InvalidArgument { what: what() },
        GlassError::Full { what: what() },
        GlassError::Busy { what: what() },
        GlassError::PlatterUnreadable { platter, reason: reason.to_owned() },
        GlassError::Undecoded { platter, reason: reason.to_owned() },
        GlassError::PlatterOutOfReach { platter, reason: reason.to_owned() },
        GlassError::Corrupt { what: what() },
        GlassError::Newer { what: what() },
        GlassError::Unusable { path: what(), reason: reason.to_owned() },
        GlassError::Stopping,
        GlassError::Catalog(CatalogError::InUse),
        GlassError::Io { action: "open", path: what(), source },
        GlassError::Internal { what: what() },
    ];
    for error in all {
        let (kind, text) = (error.kind(), error_chain(&error));
        let archive_error = ArchiveError::from(error);
        assert_eq!(archive_error.kind(), kind, "{text}");
        assert_eq!(error_chain(&archive_error), text);
        let again = GlassError::from(archive_error);
        assert_eq!((again.kind(), error_chain(&again)), (kind, text), "and back");
    }
}
