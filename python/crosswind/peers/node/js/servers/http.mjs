// HTTP/1.1 and HTTP/2 of the runtime itself: POST is a message, GET /bytes/N gives N bytes, GET /page/... and
// GET /image/... files for browsers.
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { Readable, pipeline } from "node:stream";
import { implementation } from "../job.mjs";
import { answerer, pattern } from "../messages.mjs";
import { documentAt } from "./document.mjs";
import { imageAt } from "./image.mjs";
import { identity, listen } from "./listen.mjs";

/** Bytes that are sent at a time of what a client asks for. */
const PART_BYTES = 64 * 1024;

export async function serve(job) {
  const handle = handler(job.workload);
  const servers = {
    http1: () => http.createServer(handle),
    https1: () => https.createServer({ ...identity(job), ALPNProtocols: ["http/1.1"] }, handle),
    h2c: () => http2.createServer(handle),
    http2: () => http2.createSecureServer({ ...identity(job), allowHTTP1: false }, handle),
  };
  const server = servers[job.workload.transport]();
  // How long an exchange may take is the client's to say: a server that closes an idle connection would add losses.
  Object.assign(server, { timeout: 0, keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
  await listen(server, job);
  return implementation();
}

function handler(workload) {
  const answer = answerer(workload);
  return (request, response) => {
    const path = request.url.split("?")[0];
    const asked = /^\/bytes\/(\d+)$/.exec(path)?.[1];
    const file = request.method === "GET" ? (documentAt(path) ?? imageAt(path)) : undefined;
    if (request.method === "POST") {
      // What a client that leaves in the middle has sent needs no answer.
      request.on("error", () => {});
      whole(request, (body) => send(response, answer(body)));
    } else if (request.method !== "GET" && request.method !== "HEAD") {
      response.writeHead(405, { allow: "GET, HEAD, POST" }).end();
    } else if (file !== undefined) {
      response.writeHead(200, { "content-length": file.body.length, "content-type": file.type }).end(file.body);
    } else if (asked === undefined) {
      response.writeHead(404).end();
    } else {
      response.writeHead(200, { "content-length": asked });
      if (request.method === "HEAD") response.end();
      else pipeline(Readable.from(parts(Number(asked)), { objectMode: false }), response, () => {});
    }
  };
}

/** `total` bytes of the pattern in parts. */
function* parts(total) {
  const part = pattern(PART_BYTES, false);
  for (let unsent = total; unsent > 0; unsent -= part.length) yield part.subarray(0, Math.min(unsent, part.length));
}

function whole(request, handle) {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => handle(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)));
}

function send(response, body) {
  response.writeHead(200, { "content-length": body.length });
  response.end(body);
}
