// Messages that are answered, as Crosswind's own client and server have them: the number of a message is in as many of its
// first bytes as it has (up to 8), and a pattern after that.

const TAG_BYTES = 8;
/** Bits of the number in a character of a text message. */
const TEXT_BITS = 6n;

/** Sizes of a message and of its answer, bytes. */
export function sizes({ kind, size_bytes: size = 1, direction = "echo" }) {
  if (kind === "connect") return { request: 1, reply: 1 };
  return {
    request: kind === "echo" && direction === "download" ? 1 : size,
    reply: kind === "echo" && direction === "upload" ? 1 : size,
  };
}

/** `size` bytes of the pattern, all of them ASCII where they are text. */
export function pattern(size, text) {
  const [period, first] = text ? [26, "a".charCodeAt(0)] : [251, 0];
  return Buffer.alloc(size, Uint8Array.from({ length: period }, (_, place) => first + place));
}

/** Message `number` of `size` bytes. */
export function message(number, size, text) {
  const bytes = pattern(size, text);
  tag(number, text).copy(bytes, 0, 0, Math.min(size, TAG_BYTES));
  return bytes;
}

/** What can be seen of the number of a message. */
export function visible(bytes) {
  return bytes.toString("latin1", 0, TAG_BYTES);
}

function tag(number, text) {
  const bytes = Buffer.alloc(TAG_BYTES);
  if (!text) {
    bytes.writeBigUInt64LE(BigInt(number));
    return bytes;
  }
  for (let place = 0; place < TAG_BYTES; place += 1) {
    bytes[place] = 0x30 + Number((BigInt(number) >> (TEXT_BITS * BigInt(place))) & 0x3fn);
  }
  return bytes;
}

/** What answers a message of bytes: the message itself, as much of it as the answer is long, or more after it. */
export function answerer(workload) {
  const { request, reply } = sizes(workload);
  if (reply <= request) return (received) => (received.length > reply ? received.subarray(0, reply) : received);
  const longer = pattern(reply, workload.payload === "text");
  return (received) => Buffer.concat([received, longer.subarray(received.length)]);
}

/** Likewise, of a message that is a string. */
export function textAnswerer(workload) {
  const { request, reply } = sizes(workload);
  if (reply <= request) return (received) => (received.length > reply ? received.slice(0, reply) : received);
  const longer = pattern(reply, true).toString("latin1");
  return (received) => received + longer.slice(received.length);
}
