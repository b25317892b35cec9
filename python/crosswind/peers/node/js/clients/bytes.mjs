// A client of a stream of bytes: TCP and TLS.
import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";
import { now } from "../clock.mjs";
import { implementation as describe } from "../job.mjs";
import { sizesOf } from "../../../workloads/messages.mjs";
import { Failure } from "../../../workloads/failure.mjs";
import { cut } from "../streams.mjs";

export const implementation = () => describe();

export async function connect(job, signal) {
  const secure = job.workload.transport === "tls";
  const { socket, phases } = await connectSocket(job, signal, secure);
  const stream = { send: (message) => socket.write(message), finish: () => {} };
  socket.on("data", cut(sizesOf(job.workload).reply, (reply) => stream.onReply?.(reply)));
  socket.on("error", (error) => stream.onEnd?.(error));
  socket.on("close", () => stream.onEnd?.(new Failure("closed", "the server closed the connection")));
  return {
    transport: job.workload.transport,
    phases,
    open: () => stream,
    close: () => {
      const closed = once(socket, "close");
      socket.end();
      return closed;
    },
    abort: () => socket.destroy(),
  };
}

/** A connected socket, and how long TCP and TLS took. */
export async function connectSocket(job, signal, secure, options = {}) {
  const began = now();
  const tcp = net.connect({ host: job.address, port: job.port, noDelay: true, signal });
  await once(tcp, "connect", { signal });
  const connected = now();
  const phases = { transport_ns: connected - began };
  if (!secure) return { socket: tcp, phases };
  const socket = tls.connect({ socket: tcp, ...trust(job), ...options });
  await once(socket, "secureConnect", { signal });
  phases.security_ns = now() - connected;
  return { socket, phases };
}

/** Options of TLS: the certificate of the job is the only one to trust, and names localhost. */
export function trust(job) {
  return { ca: job.certificate_pem, servername: "localhost" };
}
