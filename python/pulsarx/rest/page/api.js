// Asks the server. A token is kept for this tab alone.

const KEY = "pulsarx-token";

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

// Behind `#key=`, as `pulsarx console` prints it: it is not sent, and leaves the address at once.
export function takeKey() {
  const found = /^#key=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  setToken(found[1]);
  history.replaceState(null, "", location.pathname);
}

export function setToken(text) {
  sessionStorage.setItem(KEY, text);
}

export async function ask(method, path, body) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let reply;
  try {
    // Not the address of the page, which may have a name and a password in it.
    reply = await fetch(location.origin + path, { method, headers, cache: "no-store", credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused(0, "the server does not answer");
  }
  const text = await reply.text();
  let found = null;
  try {
    found = text ? JSON.parse(text) : null;
  } catch { /* its status says enough */ }
  if (!reply.ok) throw new Refused(reply.status, found?.reason || reply.statusText);
  return found;
}

export function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  return ask("GET", `${path}?${new URLSearchParams(given)}`);
}

export const admin = (method, path, body) => ask(method, `/admin/v2/${path}`, body);

export function topicPath(name) {
  const [, domain, place, local] = /^([a-z-]+):\/\/([^/]+\/[^/]+)\/(.*)$/s.exec(name);
  return `${domain}/${place.split("/").map(encodeURIComponent).join("/")}/${encodeURIComponent(local)}`;
}

// A subscription is decoded twice.
export const subscriptionPath = (topic, name) =>
  `${topicPath(topic)}/subscription/${encodeURIComponent(encodeURIComponent(name))}`;

// The address of a view, behind the #.
export function address(topic = "", query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const text = new URLSearchParams(given).toString();
  return `#${encodeURIComponent(topic)}${text ? `?${text}` : ""}`;
}

export function place() {
  const [head, ...rest] = location.hash.slice(1).split("?");
  let topic = "";
  try {
    topic = decodeURIComponent(head);
  } catch { /* no topic has that name */ }
  if (!/^[a-z-]+:\/\/[^/]+\/[^/]+\/./s.test(topic)) topic = "";
  return { topic, query: Object.fromEntries(new URLSearchParams(rest.join("?"))) };
}
