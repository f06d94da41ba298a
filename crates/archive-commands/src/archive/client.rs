//! A client of the admin API: one method per call, each call signed under the operator's key.

use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use fulgurite_archive::Verification;
use fulgurite_archive::config::TierName;
use fulgurite_archive::status::{
    MoveReport, OrphanedSegment, SealReport, ShardLocation, Status, VerifyReport,
};
use fulgurite_client::names::S3Url;
use fulgurite_client::remote::{Remote, RemoteArgs};
use fulgurite_client::s3::{http_builder, percent_encode};
use fulgurite_client::server_file::ServerFile;
use fulgurite_gateway::{Credentials, FullStatus, Nonce, OperatorCall, TierSummary};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::progress::polled_bar;
use fulgurite_tier::{Operation, OperationArgs};
use fulgurite_units::{PlatterId, settings};
use indicatif::ProgressBar;
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits;

/// A client of the admin API.
#[derive(Debug)]
pub struct AdminClient {
    http: reqwest::Client,
    endpoint: String,
    keys: Credentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Progress(Progress),
    Report(Value),
    Error(AdminError),
}

#[derive(Deserialize)]
struct Progress {
    #[serde(default)]
    pipeline: String,
    /// Bytes of tracks written or read so far.
    #[serde(default)]
    bytes_done: u64,
    /// Total bytes, as far as known; 0 before that.
    #[serde(default)]
    bytes_total: u64,
    /// What an operation of a tier does now.
    #[serde(default)]
    message: String,
}

impl Progress {
    /// Shows the progress of a call. For a seal that is not sealing, also what the pipeline does
    /// instead.
    fn show(self, bar: &ProgressBar, is_seal: bool) {
        bar.set_length(self.bytes_total);
        bar.set_position(self.bytes_done);
        let waits = is_seal && self.pipeline != "sealing";
        bar.set_message(if waits { self.pipeline } else { self.message });
    }
}

#[derive(Debug, Deserialize)]
struct AdminError {
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct ErrorDocument {
    error: AdminError,
}

impl AdminError {
    fn into_exit_error(self) -> ExitError {
        let exit = match self.code.as_str() {
            "NotFound" => Exit::NotFound,
            "AccessDenied" => Exit::Denied,
            "Unavailable" | "SlowDown" => Exit::Unavailable,
            "Corrupt" => Exit::Corrupt,
            "Invalid" => Exit::Usage,
            _ => Exit::Failure,
        };
        ExitError::new(exit, self.message)
    }
}

impl AdminClient {
    /// Returns a client of the given server, or of the server of the data directory if that
    /// answers.
    pub async fn connect(
        remote: &RemoteArgs,
        data: impl FnOnce() -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Option<Self>> {
        if remote.endpoint.is_some() {
            return Self::new(&remote.resolve_operator()?).map(Some);
        }
        if ServerFile::read(&data()?).is_err() {
            return Ok(None);
        }
        let client = Self::new(&remote.resolve_operator()?)?;
        // A killed server leaves its file behind.
        Ok(client.is_reachable().await.then_some(client))
    }

    /// Creates a client of the server `remote`.
    pub fn new(remote: &Remote) -> anyhow::Result<Self> {
        let http = http_builder(&remote.trust)
            .map_err(|reason| ExitError::new(Exit::Config, reason))?
            .connect_timeout(fulgurite_client::limits::CONNECT_TIMEOUT)
            .build()?;
        let endpoint = remote.endpoint.trim_end_matches('/').to_owned();
        let keys = Credentials::new(&remote.keys.access_key, &remote.keys.secret_key)?;
        Ok(Self { http, endpoint, keys })
    }

    /// Seals everything staged; with `waits`, also waits for moves to tiers of objects.
    pub async fn seal(&self, waits: bool, is_quiet: bool) -> anyhow::Result<SealReport> {
        let query: &[_] = if waits { &[("wait", "true".to_owned())] } else { &[] };
        self.run_with_progress("seal", "seal", query, is_quiet).await
    }

    /// Reads one platter whole, or all.
    pub async fn verify(
        &self,
        platter: Option<PlatterId>,
        is_quiet: bool,
    ) -> anyhow::Result<VerifyReport> {
        let query: Vec<_> = platter.map(|id| ("platter", id.to_string())).into_iter().collect();
        self.run_with_progress("verify", "verify", &query, is_quiet).await
    }

    /// Moves an object, or all below a prefix, to another storage class.
    pub async fn reclassify(
        &self,
        url: &S3Url,
        class: &str,
        is_recursive: bool,
        is_quiet: bool,
    ) -> anyhow::Result<MoveReport> {
        let chosen = if is_recursive { "prefix" } else { "key" };
        let query = [
            ("bucket", url.bucket.clone()),
            (chosen, url.key.clone()),
            ("class", class.to_owned()),
        ];
        self.run_with_progress("move", "move", &query, is_quiet).await
    }

    /// Returns the result of the last verification of a platter.
    pub async fn margins(&self, platter: PlatterId) -> anyhow::Result<Verification> {
        self.get("margins", &[("platter", platter.to_string())]).await
    }

    /// Returns counters and states of the archive.
    pub async fn status(&self) -> anyhow::Result<Status> {
        Ok(self.full_status().await?.archive)
    }

    /// Returns the status of the archive and of the server.
    pub async fn full_status(&self) -> anyhow::Result<FullStatus> {
        self.get("status", &[]).await
    }

    /// Returns the tiers with their kinds, failures and operations.
    pub async fn tiers(&self) -> anyhow::Result<Vec<TierSummary>> {
        self.get("tiers", &[]).await
    }

    /// Returns what a tier answers to a call that shows state: `""`, `"/ledger"`.
    pub async fn get_of_tier(&self, name: &TierName, call: &str) -> anyhow::Result<Value> {
        let bytes = self.response(&format!("tiers/{name}{call}"), &[]).await?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Runs an operation of a tier and shows its progress; returns the report.
    pub async fn operate(
        &self,
        name: &TierName,
        operation: Operation,
        args: &OperationArgs,
        is_quiet: bool,
    ) -> anyhow::Result<Value> {
        let call = format!("tiers/{name}/{operation}");
        let OperationArgs { target, table, blobs } = args.clone();
        let values = [("target", target), ("table", table), ("blobs", blobs)];
        let query = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let query: Vec<_> = query.collect();
        self.report(&call, operation.name(), &query, is_quiet).await
    }

    /// Passes the events of a tier to `on_event`, with their names, until the stream ends.
    pub async fn watch_tier(
        &self,
        name: &TierName,
        mut on_event: impl FnMut(&str, &Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let request = self.request(Method::GET, &format!("tiers/{name}/events"), &[])?;
        let mut response = self.send_checked(request).await?;
        let (mut pending, mut event) = (BytesMut::new(), String::new());
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            pending.extend_from_slice(&chunk);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line = pending.split_to(end + 1);
                let line = String::from_utf8_lossy(&line);
                match line.trim_end().split_once(": ") {
                    Some(("event", name)) => name.clone_into(&mut event),
                    Some(("data", data)) => on_event(&event, &serde_json::from_str(data)?)?,
                    Some(_) | None => {}
                }
            }
            limit_line(&pending)?;
        }
        Ok(())
    }

    /// Returns the orphans: segments that the catalog does not reference.
    pub async fn orphans(&self) -> anyhow::Result<Vec<OrphanedSegment>> {
        self.get("orphans", &[]).await
    }

    /// Removes an orphan.
    pub async fn discard_orphan(&self, file: &str) -> anyhow::Result<()> {
        let query = [("file", file.to_owned())];
        let request = self.request(Method::POST, "discard-orphan", &query)?;
        self.send_checked(request).await.map(drop)
    }

    /// Returns where the bytes of an object are.
    pub async fn locate(&self, bucket: &str, key: &str) -> anyhow::Result<Vec<ShardLocation>> {
        let query = [("bucket", bucket.to_owned()), ("key", key.to_owned())];
        self.get("locate", &query).await
    }

    /// Returns whether a server answers at all.
    pub async fn is_reachable(&self) -> bool {
        self.http.get(format!("{}/livez", self.endpoint)).send().await.is_ok()
    }

    async fn get<T: DeserializeOwned>(
        &self,
        call: &str,
        query: &[(&str, String)],
    ) -> anyhow::Result<T> {
        let bytes: CommandFuture<'_, _> = Box::pin(self.response(call, query));
        read_json(&bytes.await?)
    }

    async fn response(&self, call: &str, query: &[(&str, String)]) -> anyhow::Result<Bytes> {
        let request = self.request(Method::GET, call, query)?;
        let response = self.send_checked(request).await?;
        response.bytes().await.map_err(|error| self.unreachable(error))
    }

    /// Sends a long call and shows its progress until the report.
    async fn run_with_progress<T: DeserializeOwned>(
        &self,
        call: &str,
        what: &'static str,
        query: &[(&str, String)],
        is_quiet: bool,
    ) -> anyhow::Result<T> {
        // Boxed, so that it is compiled once for all kinds of reports.
        let report: CommandFuture<'_, _> = Box::pin(self.report(call, what, query, is_quiet));
        parse(&report.await?)
    }

    async fn report(
        &self,
        call: &str,
        what: &'static str,
        query: &[(&str, String)],
        is_quiet: bool,
    ) -> anyhow::Result<Value> {
        let is_seal = call == "seal";
        let bar = polled_bar(what, is_quiet);
        let request = self.request(Method::POST, call, query)?;
        let mut response = self.send_checked(request).await?;
        let mut pending = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            pending.extend_from_slice(&chunk);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line = pending.split_to(end + 1);
                match read_json(&line)? {
                    Line::Progress(progress) => progress.show(&bar, is_seal),
                    Line::Report(report) => {
                        bar.finish_and_clear();
                        return Ok(report);
                    }
                    Line::Error(failure) => {
                        bar.finish_and_clear();
                        return Err(failure.into_exit_error().into());
                    }
                }
            }
            limit_line(&pending)?;
        }
        let message = format!("the server stopped before its {what} was done");
        Err(ExitError::new(Exit::Unavailable, message).into())
    }

    /// Sends `request`; converts an unsuccessful response to the error it contains.
    async fn send_checked(
        &self,
        request: reqwest::RequestBuilder,
    ) -> anyhow::Result<reqwest::Response> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.text().await.unwrap_or_default();
        let failure = read_json(text.as_bytes()).map_or_else(
            |_| AdminError {
                code: if status.as_u16() == 404 { "NotFound" } else { "Unknown" }.to_owned(),
                message: format!("{} answered {status}: is it a Fulgurite server?", self.endpoint),
            },
            |document: ErrorDocument| document.error,
        );
        Err(failure.into_exit_error().into())
    }

    fn unreachable(&self, error: reqwest::Error) -> anyhow::Error {
        let exit_error =
            ExitError::new(Exit::Unavailable, format!("no answer from {}", self.endpoint));
        anyhow::Error::from(error.without_url()).context(exit_error)
    }

    /// Creates a call without a body, signed for now.
    fn request(
        &self,
        method: Method,
        call: &str,
        query: &[(&str, String)],
    ) -> anyhow::Result<reqwest::RequestBuilder> {
        let target = target(call, query);
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(|error| {
            anyhow::anyhow!("the operating system provides no random bytes: {error}")
        })?;
        let now_ms = u64::try_from(jiff::Timestamp::now().as_millisecond())?;
        let signed = OperatorCall { method: method.as_str(), target: &target, body: b"" };
        let signed = signed.authorization(&self.keys, now_ms, &nonce);
        let request = self.http.request(method, format!("{}{target}", self.endpoint));
        Ok(request.header(reqwest::header::AUTHORIZATION, signed))
    }
}

/// Returns an error if a line of which this is the beginning is too long.
fn limit_line(pending: &[u8]) -> anyhow::Result<()> {
    if pending.len() > limits::LINE_BYTES_MAX {
        return Err(ExitError::new(Exit::Failure, "a line of the answer is too long").into());
    }
    Ok(())
}

/// Returns path and query of a call.
fn target(call: &str, query: &[(&str, String)]) -> String {
    let pairs: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encode(value, false)))
        .collect();
    let mark = if pairs.is_empty() { "" } else { "?" };
    format!("/-/admin/{call}{mark}{}", pairs.join("&"))
}

/// Parses a response in JSON, by our own reader, which is compiled once for all types.
fn read_json<T: DeserializeOwned>(json: &[u8]) -> anyhow::Result<T> {
    settings::from_value(&serde_json::from_slice(json)?).map_err(invalid_response)
}

/// Parses JSON of a server or of a tier.
pub(crate) fn parse<T: DeserializeOwned>(value: &Value) -> anyhow::Result<T> {
    read_json(value.to_string().as_bytes())
}

fn invalid_response(error: settings::Error) -> anyhow::Error {
    anyhow::anyhow!("{}", error.to_string().trim_end().replace('\n', " "))
}
