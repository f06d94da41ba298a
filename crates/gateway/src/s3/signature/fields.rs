//! Parses the signature of a request, in a header or in the query, to a checked value; nothing here
//! knows a secret.

/// The only supported algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// Longest region name. Names are not compared with anything: any region may be signed for.
const REGION_BYTES_MAX: usize = 64;

/// The claimed signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignatureClaim {
    pub(crate) access_key: String,
    /// `YYYYMMDD`.
    pub(crate) day: String,
    pub(crate) region: String,
    /// In lower case, sorted, each once.
    pub(crate) signed_headers: Vec<String>,
    pub(crate) signature: [u8; 32],
}

impl SignatureClaim {
    /// Parses `AWS4-HMAC-SHA256 Credential=.., SignedHeaders=.., Signature=..`; spaces after commas
    /// are optional and the order is free.
    pub(crate) fn from_header(text: &str) -> Result<Self, &'static str> {
        let (algorithm, rest) =
            text.trim().split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((text, ""));
        check_algorithm(algorithm)?;
        let (mut credential, mut names, mut signature) = (None, None, None);
        for field in rest.split(',') {
            let (name, value) = field.trim().split_once('=').ok_or("a field has no value")?;
            let slot = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut names,
                "Signature" => &mut signature,
                _ => return Err("a field is unknown"),
            };
            if slot.replace(value).is_some() {
                return Err("a field is repeated");
            }
        }
        Self::new(credential, names, signature)
    }

    /// Parses the decoded `X-Amz-*` parameters of a presigned URL.
    pub(crate) fn from_query(pairs: &[(String, String)]) -> Result<Self, &'static str> {
        check_algorithm(unique(pairs, "X-Amz-Algorithm")?.unwrap_or_default())?;
        Self::new(
            unique(pairs, "X-Amz-Credential")?,
            unique(pairs, "X-Amz-SignedHeaders")?,
            unique(pairs, "X-Amz-Signature")?,
        )
    }

    fn new(
        credential: Option<&str>,
        names: Option<&str>,
        signature: Option<&str>,
    ) -> Result<Self, &'static str> {
        let credential = credential.ok_or("the credential is missing")?;
        let [access_key, day, region, service, end] =
            <[&str; 5]>::try_from(credential.split('/').collect::<Vec<_>>())
                .map_err(|_| "the credential is not ACCESS-KEY/YYYYMMDD/REGION/s3/aws4_request")?;
        if end != "aws4_request" || service != "s3" {
            return Err("the credential does not end in s3/aws4_request");
        }
        if access_key.is_empty() || !access_key.bytes().all(is_plain) {
            return Err("the access key has commas or characters that are not printable");
        }
        if day.len() != 8 || !day.bytes().all(|b| b.is_ascii_digit()) {
            return Err("the credential's date is not YYYYMMDD");
        }
        if region.len() > REGION_BYTES_MAX || !region.bytes().all(is_plain) {
            return Err("the region is not a name of up to 64 printable characters without commas");
        }
        let mut signed_headers: Vec<String> =
            names.ok_or("SignedHeaders is missing")?.split(';').map(lower).collect();
        if !signed_headers.iter().all(|name| is_header_name(name)) {
            return Err("SignedHeaders has an invalid header name");
        }
        signed_headers.sort_unstable();
        signed_headers.dedup();
        let mut bytes = [0; 32];
        hex::decode_to_slice(signature.ok_or("the signature is missing")?, &mut bytes)
            .map_err(|_| "the signature is not 64 hexadecimal digits")?;
        Ok(Self {
            access_key: access_key.to_owned(),
            day: day.to_owned(),
            region: region.to_owned(),
            signed_headers,
            signature: bytes,
        })
    }

    /// Returns the scope that the signing key is derived for.
    pub(crate) fn scope(&self) -> String {
        format!("{}/{}/s3/aws4_request", self.day, self.region)
    }

    /// Returns whether the signature covers a header.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.signed_headers.iter().any(|signed| signed == name)
    }
}

fn check_algorithm(algorithm: &str) -> Result<(), &'static str> {
    if algorithm == ALGORITHM { Ok(()) } else { Err("the algorithm is not AWS4-HMAC-SHA256") }
}

fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Returns whether the character is valid both in a header and in a query: in a header, a comma
/// ends a field.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b','
}

/// Returns whether it has only the characters of a header name (RFC 9110).
fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Returns the value of a parameter, which must not be repeated: two parsers might pick different
/// ones.
pub(super) fn unique<'a>(
    pairs: &'a [(String, String)],
    name: &str,
) -> Result<Option<&'a str>, &'static str> {
    let mut values = pairs.iter().filter(|(found, _)| found == name).map(|(_, value)| value);
    let first = values.next();
    if values.next().is_some() {
        return Err("a parameter is repeated");
    }
    Ok(first.map(String::as_str))
}
