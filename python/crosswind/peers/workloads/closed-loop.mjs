// Closed loop: the next message is sent when the one before has been answered, so that one is in flight in each lane.

import { changed, failureOf, timedOut } from "./failure.mjs";
import { same, sizesOf } from "./messages.mjs";
import { answered, fail, newSample } from "./samples.mjs";

/** A lane that sends messages one after another. */
export class ClosedLoop {
  constructor(session) {
    this.session = session;
    this.sizes = sizesOf(session.workload);
    this.newConnection = session.workload.connection === "new";
    this.newStream = session.workload.stream === "new";
    this.kept = null;
  }

  async run(exchanges) {
    for (const exchange of exchanges) this.session.add(await this.exchange(exchange));
    if (this.kept !== null) await this.session.close(this.kept);
  }

  async exchange(number) {
    const { session, sizes } = this;
    const sample = newSample(number);
    let open = this.kept;
    this.kept = null;
    try {
      open ??= await this.open();
    } catch (error) {
      fail(sample, failureOf(error));
      return sample;
    }
    sample.connection = open.number;
    const message = session.messages.make(number, sizes.request);
    const expected = session.messages.reply(number, sizes.request, sizes.reply);
    try {
      const { reply, receivedNs, details } = await this.sendAndReceive(open, message, expected, sample);
      answered(sample, reply, receivedNs);
      if (details?.sentNs !== undefined) sample.sent_ns = details.sentNs;
      if (details?.connected) session.note(open, details.connected);
      sample.connection = open.number;
      if (!same(reply, expected)) fail(sample, changed());
    } catch (error) {
      fail(sample, failureOf(error));
    }
    await this.keepOrEnd(open, sample.outcome === "ok");
    return sample;
  }

  async open() {
    const open = await this.session.open();
    if (!this.newStream) await this.openStream(open);
    return open;
  }

  /** Opens a stream: for all exchanges, or for `only` one. */
  async openStream(open, only = null) {
    open.stream = await open.connection.stream({
      replyBytes: this.sizes.reply,
      onReply: (reply, receivedNs, details) => (only ?? open.pending)?.onReply(reply, receivedNs, details),
      onEnd: (failure, exchange) => {
        (only ?? open.pending)?.reject(failure);
        // It may end between two exchanges.
        if (only === null && exchange === undefined) open.failure = failure;
      },
    });
  }

  sendAndReceive(open, message, expected, sample) {
    const { messages, timeoutNs, now } = this.session;
    return new Promise((resolve, reject) => {
      const onReply = (reply, receivedNs, details) => {
        // Replies to earlier datagrams that arrive late are passed over.
        if (open.connection.datagrams && messages.tag(reply) !== messages.tag(expected)) return;
        resolve({ reply, receivedNs, details });
      };
      open.pending = { onReply, reject };
      this.timer = setTimeout(() => reject(timedOut("exchange", timeoutNs)), timeoutNs / 1e6);
      if (open.failure !== undefined) return void reject(open.failure);
      sample.sent_ns = now();
      sample.sent_bytes = message.length;
      // A stream of its own for each message is part of the exchange.
      if (this.newStream) this.openStream(open, open.pending).then(() => open.stream.send(message)).catch(reject);
      else open.stream.send(message)?.catch(reject);
    }).finally(() => {
      clearTimeout(this.timer);
      open.pending = null;
    });
  }

  async keepOrEnd(open, ok) {
    const { connection } = open;
    if (ok && this.newStream) await open.stream.finish();
    if (!this.newConnection && (ok || connection.datagrams)) this.kept = open;
    else if (ok) await this.session.close(open);
    // What is still on its way must not be taken for the next reply.
    else this.session.abort(open);
  }
}
