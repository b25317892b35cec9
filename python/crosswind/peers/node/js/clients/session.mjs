// What one job needs (../../../workloads): its settings, the connections that it opens, and what is reported of them.
import { timedOut, within } from "../../../workloads/failure.mjs";
import { Messages } from "../../../workloads/messages.mjs";
import { now, until } from "../clock.mjs";
import { say } from "../job.mjs";
import { failure } from "../outcome.mjs";

/** How long the orderly end of a connection may take. */
const CLOSE_NS = 1e9;
/** Lines that are printed in one go. */
const BATCH = 5000;
/** Whose connections are no more than one exchange at a time, or nothing but bytes. */
const NOT_SHARED = new Set(["tcp", "http1", "https1"]);

export class Session {
  now = now;
  until = until;
  #job;
  #connect;
  #connections = 0;
  #connected = [];
  #samples = [];

  /** `connect`: opens a connection of the job's transport. */
  constructor(job, connect) {
    const { kind, transport, connection, payload, timeout_ns: timeoutNs } = job.workload;
    this.workload = job.workload;
    this.timeoutNs = timeoutNs;
    this.messages = new Messages(payload === "text");
    this.sharesConnection = !NOT_SHARED.has(transport);
    // Connections that are kept are printed as soon as they are there, before what is measured begins, so that Crosswind knows what
    // setting them up took.
    this.keepsConnections = kind !== "connect" && connection !== "new";
    this.#job = job;
    this.#connect = connect;
  }

  /** Opens a connection. Rejects with a `Failure`, whose `connection` is its number. */
  async open() {
    const number = this.#connections;
    this.#connections += 1;
    const aborting = new AbortController();
    const began = now();
    const connecting = this.#connect(this.#job, aborting.signal);
    // One that is there too late is not wanted any more.
    connecting.then((connection) => aborting.signal.aborted && connection.abort()).catch(() => {});
    try {
      const connection = await within(connecting, this.timeoutNs, timedOut("connect", this.timeoutNs));
      this.#note(number, connection, now() - began);
      return { connection: { ...connection, stream: (handlers) => openStream(connection, handlers) }, number };
    } catch (error) {
      aborting.abort();
      throw Object.assign(failure(error), { connection: number });
    }
  }

  #note(connection, { transport, phases }, setupNs) {
    const times = { transport_ns: null, security_ns: null, upgrade_ns: null, ...phases };
    const line = { event: "connected", connection, transport, setup_ns: setupNs, ...times };
    if (this.keepsConnections) say(line);
    else this.#connected.push(line);
  }

  /** Ends a connection in an orderly way; one that has gone counts as closed. */
  async close({ connection }) {
    await within(Promise.resolve(connection.close()), CLOSE_NS, null).catch(() => connection.abort());
  }

  /** Ends a connection at once. */
  abort({ connection }) {
    connection.abort();
  }

  /** Reports an exchange. */
  add(sample) {
    this.#samples.push({ event: "sample", ...sample });
  }

  /** Prints what is reported: at the end, since printing would disturb what is measured. */
  print() {
    const lines = [...this.#connected, ...this.#samples];
    for (let i = 0; i < lines.length; i += BATCH) say(...lines.slice(i, i + BATCH));
  }
}

/** A stream as the workloads have it, of one as the clients have it. */
async function openStream(connection, { onReply, onEnd }) {
  const stream = await connection.open();
  stream.onReply = (reply) => onReply(reply, now());
  stream.onEnd = (error) => onEnd(failure(error));
  const attempt = (work) => {
    try {
      work();
    } catch (error) {
      throw failure(error);
    }
  };
  return { send: (message) => attempt(() => stream.send(message)), finish: () => attempt(() => stream.finish()) };
}
