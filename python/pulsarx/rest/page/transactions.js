// All open transactions of the folder, the oldest first: their age, and the messages that wait for them.

import { address, ask, get } from "./api.js";
import { confirm, failed } from "./dialog.js";
import { downloads } from "./download.js";
import { age, button, count, line, make, table } from "./elements.js";

const PATH = "/admin/v3/transactions";

export let stands = false;  // where nobody owns the folder: who asks owns it for a moment

export async function load() {
  const found = await get(PATH);
  stands = (await get("/console/overview")).owner === null;
  return found;
}

export function draw(found, _, __, changed) {
  const shown = [make("h2", {}, "Open transactions"),
    make("p", { class: "soft" }, "Messages behind the first one of an open transaction are delivered when it ends, " +
      "plain ones too."),
    make("div", { class: "row tools" }, ...downloads("transactions", () => found, failed))];
  shown.push(found.length ? table("Open transactions", [["Transaction", "id"], ["Age", "n"], ["Ends in", "n"],
    ["Role", "wide"], ["Messages held back", ""], ["Acknowledges", "wide"], ["", "n"]],
    found.map((each) => row(each, changed))) : make("p", {}, "No transaction is open."));
  return shown;
}

function row(each, changed) {
  const left = Math.max(0, each.timeoutAt - each.ageMs);
  return [each.txnId, age(Math.floor(each.ageMs / 1000)), age(Math.ceil(left / 1000)), line(each.owner ?? "\u2013"),
    parts(Object.keys(each.producedPartitions).map((topic) => [topicLink(topic), held(each, topic)])),
    parts(Object.entries(each.ackedPartitions).map(([topic, subscriptions]) =>
      [topicLink(topic), line(Object.keys(subscriptions).join(", "))])),
    button("Abort\u2026", () => abort(each, changed), { class: "small", "data-of": each.txnId })];
}

// On a topic where an older one has messages it waits itself.
const held = (each, topic) => (topic in each.heldMessages ? count(each.heldMessages[topic])
  : make("span", { class: "soft" }, "behind an older one"));
const parts = (pairs) => (pairs.length ? make("span", { class: "parts" }, ...pairs.flat()) : "\u2013");
const topicLink = (name) => make("a", { href: address(name), "data-id": `topic ${name}`, title: line(name) },
  line(name.replace(/^persistent:\/\//, "")));

function abort(each, changed) {
  const [most, least] = each.txnId.match(/\d+/g);
  confirm({ title: `Abort transaction ${each.txnId}?`, verb: "Abort",
    text: "Its messages are never delivered, what it acknowledged comes again, and its client is refused at the " +
      "next call. What it holds back is delivered.",
    action: async () => {
      await ask("POST", `${PATH}/abortTransaction/${most}/${least}`);
      changed(`Aborted transaction ${each.txnId}.`);
    } });
}
