// Closed loop: the next message is sent when the one before has been answered, so that one is in flight in each lane.

import { changed, failureOf, timedOut } from "crosswind/failure.js";
import { same } from "crosswind/message.js";
import { fail, newSample } from "crosswind/session.js";

/** A lane that sends messages one after another. `sizes`: of request and reply, bytes. */
export class ClosedLoop {
  constructor(session, sizes) {
    this.session = session;
    this.sizes = sizes;
    this.newConnection = session.workload.connection === "new";
    this.newStream = session.workload.stream === "new";
    this.kept = null;
    this.pending = null;
  }

  async run(numbers) {
    for (const number of numbers) this.session.add(await this.exchange(number));
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
      sample.connection = error.connection ?? 0;
      fail(sample, failureOf(error));
      return sample;
    }
    sample.connection = open.number;
    const message = session.messages.make(number, sizes.request);
    const expected = session.messages.reply(number, sizes.request, sizes.reply);
    try {
      const { reply, receivedMs, details } = await this.sendAndReceive(open, message, expected, sample);
      sample.received = receivedMs;
      sample.receivedBytes = reply.length;
      if (details?.sentMs !== undefined) sample.sent = details.sentMs;
      if (details?.connected) session.note(open, details.connected);
      sample.connection = open.number;
      sample.outcome = "ok";
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
      replySize: this.sizes.reply,
      onReply: (reply, receivedMs, details) => (only ?? this.pending)?.onReply(reply, receivedMs, details),
      onEnd: (failure) => (only ?? this.pending)?.reject(failure),
    });
  }

  sendAndReceive(open, message, expected, sample) {
    const { session } = this;
    const { timeoutMs, messages } = session;
    return new Promise((resolve, reject) => {
      const onReply = (reply, receivedMs, details) => {
        // Answers to earlier datagrams that arrive late are passed over.
        if (open.connection.datagrams && messages.tag(reply) !== messages.tag(expected)) return;
        resolve({ reply, receivedMs, details });
      };
      this.pending = { onReply, reject };
      this.timer = setTimeout(() => reject(timedOut("exchange", timeoutMs)), timeoutMs);
      sample.sent = performance.now();
      sample.sentBytes = message.length;
      if (this.newStream) this.openStream(open, this.pending).then(() => open.stream.send(message)).catch(reject);
      else open.stream.send(message)?.catch(reject);
    }).finally(() => {
      clearTimeout(this.timer);
      this.pending = null;
    });
  }

  async keepOrEnd(open, ok) {
    const { connection } = open;
    if (ok && this.newStream) await open.stream.finish();
    if (!this.newConnection && (ok || connection.datagrams)) this.kept = open;
    else if (ok) await this.session.close(open);
    else {
      this.session.settle(open);
      // What is still on its way must not be taken for the next reply.
      connection.abort();
    }
  }
}
