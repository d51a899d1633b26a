// The operator's page. What comes from names and messages is put in as text, and never as HTML.

const POLL_MS = 2000;
const SAMPLES_MAX = 180;  // six minutes
const TOPICS_MAX = 200;  // whose statistics are asked for in a round
const AT_ONCE = 4;  // requests
const PEEKED = 20;
const PAYLOAD_MAX = 2000;  // characters that are shown

const $ = (id) => document.getElementById(id);
const samples = new Map();  // topic: [{time, backlog, rateIn, rateOut, in, out}]
let topics = [];  // names in the namespace
let figures = new Map();  // topic: its statistics
let round = 0;

// Elements -----------------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") found.addEventListener("click", value);
    else found.setAttribute(name, value);
  }
  found.append(...children.map((each) => (each instanceof Node ? each : String(each))));
  return found;
}

function table(heads, rows) {
  const head = heads.map(([text, kind]) => make("th", { scope: "col", class: kind }, text));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, at) => make("td", { class: heads[at][1] }, cell))));
  return make("div", { class: "scroll" },
    make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}

function plot(values, label) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "polyline");
  const most = Math.max(1, ...values);
  const last = Math.max(1, values.length - 1);
  svg.setAttribute("viewBox", "0 0 100 30");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  line.setAttribute("vector-effect", "non-scaling-stroke");
  line.setAttribute("points",
    values.map((value, at) => `${(at / last) * 100},${28 - (value / most) * 26}`).join(" "));
  svg.append(line);
  return svg;
}

const count = (value) => Number(value).toLocaleString("en");
const rate = (value) => (value >= 100 ? count(Math.round(value)) : value.toFixed(1));

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; bytes >= 1024 && at < units.length - 1; at++) bytes /= 1024;
  return `${at ? bytes.toFixed(1) : bytes} ${units[at]}`;
}

// The API ------------------------------------------------------------------------------------------

async function ask(method, path) {
  const reply = await fetch(`/admin/v2/${path}`, { method, cache: "no-store" });
  if (reply.ok) return reply;
  let reason = reply.statusText;
  try {
    reason = (await reply.json()).reason;
  } catch { /* its status says enough */ }
  throw new Error(`${reply.status}: ${reason}`);
}

const get = async (path) => (await ask("GET", path)).json();

function topicPath(name) {
  const [, domain, place, local] = /^([a-z-]+):\/\/([^/]+\/[^/]+)\/(.*)$/s.exec(name);
  return `${domain}/${place.split("/").map(encodeURIComponent).join("/")}/${encodeURIComponent(local)}`;
}

// A subscription is decoded twice.
const subscriptionPath = (topic, name) =>
  `${topicPath(topic)}/subscription/${encodeURIComponent(encodeURIComponent(name))}`;

async function listNamespaces() {
  const found = [];
  for (const tenant of await get("tenants"))
    found.push(...(await get(`namespaces/${encodeURIComponent(tenant)}`)));
  const select = $("namespace");
  const chosen = select.value || (found.includes("public/default") ? "public/default" : found[0]);
  select.replaceChildren(...found.map((name) => make("option", { value: name }, name)));
  select.value = found.includes(chosen) ? chosen : found[0];
}

async function look() {
  const mine = ++round;
  try {
    if (!$("namespace").value) await listNamespaces();
    const place = $("namespace").value.split("/").map(encodeURIComponent).join("/");
    const names = [...new Set([
      ...(await get(`persistent/${place}`)), ...(await get(`non-persistent/${place}`))])].sort();
    const wanted = names.filter((name) => name.includes($("filter").value)).slice(0, TOPICS_MAX);
    const open = opened();
    if (open && names.includes(open) && !wanted.includes(open)) wanted.push(open);
    const found = new Map();
    const left = [...wanted];
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (let name = left.shift(); name; name = left.shift()) {
        try {
          found.set(name, await get(`${topicPath(name)}/stats`));
        } catch (error) {
          if (!error.message.startsWith("404")) throw error;  // else it was deleted meanwhile
        }
      }
    }));
    if (mine !== round) return;
    topics = names;
    figures = found;
    for (const [name, each] of found) note(name, each);
    say(`${count(topics.length)} topics, ${new Date().toLocaleTimeString()}`);
    draw();
  } catch (error) {
    if (mine === round) say(`Not up to date. ${error.message}`, true);
  }
}

function note(name, each) {
  const list = samples.get(name) ?? [];
  const before = list.at(-1);
  const now = { time: Date.now(), backlog: backlogOf(each), in: each.msgInCounter,
    out: each.msgOutCounter, rateIn: 0, rateOut: 0 };
  if (before) {
    const seconds = Math.max(0.001, (now.time - before.time) / 1000);
    now.rateIn = Math.max(0, now.in - before.in) / seconds;
    now.rateOut = Math.max(0, now.out - before.out) / seconds;
  }
  samples.set(name, [...list, now].slice(-SAMPLES_MAX));
}

const backlogOf = (each) =>
  Math.max(0, ...Object.values(each.subscriptions).map((one) => one.msgBacklog));

const consumersOf = (each) =>
  Object.values(each.subscriptions).reduce((sum, one) => sum + one.consumers.length, 0);

// Drawing ------------------------------------------------------------------------------------------

function opened() {
  try {
    const name = decodeURIComponent(location.hash.slice(1));
    return /^[a-z-]+:\/\/[^/]+\/[^/]+\/./s.test(name) ? name : "";
  } catch {
    return "";
  }
}

function say(text, bad = false) {
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").classList.toggle("bad", bad);
}

function draw() {
  const focused = document.activeElement?.dataset?.id;
  const open = opened();
  const held = $("peeked");  // messages stay until others are asked for
  const keep = held && held.dataset.topic === open ? held : null;
  $("main").replaceChildren(...(open ? drawTopic(open) : drawTopics()));
  if (keep) $("main").append(keep);
  if (focused) document.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
}

// In its namespace.
function shortName(name) {
  const local = name.split("/").slice(4).join("/");
  return name.startsWith("persistent:")
    ? [local] : [local, " ", make("span", { class: "soft" }, "non-persistent")];
}

function drawTopics() {
  const text = $("filter").value;
  const shown = [...figures].filter(([name]) => name.includes(text))
    .sort((one, other) => backlogOf(other[1]) - backlogOf(one[1]) || (one[0] < other[0] ? -1 : 1));
  if (!shown.length) return [make("p", {}, text ? "No topic has this in its name." : "No topics.")];
  const asked = topics.filter((name) => name.includes(text)).length;
  const rows = shown.map(([name, each]) => {
    const list = samples.get(name);
    const consumers = consumersOf(each);
    const line = plot(list.map((one) => one.backlog), "backlog over time");
    if (list.at(-1).backlog > list[0].backlog) line.classList.add("growing");
    const stuck = backlogOf(each) > 0 && consumers === 0;
    return [
      make("a", { href: `#${encodeURIComponent(name)}`, "data-id": `topic ${name}`, title: name },
        ...shortName(name)),
      count(backlogOf(each)),
      line,
      make("span", stuck ? { class: "warn" } : {}, stuck ? "none" : count(consumers)),
      rate(list.at(-1).rateIn),
      rate(list.at(-1).rateOut),
      size(each.storageSize),
    ];
  });
  const found = [table([["Topic", ""], ["Backlog", "n"], ["Over time", ""], ["Consumers", "n"],
    ["In /s", "n wide"], ["Out /s", "n wide"], ["Stored", "n wide"]], rows)];
  if (asked > TOPICS_MAX)
    found.unshift(make("p", { class: "warn" },
      `The first ${TOPICS_MAX} of ${count(asked)} topics, by name. Filter to see others.`));
  return found;
}

function drawTopic(name) {
  const back = make("p", {}, make("a", { href: "#", "data-id": "back" }, "All topics"));
  const each = figures.get(name);
  if (!each) return [back, make("h2", {}, name), make("p", {}, "There is no such topic here.")];
  const list = samples.get(name);
  const figure = (key, text, show) => make("figure", {},
    plot(list.map((one) => one[key]), text),
    make("figcaption", {}, `${text}: ${show(list.at(-1)[key])}, most ${show(Math.max(...list.map((one) => one[key])))}`));
  return [back, make("h2", {}, name),
    make("p", {}, `${size(each.storageSize)} stored, producers: ${count(each.publishers.length)}`),
    make("div", { class: "plots" }, figure("backlog", "Largest backlog", count),
      figure("rateIn", "Published a second", rate), figure("rateOut", "Delivered a second", rate)),
    ...Object.entries(each.subscriptions).flatMap(([one, found]) =>
      drawSubscription(name, one, found))];
}

function drawSubscription(topic, name, found) {
  const button = (text, kind, onclick) =>
    make("button", { class: kind, onclick, "data-id": `${text} ${name}`,
      "aria-label": `${text}: ${name}` }, text);
  const backlog = `${count(found.msgBacklog)} messages`;
  const durable = topic.startsWith("persistent:") && found.isDurable;
  const actions = durable ? [
    button("Peek", "", () => peek(topic, name)),
    button("Clear backlog", "danger", () => confirm("Clear the backlog?",
      `All ${backlog} that subscription ${name} of ${topic} has not acknowledged are skipped. ` +
      "Its consumers will not get them.", `Skip ${backlog}`,
      () => ask("POST", `${subscriptionPath(topic, name)}/skip_all`))),
    button("Delete subscription", "danger", () => confirm("Delete the subscription?",
      `Subscription ${name} of ${topic} is deleted with its backlog of ${backlog}. ` +
      "It is refused while consumers are connected.", "Delete subscription",
      () => ask("DELETE", subscriptionPath(topic, name)))),
  ] : [];
  const consumers = found.consumers.map((one) => [one.consumerName, count(one.availablePermits),
    count(one.unackedMessages), rate(one.msgRateOut)]);
  return [
    make("h3", {}, name),
    make("p", {}, `${found.type === "None" ? "Type open" : found.type}, backlog ${count(found.msgBacklog)}, ` +
      `unacknowledged ${count(found.unackedMessages)}`),
    ...(found.blockedSubscriptionOnUnackedMsgs
      ? [make("p", { class: "warn" }, "Blocked: too many messages are not acknowledged.")] : []),
    make("div", { class: "row" }, ...actions),
    consumers.length
      ? table([["Consumer", ""], ["Permits", "n"], ["Unacked", "n"], ["Out /s", "n"]], consumers)
      : make("p", found.msgBacklog ? { class: "warn" } : {}, "Nobody consumes."),
  ];
}

// Actions ------------------------------------------------------------------------------------------

function confirm(title, text, verb, action) {
  $("confirm-title").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = verb;
  $("confirm-yes").onclick = async () => {
    $("confirm").close();
    try {
      await action();
      await look();
    } catch (error) {
      round++;
      say(`Refused. ${error.message}`, true);
    }
  };
  $("confirm").showModal();
}

async function peek(topic, name) {
  const rows = [];
  try {
    for (let at = 1; at <= PEEKED; at++) {
      const reply = await ask("GET", `${subscriptionPath(topic, name)}/position/${at}`);
      const text = new TextDecoder().decode(await reply.arrayBuffer());
      const cut = text.length > PAYLOAD_MAX ? `${text.slice(0, PAYLOAD_MAX)} (cut)` : text;
      rows.push([reply.headers.get("X-Pulsar-Message-ID") ?? "",
        reply.headers.get("X-Pulsar-publish-time") ?? "",
        reply.headers.get("X-Pulsar-partition-key") ?? "", make("pre", {}, cut)]);
    }
  } catch (error) {
    if (!error.message.startsWith("404")) {  // else there are no more
      say(`Refused. ${error.message}`, true);
      return;
    }
  }
  if (opened() !== topic) return;
  $("peeked")?.remove();
  const found = make("section", { id: "peeked", "data-topic": topic, tabindex: "-1" },
    make("h3", {}, `First messages of ${name}`),
    rows.length
      ? table([["Id", ""], ["Published", "wide"], ["Key", ""], ["Value", ""]], rows)
      : make("p", {}, "No messages."));
  $("main").append(found);
  found.focus();
}

$("confirm-no").addEventListener("click", () => $("confirm").close());
$("namespace").addEventListener("change", () => { location.hash = ""; samples.clear(); look(); });
$("filter").addEventListener("input", draw);
$("filter").addEventListener("change", look);
window.addEventListener("hashchange", () => { draw(); $("main").focus(); look(); });

async function poll() {
  if (!document.hidden) await look();
  setTimeout(poll, POLL_MS);
}
poll();
