// What is called from outside: prepare a job, then run it.

import { prepare } from "crosswind/session.js";

let session = null;
let workload = null;

globalThis.crosswind = {
  /** Loads what the job needs. Nothing is sent. */
  async prepare(job) {
    session = await prepare(job);
    workload = await import(`crosswind/${job.workload.kind}.js`);
    return { isolated: crossOriginIsolated, secure: isSecureContext };
  },

  /** Runs the job. Returns what is to be reported, as JSON. */
  async run() {
    await workload.run(session);
    return JSON.stringify(session.result());
  },
};
