// Time. `performance.now()` is what everything is measured with; in an isolated page it ticks every 5 us.

/** Nanoseconds of what `performance.now()` showed; null of null. */
export const toNs = (ms) => (ms === null ? null : Math.round(ms * 1e6));

/** What it shows now, in nanoseconds. */
export const now = () => Math.round(performance.now() * 1e6);

const never = new Int32Array(new SharedArrayBuffer(4));

/** Waits until it shows `dueNs`. `setTimeout` would round to milliseconds, and to 4 of them when nested. */
export async function until(dueNs) {
  for (;;) {
    const leftMs = dueNs / 1e6 - performance.now();
    if (leftMs <= 0) return;
    await Atomics.waitAsync(never, 0, 0, leftMs).value;
  }
}
