// The official Socket.IO client, over WebSocket, from the start or after HTTP long polling.
import * as peer from "./peer.mjs";
import { call, CLIENT_OPTIONS } from "./socketio.mjs";

const { io } = peer.npm("socket.io-client");
const given = peer.options(CLIENT_OPTIONS);
const { transports } = given;
await call(io(`http://${given.address}`, { transports, reconnection: false, timeout: peer.DEADLINE_MS }), given);
