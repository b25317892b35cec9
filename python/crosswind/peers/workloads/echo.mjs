// Echo: messages that are answered, one after another on each connection, or at a rate.

import { ClosedLoop } from "./closed-loop.mjs";
import { numbers, sideBySide } from "./lanes.mjs";
import { openLoop, schedule } from "./open-loop.mjs";

export function run(session) {
  const { mode, messages, connections = 1, rate_per_s: rate } = session.workload;
  return sideBySide(connections, (lane) => {
    const exchanges = numbers(lane, connections, messages);
    if (mode === "open") return openLoop(session, [schedule(exchanges, 1e9 / rate)]);
    return new ClosedLoop(session).run(exchanges);
  });
}
