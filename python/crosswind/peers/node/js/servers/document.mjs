// The document of a page, for browsers: HTML that names scripts, /bytes/N each, and images, /image/N each. As Crosswind's own server
// makes it (crates/transport/src/http/document.rs).

const PAGE = /^\/page\/(\d+)\/(\d+)\/(\d+)\/(\d+)\/(\d+)$/;
/** The largest file, which is held in memory. */
export const MAX_BYTES = 64 << 20;
const MAX_FILES = 1000;

// Browsers ask for an icon where a page names none.
const HEAD =
  '<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n<title>Page</title>\n<link rel="icon" href="data:,">\n';
const BODY = "</head>\n<body>\n";
const TEXT = "<p>";
const END = "</p>\n</body>\n</html>\n";

/** The document at a path, which is /page/HTML_BYTES/SCRIPTS/SCRIPTS_BYTES/IMAGES/IMAGES_BYTES; else undefined. */
export function documentAt(path) {
  const numbers = PAGE.exec(path)?.slice(1).map(Number);
  if (numbers === undefined) return undefined;
  const [size, scripts, scriptsBytes, images, imagesBytes] = numbers;
  if (size > MAX_BYTES || Math.max(scripts, images) > MAX_FILES) return undefined;
  const script = (bytes, file) => `<script src="/bytes/${bytes}?script=${file}" defer></script>\n`;
  const image = (bytes, file) => `<img src="/image/${bytes}?image=${file}" alt="">\n`;
  const named = HEAD + each(scriptsBytes, scripts, script) + BODY + each(imagesBytes, images, image) + TEXT;
  const filler = size - named.length - END.length;
  return filler < 0 ? undefined : { type: "text/html; charset=utf-8", body: named + "x".repeat(filler) + END };
}

/** Of `total` bytes in `count` pieces, what `make` makes of each. Where they cannot be equal, the first ones are a byte larger. */
function each(total, count, make) {
  const pieces = Array.from({ length: count }, (_, piece) => Math.floor(total / count) + (piece < total % count ? 1 : 0));
  return pieces.map((bytes, index) => make(bytes, index + 1)).join("");
}
