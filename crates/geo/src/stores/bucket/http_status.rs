//! Turns HTTP error statuses that `object_store` hides into errors that it passes through.
//!
//! `object_store` maps a status such as 503 to an error type of its own that does not expose the
//! status. So the response becomes an error before `object_store` sees it; statuses that it handles
//! itself pass.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::stores::limits::REASON_BYTES_MAX;

/// HTTP connector that turns every response with a status unknown to `object_store` into an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusConnector;

/// A response with an error status.
#[derive(Debug, thiserror::Error)]
#[error("the store answered {status}: {text}")]
pub(crate) struct Status {
    pub(crate) status: u16,
    pub(crate) wait: Option<Duration>,
    text: String,
}

/// Statuses that `object_store` maps to an error.
const KNOWN: [u16; 6] = [304, 401, 403, 404, 409, 412];

impl HttpConnector for StatusConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(StatusService(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct StatusService(HttpClient);

#[async_trait]
impl HttpService for StatusService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = self.0.execute(request).await?;
        let status = answer.status().as_u16();
        if status < 400 || KNOWN.contains(&status) {
            return Ok(answer);
        }
        let seconds = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let wait = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        // A longer body is not an error text.
        let body = Limited::new(answer.into_body(), REASON_BYTES_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let text = String::from_utf8_lossy(&body).into_owned();
        // Of a kind that is never retried.
        Err(HttpError::new(HttpErrorKind::Unknown, Status { status, wait, text }))
    }
}
