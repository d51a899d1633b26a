// Asks before something is done. Nothing is done without it.

import { $, line, make } from "./elements.js";

let done = null;
let round = 0;  // of what is asked; an action that ends late has no business with the next question

// fields: [name, label, element]. action gets their values by name, and throws what is refused,
// which is shown; the dialog stays open then. must: what has to be typed into a field first, as it
// is or, for what no keyboard has, as it is written out.
export function confirm({ title, text, verb, danger = true, fields = [], must = null, action }) {
  const mine = ++round;
  $("dialog-title").textContent = title;
  $("dialog-text").textContent = text;
  $("dialog-flaw").textContent = "";
  const typed = must === null ? null : make("input", { autocomplete: "off", spellcheck: "false" });
  const lacks = () => typed !== null && typed.value !== must && typed.value !== line(must);
  const all = typed === null ? fields
    : [...fields, ["typed", `To confirm, type ${line(must)}`, typed]];
  $("dialog-fields").replaceChildren(...all.map(([, label, element]) =>
    make("label", { class: "field" }, label, element)));
  const yes = $("dialog-yes");
  yes.textContent = verb;
  yes.classList.toggle("danger", danger);
  yes.disabled = lacks();
  typed?.addEventListener("input", () => { yes.disabled = lacks(); });
  yes.onclick = async () => {
    yes.disabled = true;
    $("dialog-flaw").textContent = "";
    try {
      await action(Object.fromEntries(all.map(([name, , element]) =>
        [name, element.type === "checkbox" ? element.checked : element.value])));
      if (mine === round) $("dialog").close();
    } catch (error) {
      const flaw = `${error.status >= 500 ? "Failed" : "Refused"}: ${error.message}`;
      // Of a dialog that was left meanwhile: where nothing is asked it is said all the same.
      if (mine === round && $("dialog").open) $("dialog-flaw").textContent = flaw;
      else failed(`${title} ${flaw}`);
    } finally {
      if (mine === round) yes.disabled = lacks();
    }
  };
  const before = document.activeElement?.dataset?.id;
  done = () => before && document.querySelector(`[data-id="${CSS.escape(before)}"]`)?.focus();
  $("dialog").showModal();
  (all[0]?.[2] ?? $("dialog-no")).focus();
}

let show = () => {};
export const failed = (text) => show(text);
// told: gets what failed when no dialog is there to show it.
export const whenFailed = (told) => { show = told; };

$("dialog-no").addEventListener("click", () => $("dialog").close());
$("dialog").addEventListener("close", () => done?.());
$("dialog-fields").addEventListener("keydown", (event) => {
  // Who holds the key down that opened the dialog has confirmed nothing.
  if (event.key === "Enter" && !event.repeat && event.target.tagName === "INPUT"
      && event.target.type !== "checkbox" && !$("dialog-yes").disabled)
    $("dialog-yes").click();
});
