// A WebTransport server, which Deno has: streams of bytes, or datagrams.
import { implementation } from "../job.mjs";
import { answerer, sizes } from "../messages.mjs";
import { cut } from "../streams.mjs";
import { parts } from "../transfer.mjs";
import { listenWebTransport } from "./sessions.mjs";

export async function serve(job) {
  const { kind, transport } = job.workload;
  const answer = answerer(job.workload);
  const serveStream = kind === "transfer" ? give : answerMessages;
  listenWebTransport(job, (session) => {
    if (transport === "webtransport-datagram") return answerDatagrams(session, answer);
    return each(session.incomingBidirectionalStreams, (stream) => {
      // A stream that its client has left needs no more service.
      serveStream(stream, job.workload, answer).catch(() => {});
    });
  });
  return implementation();
}

async function answerMessages({ readable, writable }, workload, answer) {
  const writer = writable.getWriter();
  const handle = cut(sizes(workload).request, (message) => {
    writer.write(answer(message)).catch(() => {});
  });
  await each(readable, (piece) => handle(Buffer.from(piece.buffer, piece.byteOffset, piece.length)));
  await writer.close();
}

async function answerDatagrams(session, answer) {
  const writer = session.datagrams.writable.getWriter();
  await each(session.datagrams.readable, (datagram) => {
    // A datagram may be lost.
    writer.write(answer(datagram)).catch(() => {});
  });
}

/** The client asks for the transfer by one byte. */
async function give({ readable, writable }, { size_bytes: size }) {
  await readable.getReader().read();
  const writer = writable.getWriter();
  for (const part of parts(size ?? Infinity)) {
    await writer.ready;
    await writer.write(part);
  }
  await writer.close();
}

/** Calls `handle` with each chunk of a stream, to its end. */
async function each(readable, handle) {
  const reader = readable.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    handle(value);
  }
}
