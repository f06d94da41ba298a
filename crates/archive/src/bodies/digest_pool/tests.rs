//! Many bodies at once, and one whose digest panics.

use fulgurite_units::Seed;

use super::*;
use crate::bodies::digest::ChecksumAlgorithm;
use crate::fail_point::FAIL_POINTS;

/// Splits `body` into pieces of various lengths; some are far longer than others.
fn pieces(body: u64) -> Vec<Arc<Vec<u8>>> {
    let mut random = Seed::new(body).stream();
    let piece = |_| {
        let mut piece = vec![0; usize::try_from(random.below(200_000)).unwrap()];
        random.fill(&mut piece);
        Arc::new(piece)
    };
    (0..body % 7).map(piece).collect()
}

fn digest_pool(point: Option<(String, u32)>) -> (Arc<DigestPool>, Arc<Panics>) {
    let fail = point.map_or_else(
        || FailPoints::unarmed(&FAIL_POINTS),
        |(name, count)| FailPoints::armed(&FAIL_POINTS, &name, count).unwrap(),
    );
    let fail = Arc::new(fail);
    let panics = Arc::<Panics>::default();
    (Arc::new(DigestPool::new(fail, Arc::clone(&panics))), panics)
}

async fn all(digest_pool: &Arc<DigestPool>, body: u64) -> Result<Box<BodyDigest>> {
    let mut queued = digest_pool.begin(BodyDigest::new(Some(ChecksumAlgorithm::Sha256)));
    for piece in pieces(body) {
        queued.push(piece).await?;
        assert!(queued.pending.len() <= DIGESTS_AHEAD, "the queue stays within its limit");
    }
    queued.update(b"the end").await?;
    queued.take().await
}

/// Waits until no worker is left. The last one may still be about to find its queue empty.
async fn wait_until_idle(digest_pool: &DigestPool) {
    while digest_pool.lock().workers > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pooled_digests_match_single_digests() {
    let (digest_pool, _) = digest_pool(None);
    let start = |body| {
        let digest_pool = Arc::clone(&digest_pool);
        (body, tokio::spawn(async move { all(&digest_pool, body).await }))
    };
    let running: Vec<_> = (0..60).map(start).collect();
    for (body, task) in running {
        let mut alone = BodyDigest::new(Some(ChecksumAlgorithm::Sha256));
        pieces(body).iter().for_each(|piece| alone.update(piece));
        alone.update(b"the end");
        assert_eq!(task.await.unwrap().unwrap().finish(), alone.finish(), "body {body}");
    }
    wait_until_idle(&digest_pool).await;
    assert!(digest_pool.lock().queues.is_empty());
}

#[tokio::test]
async fn panic_fails_one_body_only() {
    let (digest_pool, panics) = digest_pool(Some(("put-digested:panic".to_owned(), 0)));
    let failed = all(&digest_pool, 6).await.unwrap_err();
    assert!(matches!(failed, ArchiveError::Internal { .. }), "{failed:?}");
    // The waiting task gets its error before the panic is counted.
    wait_until_idle(&digest_pool).await;
    assert_eq!(panics.count(), 1);
    for body in 4..8 {
        all(&digest_pool, body).await.unwrap();
    }
    wait_until_idle(&digest_pool).await;
    assert_eq!(panics.count(), 1);
}

#[tokio::test]
async fn abandoned_body_does_not_block_others() {
    let (digest_pool, _) = digest_pool(None);
    for _ in 0..20 {
        let mut queued = digest_pool.begin(BodyDigest::new(None));
        queued.push(Arc::new(vec![1; 100_000])).await.unwrap();
    }
    all(&digest_pool, 6).await.unwrap();
}
