//! A load generator that costs little compared to the server it shares the cores with.
//!
//! Requests are signed (SigV4, unsigned payload) before the clock starts. Only writing them to
//! keep-alive connections, one thread each, and reading the responses is timed.
//!
//! Not a general HTTP client: it handles responses with a `Content-Length` or none.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningParams,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;

/// Credentials of every benchmark's server.
pub(super) const ACCESS_KEY: &str = "BENCHMARKACCESSKEY01";
/// Their secret.
pub(super) const SECRET_KEY: &str = "benchmark-secret-of-forty-characters-xyz";
/// Longest wait for a response.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of a body that are read at a time.
const BODY_PIECE_BYTES: usize = 256 << 10;
/// Longest head of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A signed request without its body.
#[derive(Clone, Debug)]
pub(super) struct Request {
    head: Vec<u8>,
}

impl Request {
    /// Creates an unsigned GET. If it were signed, it would ask for a bucket of that name.
    pub(super) fn unsigned(server: SocketAddr, path: &str) -> Self {
        Self { head: format!("GET {path} HTTP/1.1\r\nhost: {server}\r\n\r\n").into_bytes() }
    }

    /// Signs a request with these headers, for a body of `bytes` bytes.
    pub(super) fn sign(
        server: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        bytes: usize,
    ) -> Result<Self> {
        let host = server.to_string();
        let identity = Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "bench").into();
        let mut settings = SigningSettings::default();
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let parameters: SigningParams<'_> = v4::SigningParams::builder()
            .identity(&identity)
            .region("us-east-1")
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()?
            .into();
        let uri = format!("http://{host}{path}");
        let length = bytes.to_string();
        let mut all = vec![("host", host.as_str()), ("content-length", length.as_str())];
        all.extend_from_slice(headers);
        let signable =
            SignableRequest::new(method, uri, all.iter().copied(), SignableBody::UnsignedPayload)?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in all.into_iter().chain(instructions.headers()) {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        Ok(Self { head: head.into_bytes() })
    }
}

/// A keep-alive connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
}

/// A response without its body.
#[derive(Debug)]
pub(super) struct Answer {
    /// HTTP status.
    pub(super) status: u16,
    head: String,
}

impl Answer {
    /// Returns the value of a header, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Connection {
    /// Connects.
    pub(super) fn open(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream })
    }

    /// Sends a request and reads the response; its body is read and dropped.
    pub(super) fn send(&mut self, request: &Request, body: &[u8]) -> Result<Answer> {
        self.stream.write_all(&request.head)?;
        self.stream.write_all(body)?;
        let mut read = Vec::with_capacity(1024);
        let end = loop {
            if let Some(end) = read.windows(4).position(|w| w == b"\r\n\r\n") {
                break end + 4;
            }
            ensure!(read.len() < HEAD_BYTES_MAX, "the head of a response is too long");
            let mut piece = [0; 4096];
            let count = self.stream.read(&mut piece)?;
            ensure!(count > 0, "the server closed the connection");
            read.extend_from_slice(&piece[..count]);
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let answer = Answer { status: status.context("an answer has a status")?, head };
        let is_head = request.head.starts_with(b"HEAD ");
        let length = answer.header("content-length").filter(|_| !is_head);
        let mut left = length.map_or(Ok(0), str::parse::<usize>)?.saturating_sub(read.len() - end);
        let mut piece = vec![0; left.min(BODY_PIECE_BYTES)];
        while left > 0 {
            let count = self.stream.read(&mut piece)?;
            ensure!(count > 0, "the server closed the connection");
            left = left.saturating_sub(count);
        }
        Ok(answer)
    }
}

/// Sends all requests over `connections` connections, each with its body; all responses must have
/// `status`.
pub(super) fn send_all(
    server: SocketAddr,
    connections: usize,
    requests: &[(Request, &[u8])],
    status: u16,
) -> Result<Duration> {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(server)?);
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let begin = Instant::now();
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let work = |mut connection: Connection| {
            let next = &next;
            move || -> Result<()> {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some((request, body)) = requests.get(at) else { return Ok(()) };
                    let answer = connection.send(request, body)?;
                    if answer.status != status {
                        bail!("the server answered {}, expected {status}", answer.status);
                    }
                }
            }
        };
        let threads: Vec<_> = open.into_iter().map(|c| scope.spawn(work(c))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
    });
    results.into_iter().collect::<Result<()>>()?;
    Ok(begin.elapsed())
}

/// Returns incompressible bytes (a xorshift sequence: fast, the same in every run).
pub(super) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(bytes.div_ceil(8)).flatten().take(bytes).collect()
}
