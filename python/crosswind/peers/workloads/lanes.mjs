// Lanes: connections side by side, among which the exchanges are divided.

/** Numbers of the exchanges of one lane among `lanes`. */
export function numbers(lane, lanes, count) {
  return Array.from({ length: Math.ceil((count - lane) / lanes) }, (_, turn) => lane + turn * lanes);
}

/** Runs `work` for each lane, side by side. */
export function sideBySide(lanes, work) {
  return Promise.all(Array.from({ length: lanes }, (_, lane) => work(lane)));
}
