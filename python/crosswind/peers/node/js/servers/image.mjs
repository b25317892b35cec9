// Images of any size in bytes, for browsers: a browser that has asked for an image stops reading once the bytes turn out to be none.
// As Crosswind's own server makes them (crates/transport/src/http/image.rs).
import { MAX_BYTES } from "./document.mjs";

const IMAGE = /^\/image\/(\d+)$/;
const HEADERS = 54;
const ROW = 192;
const NARROW_ROW = 4;

/** The bitmap at a path, which is /image/BYTES; one too small for a pixel is no image. Else undefined. */
export function imageAt(path) {
  const bytes = Number(IMAGE.exec(path)?.[1]);
  if (!(bytes <= MAX_BYTES)) return undefined;
  const pixels = Math.max(bytes - HEADERS, 0);
  const [width, row] = pixels >= ROW ? [ROW / 3, ROW] : [1, NARROW_ROW];
  const headers = Buffer.alloc(HEADERS);
  headers.write("BM");
  // Its size, where the pixels begin, the size of the second header, the dimensions, one plane of 24 bits a pixel.
  const words = [bytes, 0, HEADERS, HEADERS - 14, width, Math.floor(pixels / row), 1 | (24 << 16)];
  words.forEach((word, index) => headers.writeUInt32LE(word, 2 + 4 * index));
  return { type: "image/bmp", body: Buffer.concat([headers, Buffer.alloc(pixels, "x")], bytes) };
}
