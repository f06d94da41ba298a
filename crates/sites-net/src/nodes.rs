//! Connects an opener of sites to nodes.

use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_sites::{Blob, Entropy, NodePlace, Nodes, OpenError, Rests, RuntimeRests, Table};

use crate::blobs::NodeBlobs;
use crate::link::{Link, Part};
use crate::table::NodeTable;

/// Connects to nodes by gRPC.
#[derive(Clone)]
pub struct NetNodes {
    rests: Arc<dyn Rests>,
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
        Self { rests: Arc::new(RuntimeRests::new(entropy)) }
    }
}

#[async_trait]
impl Nodes for NetNodes {
    async fn table(&self, place: NodePlace, may_create: bool) -> Result<Arc<dyn Table>, OpenError> {
        let link = Link::new(place, Part::Table);
        link.open(may_create).await?;
        Ok(Arc::new(NodeTable { link, rests: Arc::clone(&self.rests) }))
    }

    async fn blobs(&self, place: NodePlace, may_create: bool) -> Result<Arc<dyn Blob>, OpenError> {
        let link = Link::new(place, Part::Blobs);
        link.open(may_create).await?;
        Ok(Arc::new(NodeBlobs { link }))
    }
}
