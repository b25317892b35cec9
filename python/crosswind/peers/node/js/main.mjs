// A peer that is JavaScript (docs/peers.md): reads its job, and serves or calls. Runs in Node and in Deno.
import process from "node:process";
import { fail, failUncaught, readJob, serveUntilEnd } from "./job.mjs";
import { call } from "./clients/index.mjs";
import { serve } from "./servers/index.mjs";

process.on("uncaughtException", fail);
process.on("unhandledRejection", failUncaught);
try {
  const job = await readJob();
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
