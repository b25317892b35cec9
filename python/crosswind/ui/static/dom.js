// @ts-check
import { authorization } from "/token.js";

/**
 * An element. Texts become text, never markup: names and titles are other people's.
 * @param {string} tag
 * @param {Record<string, any>} attributes `on...` are listeners, `null` and `false` are left out
 * @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * A button that is off keeps the focus, which `disabled` would take from it.
 * @param {HTMLElement} button
 * @param {boolean} on
 */
export function enable(button, on) {
  button.setAttribute("aria-disabled", String(!on));
}

addEventListener("click", (event) => {
  const button = /** @type {HTMLElement} */ (event.target).closest?.("[aria-disabled=true]");
  if (!button) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']";

/**
 * Other content for an element; what is focused in it keeps the focus, by its place.
 * @param {HTMLElement} element
 * @param {...(Node | string)} children
 */
export function renew(element, ...children) {
  const focusable = () => /** @type {HTMLElement[]} */ ([...element.querySelectorAll(FOCUSABLE)]);
  const at = focusable().indexOf(/** @type {any} */ (document.activeElement));
  element.replaceChildren(...children);
  if (at < 0) return;
  const next = focusable()[at] ?? element;
  if (next === element) element.tabIndex = -1;
  next.focus({ preventScroll: true });
}

/**
 * Says something to who does not see the page, once.
 * @param {HTMLElement} where with the role status
 * @param {string} text
 */
export function announce(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

/**
 * Asks before something is done. Escape is no, and the focus goes back to where it was.
 * @param {string} question
 * @param {string} yes on the button that agrees
 * @returns {Promise<boolean>}
 */
export function agreed(question, yes) {
  return new Promise((answer) => {
    const dialog = h("dialog", { "aria-labelledby": "question", onclose: () => {
      dialog.remove();
      answer(dialog.returnValue === "yes");
    } }, h("form", { method: "dialog" }, h("p", { id: "question" }, question),
      h("div", { class: "buttons" }, h("button", { value: "no" }, "Cancel"), h("button", { value: "yes" }, yes))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** @param {{ error: string, hint?: string | null }} problem */
export function complaint(problem) {
  return h("p", { class: "banner bad", role: "alert" }, problem.error, problem.hint ? ` Hint: ${problem.hint}` : "");
}

/** "1 cell", "2 cells". @param {number} number @param {string} what */
export const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

/**
 * What the server answers. Throws what it complains of.
 * @param {string} path
 * @param {object} [body] sent as JSON
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function ask(path, body, signal) {
  const headers = authorization();
  let answer;
  try {
    answer = await fetch(path, body === undefined ? { headers, signal } : { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw { error: "The server does not answer.", hint: "start it again: crosswind ui" };
  }
  const data = await answer.json().catch(() => ({ error: `the server failed (${answer.status})` }));
  if (!answer.ok) throw data;
  return data;
}

/** Rows as a table. @param {any[]} heads @param {any[][]} rows @param {Record<string, any>} attributes */
export function table(heads, rows, attributes = {}) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": heads.filter((head) => typeof head === "string").join(", ") }, h("table", attributes,
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col", class: "word" }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", { class: "word" }, cell)))))));
}
