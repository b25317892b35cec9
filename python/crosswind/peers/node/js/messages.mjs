// Replies to messages, as Crosswind's own server gives them.
import { blank, pattern as letters, sizesOf } from "../../workloads/messages.mjs";

/** `size` bytes of the pattern, all of them ASCII where they are text. */
export function pattern(size, text) {
  return Buffer.from(text ? letters(size) : blank(size));
}

/** What answers a message of bytes: the message itself, as much of it as the answer is long, or more after it. */
export function answerer(workload) {
  const { request, reply } = sizesOf(workload);
  if (reply <= request) return (received) => (received.length > reply ? received.subarray(0, reply) : received);
  const longer = pattern(reply, workload.payload === "text");
  return (received) => Buffer.concat([received, longer.subarray(received.length)]);
}

/** Likewise, of a message that is a string. */
export function textAnswerer(workload) {
  const { request, reply } = sizesOf(workload);
  if (reply <= request) return (received) => (received.length > reply ? received.slice(0, reply) : received);
  const longer = letters(reply);
  return (received) => received + longer.slice(received.length);
}
