// @ts-check
/** The token, which came with the address. Where the browser keeps it no other port of this machine gets it. */
const KEPT = "token";
const given = new URLSearchParams(location.search).get(KEPT);
if (given) {
  localStorage.setItem(KEPT, given);
  history.replaceState(null, "", location.pathname + location.hash);
}
const token = () => localStorage.getItem(KEPT) ?? "";

/** What a request has in its head. */
export const authorization = () => ({ authorization: `Bearer ${token()}` });

/**
 * An address with a key, for what the browser asks without a head of ours: it opens this address and no other.
 * @param {string} path
 */
export async function withKey(path) {
  const { pathname, search } = new URL(path, location.origin);
  const bytes = (text) => new TextEncoder().encode(text);
  const secret = await crypto.subtle.importKey("raw", bytes(token()), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const key = new Uint8Array(await crypto.subtle.sign("HMAC", secret, bytes(pathname + search)));
  const digits = [...key].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${pathname}${search}${search ? "&" : "?"}key=${digits}`;
}
