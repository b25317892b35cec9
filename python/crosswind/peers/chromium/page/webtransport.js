// WebTransport: streams of bytes, a message being a number of them that both ends know; or datagrams of one message each.

import { now } from "crosswind/clock.js";
import { NetworkFailure } from "crosswind/failure.js";
import { closed } from "crosswind/failure.mjs";

/** Opens a connection. It accepts the server's certificate by its hash, as pages have to where nobody has signed it. */
export function open({ origin, certificateSha256, workload }) {
  const session = new WebTransport(`${origin}/`, { serverCertificateHashes: [certificateHash(certificateSha256)] });
  // Whoever uses the session sees how it ends.
  session.closed.catch(() => {});
  const datagrams = workload.transport === "webtransport-datagram";
  return {
    connection: new (datagrams ? DatagramConnection : StreamConnection)(session),
    opened: session.ready.catch(() => {
      throw new NetworkFailure("cannot connect");
    }),
  };
}

/** As `serverCertificateHashes` takes it. `sha256`: in hexadecimal. */
export const certificateHash = (sha256) => ({
  algorithm: "sha-256",
  value: Uint8Array.from(sha256.match(/../g), (digits) => parseInt(digits, 16)),
});

class WebTransportConnection {
  constructor(session) {
    this.session = session;
  }

  /** What is in use, as Crosswind calls it. Over HTTP/2 there would be no datagrams. */
  async inUse() {
    // Chromium has no `reliability` yet.
    const { reliability, datagrams } = this.session;
    const overQuic = reliability === undefined ? datagrams.maxDatagramSize > 0 : reliability === "supports-unreliable";
    return overQuic ? this.name : `${this.name} without HTTP/3`;
  }

  /** The orderly end. */
  async close() {
    this.session.close();
    await this.session.closed.catch(() => {});
  }

  /** The end at once: pages have no other than this. */
  abort() {
    this.session.close();
  }
}

class StreamConnection extends WebTransportConnection {
  name = "webtransport";

  /** A new stream. `onReply(message, receivedNs)` is called for every `replyBytes` bytes, `onEnd(failure)` at the end. */
  async stream({ replyBytes, onReply, onEnd }) {
    const { readable, writable } = await this.session.createBidirectionalStream();
    const writer = writable.getWriter();
    readMessages(readable.getReader(), replyBytes, onReply).then(() => onEnd(closed("receive")), () => onEnd(closed("receive")));
    return { send: (message) => write(writer, message), finish: () => writer.close() };
  }
}

class DatagramConnection extends WebTransportConnection {
  name = "webtransport-datagram";
  datagrams = true;

  /** The only stream: each message is a datagram. */
  async stream({ onReply, onEnd }) {
    const { datagrams } = this.session;
    // `createWritable` has taken the place of `writable`.
    const writer = (datagrams.createWritable?.() ?? datagrams.writable).getWriter();
    readDatagrams(datagrams.readable.getReader(), onReply).then(() => onEnd(closed("receive")), () => onEnd(closed("receive")));
    return { send: (message) => write(writer, message), finish: async () => {} };
  }
}

const write = (writer, message) => writer.write(message).catch(() => {
  throw closed("send");
});

async function readMessages(reader, size, onReply) {
  let message = null;
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const receivedNs = now();
    let at = 0;
    while (at < value.length) {
      if (message === null && value.length - at >= size) {
        onReply(value.subarray(at, at + size), receivedNs);
        at += size;
        continue;
      }
      message ??= new Uint8Array(size);
      const part = value.subarray(at, at + size - length);
      message.set(part, length);
      length += part.length;
      at += part.length;
      if (length === size) {
        onReply(message, receivedNs);
        [message, length] = [null, 0];
      }
    }
  }
}

async function readDatagrams(reader, onReply) {
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onReply(value, now());
  }
}
