// HTTP/2 of the runtime: node:http2, one connection.
import { once } from "node:events";
import http2 from "node:http2";
import { authority, implementation as describe } from "../job.mjs";
import { Failure } from "../../../workloads/failure.mjs";
import { connectSocket } from "./bytes.mjs";

export const implementation = () => `${describe()}, node:http2`;

export async function connect(job, signal) {
  const { transport } = job.workload;
  const secure = transport === "http2";
  const { socket, phases } = await connectSocket(job, signal, secure, { ALPNProtocols: ["h2"] });
  const origin = secure ? `https://localhost:${job.port}` : `http://${authority(job)}`;
  const session = http2.connect(origin, { createConnection: () => socket });
  const stream = { send: (body) => request(session, body, stream), finish: () => {} };
  await once(session, "connect", { signal });
  session.on("error", (error) => stream.onEnd?.(error));
  session.on("close", () => stream.onEnd?.(new Failure("closed", "the server closed the connection")));
  return {
    transport,
    phases,
    open: () => stream,
    close: () => new Promise((closed) => session.close(closed)),
    abort: () => session.destroy(),
  };
}

function request(session, body, stream) {
  const exchange = session.request({ ":method": "POST", ":path": "/echo", "content-length": body.length });
  const pieces = [];
  exchange.on("data", (piece) => pieces.push(piece));
  exchange.on("end", () => stream.onReply?.(Buffer.concat(pieces)));
  exchange.on("error", (error) => stream.onEnd?.(error));
  exchange.end(body);
}
