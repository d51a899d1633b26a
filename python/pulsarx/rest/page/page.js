// The operator's page: which view is shown, and when it looks again.

import { address, get, place, setToken, takeKey } from "./api.js";
import { whenFailed } from "./dialog.js";
import { $, line, make } from "./elements.js";
import * as messages from "./messages.js";
import * as overviewed from "./overview.js";
import * as policies from "./policies.js";
import * as topic from "./topic.js";
import * as topics from "./topics.js";
import * as transactions from "./transactions.js";

const POLL_MS = 2000;
const TOLD_MS = 15000;

const OWNER_MS = 10000;
const OF_TOPIC = { messages, policies: policies.ofTopic };
const OF_FOLDER = { overview: overviewed, policies: policies.ofNamespace, transactions };

let round = 0;
let asked = 0;  // when it was asked who owns the folder
let told = "";  // what was done last

function say(text, bad = false) {
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").classList.toggle("bad", bad);
}

// Something was done: look at once.
function changed(text) {
  told = text;
  setTimeout(() => { if (told === text) told = ""; }, TOLD_MS);
  look({ now: true });
}

async function overview() {
  asked = Date.now();
  const found = await get("/console/overview");
  const select = $("namespace");
  const owner = found.owner === null ? "owned by nobody" : `owned by process ${found.owner}`;
  const server = found.hidden ? "A folder" : `${line(found.folder)}, ${owner}`;
  $("who").textContent = server + (found.role ? `, role ${line(found.role)}` : "");
  if (document.activeElement === select && select.value) return;  // it is being chosen
  const chosen = select.value || sessionStorage.getItem("pulsarx-namespace") || "public/default";
  select.replaceChildren(...found.namespaces.map((name) => make("option", { value: name }, line(name))));
  if (found.namespaces.includes(chosen)) select.value = chosen;
}

// poll: nothing was asked for, so what the user is at stays.
async function look({ now = false, poll = false } = {}) {
  const { topic: name, query } = place();
  const view = (name ? OF_TOPIC[query.view] ?? topic : OF_FOLDER[query.view]) ?? topics;
  if (poll && (view.stands || $("dialog").open)) return;
  if (!poll) messages.leave();
  const mine = ++round;  // what was asked before is not shown any more
  try {
    if (!poll || !$("namespace").value || Date.now() - asked > OWNER_MS) await overview();
    const namespace = $("namespace").value;
    const found = name ? await view.load(name, query, now) : await view.load(namespace, query, now);
    if (mine !== round) return;
    if (view === topics && topics.isTyping() && topics.filterText() !== (query.filter ?? "")) return;
    const shown = name ? view.draw(found, query, changed) : view.draw(found, namespace, query, changed);
    links(name, query);
    if (replace(shown)) say(told || new Date().toLocaleTimeString());
    else say("Stands still while text is marked");
  } catch (error) {
    if (mine !== round) return;
    if (error.status === 401) return askToken(error.message);
    const verdict = error.status >= 500 ? "Failed" : error.status ? "Refused" : "Not up to date";
    say(`${verdict}: ${error.message}`, true);
    if (!poll) replace([make("p", { class: "warn" }, `${verdict}: ${error.message}`),
      make("p", {}, make("a", { href: "#" }, "All topics"))]);
  }
}

function links(name, query) {
  const now = name ? "" : query.view ?? "topics";
  $("views").replaceChildren(...[["topics", "Topics", {}], ["overview", "Overview", { view: "overview" }],
    ["policies", "Policies", { view: "policies" }],
    ["transactions", "Transactions", { view: "transactions" }]].map(([view, text, more]) =>
    make("a", { href: address("", more), "data-id": `view ${view}`,
      "aria-current": now === view ? "page" : null }, text)));
}

function replace(shown) {
  const active = document.activeElement;
  const id = $("main").contains(active) ? active.dataset?.id : undefined;
  const marks = active?.selectionStart;
  const open = window.getSelection()?.toString() && $("main").contains(window.getSelection().anchorNode);
  if (open && id === undefined) return false;  // somebody copies
  $("main").replaceChildren(...shown);
  if (id === undefined) return true;
  const found = document.querySelector(`[data-id="${CSS.escape(id)}"]`);
  found?.focus({ preventScroll: true });
  if (typeof marks === "number" && found?.type === "search") found.setSelectionRange(marks, marks);
  return true;
}

function askToken(reason) {
  const token = make("input", { type: "password", autocomplete: "off", "data-id": "token" });
  const enter = () => { setToken(token.value.trim()); look(); };
  token.addEventListener("keydown", (event) => { if (event.key === "Enter") enter(); });
  say("Who are you?", true);
  if (document.querySelector("[data-id=token]")) return;
  $("main").replaceChildren(make("h2", {}, "Who are you?"), make("p", {}, reason),
    make("div", { class: "row" }, make("label", {}, "Token ", token),
      make("button", { type: "button", onclick: enter }, "Enter")),
    make("p", { class: "soft" }, "It is kept until this tab is closed."));
  token.focus();
}

$("namespace").addEventListener("change", () => {
  sessionStorage.setItem("pulsarx-namespace", $("namespace").value);
  const { topic: name, query } = place();
  if (name || (query.view !== "policies" && location.hash.length > 1)) location.hash = "";
  else look();
});
$("skip").addEventListener("click", (event) => { event.preventDefault(); $("main").focus(); });
window.addEventListener("hashchange", () => {
  takeKey();
  if (!topics.isTyping()) { $("main").focus(); window.scrollTo(0, 0); }
  look();
});

async function poll() {
  if (!document.hidden) await look({ poll: true });
  setTimeout(poll, POLL_MS);
}

whenFailed((text) => say(text, true));
links("", place().query);
takeKey();
look().then(() => setTimeout(poll, POLL_MS));
