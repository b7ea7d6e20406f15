// An independent reader of pprof profiles for the tests: prints what a file holds, as JSON. Usage: node read_pprof.mjs FILE
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

// A message as [field, value] pairs: numbers as Number, everything with a length as Buffer.
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (at >= bytes.length) throw new Error('a number is cut off');
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(value);
    }
  };
  while (at < bytes.length) {
    const key = varint();
    if ((key & 7) === 0) {
      yield [key >> 3, varint()];
    } else if ((key & 7) === 2) {
      const length = varint();
      if (at + length > bytes.length) throw new Error('a message is cut off');
      yield [key >> 3, bytes.subarray(at, (at += length))];
    } else {
      throw new Error(`wire type ${key & 7}`);
    }
  }
}

const all = (bytes, field) => [...fields(bytes)].filter(([f]) => f === field).map(([, value]) => value);
const one = (bytes, field) => all(bytes, field)[0] ?? 0;
const packed = (bytes) => {
  const numbers = [];
  for (let at = 0; at < bytes.length;) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      value |= BigInt(bytes[at] & 0x7f) << shift;
      if (bytes[at++] < 0x80) break;
    }
    numbers.push(Number(value));
  }
  return numbers;
};

const profile = gunzipSync(readFileSync(process.argv[2]));
const strings = all(profile, 6).map((s) => s.toString('utf8'));
if (strings[0] !== '') throw new Error('the first string is not empty');
const functions = new Map(all(profile, 5).map((f) => [one(f, 1), strings[one(f, 2)]]));
const mappings = new Map(all(profile, 3).map((m) => [one(m, 1), { file: strings[one(m, 5)], build: strings[one(m, 6)] }]));
const locations = new Map(all(profile, 4).map((l) => {
  if (!mappings.has(one(l, 2))) throw new Error('a location without a mapping');
  const line = one(l, 4);
  if (!functions.has(one(line, 1))) throw new Error('a line without a function');
  return [one(l, 1), { function: functions.get(one(line, 1)), address: one(l, 3), line: one(line, 2) }];
}));
const samples = all(profile, 2).map((s) => {
  const [location] = packed(one(s, 1));
  if (!locations.has(location)) throw new Error('a sample without a location');
  return { ...locations.get(location), values: packed(one(s, 2)) };
});
console.log(JSON.stringify({
  types: all(profile, 1).map((t) => `${strings[one(t, 1)]}/${strings[one(t, 2)]}`),
  mappings: [...mappings.values()],
  period: one(profile, 12),
  default_type: strings[one(profile, 14)],
  samples,
}));
