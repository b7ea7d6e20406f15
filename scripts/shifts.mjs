#!/usr/bin/env node
// How a program recovers whose data, call targets or branches change half-way. Compares its speed two seconds after the
// change with that of the same program started in the second phase. Whole processes, interleaved; every answer is checked
// against the first of its arguments.
//
// Usage: node shifts.mjs [options] [NAME...]
//     NAME               of a program of samples/shifts: data, data_back, calls, branch, each _called (a kernel called for each batch) and
//                        _looped (one loop in one call that is never left); default: all
//     --rounds N         runs of each kind (default 3)
//     --before S         seconds of the first phase (default 2.5)
//     --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//     --options "..."    more options of `hindsight run`, separated by spaces
//     --curve            also print the speed of each slice of 100 ms
//     --json FILE
//
// The programs say when each batch ended. The speed of a window is the median over its batches. The window is one second
// long. It begins two seconds after the change, or after the start of the program that is started in the second phase.
// The median ratio of the rounds counts. "Recovered" is the end of the first slice of 100 ms from which on the program
// keeps up. It keeps up if no slice is below 95 % of that other program's speed for longer than a slice.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { median } from './statistics.mjs';

const kWindow = 2;        // seconds after the change
const kWindowLength = 1;  // seconds
const kSlice = 0.1;
const kPrograms = {
  data: { wasm: 'data', phases: [10, 26] },
  data_back: { wasm: 'data', phases: [26, 10] },
  calls: { wasm: 'calls', phases: [0, 5] },
  branch: { wasm: 'branch', phases: [97, 50] },
};
const all = Object.keys(kPrograms).flatMap((name) => [`${name}_called`, `${name}_looped`]);

const { options, names } = readOptions({
  rounds: { type: 'string', default: '3' },
  before: { type: 'string', default: '2.5' },
  hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
  options: { type: 'string', default: '' },
  curve: { type: 'boolean', default: false },
  json: { type: 'string' },
});
const rounds = Number(options.rounds);
const before = Number(options.before);
if (!Number.isInteger(rounds) || rounds < 1) usage('--rounds wants a positive number');
if (!(before >= 0.5)) usage('--before wants at least half a second');
for (const name of names) if (!all.includes(name)) usage(`no program here is called '${name}'`);
const more = options.options.split(' ').filter((o) => o !== '');
if (!more.includes('--code-cache')) more.push('--no-code-cache');
if (!more.includes('--profile-dir')) more.push('--no-profile');

let wrong = 0;
const answers = new Map();
// When each batch ended, in seconds since the first began.
function run(program, looped, counts) {
  const args = [...program.phases, ...counts, looped ? 1 : 0, 1].map(String);
  const wasm = join(samplesFolder, 'shifts', program.wasm, `${program.wasm}.wasm`);
  const result = spawnSync(options.hindsight, ['run', ...more, wasm, '--', ...args], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const key = `${program.wasm} ${args.slice(0, 4).join(' ')}`;
  const known = answers.get(key);
  if (result.status !== 0 || (known !== undefined && known !== result.stdout)) {
    console.error(`${key}: status ${result.status ?? result.signal}, ${JSON.stringify(result.stdout)}, expected ${JSON.stringify(known)}`);
    console.error(result.stderr?.split('\n').filter((line) => !/^\d*$/.test(line)).slice(0, 10).join('\n'));
    ++wrong;
  }
  answers.set(key, known ?? result.stdout);
  return result.stderr.split('\n').filter((line) => /^\d+$/.test(line)).map((line) => Number(line) / 1e9);
}

const last = (list) => list[list.length - 1];
// Seconds a batch, of those that began between `from` and `to`, counted from the end of batch `origin`.
function speed(ends, origin, from, to) {
  const times = [];
  for (let i = origin + 1; i < ends.length; ++i) {
    const begin = ends[i - 1] - ends[origin];
    if (begin >= from && begin < to) times.push(ends[i] - ends[i - 1]);
  }
  return times.length === 0 ? NaN : median(times);
}

// How many batches take so many seconds, by runs that are long enough to be past the start.
function batches(program, looped, phase, seconds) {
  const counts = (n) => (phase === 0 ? [n, 0] : [0, n]);
  let n = 64;
  for (;;) {
    const ends = run(program, looped, counts(n));
    if (last(ends) >= 0.4 || n >= 1 << 20) {
      return Math.ceil(seconds / speed(ends, 0, last(ends) / 2, Infinity));
    }
    n *= 2;
  }
}

function slices(ends, origin, until) {
  const list = [];
  for (let t = 0; t < until; t += kSlice) list.push(speed(ends, origin, t, t + kSlice));
  return list;
}

function recovered(times, fresh) {
  let since = 0;
  times.forEach((time, i) => {
    if (!(fresh / time >= 0.95) && !(fresh / times[i + 1] >= 0.95)) since = i + 1;
  });
  return since === times.length ? Infinity : since * kSlice;
}

const results = [];
console.log(`${options.hindsight} run ${more.join(' ')}, ${rounds} rounds, ${before} s before the change`);
console.log('program          us a batch: before   behind, at once   2 s behind   started there   ratio   recovered after, s');
for (const name of names.length === 0 ? all : names) {
  const program = kPrograms[name.replace(/_(called|looped)$/, '')];
  const looped = name.endsWith('_looped');
  const first = batches(program, looped, 0, before);
  // Slower than it will be, if it does not recover: the window must be reached, whatever the speed.
  const second = batches(program, looped, 1, kWindow + kWindowLength + 2);
  const measured = [];
  for (let round = 0; round < rounds; ++round) {
    const fresh = run(program, looped, [0, second]);
    const shifted = run(program, looped, [first, second]);
    const reference = speed(fresh, 0, kWindow, kWindow + kWindowLength);
    const curve = slices(shifted, first, kWindow + kWindowLength);
    const window = speed(shifted, first, kWindow, kWindow + kWindowLength);
    measured.push({
      before: speed(shifted, 0, shifted[first] / 2, shifted[first]),
      at_once: curve[0],
      behind: window,
      fresh: reference,
      ratio: reference / window,
      recovered: recovered(curve, reference),
      curve,
    });
  }
  const of = (field) => median(measured.map((m) => m[field]));
  const ratio = of('ratio');
  results.push({ name, ratio, measured });
  const us = (seconds) => (1e6 * seconds).toFixed(0);
  const when = of('recovered');
  console.log(`${name.padEnd(17)}${us(of('before')).padStart(18)}${us(of('at_once')).padStart(18)}${us(of('behind')).padStart(13)}` +
    `${us(of('fresh')).padStart(16)}${ratio.toFixed(3).padStart(8)}${(when === Infinity ? 'never' : when.toFixed(1)).padStart(21)}` +
    `${ratio >= 0.95 ? '' : '   BELOW 0.95'}`);
  if (options.curve) {
    for (const m of measured) console.log(`  ${m.curve.map((time) => (m.fresh / time).toFixed(2)).join(' ')}`);
  }
}
const good = results.filter((r) => r.ratio >= 0.95).length;
console.log(`${good} of ${results.length} at 0.95 or more`);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ rounds, before, results }, null, 2)}\n`);
console.log(wrong === 0 ? 'OK: every answer was the same.' : `FAILED: ${wrong} runs gave a wrong answer.`);
process.exitCode = wrong === 0 ? 0 : 1;
