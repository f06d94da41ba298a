//! A scan that fetches one page after the other.

use std::collections::VecDeque;

use futures::Future;
use futures::stream::{self, BoxStream, StreamExt as _};

use crate::stores::{Key, Row, TableError};

/// Some rows in order, and whether there may be more after them.
pub(crate) struct Page {
    pub(crate) rows: Vec<(Key, Row)>,
    pub(crate) is_last: bool,
}

/// Streams the rows of all pages; `fetch` gets the key after which its page starts.
pub(crate) fn pages<'a, F, Answer>(
    after: Option<Key>,
    fetch: F,
) -> BoxStream<'a, Result<(Key, Row), TableError>>
where
    F: Fn(Option<Key>) -> Answer + Send + 'a,
    Answer: Future<Output = Result<Page, TableError>> + Send + 'a,
{
    let begin = (VecDeque::new(), after, false, fetch);
    let next = |state: (VecDeque<(Key, Row)>, Option<Key>, bool, F)| {
        let (mut rows, mut after, mut is_over, fetch) = state;
        async move {
            while rows.is_empty() && !is_over {
                match fetch(after.clone()).await {
                    Ok(page) => {
                        is_over = page.is_last || page.rows.is_empty();
                        rows.extend(page.rows);
                    }
                    // What comes after it is unknown.
                    Err(error) => return Some((Err(error), (rows, after, true, fetch))),
                }
            }
            let (key, row) = rows.pop_front()?;
            after = Some(key.clone());
            Some((Ok((key, row)), (rows, after, is_over, fetch)))
        }
    };
    stream::unfold(begin, next).boxed()
}

/// Returns the first text after all that start with `prefix/`: the character after the slash is a
/// zero.
pub(crate) fn prefix_end(prefix: &str) -> String {
    format!("{prefix}0")
}
