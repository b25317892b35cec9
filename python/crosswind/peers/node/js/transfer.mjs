// The server's side of a transfer: bytes in one direction, each transfer on a connection of its own.
import { Readable } from "node:stream";
import { PART_BYTES, pattern } from "./messages.mjs";

/** `total` bytes of the pattern in parts. */
export function* parts(total, text = false) {
  const part = pattern(PART_BYTES, text);
  for (let unsent = total; unsent > 0; unsent -= part.length) yield part.subarray(0, Math.min(unsent, part.length));
}

/** Sends the transfer's bytes as messages; without a size until the client goes. */
export async function giveMessages(stream, { size_bytes: size, payload }) {
  for (const part of parts(size ?? Infinity, payload === "text")) {
    try {
      await stream.send(part);
    } catch {
      return; // the client has gone
    }
  }
  stream.finish();
}

/** Receives the transfer's bytes as messages, and ends the connection when all are there. */
export function takeMessages(stream, { size_bytes: size }) {
  let received = 0;
  stream.onMessage((length) => {
    received += length;
    if (received >= size) stream.finish();
  });
}

/** Sends the transfer's bytes into a stream of Node's and ends it. */
export function giveBytes(writable, { size_bytes: size }) {
  Readable.from(parts(size ?? Infinity), { objectMode: false }).pipe(writable);
}

/** Receives the transfer's bytes from a stream of Node's, and ends it when all are there. */
export function takeBytes(duplex, { size_bytes: size }) {
  let received = 0;
  duplex.on("data", (piece) => {
    received += piece.length;
    if (received >= size) duplex.end();
  });
}
