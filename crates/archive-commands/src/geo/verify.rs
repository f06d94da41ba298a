//! `geo verify`: reads every object whole and checks it against what was put. Each is read from
//! just as many sites as it needs; `heal` checks the other fragments.

use fulgurite_geo::objects::{GeoError, GeoStore};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, pluralize};
use fulgurite_terminal::progress;
use fulgurite_units::{ErrorKind, error_chain};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use serde::Serialize;

use crate::limits::{GEO_LISTED_MAX, GEO_VERIFY_CONCURRENCY};

/// The result of reading.
#[derive(Debug, Default, Serialize)]
struct Verified {
    /// Objects that were read and are intact.
    objects: u64,
    /// Their bytes.
    bytes: u64,
    /// The first objects that are lost or damaged.
    damaged: Vec<String>,
    /// The first objects that could not be read now.
    problems: Vec<String>,
}

/// Reads every object.
pub(super) async fn verify(store: &GeoStore, out: &Output) -> anyhow::Result<()> {
    let bar = progress::stream_bar("verify", out.is_json());
    let mut verified = Verified::default();
    let all = store.list(None).map(|meta| async move {
        let location = meta?.location;
        let read = read(store, &location).await;
        Ok::<_, object_store::Error>((location, read))
    });
    let mut all = std::pin::pin!(all.buffer_unordered(GEO_VERIFY_CONCURRENCY));
    while let Some((location, read)) = all.try_next().await? {
        match read {
            Ok(length) => {
                verified.objects += 1;
                verified.bytes += length;
                bar.set_position(verified.bytes);
            }
            // It was deleted after it was listed.
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => {
                let is_corrupt = kind_of(&error) == Some(ErrorKind::Corrupt);
                let Verified { damaged, problems, .. } = &mut verified;
                let list = if is_corrupt { damaged } else { problems };
                if list.len() < GEO_LISTED_MAX {
                    list.push(format!("{location}: {}", error_chain(&error)));
                }
            }
        }
    }
    bar.finish_and_clear();
    report_verified(&verified, out)
}

async fn read(store: &GeoStore, location: &Path) -> object_store::Result<u64> {
    let mut body = store.get(location).await?.into_stream();
    let mut length = 0;
    while let Some(next) = body.try_next().await? {
        length += next.len() as u64;
    }
    Ok(length)
}

/// Returns the kind of an error of the sites.
fn kind_of(error: &object_store::Error) -> Option<ErrorKind> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<GeoError>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

fn report_verified(verified: &Verified, out: &Output) -> anyhow::Result<()> {
    out.json(verified)?;
    let read = pluralize(verified.objects, "object");
    out.text(format_args!("{read} read whole, {}", bytes(verified.bytes)))?;
    for damaged in &verified.damaged {
        out.text(format_args!("damaged: {damaged}"))?;
    }
    for problem in &verified.problems {
        out.text(format_args!("problem: {problem}"))?;
    }
    if !verified.damaged.is_empty() {
        let count = pluralize(verified.damaged.len() as u64, "object");
        let message = format!("{count} lost or damaged; each is listed above");
        return Err(ExitError::new(Exit::Corrupt, message).into());
    }
    if !verified.problems.is_empty() {
        let count = pluralize(verified.problems.len() as u64, "object");
        return Err(ExitError::new(
            Exit::Partial,
            format!("{count} not read; each is listed above"),
        )
        .into());
    }
    Ok(())
}
