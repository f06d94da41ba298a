//! The page for a person who opens the address in a browser. Programs get XML there: they sign
//! their requests, or they do not ask for HTML.

use http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use s3s::Body;

/// Nothing is loaded, run, framed or sent anywhere.
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns whether a client without credentials asks for HTML at the root.
pub(crate) fn is_requested(parts: &Parts) -> bool {
    let is_html = |value: &HeaderValue| {
        value.to_str().is_ok_and(|text| {
            text.split(',').any(|kind| kind.split(';').next().unwrap_or("").trim() == "text/html")
        })
    };
    (parts.method == Method::GET || parts.method == Method::HEAD)
        && parts.uri.path() == "/"
        && parts.uri.query().is_none()
        && !parts.headers.contains_key(AUTHORIZATION)
        && parts.headers.get_all(ACCEPT).iter().any(is_html)
}

/// Returns a page that says what this is and where to go. It reveals no more than `/version` does.
pub(crate) fn page() -> Response<Body> {
    let text = format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Fulgurite</title>\n\
         </head>\n\
         <body>\n\
         <h1>Fulgurite {}</h1>\n\
         <p>An archive with an S3 interface over simulated glass storage. This address is for S3\n\
         clients: give it to them as their endpoint, with the keys that the server was started\n\
         with. <a href=\"/-/\">What is here, and how to connect</a>.</p>\n\
         <pre>\n\
         aws --endpoint-url ADDRESS s3 ls\n\
         fulgurite ls --endpoint ADDRESS\n\
         fulgurite archive status --endpoint ADDRESS\n\
         fulgurite --help\n\
         </pre>\n\
         <p>For more, see the pages <em>guide</em>, <em>operating</em> and\n\
         <em>s3-compatibility</em> in the folder <em>docs</em> of the source.</p>\n\
         <ul>\n\
         <li><a href=\"/readyz\">ready?</a></li>\n\
         <li><a href=\"/livez\">alive?</a></li>\n\
         <li><a href=\"/metrics\">metrics</a></li>\n\
         <li><a href=\"/version\">version</a></li>\n\
         </ul>\n\
         </body>\n\
         </html>\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut response = Response::new(Body::from(text));
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
        (VARY, "Accept"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
