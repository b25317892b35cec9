//! Images of any size in bytes, for browsers: a browser stops reading an invalid image early.

use super::file::{File, MAX_BYTES, number};
use hyper::header::HeaderValue;

/// Where images are, followed by their size in bytes.
const IMAGE: &str = "/image/";
const BMP: HeaderValue = HeaderValue::from_static("image/bmp");
/// A bitmap's two headers, bytes.
const HEADERS: usize = 54;
/// A row of pixels, bytes: a multiple of four, as the format requires.
const ROW: usize = 192;
const NARROW_ROW: usize = 4;

/// The bitmap at `path`, `/image/BYTES`; one too small for a pixel is no image. None for another path or too large.
pub(super) fn image(path: &str) -> Option<File> {
    let bytes = number(path.strip_prefix(IMAGE)?)?;
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MAX_BYTES)?;
    let mut image = headers(bytes);
    image.resize(bytes, b'x');
    Some(File { kind: BMP, bytes: image })
}

/// `BITMAPFILEHEADER` and `BITMAPINFOHEADER` for so many bytes, with as many whole rows of 24-bit pixels as fit.
fn headers(bytes: usize) -> Vec<u8> {
    let pixels = bytes.saturating_sub(HEADERS);
    let (width, row) = if pixels >= ROW { (ROW as u32 / 3, ROW) } else { (1, NARROW_ROW) };
    let words = |numbers: [u32; 4]| numbers.map(u32::to_le_bytes).concat();
    let mut headers = b"BM".to_vec();
    headers.extend(words([bytes as u32, 0, HEADERS as u32, HEADERS as u32 - 14]));
    headers.extend(words([width, (pixels / row) as u32, 1 | 24 << 16, 0]));
    headers.resize(HEADERS, 0);
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_its_size_and_as_many_rows_as_it_has_room_for() {
        for (bytes, width, height) in [(58, 1, 1), (245, 1, 47), (246, 64, 1), (30_000, 64, 155)] {
            let image = image(&format!("/image/{bytes}")).unwrap().bytes;
            assert_eq!(image.len(), bytes);
            let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize;
            assert_eq!((word(2), word(10), word(14), word(18), word(22)), (bytes, 54, 40, width, height));
        }
    }

    #[test]
    fn one_without_room_for_a_pixel_has_its_size_still() {
        for bytes in [0, 1, 54, 57] {
            assert_eq!(image(&format!("/image/{bytes}")).unwrap().bytes.len(), bytes);
        }
    }

    #[test]
    fn other_paths_have_none() {
        for path in ["/image/", "/image/+5", "/image/5/6", "/bytes/5", "/image/67108865"] {
            assert_eq!(image(path), None, "{path}");
        }
    }
}
