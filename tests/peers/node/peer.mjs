// What the JavaScript peers share: their options, their lines and their messages. Runs in Node and in Deno.
import fs from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";

/** No wait of a peer is longer. */
export const DEADLINE_MS = 20_000;

/** A package of npm, from the directory on the command line. */
export const npm = createRequire(`${process.argv[2]}/package.json`);

/** The JSON object on the command line, over `defaults`; it has no other keys. */
export function options(defaults) {
  const given = JSON.parse(process.argv[3]);
  for (const key of Object.keys(given)) {
    if (!(key in defaults)) throw new Error(`unknown option ${key}`);
  }
  return { ...defaults, ...given };
}

/** Prints one JSON line. Synchronous, so that it is out before a process ends itself. */
export function say(fields) {
  fs.writeSync(1, JSON.stringify(fields) + "\n");
}

/** `size` bytes, and valid UTF-8 beyond ASCII if it is text. */
export function message(size, payload) {
  if (payload === "text") {
    const pattern = "é世🙂";
    const bytes = Buffer.byteLength(pattern);
    return Buffer.from(pattern.repeat(Math.floor(size / bytes)) + "x".repeat(size % bytes));
  }
  return Buffer.from(Uint8Array.from({ length: size }, (_, place) => (place * 31 + 7) & 0xff));
}

/** What no program can tidy up after. */
export function killSelf() {
  process.kill(process.pid, "SIGKILL");
}

/** Ends this program when whoever started it is done with it. */
export function endWithStandardInput() {
  process.stdin.on("end", () => process.exit(0)).resume();
}

/** Ends a client that waits too long. */
export function bounded() {
  setTimeout(() => {
    say({ event: "closed", outcome: "timeout" });
    process.exit(0);
  }, DEADLINE_MS).unref();
}

/** Certificate and key of a server. */
export function identity(given) {
  return { cert: fs.readFileSync(given.certificate_path), key: fs.readFileSync(given.key_path) };
}

/** Options of a client's TLS connection that trusts one file and whose host name is that of the certificate. */
export function trust(given) {
  return given.trust_path === null ? {} : { ca: fs.readFileSync(given.trust_path), servername: given.server_name };
}

/** The name in the URL is that of the certificate; the address is that of the server. */
export function lookup(given) {
  const host = given.address.slice(0, given.address.lastIndexOf(":"));
  return (name, settings, done) => (settings.all ? done(null, [{ address: host, family: 4 }]) : done(null, host, 4));
}

export function port(given) {
  return given.address.slice(given.address.lastIndexOf(":") + 1);
}

/** Listens on a free port and says where. */
export function listen(server) {
  server.listen(0, "127.0.0.1", () => say({ address: `127.0.0.1:${server.address().port}` }));
}
