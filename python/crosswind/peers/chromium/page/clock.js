// Time. `performance.now()` is what everything is measured with; in an isolated page it ticks every 5 us.

/** Nanoseconds of what `performance.now()` showed; null of null. */
export const toNs = (ms) => (ms === null ? null : Math.round(ms * 1e6));

const never = new Int32Array(new SharedArrayBuffer(4));

/** Waits until `performance.now()` shows `dueMs`. `setTimeout` would round to milliseconds, and to 4 of them when nested. */
export async function until(dueMs) {
  for (;;) {
    const left = dueMs - performance.now();
    if (left <= 0) return;
    await Atomics.waitAsync(never, 0, 0, left).value;
  }
}

/** The promise, or a rejection with `failure` after `timeoutMs`. */
export function within(promise, timeoutMs, failure) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(failure), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
