// The clock of the samples: process.hrtime, which ticks in nanoseconds.
import process from "node:process";

const CLOCK_MONOTONIC = 1;
const TRIES = 20;

/** Nanoseconds. */
export function now() {
  return Number(process.hrtime.bigint());
}

/** Waits until the clock shows `dueNs`. A timer may fire early, since it counts milliseconds from the last turn of the loop. */
export async function until(dueNs) {
  for (let left = dueNs - now(); left > 0; left = dueNs - now()) {
    await new Promise((resolve) => setTimeout(resolve, left / 1e6));
  }
}

/** What the clock is, for the line `ready`. */
export function describeClock() {
  // Node's is CLOCK_MONOTONIC itself; Deno's begins with the process.
  const monotonic = globalThis.Deno === undefined ? 0 : monotonicAtZero();
  return { name: "process.hrtime", resolution_ns: 1, monotonic_ns: monotonic };
}

/** What CLOCK_MONOTONIC showed when this clock showed 0: from the try that took least. */
function monotonicAtZero() {
  const library = Deno.dlopen("libc.so.6", { clock_gettime: { parameters: ["i32", "buffer"], result: "i32" } });
  const time = new BigInt64Array(2);
  let best = { took: Infinity };
  for (let i = 0; i < TRIES; i += 1) {
    const before = now();
    library.symbols.clock_gettime(CLOCK_MONOTONIC, new Uint8Array(time.buffer));
    const took = now() - before;
    if (took < best.took) best = { took, zero: Number(time[0] * 1_000_000_000n + time[1]) - before - Math.round(took / 2) };
  }
  library.close();
  return best.zero;
}
