// Publishes a message that is written by hand.

import { ask } from "./api.js";
import { confirm } from "./dialog.js";
import { line, make } from "./elements.js";

const WRITTEN = {
  JSON: "JSON", AVRO: "the value in JSON, encoded in Avro", STRING: "text",
  INT8: "a number", INT16: "a number", INT32: "a number", INT64: "a number", FLOAT: "a number", DOUBLE: "a number",
};

// schema: the newest one of the topic; null: it has none.
export function publish(topic, schema, changed) {
  const content = make("textarea", { rows: 5, spellcheck: "false" });
  const key = make("input", { autocomplete: "off", spellcheck: "false" });
  const properties = make("textarea", { rows: 2, spellcheck: "false", placeholder: "name=value, a line each" });
  const form = schema === null ? "text" : WRITTEN[schema.type] ?? "bytes in base64";
  const isText = schema === null || schema.type in WRITTEN;
  confirm({ title: "Publish a message", verb: "Publish", danger: false,
    text: `To ${line(topic)}. Every subscription gets it.` +
      (schema === null ? "" : ` Its value is checked and encoded by schema ${schema.type}, version ${schema.version}.`),
    fields: [["content", `Value: ${form}`, content], ["key", "Key", key], ["properties", "Properties", properties]],
    action: async (given) => {
      const found = await ask("POST", "/console/publish", { topic, key: given.key || undefined,
        [isText ? "text" : "base64"]: given.content, properties: pairs(given.properties) });
      changed(`Published ${found.message_id.replace(/(:-1)+$/, "")}.`);
    } });
}

function pairs(text) {
  const found = {};
  for (const each of text.split("\n").filter((one) => one.trim())) {
    const [name, ...rest] = each.split("=");
    if (!rest.length || !name.trim()) throw new Error(`${each}: write name=value`);
    found[name.trim()] = rest.join("=").trim();
  }
  return found;
}
