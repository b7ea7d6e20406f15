#!/usr/bin/env node
// Random modules on several engines: results, traps and final memory must be the same.
//
// Usage: node fuzz.mjs --bin FOLDER [options]
//     --bin FOLDER       where run_exports, loop_module and feature_module are
//     --count N          modules (default 200)
//     --kinds A,B        what module i is: the kind at seed + i, around the list (default: all, see README.md)
//     --after-traps none|exact|all
//                        whose memory and globals must be the same after a trap for memory, too: of nobody, of those whose
//                        code compares each address (node, baseline code, explicit bounds checks), or of all (default all)
//     --seed N           of the first module (default 1); module i has seed + i, whatever the count
//     --seconds N        stop beginning new batches then (default: no limit)
//     --node FILE|none   the independent engine (default: the node that runs this)
//     --patience N       seconds that a batch may take on one engine (default 120); an engine that takes longer differs
//     --keep FOLDER      where modules that differ are left (default: a folder in the temporary directory)
//     --modes A,B        (default baseline,optimized,optimized-hints,auto,baseline-explicit,optimized-explicit,optimized-explicit-hints,optimized-loops,optimized-loops-hints,optimized-loops-exits-hints,optimized-loops-back-hints,optimized-nests,optimized-inner-nests-explicit)
//
// Exit status: 0; 1 where something differed; 2 for usage or missing tools. Prints the seed of everything that differed:
// `--seed S --count 1` is that module again.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { readOptions, usage } from '../../scripts/script_options.mjs';

const { options } = readOptions({
  bin: { type: 'string' }, count: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' },
  seconds: { type: 'string', default: '0' }, patience: { type: 'string', default: '120' }, node: { type: 'string', default: process.execPath },
  kinds: { type: 'string', default: 'loops,binaryen,features,steps,mixed,binaryen,end,linked,steps,loops,end-loops,features,straight,conditions,rows' }, 'after-traps': { type: 'string', default: 'all' },
  keep: { type: 'string' }, modes: { type: 'string', default: 'baseline,optimized,optimized-hints,auto,baseline-explicit,optimized-explicit,optimized-explicit-hints,optimized-loops,optimized-loops-hints,optimized-loops-exits-hints,optimized-loops-back-hints,optimized-nests,optimized-inner-nests-explicit' },
}, { positionals: false });
const count = Number(options.count);
const firstSeed = Number(options.seed);
const seconds = Number(options.seconds);
const patience = Number(options.patience);
if (options.bin === undefined || !(count > 0) || !Number.isInteger(firstSeed) || Number.isNaN(seconds) || !(patience > 0))
  usage('--bin FOLDER is needed, and numbers where numbers belong');
const here = dirname(fileURLToPath(import.meta.url));
const modes = options.modes.split(',');
const kinds = options.kinds.split(',');
const afterTraps = options['after-traps'];
if (!['none', 'exact', 'all'].includes(afterTraps)) usage('--after-traps is none, exact or all');
const kBatch = 14;

function run(command, args, input) {
  return spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, input, timeout: 1000 * patience });
}
const has = (command) => run(command, ['--version']).error === undefined;
if (!has('wasm-opt') || !has('wat2wasm')) {
  console.error('fuzz.mjs: wasm-opt (package binaryen) and wat2wasm (package wabt) are needed');
  process.exit(2);
}

// Bytes for wasm-opt, the same for the same seed everywhere.
function randomBytes(seed) {
  let state = (seed * 2654435761) >>> 0 || 1;
  const next = () => {
    state ^= state << 13; state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5; state >>>= 0;
    return state;
  };
  for (let i = 0; i < 8; ++i) next();
  const bytes = Buffer.alloc(600 + (next() % 4000));
  for (let i = 0; i < bytes.length; ++i) bytes[i] = next() >>> 11;
  return bytes;
}

const folder = mkdtempSync(join(tmpdir(), 'hindsight-fuzz-'));
const keep = options.keep ?? mkdtempSync(join(tmpdir(), 'hindsight-fuzz-kept-'));

function leb(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}
function customSection(name, contents) {
  const whole = Buffer.concat([leb(name.length), Buffer.from(name), contents]);
  return Buffer.concat([Buffer.from([0]), leb(whole.length), whole]);
}

// The file of module `seed`, or undefined where the tools would not make one.
function make(seed) {
  const file = join(folder, `${seed}.wasm`);
  const kind = kinds[seed % kinds.length];
  if (kind === 'features') return run(join(options.bin, 'feature_module'), [String(seed), file]).status === 0 ? file : undefined;
  if (kind !== 'binaryen') {
    const number = String(Math.floor(seed / kinds.length));
    const text = kind === 'loops' ? run(join(options.bin, 'loop_module'), [number]) : run(join(options.bin, 'program_module'), [kind, number]);
    if (text.status !== 0) return undefined;
    // What another module imports comes first, and travels in a section of it.
    const texts = text.stdout.split(';; next\n');
    const binaries = texts.map((part, i) => {
      writeFileSync(`${file}.wat`, part);
      if (run('wat2wasm', [`${file}.wat`, '--enable-threads', '-o', `${file}.${i}`]).status !== 0) return undefined;
      const bytes = readFileSync(`${file}.${i}`);
      rmSync(`${file}.${i}`);
      return bytes;
    });
    if (binaries.includes(undefined)) return undefined;
    writeFileSync(file, Buffer.concat([binaries.at(-1), ...(binaries.length === 2 ? [customSection('other', binaries[0])] : [])]));
    return file;
  }
  writeFileSync(`${file}.in`, randomBytes(seed));
  const features = ['--enable-sign-ext', '--enable-nontrapping-float-to-int', '--enable-bulk-memory', '--enable-multivalue',
    '--enable-mutable-globals'];
  if (seed % 3 === 0) features.push('--enable-simd');
  if (seed % 5 === 0) features.push('--enable-tail-call');
  const flags = seed % 4 === 1 ? [] : ['--no-fuzz-oob'];
  const optimize = [[], ['-O1'], ['-O3'], ['-Os', '--flatten', '--rereloop']][(seed >> 1) % 4];
  // NaNs have bits of their own on every engine: made zeros.
  if (run('wasm-opt', ['-ttf', `${file}.in`, ...features, ...flags, ...optimize, '--denan', '-o', file]).status !== 0)
    return undefined;
  return seed % 3 !== 0 || vectorNansMadeZeros(file) ? file : undefined;
}

// The same for NaNs in vectors, of which wasm-opt knows nothing. After every operator whose NaNs' bits the specification
// leaves open stands a call that makes them zeros. False: the tools failed.
function vectorNansMadeZeros(file) {
  const operator = /^\s*(f32x4|f64x2)\.(add|sub|mul|div|sqrt|min|max|ceil|floor|trunc|nearest|demote_f64x2_zero|promote_low_f32x4)\s*$/;
  const text = run('wasm2wat', [file, '--enable-all']);
  if (text.status !== 0) return false;
  let changed = false;
  const lines = text.stdout.split('\n').flatMap((line) => {
    const found = operator.exec(line.replace(/\)+$/, ''));
    if (found === null) return [line];
    changed = true;
    const open = line.length - line.replace(/\)+$/, '').length;
    return [line.slice(0, line.length - open), `call $zeros_for_nans_${found[1]}${')'.repeat(open)}`];
  });
  if (!changed) return true;
  const functions = ['f32x4', 'f64x2'].map((lanes) => `(func $zeros_for_nans_${lanes} (param v128) (result v128)
    local.get 0 local.get 0 local.get 0 ${lanes}.eq v128.and)`);
  const whole = lines.join('\n');
  const end = whole.lastIndexOf(')');
  writeFileSync(`${file}.wat`, `${whole.slice(0, end)}${functions.join('\n')})`);
  return run('wat2wasm', [`${file}.wat`, '--enable-all', '-o', file]).status === 0;
}

// Whose order of accesses no pass over loads and stores that trap by themselves could change.
const isExact = (name) => name === 'node' || /^baseline|-explicit/.test(name);

// A batch's output by module.
function split(output) {
  const parts = new Map();
  for (const part of (output ?? '').split(/^module /m).slice(1)) {
    const end = part.indexOf('\n');
    parts.set(part.slice(0, end), part.slice(end + 1));
  }
  return parts;
}

const runners = modes.map((mode) => [mode, join(options.bin, 'run_exports'), [mode]]);
if (options.node !== 'none') {
  runners.push(['node', options.node, ['--no-warnings', '--experimental-wasm-return_call', join(here, 'run_exports.mjs')]]);
  if (run(runners.at(-1)[1], ['--no-warnings', '--experimental-wasm-return_call', '-e', '0']).status !== 0)
    runners.at(-1)[2] = ['--no-warnings', join(here, 'run_exports.mjs')];
}

const begin = Date.now();
let compared = 0;
let refused = 0;
let notMade = 0;
let withoutNode = 0;
let outOfTime = 0;
const different = [];
let said = 0;
for (let first = 0; first < count; first += kBatch) {
  if (seconds > 0 && Date.now() - begin > 1000 * seconds) break;
  const seeds = Array.from({ length: Math.min(kBatch, count - first) }, (_, i) => firstSeed + first + i);
  const files = new Map();
  for (const seed of seeds) {
    const file = make(seed);
    if (file === undefined) ++notMade;
    else files.set(file, seed);
  }
  if (files.size === 0) continue;
  const outputs = runners.map(([name, command, args]) => {
    const result = run(command, [...args, ...files.keys()]);
    return { name, parts: split(result.stdout), ended: result.signal ?? result.status };
  });
  for (const [file, seed] of files) {
    let texts = outputs.map(({ name, parts, ended }) => ({ name, text: parts.get(file) ?? `nothing: ended with ${ended}` }));
    const withoutState = (text) => text.replace(/^after .*\n/gm, '');
    const says = (t) => t.text.startsWith('refused ') ? 'refused' : afterTraps === 'all' ? t.text : withoutState(t.text);
    const exactly = (t) => afterTraps === 'exact' && isExact(t.name) ? t.text : undefined;
    if (texts.every((t) => says(t) === 'refused')) { ++refused; continue; }
    // An engine that knows less of the language than the module uses is no witness.
    if (texts.some((t) => t.name === 'node' && says(t) === 'refused')) {
      ++withoutNode;
      texts = texts.filter((t) => t.name !== 'node');
    }
    // A mode that makes many copies of a function may come to the limit of CPU time that a compile has, on a slow machine. Without baseline
    // code to fall back to the call traps then, and says nothing of the code.
    const isOutOfTime = (t) => t.name.startsWith('optimized') && t.text.includes(' trap compile time');
    if (texts.some(isOutOfTime)) {
      ++outOfTime;
      texts = texts.filter((t) => !isOutOfTime(t));
    }
    ++compared;
    const exact = new Set(texts.map(exactly).filter((text) => text !== undefined));
    if (texts.every((t) => says(t) === says(texts[0])) && exact.size <= 1) continue;
    different.push(seed);
    mkdirSync(keep, { recursive: true });
    copyFileSync(file, join(keep, `${seed}.wasm`));
    for (const { name, text } of texts) writeFileSync(join(keep, `${seed}.${name}.txt`), text);
    const groups = new Map();
    for (const t of texts) {
      const text = exactly(t) ?? says(t);
      groups.set(text, [...(groups.get(text) ?? []), t.name]);
    }
    console.log(`seed ${seed} differs: ${[...groups.values()].map((names) => names.join(' = ')).join(' | ')}  (${keep}/${seed}.wasm)`);
  }
  for (const file of files.keys()) rmSync(file, { force: true });
  // In a run of hours, says what is known if it is ended.
  if (compared - said >= 500) {
    said = compared;
    console.log(`so far ${compared} modules compared; ${different.length} differ`);
  }
}
rmSync(folder, { recursive: true, force: true });
if (different.length === 0 && options.keep === undefined) rmSync(keep, { recursive: true, force: true });
console.log(`fuzz: ${compared} modules compared on ${runners.map(([name]) => name).join(', ')}; ${different.length} differ` +
  (outOfTime === 0 ? '' : `; ${outOfTime} without a mode whose compile took too long`) +
  (withoutNode === 0 ? '' : `; ${withoutNode} without node, which refused them`) +
  (refused + notMade === 0 ? '' : `; ${refused} refused by all, ${notMade} not made`));
process.exit(different.length === 0 && compared > 0 ? 0 : 1);
