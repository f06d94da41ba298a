//! The stores that a node serves. They are opened on first use: a node may start before its table
//! is created, and before its database is up.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::remote::wire::Failure;
use crate::remote::wire_errors;
use crate::remote::{NodeError, Result};
use crate::stores::{Address, Blob, OpenError, Opener, Table};

/// Opens the stores of a node.
#[async_trait]
pub trait Stores: Send + Sync {
    /// Opens its table, and creates it if it is missing and `may_create`; none if it serves none.
    async fn table(&self, may_create: bool) -> Option<Result<Arc<dyn Table>, OpenError>>;

    /// Opens its blobs in the same way.
    async fn blobs(&self, may_create: bool) -> Option<Result<Arc<dyn Blob>, OpenError>>;
}

/// Stores with addresses.
#[derive(Debug)]
pub struct AddressedStores {
    opener: Opener,
    table: Option<Address>,
    blobs: Option<Address>,
}

impl AddressedStores {
    /// Serves a table, blobs, or both.
    ///
    /// # Errors
    /// If neither is given, or one is the address of another node.
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

/// Stores that are opened once each.
pub(crate) struct LazyStores {
    stores: Arc<dyn Stores>,
    table: Mutex<Option<Arc<dyn Table>>>,
    blobs: Mutex<Option<Arc<dyn Blob>>>,
}

impl LazyStores {
    pub(crate) fn new(stores: Arc<dyn Stores>) -> Self {
        Self { stores, table: Mutex::default(), blobs: Mutex::default() }
    }

    pub(crate) async fn table(&self, may_create: bool) -> Result<Arc<dyn Table>, Failure> {
        let mut slot = self.table.lock().await;
        if let Some(table) = &*slot {
            return Ok(Arc::clone(table));
        }
        let opened = self.stores.table(may_create).await;
        let opened = opened.ok_or_else(|| wire_errors::not_served("this node serves no table"))?;
        let opened = opened.map_err(|error| wire_errors::encode_open_error(&error))?;
        Ok(Arc::clone(slot.insert(opened)))
    }

    pub(crate) async fn blobs(&self, may_create: bool) -> Result<Arc<dyn Blob>, Failure> {
        let mut slot = self.blobs.lock().await;
        if let Some(blobs) = &*slot {
            return Ok(Arc::clone(blobs));
        }
        let opened = self.stores.blobs(may_create).await;
        let opened = opened.ok_or_else(|| wire_errors::not_served("this node serves no blobs"))?;
        let opened = opened.map_err(|error| wire_errors::encode_open_error(&error))?;
        Ok(Arc::clone(slot.insert(opened)))
    }
}
