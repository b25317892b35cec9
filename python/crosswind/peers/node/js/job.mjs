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

const runtime = globalThis.Deno === undefined ? "node" : "deno";

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
  while (rest.length > 0) rest = rest.subarray(write(rest));
}

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Writes as much as fits. Node opens standard output so that a pipe that is full is an error. */
function write(bytes) {
  try {
    return fs.writeSync(1, bytes);
  } catch (error) {
    if (error.code !== "EAGAIN") throw error;
    Atomics.wait(pause, 0, 0, 1);
    return 0;
  }
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

/** The server's host and port as a URL has them. */
export function authority({ address, port }) {
  return `${address.includes(":") ? `[${address}]` : address}:${port}`;
}

/** What the runtimes can do. What a study asks for is refused before anything runs, by the same file. */
export const ABILITIES = JSON.parse(fs.readFileSync(new URL("../abilities.json", import.meta.url), "utf8"));

/** Refuses a job that this runtime cannot do. */
export function refuse({ role, address, workload: { kind, transport, resumption } }) {
  const { transports, workloads } = ABILITIES;
  if (!transports[runtime].includes(transport)) {
    const able = Object.keys(transports).find((other) => transports[other].includes(transport)) ?? "native";
    const hint = `use ${role} = "${able}"; ${runtime} carries ${transports[runtime].join(", ")}`;
    throw new PeerError(`a ${runtime} ${role} does not carry ${transport}`, hint);
  }
  if (!workloads[role].includes(kind)) {
    const hint = `use ${role} = "native"; ${runtime} has ${workloads[role].join(", ")}`;
    throw new PeerError(`a ${runtime} ${role} has no workload ${kind}`, hint);
  }
  if (role === "server") return;
  if ((resumption ?? "none") !== "none") {
    throw new PeerError(`a ${runtime} client resumes no sessions`, 'use resumption = "none", or client = "native"');
  }
  if (transport.includes("webtransport") && address.includes(":")) {
    throw new PeerError("Deno's WebTransport does not connect to an IPv6 address", 'use family = "ipv4", or client = "native"');
  }
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
