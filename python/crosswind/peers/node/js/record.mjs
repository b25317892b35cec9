// What a client saw, printed when it has finished measuring: printing would disturb what it measures. Connections that are kept are
// printed as soon as they are there, before what is measured begins, so that Crosswind knows what setting them up took.
import { say } from "./job.mjs";

/** Lines that are printed in one go. */
const BATCH = 5000;

export class Record {
  #attempts = 0;
  #connections = [];
  #samples = [];
  #kept;

  constructor({ kind, connection }) {
    this.#kept = kind !== "connect" && connection !== "new";
  }

  /** The number of a connection that is about to be set up. */
  attempt() {
    this.#attempts += 1;
    return this.#attempts - 1;
  }

  /** A connection has been set up. `began`, `ended`: when. */
  connected({ number: connection, transport, phases }, began, ended) {
    const times = { transport_ns: null, security_ns: null, upgrade_ns: null, ...phases };
    const line = { event: "connected", connection, transport, setup_ns: ended - began, ...times };
    if (this.#kept) say(line);
    else this.#connections.push(line);
  }

  /** The sample of an exchange, to be filled in. */
  sample(exchange, stream = 0) {
    const sample = {
      event: "sample",
      exchange,
      connection: 0,
      stream,
      intended_ns: null,
      sent_ns: null,
      received_ns: null,
      sent_bytes: 0,
      received_bytes: 0,
      outcome: "ok",
      error: null,
    };
    this.#samples.push(sample);
    return sample;
  }

  print() {
    const lines = [...this.#connections, ...this.#samples];
    for (let i = 0; i < lines.length; i += BATCH) say(...lines.slice(i, i + BATCH));
  }
}
