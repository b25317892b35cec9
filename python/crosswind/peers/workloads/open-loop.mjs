// Open loop: each message is sent when it is time, whatever became of the others. The intended time is kept beside the actual one,
// so that a sender held up hides no delay.

import { changed, failureOf, timedOut } from "./failure.mjs";
import { same, sizesOf } from "./messages.mjs";
import { answered, fail, newSample } from "./samples.mjs";

/** Messages that are due, in order: their samples, and how long after the start each is to be sent. */
export const schedule = (exchanges, intervalNs, streams = 1) =>
  exchanges.map((exchange) => ({ sample: newSample(exchange, exchange % streams), afterNs: Math.floor(exchange * intervalNs) }));

/** Sends the messages of each list in `flows`, which are those of one stream, over connections that it sets up: one for each list
 *  where `apart`, else one for all. */
export async function openLoop(session, flows, apart = false) {
  const samples = flows.flat().map(({ sample }) => sample);
  const opened = [];
  try {
    const open = [];
    for (let place = 0; place < flows.length; place += 1) {
      if (apart || place === 0) opened.push(await session.open());
      open.push(await Flow.open(session, opened.at(-1)));
    }
    const startNs = session.now();
    await Promise.all(flows.map((due, place) => open[place].run(due, startNs)));
  } catch (error) {
    for (const sample of samples) fail(sample, failureOf(error));
  }
  for (const sample of samples) session.add(sample);
  for (const open of opened) await session.close(open);
}

/** One stream of messages. */
class Flow {
  /** Samples that wait for a reply, with that reply, by what is visible of its number. */
  #waiting = new Map();
  #failure = null;
  #finish = null;

  static async open(session, open) {
    const flow = new Flow();
    Object.assign(flow, { session, connection: open, sizes: sizesOf(session.workload) });
    flow.stream = await open.connection.stream({
      replyBytes: flow.sizes.reply,
      onReply: (reply, receivedNs, details) => flow.#take(reply, receivedNs, details),
      onEnd: (failure, exchange) => flow.#end(failure, exchange),
    });
    return flow;
  }

  async run(due, startNs) {
    const { session } = this;
    for (const { sample, afterNs } of due) {
      const { request, reply } = this.sizes;
      const message = session.messages.make(sample.exchange, request);
      const expected = session.messages.reply(sample.exchange, request, reply);
      sample.intended_ns = startNs + afterNs;
      sample.connection = this.connection.number;
      await session.until(sample.intended_ns);
      if (this.#failure === null) this.#send(sample, message, expected);
      else fail(sample, this.#failure);
    }
    await this.#lastReplies();
    this.stream.finish()?.catch(() => {});
  }

  #send(sample, message, expected) {
    const { messages, now, timeoutNs } = this.session;
    this.#waiting.set(messages.tag(expected), { sample, expected });
    fail(sample, timedOut("receive", timeoutNs));
    Object.assign(sample, { sent_ns: now(), sent_bytes: message.length });
    try {
      this.stream.send(message, sample.exchange)?.catch((error) => this.#end(failureOf(error), sample.exchange));
    } catch (error) {
      this.#end(failureOf(error), sample.exchange);
    }
  }

  #take(reply, receivedNs, details) {
    const { session, connection } = this;
    const tag = session.messages.tag(reply);
    // A second copy, or what matches nothing.
    if (!this.#waiting.has(tag)) return;
    const { sample, expected } = this.#waiting.get(tag);
    this.#forget(tag);
    if (details?.connected) {
      session.note(connection, details.connected);
      sample.connection = connection.number;
    }
    if (details?.sentNs !== undefined) sample.sent_ns = details.sentNs;
    // What comes too late is lost, as in a closed loop.
    if (receivedNs - sample.sent_ns > session.timeoutNs) return;
    answered(sample, reply, receivedNs);
    if (!same(reply, expected)) fail(sample, changed());
  }

  /** The stream has ended, or one exchange of it. */
  #end(failure, exchange) {
    if (exchange === undefined) this.#failure = failure;
    for (const [tag, { sample }] of [...this.#waiting]) {
      if (exchange !== undefined && sample.exchange !== exchange) continue;
      fail(sample, failure);
      this.#forget(tag);
    }
  }

  #forget(tag) {
    this.#waiting.delete(tag);
    if (this.#waiting.size === 0) this.#finish?.();
  }

  /** Waits for the last replies, which may take as long as the timeout. What comes later changes nothing. */
  async #lastReplies() {
    if (this.#waiting.size > 0) {
      let timer;
      await new Promise((resolve) => {
        this.#finish = resolve;
        timer = setTimeout(resolve, this.session.timeoutNs / 1e6);
      });
      clearTimeout(timer);
    }
    this.#waiting.clear();
  }
}
