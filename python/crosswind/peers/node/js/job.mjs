// The job that a peer is given, and the lines that it prints (docs/peers.md).
import fs from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";

/** What a user can do something about. */
export class PeerError extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

/** The packages that were installed, which are not where this file is: their directory is the first argument. */
const require = createRequire(`${process.argv[2]}/package.json`);

/** An npm package. */
export function npm(name) {
  try {
    return require(name);
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    throw new PeerError(`the npm package ${name} is not installed`, "`make browser` or `crosswind browser install` installs it");
  }
}

/** The runtime and the npm packages in use, with their versions. */
export function implementation(...packages) {
  const runtime = globalThis.Deno === undefined ? `Node ${process.versions.node}` : `Deno ${Deno.version.deno}`;
  return [runtime, ...packages.map((name) => `${name} ${npm(`${name}/package.json`).version}`)].join(", ");
}

export const runtime = globalThis.Deno === undefined ? "node" : "deno";

/** Reads the first JSON object on standard input. */
export function readJob() {
  return new Promise((resolve, reject) => {
    let text = "";
    const read = (chunk) => {
      text += chunk;
      try {
        resolve(JSON.parse(text));
      } catch {
        return; // not all of it is there
      }
      process.stdin.off("data", read);
    };
    process.stdin.setEncoding("utf8").on("data", read);
    process.stdin.once("end", () => reject(new PeerError("the job on standard input is not a JSON object", "docs/peers.md")));
  });
}

/** Ends this program at once when standard input ends, or at SIGTERM. */
export function serveUntilEnd() {
  const end = () => process.exit(0);
  process.on("SIGTERM", end);
  process.stdin.on("end", end).resume();
}

/** Prints lines. Synchronous, so that they are out before the process ends. */
export function say(...events) {
  let rest = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  while (rest.length > 0) rest = rest.subarray(fs.writeSync(1, rest));
}

let handleRejection = (error) => fail(error);

/** Says what becomes of a rejection that nobody catches, instead of ending this program: for a library that leaves some. */
export function onUncaughtRejection(handle) {
  handleRejection = handle;
}

/** Handles a rejection that nobody caught. */
export function failUncaught(error) {
  handleRejection(error);
}

/** Refuses a transport that this runtime has not got. `able`: by runtime, what each has. `end`: server or client. */
export function refuseTransport(end, able, transport) {
  if (transport in able[runtime]) return;
  const other = runtime === "node" ? "deno" : "node";
  const instead = `use ${end} = "${transport in able[other] ? other : "native"}"`;
  throw new PeerError(`a ${runtime} ${end} does not carry ${transport}`, `${instead}; ${runtime} carries ${Object.keys(able[runtime]).join(", ")}`);
}

/** Ends this program with what went wrong. */
export function fail(error) {
  const known = error instanceof PeerError;
  if (!known) fs.writeSync(2, `${error?.stack ?? error}\n`);
  const hint = known ? error.hint : "what it wrote to its standard error says where";
  const place = error?.code === "EADDRINUSE" || error?.code === "EACCES";
  say({ event: "error", message: place ? `cannot listen: ${error.message}` : String(error?.message ?? error), hint });
  process.exit(1);
}
