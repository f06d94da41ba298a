//! Resolves a URL on a server: an object, a folder of them, or nothing.

use std::collections::BTreeMap;

use fulgurite_client::names::S3Url;
use fulgurite_client::s3::{
    Client, ListScope, ListedObject, ObjectHead, S3Error, S3ErrorKind, is_archived_class,
};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::pluralize;

use crate::limits;
use crate::transfers::for_each;

/// Lists every object whose key begins with `prefix`, in key order.
pub(crate) async fn list_all(
    client: &Client,
    bucket: &str,
    prefix: &str,
) -> Result<Vec<ListedObject>, S3Error> {
    let scope = ListScope { bucket, prefix, by_folder: false };
    let mut objects = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let page = client.list(scope, token.as_deref()).await?;
        objects.extend(page.objects);
        if page.next.is_none() {
            return Ok(objects);
        }
        token = page.next;
    }
}

/// Lists the object that `url` names and everything in the folder it names, in key order.
pub(crate) async fn list_covered(
    client: &Client,
    url: &S3Url,
) -> Result<Vec<ListedObject>, S3Error> {
    let mut objects = list_all(client, &url.bucket, &url.key).await?;
    objects.retain(|object| url.covers(&object.key));
    Ok(objects)
}

/// Advice if a URL names a folder.
pub(crate) const ADD_RECURSIVE: &str = "add --recursive for all of them";

/// Returns the error of a URL that matches nothing.
pub(crate) fn not_found(url: &S3Url) -> anyhow::Error {
    let bucket = &url.bucket;
    let message = format!("{url} does not exist; fulgurite ls s3://{bucket} shows what does");
    ExitError::new(Exit::NotFound, message).into()
}

/// Checks that `url` is an object; if it is a folder instead, the error says what to do.
pub(crate) async fn require_object(
    client: &Client,
    url: &S3Url,
    remedy: &'static str,
) -> anyhow::Result<ObjectHead> {
    let error = match client.head(&url.bucket, &url.key).await {
        Ok(head) => return Ok(head),
        Err(error) if error.kind() == S3ErrorKind::NotFound => error,
        Err(error) => return Err(error.into()),
    };
    let folder = url.folder_prefix();
    let scope = ListScope { bucket: &url.bucket, prefix: &folder, by_folder: false };
    // A missing bucket is reported as such.
    let page = client.list(scope, None).await?;
    if page.objects.is_empty() {
        tracing::debug!(%error, "there is neither an object nor a folder");
        return Err(not_found(url));
    }
    let more = if page.next.is_some() { "more than " } else { "" };
    let objects = pluralize(page.objects.len() as u64, "object");
    let message = format!("{url} is a folder of {more}{objects}: {remedy}");
    Err(ExitError::new(Exit::Usage, message).into())
}

/// Adds the restore states that a server omits from its listings: one HEAD shows whether it does,
/// and only then every archived object is queried.
pub(crate) async fn add_restore_states(
    client: &Client,
    bucket: &str,
    objects: &mut [ListedObject],
) -> anyhow::Result<()> {
    let is_archived = |object: &&ListedObject| is_archived_class(&object.class);
    if objects.iter().any(|object| object.restore.is_some()) {
        return Ok(());
    }
    let Some(first) = objects.iter().find(is_archived) else { return Ok(()) };
    match client.head(bucket, &first.key).await {
        Ok(head) if head.restore.is_some() => {}
        // Deleted since it was listed, or without a copy like all the others.
        Ok(_) | Err(_) => return Ok(()),
    }
    let archived = objects.iter().filter(is_archived);
    let keys: Vec<String> = archived.map(|object| object.key.clone()).collect();
    let head = |key: String| async move {
        let head = client.head(bucket, &key).await;
        (key, head)
    };
    let mut states = BTreeMap::new();
    for_each(keys, limits::TRANSFERS_DEFAULT, head, |(key, head)| {
        states.insert(key, head?.restore);
        Ok(())
    })
    .await?;
    for object in objects {
        object.restore = states.remove(&object.key).flatten();
    }
    Ok(())
}
