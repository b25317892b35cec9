// The server's side of a transfer over messages: bytes in one direction, each transfer on a connection of its own.
import { PART_BYTES, pattern } from "./messages.mjs";

/** Sends the transfer's bytes, in messages; without a size until the client goes. */
export async function giveMessages(stream, { size_bytes: size, payload }) {
  const part = pattern(PART_BYTES, payload === "text");
  let open = true;
  stream.onEnd(() => (open = false));
  let unsent = size ?? Infinity;
  while (open && unsent > 0) {
    const length = Math.min(unsent, part.length);
    // The error of a client that has gone.
    if (await stream.send(part.subarray(0, length))) return;
    unsent -= length;
  }
  if (open) stream.finish();
}

/** Receives the transfer's bytes, and ends the connection when all are there. */
export function takeMessages(stream, { size_bytes: size }) {
  let received = 0;
  stream.onMessage((length) => {
    received += length;
    if (received >= size) stream.finish();
  });
}
