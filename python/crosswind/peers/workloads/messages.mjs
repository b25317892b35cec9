// Messages: each carries its number in as many of its first bytes as it has, and a pattern after that. As Crosswind's own client
// makes them (crates/workload/src/message.rs).

const TAG = 8;

/** Sizes of a message and of its reply, bytes. */
export function sizesOf({ kind, size_bytes: size = 1, direction = "echo" }) {
  if (kind === "connect") return { request: 1, reply: 1 };
  const oneWay = kind === "echo" ? direction : "echo";
  return { request: oneWay === "download" ? 1 : size, reply: oneWay === "upload" ? 1 : size };
}

/** What messages of one kind are. `size` in bytes; text is a string of as many ASCII characters. */
export class Messages {
  constructor(text) {
    this.text = text;
  }

  /** Message `number`, new. */
  make(number, size) {
    return this.text ? makeText(number, size) : makeBytes(number, size);
  }

  /** What the reply to message `number` is: as much of the message as there is, and the pattern. */
  reply(number, requestSize, replySize) {
    const carried = Math.min(requestSize, replySize, TAG);
    if (this.text) return makeText(number, carried).slice(0, carried) + pattern(replySize).slice(carried);
    const bytes = blank(replySize);
    bytes.set(tag(number).subarray(0, carried));
    return bytes;
  }

  /** What can be seen of a message's number, as something that can be compared. */
  tag(message) {
    if (this.text) return message.slice(0, TAG);
    let seen = "";
    for (let i = 0; i < TAG && i < message.length; i += 1) seen += `${message[i]},`;
    return seen;
  }
}

/** Whether two messages are the same. */
export function same(a, b) {
  if (typeof a !== typeof b || a.length !== b.length) return false;
  if (typeof a === "string") return a === b;
  // Of Node's buffers: faster than any loop.
  if (typeof a.equals === "function") return a.equals(b);
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return false;
  return true;
}

/** The number in 8 bytes, the least significant first. */
function tag(number) {
  const bytes = new Uint8Array(TAG);
  for (let i = 0, rest = number; i < TAG; i += 1, rest = Math.floor(rest / 256)) bytes[i] = rest % 256;
  return bytes;
}

function makeBytes(number, size) {
  const bytes = blank(size);
  bytes.set(tag(number).subarray(0, Math.min(size, TAG)));
  return bytes;
}

function makeText(number, size) {
  let characters = "";
  for (let i = 0, rest = number; i < Math.min(size, TAG); i += 1, rest = Math.floor(rest / 64)) {
    characters += String.fromCharCode(48 + (rest % 64));
  }
  return characters + pattern(size).slice(characters.length);
}

const blanks = new Map();

/** `size` bytes of the pattern, new. */
export function blank(size) {
  if (!blanks.has(size)) blanks.set(size, Uint8Array.from({ length: size }, (_, i) => i % 251));
  return blanks.get(size).slice();
}

const patterns = new Map();

/** `size` letters of the pattern. */
export function pattern(size) {
  if (!patterns.has(size)) {
    const letters = "abcdefghijklmnopqrstuvwxyz";
    patterns.set(size, letters.repeat(Math.ceil(size / letters.length)).slice(0, size));
  }
  return patterns.get(size);
}
