//! Calls to etcd's JSON gateway: one request each, and the meaning of its errors.
//!
//! After a failed request, the next call goes to another member. A call is only repeated if the
//! answer says that its token is no longer valid, in which case nothing was executed.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fulgurite_units::error_chain;
use futures::StreamExt as _;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use crate::stores::limits::{ANSWER_BYTES_MAX, ANSWER_TIMEOUT, CONNECT_TIMEOUT};
use crate::stores::{Cause, TableError};

/// Options to connect to an etcd cluster.
#[derive(Clone)]
pub struct EtcdOptions {
    /// Its members: `http://host:port` or `https://host:port`. One is used until a request to it
    /// fails, then the next one.
    pub members: Vec<String>,
    /// Prefix of all keys, without a trailing slash.
    pub prefix: String,
    /// User name and password.
    pub user: Option<(String, String)>,
    /// A CA certificate (PEM) to trust in addition to those of the system.
    pub ca: Option<Vec<u8>>,
}

impl fmt::Debug for EtcdOptions {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { members, prefix, user, ca } = self;
        f.debug_struct("EtcdOptions")
            .field("members", members)
            .field("prefix", prefix)
            .field("user", &user.as_ref().map(|(name, _)| name))
            .field("ca", &ca.is_some())
            .finish()
    }
}

/// Whether a call changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Read,
    Write,
}

pub(super) struct EtcdClient {
    options: EtcdOptions,
    http: Client,
    /// Index of the member in use.
    member: AtomicUsize,
    token: Mutex<Option<String>>,
}

impl fmt::Debug for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdClient").field("options", &self.options).finish_non_exhaustive()
    }
}

/// An answer that is an error.
struct Refusal {
    status: StatusCode,
    /// The gRPC status code.
    code: u64,
    text: String,
}

impl EtcdClient {
    pub(super) fn new(options: EtcdOptions) -> Result<Self, TableError> {
        let unusable =
            |error: reqwest::Error| TableError::Unavailable(Cause::new(error_chain(&error)));
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none());
        for certificate in options.ca.iter() {
            let found = reqwest::Certificate::from_pem_bundle(certificate).map_err(unusable)?;
            builder = found.into_iter().fold(builder, |b, found| b.add_root_certificate(found));
        }
        let http = builder.build().map_err(unusable)?;
        Ok(Self { options, http, member: AtomicUsize::new(0), token: Mutex::default() })
    }

    /// Sends one call and returns its answer.
    pub(super) async fn request(
        &self,
        call: &str,
        body: &Value,
        kind: CallKind,
    ) -> Result<Value, TableError> {
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = match (known, &self.options.user) {
            (None, Some(_)) => Some(self.log_in().await?),
            (known, _) => known,
        };
        let first = self.send(call, body, kind, token.as_deref()).await?;
        let refusal = match first {
            Ok(answer) => return Ok(answer),
            Err(refusal) => refusal,
        };
        // The server checks the token before anything else.
        if !refusal.is_token_error() || self.options.user.is_none() {
            return Err(refusal.error(kind));
        }
        let token = self.log_in().await?;
        let second = self.send(call, body, kind, Some(&token)).await?;
        second.map_err(|refusal| refusal.error(kind))
    }

    async fn log_in(&self) -> Result<String, TableError> {
        let Some((name, password)) = &self.options.user else {
            return Err(TableError::Denied(Cause::new(
                "etcd requires a user: add user=NAME to the address",
            )));
        };
        let body = json!({ "name": name, "password": password });
        let answer = self.send("auth/authenticate", &body, CallKind::Read, None).await?;
        let answer = answer.map_err(|refusal| refusal.error(CallKind::Read))?;
        let Some(token) = answer["token"].as_str() else {
            let reason = "etcd answered without a token".to_owned();
            return Err(TableError::Corrupt(reason));
        };
        let token = token.to_owned();
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        Ok(token)
    }

    async fn send(
        &self,
        call: &str,
        body: &Value,
        kind: CallKind,
        token: Option<&str>,
    ) -> Result<Result<Value, Refusal>, TableError> {
        let index = self.member.load(Ordering::Relaxed);
        let members = &self.options.members;
        let Some(member) = members.get(index % members.len().max(1)) else {
            return Err(TableError::Unavailable(Cause::new("no etcd member is configured")));
        };
        let mut request = self.http.post(format!("{member}/v3/{call}")).body(body.to_string());
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => {
                // The next call goes to another member, unless a concurrent call has already moved
                // on.
                let next = index.wrapping_add(1);
                let order = Ordering::Relaxed;
                let _ = self.member.compare_exchange(index, next, order, order);
                let is_connected = !error.is_connect() && !error.is_builder();
                return Err(to_table_error(&error_chain(&error.without_url()), kind, is_connected));
            }
        };
        read(answer, kind).await
    }
}

/// Reads a whole answer.
async fn read(answer: Response, kind: CallKind) -> Result<Result<Value, Refusal>, TableError> {
    let status = answer.status();
    let mut bytes = Vec::new();
    let mut parts = answer.bytes_stream();
    while let Some(part) = parts.next().await {
        let part =
            part.map_err(|error| to_table_error(&error_chain(&error.without_url()), kind, true))?;
        bytes.extend(part);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(to_table_error("the answer of etcd is too long", kind, true));
        }
    }
    let parsed: Option<Value> = serde_json::from_slice(&bytes).ok();
    match parsed {
        Some(answer) if status.is_success() && answer.get("error").is_none() => Ok(Ok(answer)),
        Some(answer) => {
            let text = answer["message"].as_str().or_else(|| answer["error"].as_str());
            let text = text.unwrap_or_default().to_owned();
            Ok(Err(Refusal { status, code: answer["code"].as_u64().unwrap_or(0), text }))
        }
        None if status.is_success() => {
            Err(to_table_error("the answer of etcd is not JSON", kind, true))
        }
        None => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Err(Refusal { status, code: 0, text }))
        }
    }
}

/// Returns the error of a call without an answer.
fn to_table_error(reason: &str, kind: CallKind, is_connected: bool) -> TableError {
    let cause = Cause::new(reason);
    match kind {
        CallKind::Write if is_connected => TableError::Unknown(cause),
        CallKind::Write | CallKind::Read => TableError::Unavailable(cause),
    }
}

impl Refusal {
    fn is_token_error(&self) -> bool {
        let contains = |text: &str| self.text.contains(text);
        self.code == 16 || contains("invalid auth token") || contains("revision in header is old")
    }

    fn error(self, kind: CallKind) -> TableError {
        let contains = |text: &str| self.text.contains(text);
        let cause = Cause::new(format!("etcd answered {}: {}", self.status, self.text));
        // gRPC codes: 3 invalid, 7 denied, 8 exhausted, 9 failed precondition, 16 unauthenticated.
        match self.code {
            _ if contains("request is too large") => TableError::TooLarge(0),
            _ if contains("too many requests") => TableError::Throttled(None),
            7 | 16 => TableError::Denied(cause),
            // etcd reports these as "invalid".
            _ if contains("user name is empty") || contains("authentication failed") => {
                TableError::Denied(cause)
            }
            3 | 8 | 9 => TableError::Unavailable(cause),
            _ if contains("no leader") || contains("not capable") => TableError::Unavailable(cause),
            _ => to_table_error(&cause.to_string(), kind, true),
        }
    }
}
