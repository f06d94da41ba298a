//! The precondition of a put, as `object_store` states it.

use object_store::{PutMode, UpdateVersion};

use crate::{Mode, ObjectStoreError, generic_error};

/// Converts the precondition of a put.
///
/// # Errors
/// When it is an update without the entity tag that it expects.
pub(crate) fn mode<E: ObjectStoreError>(mode: &PutMode) -> object_store::Result<Mode> {
    match mode {
        PutMode::Overwrite => Ok(Mode::Overwrite),
        PutMode::Create => Ok(Mode::Create),
        PutMode::Update(UpdateVersion { e_tag, .. }) => {
            let none =
                || generic_error::<E>("an update names the entity tag that it expects".into());
            let tag = e_tag.as_deref().ok_or_else(none)?.trim_matches('"').parse();
            Ok(tag.map_or(Mode::Never, Mode::Update))
        }
    }
}
