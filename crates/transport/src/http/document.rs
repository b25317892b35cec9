//! A page's document, for browsers: HTML with scripts, `/bytes/N` each, and images, `/image/N` each.

use super::file::{File, MAX_BYTES, number};
use hyper::header::HeaderValue;
use std::fmt::Write;

/// The prefix of documents, before their size and the numbers and sizes of their files.
const PAGE: &str = "/page/";
const MAX_FILES: u64 = 1000;

/// Browsers ask for an icon where a page names none.
const HEAD: &str = "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>Page</title>\n<link rel=\"icon\" href=\"data:,\">\n";
const BODY: &str = "</head>\n<body>\n";
const TEXT: &str = "<p>";
const END: &str = "</p>\n</body>\n</html>\n";
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The document at `path`, `/page/HTML_BYTES/SCRIPTS/SCRIPTS_BYTES/IMAGES/IMAGES_BYTES`. None for another path, and for
/// a document too small to name its files.
pub(super) fn document(path: &str) -> Option<File> {
    let numbers: Vec<u64> = path.strip_prefix(PAGE)?.split('/').map(number).collect::<Option<_>>()?;
    let [size, scripts, scripts_bytes, images, images_bytes] = numbers.try_into().ok()?;
    let size = usize::try_from(size).ok().filter(|size| *size <= MAX_BYTES)?;
    if scripts.max(images) > MAX_FILES {
        return None;
    }
    let mut html = String::with_capacity(size);
    html.push_str(HEAD);
    for (file, bytes) in (1..).zip(pieces(scripts_bytes, scripts)) {
        let _ = writeln!(html, "<script src=\"/bytes/{bytes}?script={file}\" defer></script>");
    }
    html.push_str(BODY);
    for (file, bytes) in (1..).zip(pieces(images_bytes, images)) {
        let _ = writeln!(html, "<img src=\"/image/{bytes}?image={file}\" alt=\"\">");
    }
    html.push_str(TEXT);
    let filler = size.checked_sub(html.len() + END.len())?;
    html.extend(std::iter::repeat_n('x', filler));
    html.push_str(END);
    Some(File { kind: HTML, bytes: html.into_bytes() })
}

/// `total` bytes in `count` pieces. Where they cannot be equal, the first ones are a byte larger.
fn pieces(total: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |piece| total / count + u64::from(piece < total % count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_what_belongs_to_it_and_has_its_size() {
        let html = String::from_utf8(document("/page/600/2/5/3/9").unwrap().bytes).unwrap();
        assert_eq!(html.len(), 600);
        let named: Vec<&str> = html.split('"').filter(|part| part.starts_with('/')).collect();
        let images = ["/image/3?image=1", "/image/3?image=2", "/image/3?image=3"];
        assert_eq!(named, [&["/bytes/3?script=1", "/bytes/2?script=2"], &images[..]].concat());
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    }

    #[test]
    fn it_may_name_nothing() {
        let smallest = HEAD.len() + BODY.len() + TEXT.len() + END.len();
        assert_eq!(document(&format!("/page/{smallest}/0/0/0/0")).map(|html| html.bytes.len()), Some(smallest));
        assert_eq!(document(&format!("/page/{}/0/0/0/0", smallest - 1)), None);
    }

    #[test]
    fn other_paths_have_none() {
        for path in [
            "/page/",
            "/page/600/2/5/3",
            "/page/600/2/5/3/9/1",
            "/page/600/2/5/3/+9",
            "/page/600/2/5/3/",
            "/bytes/600",
            "/page/67108865/0/0/0/0",
            "/page/100000/1001/2000/0/0",
            "/page/18446744073709551616/0/0/0/0",
        ] {
            assert_eq!(document(path), None, "{path}");
        }
    }
}
