// Open loop: each message is sent when it is time, whatever became of the others. The intended time is kept beside the actual
// one. Timers tick in milliseconds, so that a message may leave up to one millisecond late.
import { now } from "../clock.mjs";
import { message, sizes, visible } from "../messages.mjs";
import { Failure, fill } from "../outcome.mjs";

/** Sends the messages of each list in `flows`, which are those of one stream, over connections that it sets up: one for
 *  each list where `apart`, else one for all. */
export async function openLoop(lane, flows, apart = false) {
  let opened;
  try {
    opened = await openFlows(lane, flows.length, apart);
  } catch (error) {
    for (const due of flows.flat()) fill(lane.record.sample(due.exchange, due.stream), error);
    return;
  }
  const start = now();
  await Promise.all(flows.map((all, place) => new Flow(lane, opened[place], start).run(all)));
  for (const connection of new Set(opened.map((flow) => flow.connection))) await lane.close(connection);
}

async function openFlows(lane, count, apart) {
  const opened = [];
  for (let place = 0; place < count; place += 1) {
    const connection = apart || place === 0 ? await lane.open() : opened[0].connection;
    opened.push({ connection, stream: await connection.open() });
  }
  return opened;
}

/** One stream of messages. */
class Flow {
  #lane;
  #connection;
  #stream;
  #start;
  /** Samples that wait for a reply, by what is visible of their messages. */
  #waiting = new Map();
  #failure = null;
  #finish;

  constructor(lane, { connection, stream }, start) {
    this.#lane = lane;
    this.#connection = connection;
    this.#stream = stream;
    this.#start = start;
    stream.onReply = (reply) => this.#note(reply, now());
    stream.onEnd = (error) => {
      this.#failure = error;
      this.#finish?.();
    };
  }

  async run(all) {
    const { request } = sizes(this.#lane.workload);
    for (const { exchange, stream, after } of all) {
      const sample = this.#lane.record.sample(exchange, stream);
      sample.intended_ns = this.#start + after;
      sample.connection = this.#connection.number;
      await this.#until(sample.intended_ns);
      if (this.#failure !== null) fill(sample, this.#failure);
      else this.#send(sample, message(exchange, request, this.#lane.workload.payload === "text"));
    }
    await this.#lastReplies();
    this.#stream.finish();
  }

  #send(sample, sent) {
    sample.sent_ns = now();
    sample.sent_bytes = sent.length;
    const { timeoutNs } = this.#lane;
    fill(sample, new Failure("timeout", `no reply came within ${timeoutNs / 1e9} s`));
    this.#waiting.set(visible(sent), sample);
    this.#stream.send(sent);
  }

  #note(reply, at) {
    const sample = this.#waiting.get(visible(reply));
    // A second copy, or an answer to what was given up.
    if (sample === undefined) return;
    this.#waiting.delete(visible(reply));
    if (at - sample.sent_ns > this.#lane.timeoutNs) return;
    Object.assign(sample, { received_ns: at, received_bytes: reply.length, outcome: "ok", error: null });
    if (this.#waiting.size === 0) this.#finish?.();
  }

  /** A timer may fire early, since it counts milliseconds from the last turn of the loop; a message is never sent early. */
  async #until(time) {
    for (let left = time - now(); left > 0; left = time - now()) {
      await new Promise((resolve) => setTimeout(resolve, left / 1e6));
    }
  }

  /** The last reply may take as long as the timeout. */
  async #lastReplies() {
    if (this.#waiting.size === 0 || this.#failure !== null) return;
    let timer;
    await new Promise((resolve) => {
      this.#finish = resolve;
      timer = setTimeout(resolve, this.#lane.timeoutNs / 1e6);
    });
    clearTimeout(timer);
  }
}
