// Echo: messages that are answered, one after another on each connection, or at a rate.
import { now } from "../clock.mjs";
import { message, pattern, sizes, visible } from "../messages.mjs";
import { Failure, fill, within } from "../outcome.mjs";
import { numbers, sideBySide } from "./lane.mjs";
import { openLoop } from "./open-loop.mjs";

export function run(lane) {
  const { mode, messages, connections, rate_per_s: rate } = lane.workload;
  if (mode === "open") {
    return sideBySide(connections, (number) => {
      const due = [...numbers(number, connections, messages)].map((exchange) => {
        return { exchange, stream: 0, after: Math.floor((exchange * 1e9) / rate) };
      });
      return openLoop(lane, [due]);
    });
  }
  return sideBySide(connections, (number) => new ClosedLoop(lane).run(numbers(number, connections, messages)));
}

/** One message in flight, on one connection or on a new one for each. */
class ClosedLoop {
  #lane;
  #sizes;
  #text;
  #connection = null;
  #stream = null;

  constructor(lane) {
    this.#lane = lane;
    this.#sizes = sizes(lane.workload);
    this.#text = lane.workload.payload === "text";
  }

  async run(exchanges) {
    for (const exchange of exchanges) {
      const sample = this.#lane.record.sample(exchange);
      try {
        await this.#exchange(sample);
      } catch (error) {
        fill(sample, error);
        this.#giveUp();
      }
    }
    await this.#end();
  }

  async #exchange(sample) {
    const { workload } = this.#lane;
    if (this.#connection === null) this.#connection = await this.#lane.open();
    sample.connection = this.#connection.number;
    // A stream of its own for each message is part of the exchange.
    const kept = workload.stream !== "new";
    if (kept) this.#stream ??= await this.#connection.open();
    const { request, reply } = this.#sizes;
    const sent = message(sample.exchange, request, this.#text);
    const expected = reply > request ? Buffer.concat([sent, pattern(reply, this.#text).subarray(request)]) : sent.subarray(0, reply);
    sample.sent_ns = now();
    sample.sent_bytes = request;
    const [received, at] = await within(this.#answer(sent, expected), this.#lane.timeoutNs);
    sample.received_ns = at;
    sample.received_bytes = received.length;
    if (!received.equals(expected)) throw new Failure("error", "the reply is not what it should be");
    if (!kept) this.#leaveStream();
    if (workload.connection === "new") await this.#end();
  }

  /** Sends, and waits for the answer and the time at which it came. */
  async #answer(sent, expected) {
    this.#stream ??= await this.#connection.open();
    const stream = this.#stream;
    return new Promise((resolve, reject) => {
      stream.onEnd = reject;
      stream.onReply = (reply) => {
        const at = now();
        // The late answer to a datagram that was given up.
        if (this.#connection.datagrams && visible(reply) !== visible(expected)) return;
        resolve([reply, at]);
      };
      stream.send(sent);
    });
  }

  #leaveStream() {
    this.#stream.finish();
    this.#stream = null;
  }

  /** What is still on its way must not be taken for the next reply; an answer to a datagram says which it is. */
  #giveUp() {
    if (this.#connection === null || this.#connection.datagrams) return;
    this.#connection.abort();
    [this.#connection, this.#stream] = [null, null];
  }

  async #end() {
    const connection = this.#connection;
    [this.#connection, this.#stream] = [null, null];
    if (connection !== null) await this.#lane.close(connection);
  }
}
