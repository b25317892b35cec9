// The server's side of a transfer to the client, each on a connection of its own. The client ends it: what is on its way must not be
// cut off. Transfers to the server are refused, since what arrived only the server knows, and it has no way to report it.
import { Readable } from "node:stream";
import { PART_BYTES, pattern } from "./messages.mjs";

/** `total` bytes of the pattern in parts. */
export function* parts(total, text = false) {
  const part = pattern(PART_BYTES, text);
  for (let unsent = total; unsent > 0; unsent -= part.length) yield part.subarray(0, Math.min(unsent, part.length));
}

/** Sends the transfer's bytes by `send`, in messages; without a size until the client goes. */
export async function giveMessages(send, { size_bytes: size, payload }) {
  for (const part of parts(size ?? Infinity, payload === "text")) {
    try {
      await send(part);
    } catch {
      return; // the client has gone
    }
  }
}

/** Sends the transfer's bytes into a stream of Node's. */
export function giveBytes(writable, { size_bytes: size }) {
  Readable.from(parts(size ?? Infinity), { objectMode: false }).pipe(writable, { end: false });
}
