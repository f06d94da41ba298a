//! What one request carries through all layers: its id, whether its signature was verified, the
//! operation it turned out to be, and the first thing that was wrong with its body.

mod fault;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use http::HeaderMap;
use hyper::body::Incoming;

pub(crate) use self::fault::BodyFault;

/// Shared by the layers of one request, as an extension of the request.
#[derive(Debug)]
pub(crate) struct RequestContext {
    id: String,
    operation: OnceLock<String>,
    /// The operation whose document was read and rewritten.
    document: OnceLock<&'static str>,
    fault: OnceLock<BodyFault>,
    is_signed: AtomicBool,
    /// The headers after a chunked body.
    trailers: OnceLock<HeaderMap>,
    bytes_in: AtomicU64,
    /// What is left of the body when its reader gave up.
    unread: Mutex<Option<Incoming>>,
}

impl RequestContext {
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            operation: OnceLock::new(),
            document: OnceLock::new(),
            fault: OnceLock::new(),
            is_signed: AtomicBool::new(false),
            trailers: OnceLock::new(),
            bytes_in: AtomicU64::new(0),
            unread: Mutex::new(None),
        }
    }

    /// The request's id, as in `x-amz-request-id` and in the log.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Notes which S3 operation it is.
    pub(crate) fn set_operation(&self, name: &str) {
        // A request is resolved once; a second note would only repeat it.
        let _ = self.operation.set(name.to_owned());
    }

    /// The operation, or `Refused` when the request did not get as far as being one.
    pub(crate) fn operation(&self) -> &str {
        self.operation.get().map_or("Refused", String::as_str)
    }

    /// Notes that the body is a document of this operation, in its plain form.
    pub(crate) fn set_document(&self, operation: &'static str) {
        // A request has one document.
        let _ = self.document.set(operation);
    }

    /// The operation whose document the body is, if it is one.
    pub(crate) fn document(&self) -> Option<&'static str> {
        self.document.get().copied()
    }

    /// Notes what is wrong with the body; the first fault is the cause of all others.
    pub(crate) fn set_fault(&self, fault: BodyFault) {
        let _ = self.fault.set(fault);
    }

    /// What is wrong with the body, if anything.
    pub(crate) fn fault(&self) -> Option<BodyFault> {
        self.fault.get().copied()
    }

    /// Notes that the signature of the request was verified.
    pub(crate) fn set_signed(&self) {
        self.is_signed.store(true, Ordering::Relaxed);
    }

    /// Whether the signature of the request was verified.
    pub(crate) fn is_signed(&self) -> bool {
        self.is_signed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_trailers(&self, trailers: HeaderMap) {
        // A body ends once.
        let _ = self.trailers.set(trailers);
    }

    /// The headers that came after the body, once it was read to its end.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.get()
    }

    pub(crate) fn count_bytes_in(&self, bytes: u64) {
        self.bytes_in.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes_in.load(Ordering::Relaxed)
    }

    pub(crate) fn leave_unread(&self, body: Incoming) {
        if let Ok(mut unread) = self.unread.lock() {
            *unread = Some(body);
        }
    }

    pub(crate) fn take_unread(&self) -> Option<Incoming> {
        self.unread.lock().ok().and_then(|mut unread| unread.take())
    }
}

/// Ids that differ within a process for certain and between processes almost certainly.
#[derive(Debug)]
pub(crate) struct RequestIds {
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        // The standard library seeds its hashers from the system's random source.
        Self { next: AtomicU64::new(RandomState::new().hash_one("request ids")) }
    }

    /// 16 hexadecimal digits, as S3's.
    pub(crate) fn next(&self) -> String {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        // An odd factor permutes the 64-bit integers, so neighbors look unlike and none repeats.
        format!("{:016X}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}
