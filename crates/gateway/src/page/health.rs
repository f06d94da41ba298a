//! Pages for machines that watch this one. They need no signature and tell nothing about objects.
//!
//! Only a plain `GET` without any S3 authorization reaches them, so a bucket may be called
//! `metrics`: S3 clients sign what they ask.

use std::sync::Arc;

use fulgurite_archive::Archive;
use fulgurite_geo_store::GeoStore;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use s3s::Body;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Metrics, geo_page, rack_page, tomes_page, trouble_of_geo};
use crate::limits::TIERS_ANSWER_WITHIN;
use crate::{ColdTiers, ServerStatus};

/// One of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthPage {
    Live,
    Ready,
    Metrics,
    Version,
}

impl HealthPage {
    /// The page that this request asks for.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
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

/// What the pages are made of.
#[derive(Debug)]
pub(crate) struct Health {
    archive: Archive,
    cold: ColdTiers,
    metrics: Arc<Metrics>,
    stopping: watch::Receiver<bool>,
}

impl Health {
    pub(crate) const fn new(
        archive: Archive,
        cold: ColdTiers,
        metrics: Arc<Metrics>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self { archive, cold, metrics, stopping }
    }

    /// Why requests, or writes, cannot be served now; nothing when they can.
    fn unready(&self) -> Option<String> {
        if !self.archive.is_ready() || *self.stopping.borrow() {
            return Some("it starts or stops".to_owned());
        }
        self.archive.write_refusal().map(|reason| format!("nothing can be written: {reason}"))
    }

    /// A page, of a server that has so many requests in progress.
    pub(crate) async fn answer(
        &self,
        page: HealthPage,
        in_progress: usize,
        server: &ServerStatus,
    ) -> Response<Body> {
        match page {
            HealthPage::Live => text(StatusCode::OK, "text/plain", "live\n"),
            HealthPage::Ready => match self.unready() {
                None => {
                    let mut degraded = self.archive.degraded();
                    if let Some(tomes) = &self.cold.tomes {
                        // What is told without a signature says nothing of paths.
                        let status = timeout(TIERS_ANSWER_WITHIN, tomes.status()).await;
                        degraded.extend(match status.map(|status| status.reasons.len()) {
                            Ok(0) => None,
                            Ok(count) => {
                                Some(format!("the set of tomes is not well: {count} reasons"))
                            }
                            Err(_) => Some("the set of tomes does not answer in time".to_owned()),
                        });
                    }
                    let geo = self.cold.geo.as_ref().map(GeoStore::snapshot);
                    degraded.extend(geo.and_then(|geo| trouble_of_geo(&geo)));
                    text(StatusCode::OK, "text/plain", ready(&degraded))
                }
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
                    tracing::warn!(%error, "the archive could not tell its status");
                }
                let mut page = self.metrics.page(in_progress, server, status.ok().as_ref());
                if let Some(rack) = &self.cold.rack
                    && let Ok(rack) = rack.status().await
                {
                    page.push_str(&rack_page(&rack));
                }
                if let Some(tomes) = &self.cold.tomes
                    && let Ok(Ok(tomes)) = timeout(TIERS_ANSWER_WITHIN, tomes.snapshot()).await
                {
                    page.push_str(&tomes_page(&tomes));
                }
                if let Some(geo) = &self.cold.geo {
                    page.push_str(&geo_page(&geo.snapshot()));
                }
                text(StatusCode::OK, "text/plain; version=0.0.4", page)
            }
        }
    }
}

/// Requests are served; and what goes on behind them, if not all of it goes well.
fn ready(degraded: &[String]) -> String {
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
