// Open loop: each message is sent when it is time, whatever became of the others. The intended time is kept beside the actual one,
// so that a sender held up hides no delay.

import { until } from "crosswind/clock.js";
import { changed, failureOf, timedOut } from "crosswind/failure.js";
import { same } from "crosswind/message.js";
import { fail, newSample } from "crosswind/session.js";

const LOOK_MS = 5;

/** Messages that are due, in order: `{number, stream, afterMs}`. */
export const schedule = (numbers, intervalMs, streams = 1) =>
  numbers.map((number) => ({ number, stream: number % streams, afterMs: number * intervalMs }));

/** Sends the messages of several streams of one connection. `flows`: for each stream of the transport, what is due on it. */
export class OpenLoop {
  constructor(session, size) {
    this.session = session;
    this.size = size;
    this.waiting = new Map();
  }

  async run(flows) {
    const { session } = this;
    const samples = flows.flat().map((due) => newSample(due.number, { stream: due.stream }));
    this.samples = new Map(samples.map((sample) => [sample.exchange, sample]));
    let open = null;
    try {
      open = await session.open();
      for (const sample of samples) sample.connection = open.number;
      this.connection = open;
      const streams = [];
      for (const [index] of flows.entries()) streams.push(await this.openStream(open, index));
      const startMs = performance.now();
      await Promise.all(flows.map((due, index) => this.sendAll(streams[index], due, startMs)));
      await this.lastReplies();
    } catch (error) {
      for (const sample of samples) if (sample.sent === null) fail(sample, failureOf(error));
    }
    for (const sample of samples) session.add(sample);
    if (open !== null) await session.close(open);
  }

  openStream({ connection }, index) {
    return connection.stream({
      replySize: this.size,
      onReply: (reply, receivedMs, details) => this.take(reply, receivedMs, details),
      onEnd: (failure, number) => {
        for (const sample of this.samples.values()) {
          const concerned = number === undefined ? sample.stream === index || !connection.manyStreams : sample.exchange === number;
          if (concerned && sample.outcome === "timeout") fail(sample, failure);
        }
      },
    });
  }

  async sendAll(stream, due, startMs) {
    const { messages, timeoutMs } = this.session;
    for (const { number, afterMs } of due) {
      const intended = startMs + afterMs;
      const message = messages.make(number, this.size);
      await until(intended);
      const sample = this.samples.get(number);
      this.waiting.set(messages.tag(message), sample);
      fail(sample, timedOut("receive", timeoutMs));
      Object.assign(sample, { intended, sent: performance.now(), sentBytes: this.size });
      try {
        stream.send(message, number)?.catch((error) => fail(sample, failureOf(error)));
      } catch (error) {
        fail(sample, failureOf(error));
      }
    }
  }

  take(reply, receivedMs, details) {
    const { messages, timeoutMs } = this.session;
    const tag = messages.tag(reply);
    const sample = this.waiting.get(tag);
    // A second copy, or what matches nothing.
    if (sample === undefined) return;
    this.waiting.delete(tag);
    if (details?.connected) {
      this.session.note(this.connection, details.connected);
      sample.connection = this.connection.number;
    }
    if (details?.sentMs !== undefined) sample.sent = details.sentMs;
    // What comes too late is lost, as in a closed loop.
    if (receivedMs - sample.sent > timeoutMs) return;
    Object.assign(sample, { received: receivedMs, receivedBytes: reply.length, outcome: "ok", error: null });
    if (!same(reply, messages.make(sample.exchange, this.size))) fail(sample, changed());
  }

  /** Waits for the last replies, which may take as long as the timeout. */
  async lastReplies() {
    const endMs = performance.now() + this.session.timeoutMs;
    const missing = () => [...this.samples.values()].some((sample) => sample.outcome === "timeout");
    while (missing() && performance.now() < endMs) await until(performance.now() + LOOK_MS);
  }
}
