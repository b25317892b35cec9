// A peer that is JavaScript (docs/peers.md): reads its job, and serves or calls. Runs in Node and in Deno.
import process from "node:process";
import { PeerError, fail, failUncaught, readJob, refuse, serveUntilEnd } from "./job.mjs";
import { call } from "./clients/index.mjs";
import { serve } from "./servers/index.mjs";

process.on("uncaughtException", fail);
process.on("unhandledRejection", failUncaught);
/** The oldest version of Node that has what the packages and the peers use. */
const OLDEST_NODE = 18;

try {
  if (Number.parseInt(process.versions.node) < OLDEST_NODE) {
    throw new PeerError(`Node ${process.versions.node} is too old`, `the peers need Node ${OLDEST_NODE} or later`);
  }
  const job = await readJob();
  refuse(job);
  if (job.role === "server") {
    serveUntilEnd();
    await serve(job);
  } else {
    await call(job);
    process.exit(0);
  }
} catch (error) {
  fail(error);
}
