//! Pages for monitoring systems. They need no signature and reveal nothing about objects.
//!
//! Only a plain `GET` without any S3 authorization reaches them, so a bucket may be called
//! `metrics`: S3 clients sign their requests.

use std::sync::Arc;

use fulgurite_archive::Archive;
use fulgurite_tier::{MetricFamilies, Tier};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use s3s::Body;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Metrics;
use crate::limits::TIER_TIMEOUT;
use crate::{ServerStatus, Tiers};

/// One of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthPage {
    Live,
    Ready,
    Metrics,
    Version,
}

impl HealthPage {
    /// Returns the page that this request asks for.
    pub(crate) fn for_request(parts: &Parts) -> Option<Self> {
        let is_plain = (parts.method == Method::GET || parts.method == Method::HEAD)
            && parts.uri.query().is_none()
            && !parts.headers.contains_key(AUTHORIZATION);
        let page = match parts.uri.path() {
            "/livez" => Self::Live,
            "/readyz" => Self::Ready,
            "/metrics" => Self::Metrics,
            "/version" => Self::Version,
            _ => return None,
        };
        is_plain.then_some(page)
    }
}

/// The state that the pages show.
#[derive(Debug)]
pub(crate) struct Health {
    archive: Archive,
    tiers: Tiers,
    metrics: Arc<Metrics>,
    stopping: watch::Receiver<bool>,
}

impl Health {
    pub(crate) const fn new(
        archive: Archive,
        tiers: Tiers,
        metrics: Arc<Metrics>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self { archive, tiers, metrics, stopping }
    }

    /// Returns why requests, or writes, cannot be served now; `None` when they can. Clients have
    /// shown no signature, so only the kind of a failure is reported; `archive status` has the
    /// rest.
    fn not_ready_reason(&self) -> Option<&'static str> {
        if !self.archive.is_ready() || *self.stopping.borrow() {
            return Some("the server is starting or stopping");
        }
        if self.archive.is_catalog_damaged() {
            return Some("the catalog is damaged: stop the archive and run `fulgurite recover`");
        }
        self.archive.write_refusal().map(|_| "nothing can be written")
    }

    /// Returns the kinds of failures behind a server that still serves requests.
    async fn degraded(&self) -> Vec<String> {
        let mut degraded = self.archive.degraded_kinds();
        for (name, tier) in &self.tiers {
            let kinds = degraded_kinds(&**tier).await;
            degraded.extend(kinds.into_iter().map(|kind| format!("{name}: {kind}")));
        }
        degraded
    }

    /// Returns the metrics of the tiers that answer in time.
    async fn tier_metrics(&self) -> String {
        let mut families = MetricFamilies::default();
        for (name, tier) in &self.tiers {
            let mut metrics = families.of_tier(name.as_str(), tier.kind().name());
            // One that does not respond in time has none: `/readyz` says so.
            let _ = timeout(TIER_TIMEOUT, tier.write_metrics(&mut metrics)).await;
        }
        families.text()
    }

    /// Returns a page; `in_progress` is the number of requests being served.
    pub(crate) async fn respond(
        &self,
        page: HealthPage,
        in_progress: usize,
        server: &ServerStatus,
    ) -> Response<Body> {
        match page {
            HealthPage::Live => text(StatusCode::OK, "text/plain", "live\n"),
            HealthPage::Ready => match self.not_ready_reason() {
                None => text(StatusCode::OK, "text/plain", ready_page(&self.degraded().await)),
                Some(reason) => {
                    let page = format!("not ready: {reason}\n");
                    text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", page)
                }
            },
            HealthPage::Version => {
                let version = serde_json::json!({
                    "name": "fulgurite",
                    "version": env!("CARGO_PKG_VERSION"),
                });
                text(StatusCode::OK, "application/json", format!("{version}\n"))
            }
            HealthPage::Metrics => {
                let status = self.archive.status().await;
                if let Err(error) = &status {
                    tracing::warn!(%error, "cannot read the status of the archive");
                }
                let mut page = self.metrics.page(in_progress, server, status.ok().as_ref());
                page.push_str(&self.tier_metrics().await);
                text(StatusCode::OK, "text/plain; version=0.0.4", page)
            }
        }
    }
}

/// Returns the kinds of failures of a tier.
async fn degraded_kinds(tier: &dyn Tier) -> Vec<String> {
    match timeout(TIER_TIMEOUT, tier.degraded_kinds()).await {
        Ok(Ok(kinds)) => kinds,
        Ok(Err(_)) => vec!["its status cannot be read".to_owned()],
        Err(_) => vec!["it does not respond in time".to_owned()],
    }
}

/// Formats the page of a server that serves requests, with one line for each failure behind it.
fn ready_page(degraded: &[String]) -> String {
    let mut page = if degraded.is_empty() { "ready\n" } else { "degraded\n" }.to_owned();
    for line in degraded {
        page.push_str(line);
        page.push('\n');
    }
    page
}

fn text(status: StatusCode, content_type: &'static str, body: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
