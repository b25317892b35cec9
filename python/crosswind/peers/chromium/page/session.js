// What one job needs: its settings, the connections that it opens, and what is reported of them.

import { now, toNs, until } from "crosswind/clock.js";
import { failureOf, timedOut, within } from "crosswind/failure.mjs";
import { Messages } from "crosswind/messages.mjs";

const MODULES = {
  websocket: "websocket",
  wss: "websocket",
  webtransport: "webtransport",
  "webtransport-datagram": "webtransport",
  "socketio-websocket": "socketio",
  "socketio-webtransport": "socketio",
  http1: "fetch",
  https1: "fetch",
  http2: "fetch",
  http3: "fetch",
};
const CLOSE_NS = 1e9;

/** The session of a job, once the module of its transport is there. */
export async function prepare(job) {
  const { open } = await import(`crosswind/${MODULES[job.workload.transport]}.js`);
  return new Session(job, open);
}

class Session {
  now = now;
  until = until;
  /** Over HTTP the browser opens as many connections as it likes. */
  sharesConnection = true;

  constructor(job, openConnection) {
    this.job = job;
    this.workload = job.workload;
    this.openConnection = openConnection;
    this.timeoutNs = job.workload.timeout_ns;
    this.messages = new Messages(job.workload.payload === "text");
    this.connected = [];
    this.noted = new Set();
    this.samples = [];
    this.count = 0;
  }

  /** Opens a connection. Rejects with a `Failure`, whose `connection` is its number. */
  async open() {
    const number = this.count++;
    const beginMs = performance.now();
    let connection;
    try {
      const opening = this.openConnection(this.job);
      connection = opening.connection;
      const phases = await within(opening.opened, this.timeoutNs, timedOut("connect", this.timeoutNs));
      const setupMs = performance.now() - beginMs;
      const opened = { connection, number };
      // Over HTTP the first request opens the connection, and its reply says how.
      if (!connection.opensWithRequest) this.note(opened, { setupMs, ...phases, transport: await connection.inUse() });
      return opened;
    } catch (error) {
      connection?.abort();
      throw Object.assign(failureOf(error), { connection: number });
    }
  }

  /** Reports how a connection was opened. Times in ms of `performance.now()`. One that is opened anew gets a new number. */
  note(opened, { transport, setupMs, transportMs = null, securityMs = null, upgradeMs = null }) {
    if (this.noted.has(opened.number)) opened.number = this.count++;
    this.noted.add(opened.number);
    this.connected.push({
      connection: opened.number,
      transport,
      setup_ns: toNs(setupMs),
      transport_ns: toNs(transportMs),
      security_ns: toNs(securityMs),
      upgrade_ns: toNs(upgradeMs),
    });
  }

  /** Reports an exchange. */
  add(sample) {
    this.samples.push(sample);
  }

  /** Reports a connection that no request was seen to open. */
  settle(opened) {
    const { seen } = opened.connection;
    if (seen && !this.noted.has(opened.number)) this.note(opened, seen);
  }

  /** Ends a connection in an orderly way; one that is already gone counts as closed. */
  async close(opened) {
    const { connection } = opened;
    this.settle(opened);
    await within(connection.close(), CLOSE_NS, null).catch(() => {});
  }

  /** Ends a connection at once. */
  abort(opened) {
    this.settle(opened);
    opened.connection.abort();
  }

  /** What is reported, each sample as a row: its values in the order of `newSample`, which is that of events.py. */
  result() {
    return { connected: this.connected, samples: this.samples.map(Object.values) };
  }
}
