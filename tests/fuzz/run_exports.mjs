// What run_exports.cc does, in a JavaScript engine: node run_exports.mjs FILE...
import { readFileSync } from 'node:fs';

const kIntegers = [0n, 1n, -1n, 2n, 2147483647n, -2147483648n, 255n, 1000n];
const kNumbers = [0, 1, -1, 0.5, -1e10, 3.25e15, 1e-30, 100];
const bits = new DataView(new ArrayBuffer(8));

function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 8;
  };
}

function argument(type, next) {
  const which = next() % 8;
  switch (type) {
    case 'i32': return Number(kIntegers[which]);
    case 'i64': return kIntegers[which] * 3n;
    case 'f32':
    case 'f64': return kNumbers[which];
    default: return null;
  }
}

function textOf(value, type) {
  switch (type) {
    case 'i32': return `i32:${(value >>> 0).toString(16)}`;
    case 'i64': return `i64:${BigInt.asUintN(64, value).toString(16)}`;
    case 'f32':
      if (Number.isNaN(value)) return 'f32:nan';
      bits.setFloat32(0, value);
      return `f32:${bits.getUint32(0).toString(16)}`;
    case 'f64':
      if (Number.isNaN(value)) return 'f64:nan';
      bits.setFloat64(0, value);
      return `f64:${bits.getBigUint64(0).toString(16)}`;
    default: return 'ref';
  }
}

function trapClass(error) {
  const message = error.message ?? '';
  if (error instanceof RangeError && /stack/.test(message)) return 'stack';
  if (/unreachable/.test(message)) return 'unreachable';
  if (/by zero/.test(message)) return 'zero';
  if (/unrepresentable/.test(message)) return 'overflow';
  if (/memory access out of bounds/.test(message)) return 'memory';
  if (/signature mismatch|null function/.test(message)) return 'callee';
  if (/table/.test(message)) return 'table';
  return message;
}

// The exports with types of functions and globals, from the bytes: JavaScript does not tell them.
function exportsOf(bytes) {
  let at = 8;
  const leb = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const names = { 0x7f: 'i32', 0x7e: 'i64', 0x7d: 'f32', 0x7c: 'f64', 0x7b: 'v128' };
  const types = [];
  const functions = [];
  const globals = [];
  const exports = [];
  const text = () => {
    const length = leb();
    const value = Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('utf8');
    at += length;
    return value;
  };
  // Skips past a constant expression.
  const skipExpression = () => {
    for (;;) {
      const opcode = bytes[at++];
      if (opcode === 0x0b) return;
      if (opcode === 0x41 || opcode === 0x42 || opcode === 0x23 || opcode === 0xd2 || opcode === 0xd0) leb();
      else if (opcode === 0x43) at += 4;
      else if (opcode === 0x44) at += 8;
      else if (opcode === 0xfd) { leb(); at += 16; }
    }
  };
  const limits = () => { const flags = leb(); leb(); if (flags & 1) leb(); };
  while (at < bytes.length) {
    const id = bytes[at++];
    const size = leb();
    const end = at + size;
    if (id === 1) {
      for (let n = leb(); n > 0; --n) {
        at += 1;
        const list = () => Array.from({ length: leb() }, () => names[bytes[at++]] ?? 'ref');
        types.push({ params: list(), results: list() });
      }
    } else if (id === 2) {
      for (let n = leb(); n > 0; --n) {
        text();
        text();
        const kind = bytes[at++];
        if (kind === 0) functions.push(leb());
        else if (kind === 1) { at += 1; limits(); }
        else if (kind === 2) limits();
        else if (kind === 3) { globals.push(names[bytes[at]] ?? 'ref'); at += 2; }
        else leb(), leb();
      }
    } else if (id === 3) {
      for (let n = leb(); n > 0; --n) functions.push(leb());
    } else if (id === 6) {
      for (let n = leb(); n > 0; --n) {
        globals.push(names[bytes[at]] ?? 'ref');
        at += 2;
        if (globals.at(-1) !== 'ref') skipExpression();
        else break;  // a type of several bytes perhaps: no global after it is looked at
      }
    } else if (id === 7) {
      for (let n = leb(); n > 0; --n) {
        const name = text();
        const kind = bytes[at++];
        exports.push({ name, kind, index: leb() });
      }
    }
    at = end;
  }
  return exports.map((e) => ({ ...e, type: e.kind === 0 ? types[functions[e.index]] : undefined, of: e.kind === 3 ? globals[e.index] : undefined }));
}

function run(file) {
  const lines = [`module ${file}`];
  const finish = (line) => console.log([...lines, line, 'end'].join('\n'));
  const bytes = readFileSync(file);
  let module;
  try {
    module = new WebAssembly.Module(bytes);
  } catch (error) {
    return finish(`refused ${error.message}`);
  }
  const log = (type) => (value) => { lines.push(`log ${textOf(value, type)}`); };
  const imports = { 'fuzzing-support': {
    'log-i32': log('i32'), 'log-i64': log('i64'), 'log-f32': log('f32'), 'log-f64': log('f64') } };
  const exported = exportsOf(bytes);
  const others = WebAssembly.Module.customSections(module, 'other').map((other) => new WebAssembly.Module(other));
  const instantiate = () => {
    try {
      for (const other of others) imports.other = new WebAssembly.Instance(other, imports).exports;
      return new WebAssembly.Instance(module, imports);
    } catch {
      return undefined;
    }
  };
  let instance = instantiate();
  if (instance === undefined) return finish('not instantiated');
  // The state of what it exports: the memory called so, and every global.
  const state = () => {
    let hash = 0;
    const memory = instance.exports.memory;
    if (memory instanceof WebAssembly.Memory) {
      hash = 2166136261;
      for (const byte of new Uint8Array(memory.buffer)) hash = Math.imul(hash ^ byte, 16777619);
    }
    let all = `memory ${(hash >>> 0).toString(16)}`;
    for (const { name, kind, of } of exported)
      if (kind === 3 && of !== 'v128') all += ` ${name}=${of === 'ref' || of === undefined ? 'ref' : textOf(instance.exports[name].value, of)}`;
    return all;
  };
  let place = 0;
  for (const { name, kind, type } of exported) {
    ++place;
    if (kind !== 0 || [...type.params, ...type.results].includes('v128')) continue;
    const next = random(place);
    for (let round = 0; round < 2; ++round) {
      const args = type.params.map((t) => argument(t, next));
      let line = `call ${name}`;
      let trap;
      try {
        const result = instance.exports[name](...args);
        const results = type.results.length === 0 ? [] : type.results.length === 1 ? [result] : result;
        type.results.forEach((t, i) => { line += ` ${textOf(results[i], t)}`; });
      } catch (error) {
        trap = trapClass(error);
        line += ` trap ${trap}`;
      }
      lines.push(line);
      if (trap !== 'memory' && trap !== 'stack') continue;
      if (trap === 'memory') lines.push(`after ${state()}`);
      instance = instantiate();
      if (instance === undefined) return finish('not instantiated again');
    }
  }
  finish(state());
}

for (const file of process.argv.slice(2)) run(file);
