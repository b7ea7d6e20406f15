// Makes a WASI command that needs nothing from outside: for runtimes that take modules without imports only.
//
// The imported functions become functions of the module with the same indices, so nothing else of the code changes.
// args_get and args_sizes_get answer with the arguments given here, and fd_write takes what is written to stdout into a
// hash. The others answer "bad descriptor" or "done"; proc_exit traps. An export `run` calls `_start` and returns the
// hash (32-bit FNV-1a) of the bytes written to descriptors 1 and 2. All else (types, code of the functions, memory, data)
// stays byte for byte as it was.

const encoder = new TextEncoder();

export function fnv1a(bytes) {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash | 0;
}

class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }
  u8() {
    if (this.at >= this.bytes.length) throw new Error(`the module ends at byte ${this.at}, inside an item`);
    return this.bytes[this.at++];
  }
  u32() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.u8();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }
  name() {
    const length = this.u32();
    this.at += length;
    return new TextDecoder().decode(this.bytes.subarray(this.at - length, this.at));
  }
  rest() {
    return this.bytes.subarray(this.at);
  }
}

function leb(value) {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value & 0x7f) | 0x80);
  bytes.push(value);
  return bytes;
}

function sleb(value) {
  const bytes = [];
  for (;;) {
    const byte = value & 0x7f;
    value >>= 7;
    if ((value === 0 && (byte & 0x40) === 0) || (value === -1 && (byte & 0x40) !== 0)) return [...bytes, byte];
    bytes.push(byte | 0x80);
  }
}

const constant = (value) => [0x41, ...sleb(value | 0)];
const get = (local) => [0x20, local];
const store8 = (offset) => [0x3a, 0x00, ...leb(offset)];
const store32 = [0x36, 0x02, 0x00];
const load32 = (offset) => [0x28, 0x02, ...leb(offset)];
// A body: groups of i32 locals, code, end.
const body = (locals, code) => {
  const content = [...(locals === 0 ? [0] : [1, ...leb(locals), 0x7f]), ...code.flat(Infinity), 0x0b];
  return [...leb(content.length), ...content];
};

// The replacements, given the arguments and the index of the global with the hash.
function replacements(args, hash) {
  const texts = args.map((a) => [...encoder.encode(a), 0]);
  const bytes = texts.reduce((sum, t) => sum + t.length, 0);
  let at = 0;
  const write = texts.map((text, i) => {
    // argv[i] = buffer + at; then its bytes
    const code = [get(0), constant(4 * i), 0x6a, get(1), constant(at), 0x6a, store32,
      ...text.map((byte, k) => [get(1), constant(byte), store8(at + k)])];
    at += text.length;
    return code;
  });
  const badDescriptor = () => body(0, [constant(8)]);
  const success = () => body(0, [constant(0)]);
  return {
    args_sizes_get: body(0, [get(0), constant(args.length), store32, get(1), constant(bytes), store32, constant(0)]),
    args_get: body(0, [write, constant(0)]),
    environ_sizes_get: body(0, [get(0), constant(0), store32, get(1), constant(0), store32, constant(0)]),
    environ_get: success(),
    fd_close: success(),
    fd_fdstat_get: badDescriptor(),
    fd_prestat_get: badDescriptor(),
    fd_prestat_dir_name: badDescriptor(),
    fd_seek: badDescriptor(),
    // (fd, iovs, count, written): locals 4 pointer, 5 end, 6 total
    fd_write: body(3, [
      0x03, 0x40,  // loop over the buffers
      get(2), 0x04, 0x40,
      get(1), load32(0), 0x21, 4,
      get(4), get(1), load32(4), 0x6a, 0x21, 5,
      get(6), get(1), load32(4), 0x6a, 0x21, 6,
      0x02, 0x40, 0x03, 0x40,
      get(4), get(5), 0x4f, 0x0d, 1,
      0x23, leb(hash), get(4), 0x2d, 0x00, 0x00, 0x73, constant(0x01000193), 0x6c, 0x24, leb(hash),
      get(4), constant(1), 0x6a, 0x21, 4, 0x0c, 0, 0x0b, 0x0b,
      get(1), constant(8), 0x6a, 0x21, 1,
      get(2), constant(1), 0x6b, 0x21, 2,
      0x0c, 1, 0x0b, 0x0b,
      get(3), get(6), store32, constant(0)]),
    proc_exit: body(0, [0x00]),
  };
}

// Throws Error where the module imports something else.
export function selfContained(wasm, args) {
  const sections = [];
  const reader = new Reader(wasm, 8);
  while (reader.at < wasm.length) {
    const id = reader.u8();
    const size = reader.u32();
    sections.push({ id, content: wasm.subarray(reader.at, reader.at + size) });
    reader.at += size;
  }
  const section = (id) => sections.find((s) => s.id === id);
  const counted = (id) => {
    const found = section(id);
    if (found === undefined) return { count: 0, rest: new Uint8Array() };
    const r = new Reader(found.content);
    return { count: r.u32(), rest: r.rest() };
  };

  const imports = [];
  const r = new Reader(section(2)?.content ?? new Uint8Array([0]));
  for (let left = r.u32(); left > 0; --left) {
    const module = r.name();
    const name = r.name();
    if (module !== 'wasi_snapshot_preview1' || r.u8() !== 0) throw new Error(`cannot replace the import ${module}.${name}`);
    imports.push({ name, type: r.u32() });
  }
  const types = counted(1);
  const functions = counted(3);
  const globals = counted(6);
  const exports = counted(7);
  const code = counted(10);
  const bodies = replacements(args, globals.count);

  let start;
  const e = new Reader(section(7).content);
  for (let left = e.u32(); left > 0; --left) {
    const name = e.name();
    const kind = e.u8();
    const index = e.u32();
    if (name === '_start' && kind === 0) start = index;
  }
  if (start === undefined) throw new Error('the module exports no function _start');

  const run = imports.length + functions.count;
  const replaced = imports.map(({ name }) => {
    if (bodies[name] === undefined) throw new Error(`cannot replace wasi_snapshot_preview1.${name}`);
    return bodies[name];
  });
  const made = new Map([
    [1, [leb(types.count + 1), [...types.rest], 0x60, 0, 1, 0x7f]],
    [3, [leb(run + 1), imports.map((i) => leb(i.type)), [...functions.rest], leb(types.count)]],
    [6, [leb(globals.count + 1), [...globals.rest], 0x7f, 1, constant(0x811c9dc5), 0x0b]],
    [7, [leb(exports.count + 1), [...exports.rest], 3, [...encoder.encode('run')], 0, leb(run)]],
    [10, [leb(run + 1), replaced, [...code.rest], body(0, [0x10, leb(start), 0x23, leb(globals.count)])]],
  ]);
  const out = [...wasm.subarray(0, 8)];
  for (const { id, content } of sections) {
    if (id === 2) continue;
    const bytes = made.has(id) ? made.get(id).flat(Infinity) : content;
    out.push(id, ...leb(bytes.length));
    for (const byte of bytes) out.push(byte);
  }
  return Uint8Array.from(out);
}
