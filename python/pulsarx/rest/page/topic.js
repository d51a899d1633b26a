// A topic: how it was and is, its subscriptions and consumers, and what can be done to it.

import { address, admin, ask, get, subscriptionPath, topicPath } from "./api.js";
import { confirm } from "./dialog.js";
import { age, button, count, facts, line, make, plain, rate, select, size, table, time, whole } from "./elements.js";
import { chart } from "./chart.js";
import { plot } from "./plot.js";
import { publish } from "./publish.js";
import { decoders } from "./value.js";

const SPANS = [["900000", "15 minutes"], ["3600000", "1 hour"], ["21600000", "6 hours"],
  ["86400000", "24 hours"]];
const REPLAYED = 1000;  // letters of a request

let before = { topic: "", now: 0, out: new Map() };  // of the poll before, for rates of consumers

export async function load(topic, query, now) {
  const [found, known] = await Promise.all([
    get("/console/topic", { topic, span: query.span, now: now || "" }), decoders(topic)]);
  return { ...found, schemas: [...known.values()] };
}

export function draw(found, query, changed) {
  const topic = found.topic;
  const parted = found.partitions.length > 0;
  const figure = (at, text, show, binary = false) => {
    const points = found.points.map((each) => [each[0], each[at]]);
    const most = Math.max(0, ...points.map(([, value]) => value));
    const last = points.length ? points.at(-1)[1] : null;
    return make("figure", {},
      make("figcaption", {}, make("b", {}, `${text}: ${show(last)}`), ` most ${show(most)}`),
      chart(points, found.since, found.now, text, show, binary));
  };
  const span = select(SPANS, query.span ?? "3600000", { "data-id": "span",
    onchange: (event) => { location.hash = address(topic, { ...query, span: event.target.value }); } });
  const out = new Map();
  const seconds = before.topic === topic ? (found.now - before.now) / 1000 : 0;
  const consumed = (name, each) => {
    let key = `${name}\n${each.name}`;
    while (out.has(key)) key += "\n";  // several may have one name
    out.set(key, each.out);
    const then = before.out.get(key);
    return seconds > 0 && then !== undefined ? rate(Math.max(0, each.out - then) / seconds) : "\u2013";
  };
  const shown = [
    make("p", {}, make("a", { href: address(), "data-id": "back" }, "All topics")),
    make("h2", {}, line(topic)),
    facts([
      ["Stored", size(found.stored)],
      found.keeps ? ["Messages", count(found.messages)] : null,
      ["Producers", found.producers === null ? "\u2013" : make("span",
        { title: found.producers.map(line).join(", ") }, count(found.producer_count))],
      ["Oldest in a backlog", age(found.oldest)],
      found.terminated ? ["State", make("span", { class: "mark" }, "terminated")] : null,
    ]),
    make("div", { class: "row" }, ...topicActions(found, changed)),
    make("div", { class: "row tools" }, make("label", {}, "Time ", span),
      make("span", { class: "soft" }, `${time(found.since).slice(0, 16)} to ${time(found.now).slice(11, 16)}`)),
    make("div", { class: "plots" }, figure(1, "Backlog", count), figure(2, "In /s", rate),
      figure(3, "Out /s", rate), figure(4, "Stored", size, true)),
  ];
  if (parted)
    shown.push(make("h3", {}, "Partitions"), table("Partitions",
      [["Partition", ""], ["Backlog", "n"], ["Stored", "n"]],
      found.partitions.map((each) => [
        make("a", { href: address(each.topic), "data-id": `topic ${each.topic}` }, line(each.topic)),
        count(each.backlog), size(each.stored)])));
  if (found.schemas.length) shown.push(...schemas(found.schemas));
  const names = Object.keys(found.subscriptions);
  shown.push(make("h3", {}, names.length ? "Subscriptions" : "No subscriptions"));
  for (const name of names)
    shown.push(subscription(found, name, found.subscriptions[name], consumed, changed));
  if (found.leases.length)
    shown.push(make("h3", {}, "Jobs that read it"), table("Jobs",
      [["Job", ""], ["Left at most", "n"], ["Held for", "n"]], found.leases.map((each) => [
        line(each.job), count(each.messages), age(Math.round((each.expires_ms - found.now) / 1000))])));
  before = { topic, now: found.now, out };
  return shown;
}

// Open ones stay open when the page is drawn anew.
const opened = new Set();

function schemas(versions) {
  return [make("h3", {}, "Schema"), ...versions.map((each, at) => {
    const key = `${each.version} ${each.created_ms}`;
    const details = make("details", { open: opened.has(key) },
      make("summary", {}, `${each.type}, version ${each.version} `,
        at === 0 ? make("span", { class: "mark" }, "newest") : null,
        make("span", { class: "soft" }, ` since ${time(each.created_ms).slice(0, 19)}`)),
      make("pre", {}, definition(each.schema)));
    details.addEventListener("toggle", () => { details.open ? opened.add(key) : opened.delete(key); });
    return details;
  })];
}

function definition(text) {
  try {
    return plain(JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    return plain(text) || "It has no definition.";
  }
}

function topicActions(found, changed) {
  const topic = found.topic;
  const path = topicPath(topic);
  const parted = found.partitions.length > 0;
  const simple = (title, text, verb, method, tail, danger = true) => confirm({ title, text, verb,
    danger, action: async () => { await admin(method, path + tail); changed(`${title} Done.`); } });
  const actions = [];
  if (found.keeps && !parted)
    actions.push(make("a", { class: "button", href: address(topic, { view: "messages" }),
      "data-id": "messages" }, "Messages"));
  if (!found.terminated)
    actions.push(button("Publish\u2026", () => publish(topic, found.schemas[0] ?? null, changed)));
  actions.push(make("a", { class: "button", href: address(topic, { view: "policies" }),
    "data-id": "policies" }, "Policies"));
  if (found.keeps)
    actions.push(button("Create subscription\u2026", () => createSubscription(topic, changed)));
  actions.push(button("Unload\u2026", () => simple("Unload the topic?",
    `${line(topic)} is closed and opened again when it is used. Its producers and consumers connect anew.`,
    "Unload", "PUT", "/unload", false)));
  if (found.keeps && !found.terminated)
    actions.push(button("Terminate\u2026", () => simple("Terminate the topic?",
      `Nothing can be published to ${line(topic)} any more. That cannot be undone.`,
      "Terminate", "POST", parted ? "/terminate/partitions" : "/terminate"), { class: "danger" }));
  const force = make("input", { type: "checkbox" });
  actions.push(button("Delete topic\u2026", () => confirm({ title: "Delete the topic?",
    text: `${line(topic)} is deleted with its messages (${size(found.stored)}) and subscriptions ` +
      `(${count(Object.keys(found.subscriptions).length)}). That cannot be undone.`,
    verb: "Delete topic", must: topic.split("/").slice(4).join("/"),
    fields: [["force", "Also while it is used, which closes its producers and consumers", force]],
    action: async (given) => {
      await admin("DELETE", `${path}${parted ? "/partitions" : ""}?force=${given.force}`);
      location.hash = address();
      changed("The topic is deleted.");
    } }), { class: "danger" }));
  return actions;
}

function createSubscription(topic, changed) {
  const name = make("input", { autocomplete: "off", spellcheck: "false" });
  const begin = select([["latest", "what is published from now on"], ["earliest", "all messages"]], "latest");
  confirm({ title: "Create a subscription", text: `Of ${line(topic)}.`, verb: "Create subscription",
    danger: false, fields: [["name", "Name", name], ["begin", "It gets", begin]],
    action: async (given) => {
      if (!given.name) throw new Error("a subscription needs a name");
      await admin("PUT", subscriptionPath(topic, given.name), given.begin);
      changed(`Created ${given.name}.`);
    } });
}

// Subscriptions ------------------------------------------------------------------------------------

function subscription(found, name, each, consumed, changed) {
  const points = each.points.map((point) => [point[0], point[1]]);
  const nobody = each.consumers !== null && !each.consumers.length;
  const stuck = nobody && each.backlog > 0;
  const parts = [
    make("h4", {}, line(name)),
    make("div", { class: "side" },
      facts([
        ["Backlog", make("b", {}, count(each.backlog))],
        ["Type", each.type || "open"],
        ["Oldest", age(each.oldest)],
        ["Unacknowledged", count(each.unacked)],
        each.replay ? ["To be redelivered", count(each.replay)] : null,
        each.active ? ["Active", line(each.active)] : null,
        each.durable ? null : ["Kept", "while consumers are connected"],
      ]),
      plot(points, found.since, found.now, `backlog of ${line(name)} over time`)),
  ];
  if (each.blocked)
    parts.push(make("p", { class: "warn" }, "Blocked: too many messages are not acknowledged."));
  if (each.behind)
    parts.push(make("p", { class: "warn" }, "Blocked: too many messages wait for keys that others hold."));
  if (found.keeps && each.durable)
    parts.push(make("div", { class: "row" }, ...actionsOf(found, name, each, changed)));
  if (each.consumers === null)
    parts.push(make("p", { class: "soft" }, "Who consumes is known to the owner of the folder alone, and it has none now."));
  else if (nobody)
    parts.push(make("p", stuck ? { class: "warn" } : { class: "soft" }, "Nobody consumes."));
  else
    parts.push(consumers(name, each, consumed));
  if (each.consumers !== null && each.consumers.length < each.consumer_count)
    parts.push(make("p", { class: "soft" }, `These are ${count(each.consumers.length)} of ` +
      `${count(each.consumer_count)} consumers.`));
  if (each.keys_held_count)
    parts.push(make("p", {}, `${count(each.keys_held_count)} keys are held back: another consumer ` +
      "than the one they belong to has not acknowledged earlier messages of them."),
    table("Held keys", [["Hash of the key", ""], ["Held by", ""], ["Since", ""], ["Waiting", "n"]],
      each.keys_held.map((key) => [key.key_hash, line(key.held_by), time(key.since_ms),
        count(key.waiting_messages)])));
  return make("section", { class: "card", "aria-label": `Subscription ${line(name)}` }, ...parts);
}

function consumers(name, each, consumed) {
  const shares = each.consumers.some((one) => one.ranges !== null);
  const heads = [["Consumer", ""], ["Permits", "n"], ["Unacked", "n"], ["Out /s", "n"]];
  if (shares) heads.push(["Of the keys", "n"]);
  return table(`Consumers of ${line(name)}`, heads, each.consumers.map((one) => {
    const told = Object.entries(one.metadata).map(([key, value]) => `${line(key)}=${line(value)}`);
    const row = [
      make("span", { title: told.join(", ") }, line(one.name),
        one.blocked ? make("span", { class: "mark warn" }, "blocked") : null),
      one.pulls ? make("span", { class: "soft", title: "It reads the ledger itself" }, "reads itself")
        : count(one.permits),
      count(one.unacked), consumed(name, one)];
    if (shares) row.push(one.ranges === null ? "" : `${(one.ranges * 100).toFixed(0)} %`);
    return row;
  }));
}

function actionsOf(found, name, each, changed) {
  const topic = found.topic;
  const path = subscriptionPath(topic, name);
  const what = `subscription ${line(name)} of ${line(topic)}`;
  const parted = found.partitions.length > 0;
  const of = (text, onclick, kind = "") => button(text, onclick,
    { class: kind, "data-of": name, "aria-label": `${text} ${line(name)}` });
  const backlog = `${count(each.backlog)} messages`;
  const made = [];
  if (!parted)
    made.push(make("a", { class: "button", "data-id": `messages ${name}`,
      "aria-label": `Unacknowledged messages of ${line(name)}`,
      href: address(topic, { view: "messages", subscription: name }) }, "Messages"));
  if (!parted)
    made.push(of("Skip\u2026", () => {
      const number = make("input", { type: "number", min: 1, value: 1 });
      confirm({ title: "Skip messages?", verb: "Skip",
        text: `The next messages of ${what} are acknowledged. Its consumers will not get them.`,
        fields: [["number", "How many", number]],
        action: async (given) => {
          const wanted = whole(given.number, 1);
          await admin("POST", `${path}/skip/${wanted}`);
          changed(`Skipped up to ${count(wanted)} messages.`);
        } });
    }));
  made.push(of("Reset\u2026", () => reset(topic, name, changed)));
  made.push(of("Expire\u2026", () => {
    const number = make("input", { type: "number", min: 1, value: 3600 });
    confirm({ title: "Expire messages?", verb: "Expire",
      text: `What was published earlier is acknowledged for ${what}, up to the first message that was not.`,
      fields: [["number", "Older than so many seconds", number]],
      action: async (given) => {
        await admin("POST", `${path}/expireMessages/${whole(given.number, 1)}`);
        changed("Expired.");
      } });
  }));
  made.push(of("Replay dead letters\u2026", () => replay(topic, name, changed)));
  made.push(of("Clear backlog\u2026", () => confirm({ title: "Clear the backlog?",
    text: `All ${backlog} that ${what} has not acknowledged are skipped. Its consumers will not get them.`,
    verb: `Skip ${backlog}`,
    action: async () => { await admin("POST", `${path}/skip_all`); changed("The backlog is cleared."); } }),
  "danger"));
  made.push(of("Delete\u2026", () => {
    const force = make("input", { type: "checkbox" });
    confirm({ title: "Delete the subscription?", verb: "Delete subscription",
      text: `${what} is deleted with its backlog of ${backlog}. That cannot be undone.`,
      fields: [["force", "Also while consumers are connected, which closes them", force]],
      action: async (given) => {
        await admin("DELETE", `${path}?force=${given.force}`);
        changed("The subscription is deleted.");
      } });
  }, "danger"));
  return made;
}

// begin: an id that is proposed.
export function reset(topic, name, changed, begin = "") {
  const kind = select([["id", "a message id"], ["time", "a time"], ["earliest", "the first message"],
    ["latest", "the end"]], "id");
  const id = make("input", { value: begin, placeholder: "ledger:entry", autocomplete: "off" });
  const when = make("input", { type: "datetime-local", step: 1 });
  const fit = () => {
    id.parentElement.hidden = kind.value !== "id";
    when.parentElement.hidden = kind.value !== "time";
  };
  kind.addEventListener("change", fit);
  confirm({ title: "Reset the subscription?", verb: "Reset",
    text: `Subscription ${line(name)} of ${line(topic)} moves. Going back, messages come again, also ` +
      "those that were acknowledged; going forward, they are skipped.",
    fields: [["kind", "To", kind], ["id", "Message id", id], ["when", "Time", when]],
    action: async (given) => {
      const path = `${subscriptionPath(topic, name)}/resetcursor`;
      if (given.kind === "time") {
        const ms = new Date(given.when).getTime();
        if (Number.isNaN(ms)) throw new Error("give the time");
        await admin("POST", `${path}/${ms}`);
      } else if (given.kind === "latest") {
        await admin("POST", `${subscriptionPath(topic, name)}/skip_all`);
      } else {
        await admin("POST", path, given.kind === "id" ? idOf(given.id) : { ledgerId: -1, entryId: -1 });
      }
      changed("The subscription was moved.");
    } });
  fit();
}

function idOf(text) {
  const given = text.trim().split(":");
  const parts = given.map(Number);
  if (parts.length < 2 || parts.length > 4 || !parts.every(Number.isSafeInteger)
      || given.some((each) => !each.trim()))
    throw new Error("write the id as ledger:entry, or ledger:entry:partition:batch index");
  const [ledgerId, entryId, partitionIndex = -1, batchIndex = -1] = parts;
  return { ledgerId, entryId, partitionIndex, batchIndex };
}

function replay(topic, name, changed) {
  const base = topic.replace(/-partition-\d+$/, "");
  const letters = make("input", { value: `${base}-${name}-DLQ`, autocomplete: "off", spellcheck: "false" });
  confirm({ title: "Replay dead letters?", verb: "Replay",
    text: `The dead letters of subscription ${line(name)} are published to the topic they came from again, ` +
      `where all subscriptions get them: each once, and up to ${count(REPLAYED)} now.`,
    fields: [["letters", "Dead letter topic", letters]],
    action: async (given) => {
      const found = await ask("POST", "/console/replay",
        { topic: base, subscription: name, dlq: given.letters, count: REPLAYED });
      const sum = Object.values(found.replayed).reduce((one, other) => one + other, 0);
      const damage = found.damage.length ? ` Damaged: ${found.damage.map(line).join("; ")}` : "";
      const replayed = `Replayed ${count(sum)} dead letters${found.more ? ", and there are more" : ""}.${damage}`;
      changed(replayed);
      if (found.stopped) throw new Error(`${line(found.stopped)}. ${replayed}`);
    } });
}
