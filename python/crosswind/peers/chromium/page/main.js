// What is called from outside: prepare a job, then run it.

import { prepare } from "crosswind/session.js";

let session = null;
let workload = null;
let waiting = [];

globalThis.crosswind = {
  /** Loads what the job needs. Nothing is sent. */
  async prepare(job) {
    session = await prepare(job);
    workload = await import(`crosswind/${job.workload.kind}.mjs`);
    return { isolated: crossOriginIsolated, secure: isSecureContext };
  },

  /** Runs the job. Returns what is to be reported, as JSON. */
  async run() {
    await workload.run(session);
    return JSON.stringify(session.result());
  },

  /** Has the browser close its connections, which is done from outside; resolves when `connectionsClosed` is called. */
  closeConnections() {
    return new Promise((resolve) => {
      waiting.push(resolve);
      globalThis.crosswindCloseConnections("");
    });
  },

  connectionsClosed() {
    const answered = waiting;
    waiting = [];
    for (const resolve of answered) resolve({});
  },
};
