// Which server carries a transport, by runtime; what none can do is refused in one sentence.
import { PeerError, refuseTransport, runtime, say } from "../job.mjs";

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
  const { kind, transport, direction } = job.workload;
  refuseTransport("server", SERVERS, transport);
  if (kind === "transfer" && direction !== "download") {
    throw new PeerError(`a ${runtime} server cannot report what it receives`, 'use direction = "download", or server = "native"');
  }
  const server = await import(`./${SERVERS[runtime][transport]}.mjs`);
  say({ event: "listening", implementation: await server.serve(job) });
}
