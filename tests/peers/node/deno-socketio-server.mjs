// The official Socket.IO server over WebTransport. Node has no WebTransport; Deno's is what engine.io expects.
import fs from "node:fs";
import http from "node:http";
import * as peer from "./peer.mjs";
import { echo, SERVER_OPTIONS } from "./socketio.mjs";

const { Server } = peer.npm("socket.io");
const given = peer.options({ ...SERVER_OPTIONS, transports: ["webtransport"] });
const { transports, ping_interval_ms: pingInterval } = given;
const io = new Server(http.createServer(), { transports, pingInterval, maxHttpBufferSize: 2 ** 24 });
echo(io, given);

const endpoint = new Deno.QuicEndpoint({ hostname: "127.0.0.1", port: 0 });
const listener = endpoint.listen({
  cert: fs.readFileSync(given.certificate_path, "utf8"),
  key: fs.readFileSync(given.key_path, "utf8"),
  alpnProtocols: ["h3"],
});
peer.say({ address: `127.0.0.1:${endpoint.addr.port}` });
peer.endWithStandardInput();

for (;;) {
  const incoming = await listener.incoming();
  serve(incoming).catch((error) => peer.say({ event: "error", how: error.message }));
}

async function serve(incoming) {
  const session = await Deno.upgradeWebTransport(await incoming.accept());
  await session.ready;
  // A client that is gone is no reason to end.
  session.closed.catch(() => {});
  io.engine.onWebTransportSession(session);
}
