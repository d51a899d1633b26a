// The values of messages, decoded by the schemas that they were published with.

import { get } from "./api.js";
import { avroReader, Unreadable } from "./avro.js";

const NUMBERS = {
  INT8: (view) => view.getInt8(0), INT16: (view) => view.getInt16(0), INT32: (view) => view.getInt32(0),
  INT64: (view) => whole(view.getBigInt64(0)), FLOAT: (view) => view.getFloat32(0),
  DOUBLE: (view) => view.getFloat64(0),
};
const SIZES = { INT8: 1, INT16: 2, INT32: 4, INT64: 8, FLOAT: 4, DOUBLE: 8 };

const whole = (number) => (BigInt.asIntN(54, number) === number ? Number(number) : String(number));

// By version: { type, version, schema, read }. read: null for values that are shown as they are.
export async function decoders(topic) {
  let found;
  try {
    found = await get("/console/schemas", { topic });
  } catch {
    return new Map();  // a role that may not see them, which is shown the bytes
  }
  return new Map(found.map((each) => [each.version, { ...each, read: each.properties?.["kv.encoding.type"] === "SEPARATED" ? null : readerOf(each.type, each.schema) }]));
}

function readerOf(type, definition) {
  if (type === "AVRO") return lazily(() => avroReader(JSON.parse(definition)));
  if (type in NUMBERS) return (bytes) => {
    if (bytes.length !== SIZES[type]) throw new Unreadable(`it has ${bytes.length} bytes and not ${SIZES[type]}`);
    return NUMBERS[type](new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  };
  if (type === "BOOLEAN") return (bytes) => bytes[0] !== 0;
  if (type === "KEY_VALUE") return lazily(() => pairReader(JSON.parse(definition)));
  return null;  // texts and JSON, and what is not decoded here
}

function lazily(make) {
  let made = null;
  return (bytes) => (made ??= make())(bytes);
}

// A pair that is in the payload: the size of the key, the key, the same of the value.
function pairReader(definition) {
  const parts = ["key", "value"].map((name) => partReader(definition[name]));
  return (bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const found = [];
    let at = 0;
    for (const read of parts) {
      if (at + 4 > bytes.length) throw new Unreadable("the pair ends too early");
      const size = view.getInt32(at);
      at += 4;
      if (size > bytes.length - at) throw new Unreadable("the pair ends too early");
      found.push(size < 0 ? null : read(bytes.subarray(at, at + size)));
      at += Math.max(size, 0);
    }
    return { key: found[0], value: found[1] };
  };
}

function partReader(schema) {
  const text = (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  const type = schema?.type ?? "BYTES";
  const read = readerOf(type, schema?.schema);
  if (read) return read;
  if (type === "JSON") return (bytes) => JSON.parse(text(bytes));
  if (type === "STRING") return text;
  return (bytes) => `0x${[...bytes].map((each) => each.toString(16).padStart(2, "0")).join("")}`;
}

// { value } or { flaw }; null: the payload is shown as it is.
export function decoded(known, each, bytes) {
  const schema = known.get(each.schema_version);
  if (!schema?.read || bytes === null) return null;
  if (bytes.length < each.size) return { flaw: "it is cut; show more of it" };
  try {
    return { value: schema.read(bytes) };
  } catch (error) {
    return { flaw: error.message };
  }
}

// How a message was written, for people; empty: with none that is known.
export function schemaName(known, each) {
  const schema = known.get(each.schema_version);
  return schema ? `${schema.type}, version ${schema.version}` : "";
}
