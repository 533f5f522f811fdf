'use strict';
// Reads manifests as kubectl does: YAML 1.1 scalars, converted to JSON. `kueuecore._yaml_scalars` does the same for the
// command, and both are compared with what kubectl's library answered (tests/yaml_scalars).

const WORDS = new Map([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true]),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false]),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null]),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word) => [word, Infinity]),
  ...['-.inf', '-.Inf', '-.INF'].map((word) => [word, -Infinity]),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, NaN]),
]);
const WHOLE = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/;
const SIGN_AFTER_PREFIX = /^0b([-+])([01]+)$/; // an oddity of the library
const REAL = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/;
const REAL_FROM_POINT = /^\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?$/;
const HALF = 2n ** 63n;

/** What a plain scalar without a tag stands for; whole numbers are BigInts, so that none loses digits. */
function plainValue(text) {
  if (WORDS.has(text)) return WORDS.get(text);
  if (!/^[-+.0-9]/.test(text)) return text;
  if (text.startsWith('.')) return REAL_FROM_POINT.test(text) ? finite(text.replaceAll('_', ''), text) : text;
  const digits = text.replaceAll('_', '');
  const whole = wholeNumber(digits);
  if (whole !== null) return whole;
  return REAL.test(digits) ? finite(digits, text) : text;
}

function wholeNumber(text) {
  let match = WHOLE.exec(text);
  if (match === null) {
    match = SIGN_AFTER_PREFIX.exec(text);
    return match === null ? null : inRange(match[1], BigInt(`0b${match[2]}`));
  }
  const [, sign, hexadecimal, binary, octal, decimal] = match;
  if (decimal !== undefined) return decimal.length <= 20 ? inRange(sign, BigInt(decimal)) : null;
  return inRange(sign, BigInt(hexadecimal ? `0x${hexadecimal}` : binary ? `0b${binary}` : `0o${octal}`));
}

/** At most 64 bits; only a number without a sign may use the 64th. */
function inRange(sign, number) {
  if (sign === '-') return number <= HALF ? -number : null;
  return number < (sign ? HALF : 2n * HALF) ? number : null;
}

function finite(digits, text) {
  const number = Number(digits);
  return Number.isFinite(number) ? number : text;
}

// A plain `<<`: its mappings are taken in the order of the text, so that the last of equal keys counts.
const MERGE = Symbol('<<');
const identify = () => false;
const NOT_RESOLVED = jsyaml.NOT_RESOLVED;
const plainTag = jsyaml.defineScalarTag('tag:yaml.org,2002:kubectl', {
  implicit: true,
  identify,
  resolve: (text) => {
    if (text === '<<') return MERGE;
    const value = plainValue(text);
    return value === text ? NOT_RESOLVED : value;
  },
});
const typed = (name, isType, convert = (value) => value) => jsyaml.defineScalarTag(`tag:yaml.org,2002:${name}`, {
  identify,
  resolve: (text) => {
    const value = convert(plainValue(text));
    return isType(value) ? value : NOT_RESOLVED;
  },
});
const mapTag = jsyaml.defineMappingTag('tag:yaml.org,2002:map', {
  create: () => new Map(),
  addPair: (map, key, value) => {
    if (key === MERGE) {
      const bases = Array.isArray(value) ? [...value].reverse() : [value];
      if (!bases.every((base) => base instanceof Map)) return '`<<` does not refer to a mapping';
      bases.forEach((base) => base.forEach((item, name) => map.set(name, item)));
      return '';
    }
    const name = keyText(key);
    if (name === null) return `the key ${toJson(key)} is not a string: write it in quotes`;
    map.set(name, value);
    return '';
  },
  has: (map, key) => map.has(keyText(key)),
  keys: (map) => map.keys(),
  get: (map, key) => map.get(key),
  identify,
});
const schema = new jsyaml.Schema([
  jsyaml.strTag,
  plainTag,
  typed('bool', (value) => typeof value === 'boolean'),
  typed('null', (value) => value === null),
  typed('int', (value) => typeof value === 'bigint'),
  typed('float', (value) => typeof value === 'number', (value) => (typeof value === 'bigint' && value < HALF ? Number(value) : value)),
  jsyaml.seqTag,
  mapTag,
]);

/** The key of a JSON object that the value of a scalar becomes; null if it cannot be one. */
function keyText(key) {
  if (typeof key === 'string') return key;
  if (typeof key === 'boolean') return String(key);
  if (typeof key === 'bigint') return key < HALF ? String(key) : null;
  return null;
}

/** JSON text of a value from YAML. */
function toJson(value) {
  if (value instanceof Map) {
    return `{${[...value].map(([key, item]) => `${JSON.stringify(key)}:${toJson(item)}`).join(',')}}`;
  }
  if (Array.isArray(value)) return `[${value.map(toJson).join(',')}]`;
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Error(`JSON has no number ${value}: write it in quotes`);
    return String(value);
  }
  return value === MERGE ? '"<<"' : JSON.stringify(value);
}

/** The JSON texts of the objects in a text, lists taken apart. Throws an Error that says what is wrong and where. */
function objectsOf(text) {
  // kubectl ends each line, and takes a comment right after the dashes, too.
  const whole = (text.endsWith('\n') ? text : `${text}\n`).replace(/^---(?=#)/gm, '--- ');
  let documents;
  try {
    documents = jsyaml.loadAll(whole, { schema, json: true, maxAliases: 10000 });
  } catch (error) {
    throw new Error(error.mark ? `line ${error.mark.line + 1}, column ${error.mark.column + 1}: ${error.reason}` : error.message);
  }
  const objects = [];
  documents.forEach((document, index) => take(document, `document ${index + 1}`, objects));
  return objects.map(toJson);
}

function take(value, place, objects) {
  if (value === null || value === undefined) return;
  if (Array.isArray(value)) {
    value.forEach((item, index) => take(item, `${place}, item ${index + 1}`, objects));
  } else if (!(value instanceof Map)) {
    throw new Error(`${place}: it is not an object: an object begins with apiVersion and kind`);
  } else if (/List$/.test(value.get('kind')) && Array.isArray(value.get('items'))) {
    value.get('items').forEach((item, index) => take(item, `${place}, item ${index + 1}`, objects));
  } else if (typeof value.get('apiVersion') !== 'string' || typeof value.get('kind') !== 'string') {
    throw new Error(`${place}: it has no apiVersion and kind: every object begins with them`);
  } else {
    objects.push(value);
  }
}
