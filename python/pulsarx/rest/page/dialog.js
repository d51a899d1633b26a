// Asks before something is done. Nothing is done without it.

import { $, make } from "./elements.js";

let done = null;

// fields: [name, label, element]. action gets their values by name, and throws what is refused,
// which is shown; the dialog stays open then. must: what has to be typed into a field first.
export function confirm({ title, text, verb, danger = true, fields = [], must = null, action }) {
  $("dialog-title").textContent = title;
  $("dialog-text").textContent = text;
  $("dialog-flaw").textContent = "";
  const typed = must === null ? null : make("input", { autocomplete: "off", spellcheck: "false" });
  const all = typed === null ? fields
    : [...fields, ["typed", `To confirm, type ${must}`, typed]];
  $("dialog-fields").replaceChildren(...all.map(([, label, element]) =>
    make("label", { class: "field" }, label, element)));
  const yes = $("dialog-yes");
  yes.textContent = verb;
  yes.classList.toggle("danger", danger);
  yes.disabled = typed !== null;
  typed?.addEventListener("input", () => { yes.disabled = typed.value !== must; });
  yes.onclick = async () => {
    yes.disabled = true;
    $("dialog-flaw").textContent = "";
    try {
      await action(Object.fromEntries(all.map(([name, , element]) =>
        [name, element.type === "checkbox" ? element.checked : element.value])));
      $("dialog").close();
    } catch (error) {
      $("dialog-flaw").textContent = `${error.status >= 500 ? "Failed" : "Refused"}: ${error.message}`;
    } finally {
      yes.disabled = typed !== null && typed.value !== must;
    }
  };
  const before = document.activeElement?.dataset?.id;
  done = () => before && document.querySelector(`[data-id="${CSS.escape(before)}"]`)?.focus();
  $("dialog").showModal();
  (all[0]?.[2] ?? $("dialog-no")).focus();
}

$("dialog-no").addEventListener("click", () => $("dialog").close());
$("dialog").addEventListener("close", () => done?.());
$("dialog-fields").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.tagName === "INPUT" && !$("dialog-yes").disabled)
    $("dialog-yes").click();
});
