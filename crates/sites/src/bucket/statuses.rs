//! Answers of a bucket whose meaning `object_store` keeps to itself, as errors that it passes on.
//!
//! Of an answer like 503 it makes an error of its own, of a type that nobody can ask for the status.
//! So the answer is made an error before it gets it; what it does ask for passes.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::limits::REASON_BYTES_MAX;

/// Makes connections of which every answer that `object_store` knows no error for is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statuses;

/// An answer with a status that is an error.
#[derive(Debug, thiserror::Error)]
#[error("the store answered {status}: {text}")]
pub(crate) struct Status {
    pub(crate) status: u16,
    pub(crate) wait: Option<Duration>,
    text: String,
}

/// Statuses that `object_store` has an error for.
const KNOWN: [u16; 6] = [304, 401, 403, 404, 409, 412];

impl HttpConnector for Statuses {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Passing(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct Passing(HttpClient);

#[async_trait]
impl HttpService for Passing {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = self.0.execute(request).await?;
        let status = answer.status().as_u16();
        if status < 400 || KNOWN.contains(&status) {
            return Ok(answer);
        }
        let seconds = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let wait = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        // What is longer is no reason.
        let body = Limited::new(answer.into_body(), REASON_BYTES_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let text = String::from_utf8_lossy(&body).into_owned();
        // Of a kind that is never tried again.
        Err(HttpError::new(HttpErrorKind::Unknown, Status { status, wait, text }))
    }
}
