// The HTTP/2 client of Node: all messages at once, each a request, on one connection.
import http2 from "node:http2";
import { once } from "node:events";
import * as peer from "./peer.mjs";

const given = peer.options({
  transport: "h2c",
  address: null,
  server_name: "localhost",
  trust_path: null,
  path: "/echo",
  sizes: [],
  payload: "binary",
});

peer.bounded();
const scheme = given.transport === "http2" ? "https" : "http";
const session = http2.connect(`${scheme}://${given.server_name}:${peer.port(given)}`, {
  ...peer.trust(given),
  lookup: peer.lookup(given),
});
session.on("error", (error) => peer.say({ event: "closed", outcome: "error", how: error.code ?? error.message }));
await once(session, "connect");

async function exchange(size) {
  const sent = peer.message(size, given.payload);
  const request = session.request({ ":method": "POST", ":path": given.path });
  request.end(sent);
  const [headers] = await once(request, "response");
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const received = Buffer.concat(pieces);
  const same = headers[":status"] === 200 && sent.equals(received);
  return { size, outcome: same ? "ok" : "different", received: received.length };
}

for (const line of await Promise.all(given.sizes.map(exchange))) peer.say(line);
session.close();
await once(session, "close");
peer.say({ event: "closed", outcome: "ok" });
