// A client from the package ws.
import { once } from "node:events";
import * as peer from "./peer.mjs";

const WebSocket = peer.npm("ws");
const given = peer.options({
  transport: "websocket",
  address: null,
  server_name: "localhost",
  trust_path: null,
  path: "/",
  sizes: [],
  payload: "binary",
  deflate: false,
  // Each is sent as a ping after the messages, and its pong waited for.
  pings: [],
  // After that: "orderly" with `code`, or in the middle of a message "reset" or "killed".
  end: "orderly",
  code: 1000,
  // Splits each message into this many frames.
  fragments: 1,
});

peer.bounded();
const scheme = given.transport === "wss" ? "wss" : "ws";
const socket = new WebSocket(`${scheme}://${given.server_name}:${peer.port(given)}${given.path}`, {
  ...peer.trust(given),
  lookup: peer.lookup(given),
  perMessageDeflate: given.deflate,
  maxPayload: 2 ** 24,
});
const closed = once(socket, "close");

try {
  await once(socket, "open");
  const binary = given.payload === "binary";
  for (const size of given.sizes) {
    const sent = peer.message(size, given.payload);
    const step = Math.ceil(size / given.fragments) || 1;
    for (let start = 0; start < Math.max(size, 1); start += step) {
      socket.send(sent.subarray(start, start + step), { binary, fin: start + step >= size });
    }
    const [received, kind] = await once(socket, "message");
    const same = kind === binary && sent.equals(received);
    peer.say({ size, outcome: same ? "ok" : "different", received: received.length });
  }
  for (const ping of given.pings) {
    socket.ping(ping);
    const [payload] = await once(socket, "pong");
    peer.say({ event: "pong", payload: payload.toString() });
  }
  if (given.end === "orderly") {
    socket.close(given.code, "done");
    const [code] = await closed;
    peer.say({ event: "closed", outcome: "ok", code });
  } else {
    const tcp = socket._socket;
    // A masked frame that promises 100 bytes and brings 4.
    await new Promise((done) => tcp.write(Buffer.from([0x82, 0xe4, 0, 0, 0, 0, 1, 2, 3, 4]), done));
    if (given.end === "killed") peer.killSelf();
    tcp.resetAndDestroy();
  }
} catch (error) {
  const certificate = /certificate|ERR_TLS|CERT_|SELF_SIGNED|ISSUER/i.test(`${error.code} ${error.message}`);
  peer.say({ event: "closed", outcome: certificate ? "certificate" : "error", how: error.code ?? error.message });
}
