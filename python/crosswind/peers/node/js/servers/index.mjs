// Which server carries a transport, by runtime; what none can do is refused in one sentence.
import { PeerError, runtime, say } from "../job.mjs";

const EVERYWHERE = {
  tcp: "bytes",
  tls: "bytes",
  http1: "http",
  https1: "http",
  h2c: "http",
  http2: "http",
  websocket: "websocket",
  wss: "websocket",
  "socketio-websocket": "socketio",
};
const SERVERS = {
  node: EVERYWHERE,
  deno: {
    ...EVERYWHERE,
    webtransport: "webtransport",
    "webtransport-datagram": "webtransport",
    "socketio-webtransport": "socketio-webtransport",
  },
};

/** Serves the workload of a job, once it has said that it listens. */
export async function serve(job) {
  const { kind, transport } = job.workload;
  const own = SERVERS[runtime];
  if (!(transport in own)) {
    const other = runtime === "node" ? "deno" : "node";
    const able = transport in SERVERS[other] ? `use server = "${other}"` : 'use server = "native"';
    throw new PeerError(`a ${runtime} server does not carry ${transport}`, `${able}; ${runtime} carries ${Object.keys(own).join(", ")}`);
  }
  const server = await import(`./${own[transport]}.mjs`);
  say({ event: "listening", implementation: await server.serve(job) });
}
