// The official Socket.IO client over WebTransport, which Deno has as browsers do.
import * as peer from "./peer.mjs";
import { call, CLIENT_OPTIONS } from "./socketio.mjs";

const { io } = peer.npm("socket.io-client");
const given = peer.options({ ...CLIENT_OPTIONS, transports: ["webtransport"] });
const { transports } = given;
const value = Buffer.from(given.certificate_sha256, "hex");
const webtransport = { serverCertificateHashes: [{ algorithm: "sha-256", value }] };
await call(
  io(`https://${given.address}`, {
    transports,
    transportOptions: { webtransport },
    reconnection: false,
    timeout: peer.DEADLINE_MS,
  }),
  given,
);
