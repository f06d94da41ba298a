//! The context of one request, shared by all layers: its id, whether its signature was verified,
//! its operation, and the first fault of its body.

mod fault;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use http::HeaderMap;
use hyper::body::Incoming;

pub(crate) use self::fault::BodyFault;

/// The context of one request, stored as an extension of the request.
#[derive(Debug)]
pub(crate) struct RequestContext {
    id: String,
    operation: OnceLock<String>,
    /// The operation whose document was read and rewritten, if any.
    document: OnceLock<&'static str>,
    fault: OnceLock<BodyFault>,
    is_signed: AtomicBool,
    /// The trailers of a chunked body.
    trailers: OnceLock<HeaderMap>,
    bytes_in: AtomicU64,
    /// The unread rest of the body, left when its reader gave up.
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

    /// Records which S3 operation it is.
    pub(crate) fn set_operation(&self, name: &str) {
        // A request is resolved once; a second call would only repeat it.
        let _ = self.operation.set(name.to_owned());
    }

    /// The operation, or `Refused` when the request was refused before it was known.
    pub(crate) fn operation(&self) -> &str {
        self.operation.get().map_or("Refused", String::as_str)
    }

    /// Records that the body is a document of this operation, in its plain form.
    pub(crate) fn set_document(&self, operation: &'static str) {
        // A request has one document.
        let _ = self.document.set(operation);
    }

    /// The operation whose document the body is, if it is one.
    pub(crate) fn document(&self) -> Option<&'static str> {
        self.document.get().copied()
    }

    /// Records a fault of the body; the first fault is the cause of all others.
    pub(crate) fn set_fault(&self, fault: BodyFault) {
        let _ = self.fault.set(fault);
    }

    /// The first fault of the body, if any.
    pub(crate) fn fault(&self) -> Option<BodyFault> {
        self.fault.get().copied()
    }

    /// Records that the signature of the request was verified.
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

    /// The trailers of the body, once it was read to its end.
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

/// Generates ids that are unique within a process, and almost certainly unique between processes.
#[derive(Debug)]
pub(crate) struct RequestIds {
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        // The standard library seeds its hashers from the system's random source.
        Self { next: AtomicU64::new(RandomState::new().hash_one("request ids")) }
    }

    /// Returns the next id: 16 hexadecimal digits, like S3's.
    pub(crate) fn next(&self) -> String {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        // An odd factor permutes the 64-bit integers, so neighbors look unlike and none repeats.
        format!("{:016X}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}
