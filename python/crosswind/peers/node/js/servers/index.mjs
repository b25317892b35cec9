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

const WORKLOADS = ["echo", "connect", "multiplex", "page"];

/** Serves the workload of a job, once it has said that it listens. */
export async function serve(job) {
  const { kind, transport } = job.workload;
  refuseTransport("server", SERVERS, transport);
  if (!WORKLOADS.includes(kind)) {
    throw new PeerError(`a ${runtime} server has no workload ${kind}`, `use server = "native"; ${runtime} has ${WORKLOADS.join(", ")}`);
  }
  const server = await import(`./${SERVERS[runtime][transport]}.mjs`);
  say({ event: "listening", implementation: await server.serve(job) });
}
