// Reads Avro's binary encoding by a schema. What strangers published is read here, in the browser of
// who looks, and within bounds, so that no payload keeps the owner of the folder busy.

const ITEMS_MAX = 20000;  // values of a payload
const DEPTH_MAX = 64;

export class Unreadable extends Error {}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.items = 0;
  }

  take(size) {
    if (size < 0 || this.at + size > this.bytes.length) throw new Unreadable("the payload ends too early");
    this.at += size;
    return this.at - size;
  }

  long() {
    let found = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.take(1)];
      found |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, (found >> 1n) ^ -(found & 1n));
    }
    throw new Unreadable("a number is too long");
  }

  size() {
    const found = this.long();
    if (found < 0n || found > BigInt(this.bytes.length)) throw new Unreadable("a size is out of bounds");
    return Number(found);
  }

  part(size) {
    const at = this.take(size);
    return this.bytes.subarray(at, at + size);
  }

  count() {
    if (++this.items > ITEMS_MAX) throw new Unreadable(`it has more than ${ITEMS_MAX} values`);
  }
}

// A function that makes the value of a payload, as JSON may have it; numbers beyond 2^53 are texts.
export function avroReader(schema) {
  const named = new Map();
  const root = prepared(schema, named, "");
  return (bytes) => {
    const reader = new Reader(bytes);
    const found = value(reader, root, named, 0);
    if (reader.at !== bytes.length) throw new Unreadable(`${bytes.length - reader.at} bytes are left`);
    return found;
  };
}

// The schema with its named types known; a name is looked up when it is met.
function prepared(schema, named, space) {
  if (typeof schema === "string") return { type: schema, space };
  if (Array.isArray(schema)) return { type: "union", of: schema.map((each) => prepared(each, named, space)) };
  if (schema === null || typeof schema !== "object") throw new Unreadable("the schema is none of Avro");
  if (typeof schema.type === "object") return prepared(schema.type, named, space);
  const inner = schema.namespace ?? (schema.name?.includes(".") ? schema.name.replace(/\.[^.]*$/, "") : space);
  const found = { ...schema, space: inner };
  if (schema.name) {
    named.set(schema.name, found);
    if (inner && !schema.name.includes(".")) named.set(`${inner}.${schema.name}`, found);
  }
  if (schema.type === "record" || schema.type === "error")
    found.of = schema.fields.map((each) => [each.name, prepared(each.type, named, inner)]);
  if (schema.type === "array") found.of = prepared(schema.items, named, inner);
  if (schema.type === "map") found.of = prepared(schema.values, named, inner);
  return found;
}

function value(reader, kind, named, depth) {
  if (depth > DEPTH_MAX) throw new Unreadable("it is too deep");
  reader.count();
  switch (kind.type) {
    case "null": return null;
    case "boolean": return reader.bytes[reader.take(1)] !== 0;
    case "int":
    case "long": return logical(kind, reader.long());
    case "float": return reader.view.getFloat32(reader.take(4), true);
    case "double": return reader.view.getFloat64(reader.take(8), true);
    case "string": return new TextDecoder().decode(reader.part(reader.size()));
    case "bytes": return octets(kind, reader.part(reader.size()));
    case "fixed": return octets(kind, reader.part(kind.size));
    case "enum": {
      const at = Number(reader.long());
      if (!(at in kind.symbols)) throw new Unreadable("a symbol is out of bounds");
      return kind.symbols[at];
    }
    case "union": {
      const at = Number(reader.long());
      if (!(at in kind.of)) throw new Unreadable("a branch of a union is out of bounds");
      return value(reader, kind.of[at], named, depth + 1);
    }
    case "record":
    case "error": return Object.fromEntries(kind.of.map(([name, one]) => [name, value(reader, one, named, depth + 1)]));
    case "array": return blocks(reader, () => value(reader, kind.of, named, depth + 1));
    case "map": return Object.fromEntries(blocks(reader, () =>
      [new TextDecoder().decode(reader.part(reader.size())), value(reader, kind.of, named, depth + 1)]));
    default: {
      const known = named.get(kind.type) ?? named.get(`${kind.space}.${kind.type}`);
      if (!known) throw new Unreadable(`the schema does not say what ${kind.type} is`);
      return value(reader, known, named, depth + 1);
    }
  }
}

function blocks(reader, one) {
  const found = [];
  for (;;) {
    let count = reader.long();
    if (count === 0n) return found;
    if (count < 0n) {
      reader.long();  // the size of the block
      count = -count;
    }
    if (count > BigInt(ITEMS_MAX)) throw new Unreadable(`it has more than ${ITEMS_MAX} values`);
    for (let left = Number(count); left > 0; left--) found.push(one());
  }
}

const exact = (number) => (BigInt.asIntN(54, number) === number ? Number(number) : String(number));

function logical(kind, number) {
  const day = 86400000;
  const ms = { date: () => Number(number) * day, "timestamp-millis": () => Number(number),
    "timestamp-micros": () => Number(number / 1000n) }[kind.logicalType]?.();
  if (ms !== undefined && Math.abs(ms) <= 8.64e15) {
    const text = new Date(ms).toISOString();
    return kind.logicalType === "date" ? text.slice(0, text.indexOf("T")) : text;
  }
  return exact(number);
}

function octets(kind, bytes) {
  if (kind.logicalType === "decimal") {
    let found = 0n;
    for (const each of bytes) found = (found << 8n) | BigInt(each);
    found = BigInt.asIntN(8 * bytes.length, found);
    const scale = kind.scale ?? 0;
    const digits = String(found < 0n ? -found : found).padStart(scale + 1, "0");
    const whole = scale ? `${digits.slice(0, -scale)}.${digits.slice(-scale)}` : digits;
    return found < 0n ? `-${whole}` : whole;
  }
  return `0x${[...bytes].map((each) => each.toString(16).padStart(2, "0")).join("")}`;
}
