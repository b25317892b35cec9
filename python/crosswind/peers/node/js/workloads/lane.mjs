// What the workloads share: connections that are set up within the timeout, and noted.
import { now } from "../clock.mjs";
import { failure, within } from "../outcome.mjs";

/** How long the orderly end of a connection may take. */
const CLOSE_NS = 1e9;

export class Lane {
  constructor(job, connect, record) {
    this.job = job;
    this.workload = job.workload;
    this.record = record;
    this.#connect = connect;
  }

  #connect;

  get timeoutNs() {
    return this.workload.timeout_ns;
  }

  /** Opens a connection. `number` is that of its samples, and of the failure if there is one. */
  async open() {
    const number = this.record.attempt();
    const aborting = new AbortController();
    const began = now();
    const connecting = this.#connect(this.job, aborting.signal);
    // One that is there too late is not wanted any more.
    connecting.then((connection) => aborting.signal.aborted && connection.abort()).catch(() => {});
    try {
      const connection = await within(connecting, this.timeoutNs, () => aborting.abort());
      connection.number = number;
      this.record.connected(connection, began, now());
      return connection;
    } catch (error) {
      throw Object.assign(failure(error), { connection: number });
    }
  }

  /** Ends a connection in an orderly way; one that has gone counts as closed. */
  async close(connection) {
    await within(Promise.resolve(connection.close()), CLOSE_NS).catch(() => connection.abort());
  }
}

/** Numbers of the exchanges of one lane among `lanes`. */
export function* numbers(lane, lanes, count) {
  for (let number = lane; number < count; number += lanes) yield number;
}

/** Runs `work` for each lane, side by side. */
export function sideBySide(lanes, work) {
  return Promise.all(Array.from({ length: lanes }, (_, lane) => work(lane)));
}
