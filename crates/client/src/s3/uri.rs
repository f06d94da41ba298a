//! Percent-encoding as S3 signs it: every byte but the unreserved ones, and `/` within keys.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Encodes `text` for a path (`keep_slash`) or for a query value.
pub fn percent_encode(text: &str, keep_slash: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        if unreserved || (keep_slash && byte == b'/') {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    encoded
}

/// Decodes `%XX` and `+` (which form-encoding servers write for a space).
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'%' => {
                let digits = bytes.get(index + 1..index + 3)?;
                decoded.push(hex_digit(digits[0])? << 4 | hex_digit(digits[1])?);
                index += 3;
            }
            b'+' => {
                decoded.push(b' ');
                index += 1;
            }
            byte => {
                decoded.push(byte);
                index += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Whether a URL can carry `key`: URL parsers resolve the segments `.` and `..`.
pub(super) fn is_addressable(key: &str) -> bool {
    !key.split('/').any(|segment| segment == "." || segment == "..")
}
