//! Bodies: files uploaded whole or in parts, objects downloaded to files, both verified end to end.
//!
//! ```text
//! put:  read piece -> CRC-64 -> send with the CRC -> server compares -> parts' CRCs combine
//! get:  stream -> temporary file, hashing -> compare -> rename
//!       stream -> standard output, hashing -> compare
//!       interrupted: continue with Range and If-Match
//! ```

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use reqwest::{Method, Response};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::checksum::{CRC64_HEADER, Verifier, crc64, crc64_combine, crc64_text};
use super::client::{Call, Client, Headers, ObjectHead, back_off, parse_head};
use super::error::S3Error;
use super::xml::{self, UploadedPart};
use crate::file_time::{FileTime, MTIME_HEADER};
use crate::limits;

/// The memory budget of all bodies in flight.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Semaphore>);

impl Default for Budget {
    /// Returns the whole budget.
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(limits::BODY_MEMORY_MIB as usize)))
    }
}

impl Budget {
    /// Waits until `bytes` fit. A piece larger than the whole budget gets all of it.
    pub(super) async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
        let permits = mib.clamp(1, limits::BODY_MEMORY_MIB);
        Arc::clone(&self.0).acquire_many_owned(permits).await.ok()
    }
}

/// A file to upload.
#[derive(Clone, Copy, Debug)]
pub struct PutSource<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Its length when it was found.
    pub bytes: u64,
    /// The properties of the object.
    pub properties: ObjectProperties<'a>,
}

/// The properties of an object besides its bytes.
#[derive(Clone, Copy, Debug)]
pub struct ObjectProperties<'a> {
    /// Storage class to ask for.
    pub class: &'a str,
    /// When its file was last changed.
    pub file_time: Option<FileTime>,
}

impl ObjectProperties<'_> {
    /// Returns the headers of the request that creates the object.
    pub(super) fn headers(self) -> Headers {
        let time = self.file_time.map(|time| (MTIME_HEADER.into(), time.to_string()));
        let class = ("x-amz-storage-class".into(), self.class.to_owned());
        std::iter::once(class).chain(time).collect()
    }
}

impl Client {
    /// Puts the file `source` as `key` and returns the ETag; calls `on_sent` with numbers of bytes
    /// that arrived.
    pub async fn put_file(
        &self,
        bucket: &str,
        key: &str,
        source: PutSource<'_>,
        budget: &Budget,
        on_sent: &(dyn Fn(u64) + Sync),
    ) -> Result<String, S3Error> {
        if source.bytes > limits::MULTIPART_THRESHOLD_BYTES {
            return self.put_parts(bucket, key, source, budget, on_sent).await;
        }
        let _memory = budget.take(source.bytes).await;
        let body = read_piece(source.path, 0, source.bytes, true).await?;
        let etag = self.put_bytes(bucket, key, body, source.properties).await?;
        on_sent(source.bytes);
        Ok(etag)
    }

    /// Puts `body` as `key` in one call. Returns the ETag.
    pub async fn put_bytes(
        &self,
        bucket: &str,
        key: &str,
        body: Bytes,
        properties: ObjectProperties<'_>,
    ) -> Result<String, S3Error> {
        let crc = crc64_text(crc64(&body));
        let call = Call::new("PutObject", Method::PUT, bucket)
            .key(key)
            .headers(properties.headers())
            .header(CRC64_HEADER, crc.clone())
            .body(body);
        let response = self.send(&call).await?;
        check_echo(&call, &response, &crc)?;
        Ok(parse_head(response.headers()).etag)
    }

    async fn put_parts(
        &self,
        bucket: &str,
        key: &str,
        source: PutSource<'_>,
        budget: &Budget,
        on_sent: &(dyn Fn(u64) + Sync),
    ) -> Result<String, S3Error> {
        let headers = source.properties.headers();
        let upload = self.create_upload(bucket, key, headers).await?;
        let done = self.send_parts(bucket, key, &upload, source, budget, on_sent).await;
        self.complete_or_abort(bucket, key, &upload, done).await
    }

    /// Starts a multipart upload whose CRC-64s will be combined.
    pub(super) async fn create_upload(
        &self,
        bucket: &str,
        key: &str,
        headers: Headers,
    ) -> Result<String, S3Error> {
        let create = Call::new("CreateMultipartUpload", Method::POST, bucket)
            .key(key)
            .query("uploads", "")
            .headers(headers)
            .header("x-amz-checksum-algorithm", "CRC64NVME")
            .header("x-amz-checksum-type", "FULL_OBJECT");
        xml::parse_upload_id(&self.document(&create).await?)
    }

    /// Completes an upload whose parts were all sent, and aborts any other. Returns the ETag.
    pub(super) async fn complete_or_abort(
        &self,
        bucket: &str,
        key: &str,
        upload: &str,
        done: Result<Vec<UploadedPart>, S3Error>,
    ) -> Result<String, S3Error> {
        let done = match done {
            Ok(parts) => self.complete(bucket, key, upload, &parts).await,
            Err(error) => Err(error),
        };
        if done.is_err() {
            self.abort_upload(bucket, key, upload).await;
        }
        done
    }

    /// Aborts an upload. A failure only costs the bytes of the upload, and is not an error.
    pub(super) async fn abort_upload(&self, bucket: &str, key: &str, upload: &str) {
        let abort = Call::new("AbortMultipartUpload", Method::DELETE, bucket)
            .key(key)
            .query("uploadId", upload);
        if let Err(error) = self.send(&abort).await {
            tracing::debug!(%error, "cannot abort the upload");
        }
    }

    async fn send_parts(
        &self,
        bucket: &str,
        key: &str,
        upload: &str,
        source: PutSource<'_>,
        budget: &Budget,
        on_sent: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<UploadedPart>, S3Error> {
        let part_bytes = part_bytes(source.bytes);
        let count = source.bytes.div_ceil(part_bytes);
        assert!(count <= limits::PARTS_MAX, "parts grow with the file");
        let parts = futures::stream::iter(0..count).map(|index| async move {
            let start = index * part_bytes;
            let bytes = part_bytes.min(source.bytes - start);
            let _memory = budget.take(bytes).await;
            let is_last = index + 1 == count;
            let body = read_piece(source.path, start, bytes, is_last).await?;
            let part = self.put_part(bucket, key, upload, index + 1, body).await?;
            on_sent(bytes);
            Ok::<_, S3Error>(part)
        });
        parts.buffered(limits::PARTS_IN_FLIGHT_MAX).try_collect().await
    }

    pub(super) async fn put_part(
        &self,
        bucket: &str,
        key: &str,
        upload: &str,
        number: u64,
        body: Bytes,
    ) -> Result<UploadedPart, S3Error> {
        let crc = crc64(&body);
        let bytes = body.len() as u64;
        let call = Call::new("UploadPart", Method::PUT, bucket)
            .key(key)
            .query("partNumber", number.to_string())
            .query("uploadId", upload)
            .header(CRC64_HEADER, crc64_text(crc))
            .body(body);
        let response = self.send(&call).await?;
        check_echo(&call, &response, &crc64_text(crc))?;
        let etag = response.headers().get("etag").and_then(|v| v.to_str().ok());
        let etag = etag.unwrap_or_default().to_owned();
        Ok(UploadedPart { number, etag, crc, bytes })
    }

    async fn complete(
        &self,
        bucket: &str,
        key: &str,
        upload: &str,
        parts: &[UploadedPart],
    ) -> Result<String, S3Error> {
        let mut all = parts.iter();
        let first = all.next().map_or(0, |part| part.crc);
        let crc = all.fold(first, |crc, part| crc64_combine(crc, part.crc, part.bytes));
        let call = Call::new("CompleteMultipartUpload", Method::POST, bucket)
            .key(key)
            .query("uploadId", upload)
            .header(CRC64_HEADER, crc64_text(crc))
            .header("x-amz-checksum-type", "FULL_OBJECT")
            .header("content-type", "application/xml")
            .body(Bytes::from(xml::complete_request(parts)));
        Ok(xml::parse_etag(&self.slow_document(&call).await?))
    }

    /// Returns the document of a slow call: S3 may begin with 200 and then report a failure in the
    /// document.
    pub(super) async fn slow_document(&self, call: &Call<'_>) -> Result<String, S3Error> {
        let answer = self.document(call).await?;
        let failure = xml::parse_error(&answer);
        if failure.code.is_empty() {
            return Ok(answer);
        }
        Err(S3Error::Service {
            operation: call.operation,
            target: call.target(),
            status: 200,
            code: failure.code,
            message: failure.message,
        })
    }

    /// Fetches `key` into the file `path`, through a temporary file beside it; calls `on_received`
    /// with numbers of bytes. The file gets its name only when every byte has arrived and is
    /// correct.
    pub async fn get_file(
        &self,
        bucket: &str,
        key: &str,
        path: &Path,
        on_received: &(dyn Fn(u64) + Sync),
    ) -> Result<ObjectHead, S3Error> {
        let call = get_call(bucket, key);
        let response = self.send(&call).await?;
        // Deleted on drop, unless it was renamed.
        let part = create_temporary(path).map_err(file_error("create", path))?;
        let file = part.reopen().map_err(file_error("open", part.path()))?;
        let sink = tokio::fs::File::from_std(file);
        let write_error =
            |source| S3Error::File { action: "write the download of", path: call.target(), source };
        let head = self.receive(&call, response, sink, &write_error, on_received).await?;
        if let Some(time) = head.file_time
            && let Err(error) = time.set(part.as_file())
        {
            // Bytes matter more; a sync compares them again.
            tracing::debug!(%error, path = %path.display(), "cannot set the modification time");
        }
        part.persist(path).map_err(|error| file_error("name", path)(error.error))?;
        Ok(head)
    }

    /// Fetches `key` into `sink`, which has received bytes by the time they turn out to be wrong:
    /// only an error says so. A `sink` without a reader is [`S3Error::ReaderGone`].
    pub async fn get_into(
        &self,
        bucket: &str,
        key: &str,
        sink: File,
        on_received: &(dyn Fn(u64) + Sync),
    ) -> Result<ObjectHead, S3Error> {
        let call = get_call(bucket, key);
        let response = self.send(&call).await?;
        let write_error = |source: std::io::Error| {
            if source.kind() == std::io::ErrorKind::BrokenPipe {
                return S3Error::ReaderGone;
            }
            file_error("write", Path::new("standard output"))(source)
        };
        let sink = tokio::fs::File::from_std(sink);
        self.receive(&call, response, sink, &write_error, on_received).await
    }

    async fn receive(
        &self,
        call: &Call<'_>,
        mut response: Response,
        sink: impl AsyncWrite + Unpin,
        write_error: &(dyn Fn(std::io::Error) -> S3Error + Sync),
        on_received: &(dyn Fn(u64) + Sync),
    ) -> Result<ObjectHead, S3Error> {
        let head = parse_head(response.headers());
        let mut verifier = Verifier::new(response.headers());
        let mut file = tokio::io::BufWriter::with_capacity(limits::WRITE_BUFFER_BYTES, sink);
        let (mut offset, mut attempt) = (0, 1);
        loop {
            let error = match response.chunk().await {
                Ok(Some(chunk)) => {
                    verifier.update(&chunk);
                    file.write_all(&chunk).await.map_err(write_error)?;
                    offset += chunk.len() as u64;
                    on_received(chunk.len() as u64);
                    continue;
                }
                Ok(None) if offset == head.bytes => break,
                Ok(None) => {
                    S3Error::Short { target: call.target(), received: offset, expected: head.bytes }
                }
                Err(source) => self.unreachable(call, source),
            };
            if attempt == limits::ATTEMPTS_MAX || offset >= head.bytes {
                return Err(error);
            }
            back_off(attempt).await;
            attempt += 1;
            response = self.resume_from(call.bucket, call.key, offset, &head.etag).await?;
        }
        file.flush().await.map_err(write_error)?;
        verifier.finish(&call.target())?;
        Ok(head)
    }

    async fn resume_from(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        etag: &str,
    ) -> Result<Response, S3Error> {
        let call = Call::new("GetObject", Method::GET, bucket)
            .key(key)
            .header("range", format!("bytes={offset}-"))
            .header("if-match", format!("\"{etag}\""));
        let response = self.send(&call).await?;
        if response.status().as_u16() != 206 {
            let reason = format!(
                "the response to a range request has status {}",
                response.status().as_u16()
            );
            return Err(S3Error::Protocol { operation: call.operation, reason });
        }
        Ok(response)
    }
}

fn get_call<'a>(bucket: &'a str, key: &'a str) -> Call<'a> {
    Call::new("GetObject", Method::GET, bucket).key(key).header("x-amz-checksum-mode", "ENABLED")
}

/// Returns the length of the parts of a file of `bytes`: whole MiB, few enough parts.
pub(super) fn part_bytes(bytes: u64) -> u64 {
    let least = bytes.div_ceil(limits::PARTS_MAX).next_multiple_of(1 << 20);
    least.max(limits::PART_BYTES_MIN)
}

/// Creates a file of a random name in the folder of `path`, with the permissions of any new file.
fn create_temporary(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(limits::PART_PREFIX)
        .suffix(limits::PART_SUFFIX)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(path.parent().unwrap_or_else(|| Path::new(".")))
}

/// Reads `bytes` bytes at `start`; with `is_last`, also checks that the file ends there.
async fn read_piece(path: &Path, start: u64, bytes: u64, is_last: bool) -> Result<Bytes, S3Error> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let changed = || S3Error::FileChanged { path: path.display().to_string() };
        let file = File::open(&path).map_err(file_error("open", &path))?;
        let length = usize::try_from(bytes).map_err(|_| changed())?;
        let mut buffer = vec![0; length];
        file.read_exact_at(&mut buffer, start).map_err(|source| {
            if source.kind() == std::io::ErrorKind::UnexpectedEof {
                changed()
            } else {
                file_error("read", &path)(source)
            }
        })?;
        let file_bytes = file.metadata().map_err(file_error("read", &path))?.len();
        if is_last && file_bytes != start + bytes {
            return Err(changed());
        }
        Ok(Bytes::from(buffer))
    });
    read.await.unwrap_or_else(|error| {
        Err(S3Error::Protocol { operation: "read", reason: error.to_string() })
    })
}

pub(super) fn file_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> S3Error {
    let path = path.display().to_string();
    move |source| S3Error::File { action, path, source }
}

/// Checks the checksum that a server returns, if it stores checksums: it must be ours.
fn check_echo(call: &Call<'_>, response: &Response, sent: &str) -> Result<(), S3Error> {
    let echo = response.headers().get(CRC64_HEADER).and_then(|v| v.to_str().ok());
    match echo {
        Some(echo) if echo != sent => Err(S3Error::Damaged {
            target: call.target(),
            algorithm: "CRC64NVME",
            expected: sent.to_owned(),
            actual: echo.to_owned(),
        }),
        Some(_) | None => Ok(()),
    }
}
