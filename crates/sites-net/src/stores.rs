//! The stores that a node serves, which it opens when it is first asked for them: a node may begin
//! before its table is made, and before its database is there.

use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_sites::{Address, Blob, OpenError, Opener, Table};
use tokio::sync::Mutex;

use crate::told;
use crate::wire::Failure;
use crate::{NodeError, Result};

/// Opens what a node serves.
#[async_trait]
pub trait Stores: Send + Sync {
    /// Its table, made if it is not there and `may_create`; none if it serves none.
    async fn table(&self, may_create: bool) -> Option<Result<Arc<dyn Table>, OpenError>>;

    /// Its blobs, in the same way.
    async fn blobs(&self, may_create: bool) -> Option<Result<Arc<dyn Blob>, OpenError>>;
}

/// Stores that have addresses.
#[derive(Debug)]
pub struct AddressedStores {
    opener: Opener,
    table: Option<Address>,
    blobs: Option<Address>,
}

impl AddressedStores {
    /// A table, blobs, or both.
    ///
    /// # Errors
    /// When neither is named, or one is that of another node.
    pub fn new(opener: Opener, table: Option<Address>, blobs: Option<Address>) -> Result<Self> {
        let refuse = |what: &str| Err(NodeError::Stores { what: what.to_owned() });
        if table.is_none() && blobs.is_none() {
            return refuse("name a table, blobs, or both");
        }
        if [&table, &blobs].into_iter().flatten().any(Address::is_node) {
            return refuse("name the store itself, not a node that serves it");
        }
        Ok(Self { opener, table, blobs })
    }
}

#[async_trait]
impl Stores for AddressedStores {
    async fn table(&self, may_create: bool) -> Option<Result<Arc<dyn Table>, OpenError>> {
        Some(self.opener.table(self.table.as_ref()?, may_create).await)
    }

    async fn blobs(&self, may_create: bool) -> Option<Result<Arc<dyn Blob>, OpenError>> {
        Some(self.opener.blobs(self.blobs.as_ref()?, may_create).await)
    }
}

/// Stores, each opened once.
pub(crate) struct Opened {
    stores: Arc<dyn Stores>,
    table: Mutex<Option<Arc<dyn Table>>>,
    blobs: Mutex<Option<Arc<dyn Blob>>>,
}

impl Opened {
    pub(crate) fn new(stores: Arc<dyn Stores>) -> Self {
        Self { stores, table: Mutex::default(), blobs: Mutex::default() }
    }

    pub(crate) async fn table(&self, may_create: bool) -> Result<Arc<dyn Table>, Failure> {
        let mut held = self.table.lock().await;
        if let Some(table) = &*held {
            return Ok(Arc::clone(table));
        }
        let opened = self.stores.table(may_create).await;
        let opened = opened.ok_or_else(|| told::not_served("this node serves no table"))?;
        let opened = opened.map_err(|error| told::of_open(&error))?;
        Ok(Arc::clone(held.insert(opened)))
    }

    pub(crate) async fn blobs(&self, may_create: bool) -> Result<Arc<dyn Blob>, Failure> {
        let mut held = self.blobs.lock().await;
        if let Some(blobs) = &*held {
            return Ok(Arc::clone(blobs));
        }
        let opened = self.stores.blobs(may_create).await;
        let opened = opened.ok_or_else(|| told::not_served("this node serves no blobs"))?;
        let opened = opened.map_err(|error| told::of_open(&error))?;
        Ok(Arc::clone(held.insert(opened)))
    }
}
