//! A pool of stripe buffers. A buffer is handed out whole and returns when its last reader drops
//! it, so the only copy of the data is the one the system makes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::limits::BUFFERS_KEPT_MAX;

/// Returned buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct BufferPool(Arc<Mutex<Vec<Vec<u8>>>>);

/// A buffer in use by a reader.
#[derive(Debug)]
struct PooledBuffer {
    bytes: Vec<u8>,
    pool: BufferPool,
}

impl BufferPool {
    /// Returns a buffer of `bytes` bytes with arbitrary content.
    pub(super) fn next(&self, bytes: usize) -> Vec<u8> {
        let back = self.lock().pop();
        back.filter(|back| back.len() == bytes).unwrap_or_else(|| vec![0; bytes])
    }

    /// Hands out a buffer. It returns to the pool on drop, unless the pool is full.
    pub(super) fn lend(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(PooledBuffer { bytes, pool: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let mut pool = self.pool.lock();
        if pool.len() < BUFFERS_KEPT_MAX {
            pool.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BufferPool;
    use crate::limits::BUFFERS_KEPT_MAX;

    #[test]
    fn dropped_buffers_return_to_the_bounded_pool() {
        let buffers = BufferPool::default();
        let lent = buffers.lend(vec![7; 5]);
        let part = lent.slice(1..3);
        drop(lent);
        assert_eq!(part[..], [7, 7]);
        assert_eq!(buffers.next(5), [0; 5], "the other buffer is still in use");
        drop(part);
        assert_eq!(buffers.next(5), [7; 5]);
        drop(buffers.lend(vec![7; 5]));
        assert_eq!(buffers.next(6), [0; 6], "a buffer of another length is not reused");
        let many: Vec<_> = (0..=BUFFERS_KEPT_MAX).map(|_| buffers.lend(vec![7])).collect();
        drop(many);
        assert_eq!(buffers.lock().len(), BUFFERS_KEPT_MAX);
    }
}
