//! A client's requests, and a server's answers.

use super::document::document;
use super::file::{File, number};
use super::image::image;
use crate::{Outcome, Settings, TransportError};
use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use rustls::pki_types::ServerName;
use std::net::{IpAddr, SocketAddr};

/// Where messages go by default.
const ECHO: &str = "/echo";
const UPLOAD: &str = "/upload";
/// The prefix of downloads, before a number of bytes.
const BYTES: &str = "/bytes/";
/// The field that pads a header to its size.
const PADDING: HeaderName = HeaderName::from_static("x-padding");

/// A request body's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Absent,
    /// So many bytes.
    Known(u64),
    /// Not known before its end.
    Unknown,
}

/// The common parts of a connection's requests.
pub(super) struct Requests {
    scheme: &'static str,
    authority: String,
    /// HTTP/1.1: the request line has only the path, the field `Host` the authority. Later versions have a field for
    /// each.
    http1: bool,
    /// Where messages go.
    messages: Uri,
    /// The target of downloads without a number of bytes.
    downloaded: Uri,
    host: HeaderValue,
    /// As long as a whole header.
    padding: Bytes,
}

fn unusable(cause: impl std::fmt::Display) -> TransportError {
    TransportError::with("cannot ask for that path", Outcome::Error, cause.to_string())
}

impl Requests {
    pub(super) fn new(
        settings: &Settings,
        server: SocketAddr,
        secure: bool,
        http1: bool,
    ) -> Result<Self, TransportError> {
        let (scheme, port) = if secure { ("https", 443) } else { ("http", 80) };
        let host = if secure { name(settings.security()?.server_name()) } else { literal(server.ip()) };
        let authority = if server.port() == port { host } else { format!("{host}:{}", server.port()) };
        let mut requests = Self {
            scheme,
            host: HeaderValue::try_from(&authority).map_err(unusable)?,
            authority,
            http1,
            messages: Uri::default(),
            downloaded: Uri::default(),
            padding: vec![b'x'; settings.request_bytes].into(),
        };
        let given = |default: &'static str| if settings.path.is_empty() { default } else { &settings.path }.to_owned();
        requests.messages = requests.uri(&given(ECHO))?;
        requests.downloaded = requests.uri(&given("/"))?;
        Ok(requests)
    }

    fn uri(&self, path: &str) -> Result<Uri, TransportError> {
        if self.http1 {
            return Uri::try_from(path).map_err(unusable);
        }
        let uri = Uri::builder().scheme(self.scheme).authority(self.authority.as_str()).path_and_query(path);
        uri.build().map_err(unusable)
    }

    pub(super) fn message<B>(&self, length: Length, body: B) -> Result<Request<B>, TransportError> {
        self.request(Method::POST, self.messages.clone(), length, body)
    }

    pub(super) fn upload<B>(&self, length: Length, body: B) -> Result<Request<B>, TransportError> {
        self.request(Method::POST, self.uri(UPLOAD)?, length, body)
    }

    pub(super) fn download<B>(&self, bytes: Option<u64>, body: B) -> Result<Request<B>, TransportError> {
        let uri = match bytes {
            Some(bytes) => self.uri(&format!("{BYTES}{bytes}"))?,
            None => self.downloaded.clone(),
        };
        self.request(Method::GET, uri, Length::Absent, body)
    }

    fn request<B>(&self, method: Method, uri: Uri, length: Length, body: B) -> Result<Request<B>, TransportError> {
        let padding = self.padding(&method, &uri, length);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        if self.http1 {
            headers.insert(HOST, self.host.clone());
        }
        if let Length::Known(bytes) = length {
            headers.insert(CONTENT_LENGTH, bytes.into());
        }
        if let Some(padding) = padding {
            headers.insert(PADDING, HeaderValue::from_maybe_shared(padding).map_err(unusable)?);
        }
        Ok(request)
    }

    /// The padding for the header's size in HTTP/1.1; other versions have as much. None if the header has that size
    /// anyway, or would exceed it with an empty field.
    fn padding(&self, method: &Method, uri: &Uri, length: Length) -> Option<Bytes> {
        if self.padding.is_empty() {
            return None;
        }
        let path = uri.path_and_query().map_or(1, |path| path.as_str().len());
        let line = method.as_str().len() + 1 + path + " HTTP/1.1\r\n".len();
        let host = "host: \r\n".len() + self.authority.len();
        let length = match length {
            Length::Absent => 0,
            Length::Known(bytes) => "content-length: \r\n".len() + digits(bytes),
            Length::Unknown => "transfer-encoding: chunked\r\n".len(),
        };
        let bare = line + host + length + "x-padding: \r\n".len() + "\r\n".len();
        Some(self.padding.slice(..self.padding.len().checked_sub(bare)?))
    }
}

const fn digits(number: u64) -> usize {
    match number.checked_ilog10() {
        Some(power) => power as usize + 1,
        None => 1,
    }
}

fn name(server: &ServerName<'_>) -> String {
    match server {
        ServerName::IpAddress(address) => literal(IpAddr::from(*address)),
        other => other.to_str().into_owned(),
    }
}

fn literal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// How a server answers a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A stream, and how many bytes the client asks for.
    Stream(Option<u64>),
    /// No stream: an answer without a body, though it may say how long one would be.
    Answer(StatusCode, Option<u64>),
    /// No stream: a file for browsers.
    File(File),
}

/// How the server answers a request for `path`.
pub(super) fn route(method: &Method, path: &str) -> Route {
    let asked = path.strip_prefix(BYTES).and_then(number);
    match (method, asked) {
        (&Method::POST, _) => Route::Stream(None),
        (&Method::GET, Some(bytes)) => Route::Stream(Some(bytes)),
        (&Method::HEAD, Some(bytes)) => Route::Answer(StatusCode::OK, Some(bytes)),
        (&Method::GET, None) => match document(path).or_else(|| image(path)) {
            Some(file) => Route::File(file),
            None => Route::Answer(StatusCode::NOT_FOUND, None),
        },
        (&Method::HEAD, None) => Route::Answer(StatusCode::NOT_FOUND, None),
        _ => Route::Answer(StatusCode::METHOD_NOT_ALLOWED, None),
    }
}

/// The server's methods, named in answer to any other.
pub(super) const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, POST");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_asked_for_by_number() {
        assert_eq!(route(&Method::GET, "/bytes/5"), Route::Stream(Some(5)));
        assert_eq!(route(&Method::GET, "/bytes/0"), Route::Stream(Some(0)));
        assert_eq!(route(&Method::HEAD, "/bytes/5"), Route::Answer(StatusCode::OK, Some(5)));
        for other in ["/bytes/", "/bytes/+5", "/bytes/-1", "/bytes/5/6", "/bytes/18446744073709551616", "/"] {
            assert_eq!(route(&Method::GET, other), Route::Answer(StatusCode::NOT_FOUND, None), "{other}");
        }
    }

    #[test]
    fn a_page_and_its_images_are_files() {
        for (path, bytes, kind) in
            [("/page/500/1/10/1/20", 500, "text/html; charset=utf-8"), ("/image/90", 90, "image/bmp")]
        {
            let Route::File(file) = route(&Method::GET, path) else { panic!("{path} is no file") };
            assert_eq!((file.bytes.len(), file.kind.to_str().unwrap()), (bytes, kind));
        }
        assert_eq!(route(&Method::GET, "/page/5/1/10/1/20"), Route::Answer(StatusCode::NOT_FOUND, None));
    }

    #[test]
    fn whatever_is_posted_is_a_stream() {
        assert_eq!(route(&Method::POST, "/bytes/5"), Route::Stream(None));
        assert_eq!(route(&Method::POST, "/echo"), Route::Stream(None));
        assert_eq!(route(&Method::PUT, "/echo"), Route::Answer(StatusCode::METHOD_NOT_ALLOWED, None));
    }

    #[test]
    fn digits_of_a_length() {
        assert_eq!([0, 9, 10, 99, 100, u64::MAX].map(digits), [1, 1, 2, 2, 3, 20]);
    }
}
