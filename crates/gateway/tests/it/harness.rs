//! A running gateway, and a client that sends exactly what a test specifies.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fulgurite_archive::Archive;
use fulgurite_archive::bench_support;
use fulgurite_archive::config::{ArchiveConfig, Classes, SealPolicy};
use fulgurite_gateway::{Credentials, ServerConfig};
use fulgurite_units::ByteCount;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::signer::{ACCESS_KEY, SECRET_KEY, Signer, sha256_hex};

pub(crate) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// A gateway over an archive that lives as long as the test.
#[derive(Debug)]
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) archive: Archive,
    pub(crate) data: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<fulgurite_gateway::Result<()>>,
}

pub(crate) fn credentials() -> Credentials {
    Credentials::new(ACCESS_KEY, SECRET_KEY).unwrap()
}

fn archive_config(data: &TempDir) -> ArchiveConfig {
    let config = bench_support::config(data.path().join("archive")).unwrap();
    ArchiveConfig {
        seal: SealPolicy { staged_bytes: ByteCount::gib(64), ..config.seal },
        acknowledged_at: None,
        shared: None,
        log_capacity: ByteCount::gib(4),
        ..config
    }
}

pub(crate) async fn open_archive(data: &TempDir) -> Archive {
    Archive::open(archive_config(data)).await.unwrap()
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    /// Starts with a changed configuration; the bucket `vault` exists.
    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::start_in(TempDir::new().unwrap(), change).await
    }

    /// Stops the gateway, and starts it again with the same data.
    pub(crate) async fn restart(self) -> Self {
        let archive = self.archive.clone();
        let (serving, data) = self.begin_stop();
        serving.await.unwrap().unwrap();
        archive.stop().await.unwrap();
        drop(archive);
        Self::start_in(data, |_| ()).await
    }

    async fn start_in(data: TempDir, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let archive = open_archive(&data).await;
        Self::start_with_archive(data, archive, change).await
    }

    /// Starts over an archive some of whose classes go to other tiers.
    pub(crate) async fn start_with_classes(assign: impl FnOnce(&mut Classes)) -> Self {
        let data = TempDir::new().unwrap();
        let mut config = archive_config(&data);
        assign(&mut config.classes);
        let archive = Archive::open(config).await.unwrap();
        Self::start_with_archive(data, archive, |_| ()).await
    }

    async fn start_with_archive(
        data: TempDir,
        archive: Archive,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into(), credentials());
        change(&mut config);
        let server = fulgurite_gateway::bind(config, archive.clone()).await.unwrap();
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(Box::pin(async {
            let _ = stopped.await;
        })));
        let this = Self { address, archive, data, stop, serving };
        assert!(matches!(this.request("PUT", "/vault").send().await.status, 200 | 409));
        this
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> TestRequest {
        TestRequest::new(self.address, method, path)
    }

    pub(crate) async fn put(&self, path: &str, body: &[u8]) {
        let response = self.request("PUT", path).body(body).send().await;
        assert_eq!(response.status, 200, "{response:?}");
    }

    /// Returns whether an object exists.
    pub(crate) async fn has(&self, path: &str) -> bool {
        self.request("HEAD", path).send().await.status == 200
    }

    /// Requests a stop; returns the task of `serve`.
    pub(crate) fn begin_stop(self) -> (JoinHandle<fulgurite_gateway::Result<()>>, TempDir) {
        let _ = self.stop.send(());
        (self.serving, self.data)
    }
}

/// A request under construction. `path` is already encoded.
#[derive(Clone, Debug)]
pub(crate) struct TestRequest {
    address: SocketAddr,
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    unsigned_headers: BTreeMap<String, String>,
    body: Vec<u8>,
    payload: Option<String>,
    pub(crate) signer: Signer,
}

impl TestRequest {
    fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        });
        let host = ("host".to_owned(), format!("127.0.0.1:{}", address.port()));
        Self {
            address,
            method: method.to_owned(),
            path: path.to_owned(),
            query: pairs.collect(),
            headers: BTreeMap::from([host]),
            unsigned_headers: BTreeMap::new(),
            body: Vec::new(),
            payload: None,
            signer: Signer::new(),
        }
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a header that the signature does not cover.
    pub(crate) fn unsigned_header(mut self, name: &str, value: &str) -> Self {
        self.unsigned_headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets a query parameter, already encoded.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.query.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the payload in `x-amz-content-sha256`; its digest by default.
    pub(crate) fn payload(mut self, payload: &str) -> Self {
        self.payload = Some(payload.to_owned());
        self
    }

    fn query_text(&self) -> String {
        let pairs: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&")
    }

    /// Returns the head of a request without any signature.
    pub(crate) fn plain_head(&self, length: usize) -> String {
        let mut target = self.path.clone();
        if !self.query.is_empty() {
            target = format!("{target}?{}", self.query_text());
        }
        let mut head = format!("{} {target} HTTP/1.1\r\nconnection: close\r\n", self.method);
        for (name, value) in self.headers.iter().chain(&self.unsigned_headers) {
            head += &format!("{name}: {value}\r\n");
        }
        head + &format!("content-length: {length}\r\n\r\n")
    }

    /// Returns the signed head of a request that declares `length` bytes, and its signature.
    pub(crate) fn signed_head(mut self, length: usize) -> (String, String) {
        let payload = self.payload.clone().unwrap_or_else(|| sha256_hex(&self.body));
        if !self.headers.contains_key("date") {
            self.headers.insert("x-amz-date".to_owned(), self.signer.date_time());
        }
        self.headers.insert("x-amz-content-sha256".to_owned(), payload.clone());
        let query = self.query_text();
        let parts = (self.method.as_str(), self.path.as_str(), query.as_str());
        let signature = self.signer.request(parts, &self.headers, &payload);
        let names: Vec<&str> = self.headers.keys().map(String::as_str).collect();
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}, SignedHeaders={}, Signature={signature}",
            self.signer.credential(),
            names.join(";")
        );
        let this = self.unsigned_header("authorization", &authorization);
        (this.plain_head(length), signature)
    }

    /// Signs with the query instead of a header.
    pub(crate) fn presigned(mut self, seconds: u64) -> Self {
        let names: Vec<&str> = self.headers.keys().map(String::as_str).collect();
        let pairs = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned()),
            ("X-Amz-Credential", self.signer.credential().replace('/', "%2F")),
            ("X-Amz-Date", self.signer.date_time()),
            ("X-Amz-Expires", seconds.to_string()),
            ("X-Amz-SignedHeaders", names.join("%3B")),
        ];
        self.query.extend(pairs.map(|(name, value)| (name.to_owned(), value)));
        let query = self.query_text();
        let parts = (self.method.as_str(), self.path.as_str(), query.as_str());
        let signature = self.signer.request(parts, &self.headers, UNSIGNED);
        self.query.insert("X-Amz-Signature".to_owned(), signature);
        self
    }

    /// Signs and sends it.
    pub(crate) async fn send(self) -> TestResponse {
        let (address, body) = (self.address, self.body.clone());
        let (head, _) = self.signed_head(body.len());
        exchange(address, &[head.as_bytes(), &body], false).await
    }

    /// Sends it as it is, without signing it.
    pub(crate) async fn send_plain(self) -> TestResponse {
        let head = self.plain_head(self.body.len());
        exchange(self.address, &[head.as_bytes(), &self.body], false).await
    }
}

/// Returns the value of `x-amz-checksum-sha256` for a body.
pub(crate) fn sha256_base64(body: &[u8]) -> String {
    BASE64.encode(ring::digest::digest(&ring::digest::SHA256, body))
}

/// A response; status 0 when the connection ended without one.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl TestResponse {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the content of the first element of that name.
    pub(crate) fn element(&self, name: &str) -> Option<String> {
        let text = self.text();
        let (_, after) = text.split_once(&format!("<{name}>"))?;
        Some(after.split_once("</")?.0.to_owned())
    }

    /// Returns status and error code.
    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.element("Code").unwrap_or_default())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Sends the pieces, shuts down the sending side if requested, and reads one whole response.
pub(crate) async fn exchange(
    address: SocketAddr,
    pieces: &[&[u8]],
    shuts_down: bool,
) -> TestResponse {
    let mut stream = TcpStream::connect(address).await.unwrap();
    for piece in pieces {
        // The server may answer and close before everything is sent.
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    if shuts_down {
        let _ = stream.shutdown().await;
    }
    read_response(&mut stream).await
}

pub(crate) async fn read_response(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> TestResponse {
    let mut all = Vec::new();
    // A reset after the response does not matter.
    let _ = stream.read_to_end(&mut all).await;
    parse_response(&all)
}

pub(crate) fn parse_response(all: &[u8]) -> TestResponse {
    let Some(end) = all.windows(4).position(|window| window == b"\r\n\r\n") else {
        return TestResponse::default();
    };
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
    if status == 100 {
        return parse_response(&all[end + 4..]);
    }
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let body = &all[end + 4..];
    let is_chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
    let body = if is_chunked { unchunk(body) } else { body.to_vec() };
    TestResponse { status, headers, body }
}

fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        body = &body[end + 2..];
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&body[..size]);
        body = &body[size + 2..];
    }
    whole
}
