//! Connects an opener of sites to nodes.

use std::sync::Arc;

use async_trait::async_trait;

use crate::remote::blobs::NodeBlobs;
use crate::remote::link::{Link, StoreKind};
use crate::remote::table::NodeTable;
use crate::stores::{
    Backoff, Blob, Entropy, NodeEndpoint, Nodes, OpenError, RuntimeBackoff, Table,
};

/// Connects to nodes by gRPC.
#[derive(Clone)]
pub struct NetNodes {
    backoff: Arc<dyn Backoff>,
}

impl std::fmt::Debug for NetNodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetNodes").finish_non_exhaustive()
    }
}

impl NetNodes {
    /// Creates a connector; backoffs between tries are drawn from `entropy`.
    #[must_use]
    pub fn new(entropy: Entropy) -> Self {
        Self { backoff: Arc::new(RuntimeBackoff::new(entropy)) }
    }
}

#[async_trait]
impl Nodes for NetNodes {
    async fn table(
        &self,
        place: NodeEndpoint,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError> {
        let link = Link::new(place, StoreKind::Table);
        link.open(may_create).await?;
        Ok(Arc::new(NodeTable { link, backoff: Arc::clone(&self.backoff) }))
    }

    async fn blobs(
        &self,
        place: NodeEndpoint,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError> {
        let link = Link::new(place, StoreKind::Blobs);
        link.open(may_create).await?;
        Ok(Arc::new(NodeBlobs { link, backoff: Arc::clone(&self.backoff) }))
    }
}
