// WebTransport as Deno has it, in the interface of browsers: streams of bytes, or datagrams.
import { authority, implementation as describe } from "../job.mjs";
import { sizesOf } from "../../../workloads/messages.mjs";
import { Failure } from "../../../workloads/failure.mjs";
import { close } from "../session.mjs";
import { cut } from "../streams.mjs";

export const implementation = () => describe();

/** The address of the session, and what it is trusted by: the hash of its certificate. */
export function webTransportOptions(job) {
  const value = Uint8Array.from(Buffer.from(job.certificate_sha256, "hex"));
  return { serverCertificateHashes: [{ algorithm: "sha-256", value }] };
}

export async function connect(job) {
  const { transport } = job.workload;
  const session = new WebTransport(`https://${authority(job)}/`, webTransportOptions(job));
  session.closed.catch(() => {});
  await session.ready;
  const datagrams = transport === "webtransport-datagram";
  return {
    transport,
    datagrams,
    phases: {},
    open: async () => (datagrams ? datagramStream(session) : byteStream(session, job)),
    close: () => close(session),
    abort: () => close(session),
  };
}

async function byteStream(session, job) {
  const { readable, writable } = await session.createBidirectionalStream();
  const writer = writable.getWriter();
  const stream = {
    send: (message) => writer.write(message).catch((error) => stream.onEnd?.(error)),
    finish: () => writer.close().catch(() => {}),
  };
  const handle = cut(sizesOf(job.workload).reply, (reply) => stream.onReply?.(reply));
  read(readable, (piece) => handle(Buffer.from(piece.buffer, piece.byteOffset, piece.length)), stream);
  return stream;
}

function datagramStream(session) {
  const writer = session.datagrams.writable.getWriter();
  const stream = {
    // It may be lost.
    send: (message) => writer.write(message).catch(() => {}),
    finish: () => {},
  };
  read(session.datagrams.readable, (datagram) => stream.onReply?.(Buffer.from(datagram)), stream);
  return stream;
}

async function read(readable, handle, stream) {
  const reader = readable.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      handle(value);
    }
    stream.onEnd?.(new Failure("closed", "the server ended the stream"));
  } catch (error) {
    stream.onEnd?.(new Failure("reset", error.message));
  }
}
