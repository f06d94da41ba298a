//! A node: serves the table and the blobs of one site to programs at other sites, which
//! authenticate with a certificate (docs/geo.md, "A node at each site").

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use fulgurite_geo::remote::{
    AddressedStores, Identity, Node, NodeError, NodeOptions, TlsFiles, bind,
};
use fulgurite_geo::stores::{Address, OpenError};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::open::{entropy, opener};
use crate::descriptors;

/// `geo node`
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(super) struct NodeArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Address of the table to serve
    #[arg(long, value_name = "URL", required_unless_present = "blobs")]
    table: Option<String>,
    /// Address of the blobs to serve
    #[arg(long, value_name = "URL")]
    blobs: Option<String>,
    /// CA certificates of all clients that may connect (PEM)
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// Certificate of the node, with the name in its address (PEM)
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// Key of that certificate (PEM)
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// The stores of a node, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Serving<'a> {
    listening: SocketAddr,
    names: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blobs: Option<String>,
}

/// Serves until stopped.
pub(super) async fn node(args: &NodeArgs, out: &Output) -> anyhow::Result<()> {
    descriptors::raise_limit();
    let table = address("table", args.table.as_deref())?;
    let blobs = address("blobs", args.blobs.as_deref())?;
    let shown = |address: &Option<Address>| address.as_ref().map(Address::to_string);
    let (table_shown, blobs_shown) = (shown(&table), shown(&blobs));
    let stores = AddressedStores::new(opener(), table, blobs)?;
    let files =
        TlsFiles { ca: args.ca.clone(), certificate: args.cert.clone(), key: args.key.clone() };
    let tls = Identity::read(&files).map_err(NodeError::from)?;
    let listener = bind(args.listen).await.map_err(NodeError::from)?;
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let names = tls.names().to_vec();
    let options = NodeOptions { listener, tls, stores: Arc::new(stores), entropy: entropy() };
    let node = Node::start(options)?;
    let serving = Serving {
        listening: node.address(),
        names: &names,
        table: table_shown,
        blobs: blobs_shown,
    };
    announce(&serving, out)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    node.stop().await;
    Ok(())
}

fn announce(serving: &Serving<'_>, out: &Output) -> anyhow::Result<()> {
    out.json("geo_node", serving)?;
    let parts = [("table", &serving.table), ("blobs", &serving.blobs)];
    let parts = parts.into_iter().filter_map(|(part, at)| Some(format!("{part} {}", at.as_ref()?)));
    let names = if serving.names.is_empty() {
        "the addresses in its certificate".to_owned()
    } else {
        serving.names.join(", ")
    };
    out.text(format_args!(
        "serving {} at {} as {names}; to stop: Ctrl-C",
        parts.collect::<Vec<_>>().join(" and "),
        serving.listening
    ))?;
    out.flush()
}

fn address(what: &str, text: Option<&str>) -> anyhow::Result<Option<Address>> {
    let parsed = text.map(str::parse::<Address>).transpose();
    let wrong = |error| ExitError::new(Exit::Config, format!("--{what}: {error}"));
    Ok(parsed.map_err(wrong)?)
}

/// Returns whether the node at an address serves a table, and blobs; other errors show up when they
/// are used.
pub(super) async fn probe_stores(url: &str) -> anyhow::Result<(bool, bool)> {
    let address: Address = url.parse().map_err(|error| {
        ExitError::new(Exit::Config, format!("the address of the node: {error}"))
    })?;
    let opener = opener();
    let table = opener.table(&address, true).await;
    let blobs = opener.blobs(&address, true).await;
    let has_table = !matches!(table, Err(OpenError::NotServed { .. }));
    Ok((has_table, !matches!(blobs, Err(OpenError::NotServed { .. }))))
}
