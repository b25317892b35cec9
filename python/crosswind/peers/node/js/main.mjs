// A peer that is JavaScript (docs/peers.md): reads its job, and serves or calls. Runs in Node and in Deno.
import process from "node:process";
import { ABILITIES, PeerError, fail, failUncaught, readJob, refuse, serveUntilEnd } from "./job.mjs";
import { call } from "./clients/index.mjs";
import { serve } from "./servers/index.mjs";

process.on("uncaughtException", fail);
process.on("unhandledRejection", failUncaught);

try {
  const oldest = ABILITIES.oldest_node;
  if (Number.parseInt(process.versions.node) < oldest) {
    throw new PeerError(`Node ${process.versions.node} is too old`, `the peers need Node ${oldest} or later`);
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
