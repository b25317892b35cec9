// A WebTransport server, which Deno has: streams of bytes, or datagrams.
import { implementation } from "../job.mjs";
import { sizesOf } from "../../../workloads/messages.mjs";
import { answerer } from "../messages.mjs";
import { cut } from "../streams.mjs";
import { listenWebTransport } from "./sessions.mjs";

export async function serve(job) {
  const answer = answerer(job.workload);
  listenWebTransport(job, (session) => {
    if (job.workload.transport === "webtransport-datagram") return answerDatagrams(session, answer);
    return each(session.incomingBidirectionalStreams, (stream) => {
      // A stream that its client has left needs no more service.
      answerMessages(stream, job.workload, answer).catch(() => {});
    });
  });
  return implementation();
}

async function answerMessages({ readable, writable }, workload, answer) {
  const writer = writable.getWriter();
  const handle = cut(sizesOf(workload).request, (message) => {
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

/** Calls `handle` with each chunk of a stream, to its end. */
async function each(readable, handle) {
  const reader = readable.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    handle(value);
  }
}
