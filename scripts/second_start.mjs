#!/usr/bin/env node
// What a program's second start gains from what its first start kept: whole processes with the manifest's short arguments, in turn; every
// answer checked.
//
// Usage: node second_start.mjs [options] [SUITE|NAME...]      (default: suites compute and branch)
//     --profile          what a kept profile alone gains (no code is kept), against a start with everything in place
//     --rounds N         (default 5); medians count
//     --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//     --json FILE
//
// `cpu` is the processor time of the whole process, compiling in the background included; `wall` the time from its start to its end.
//
// Without --profile: first and second start of a fresh code cache, and starts without one. No profile is kept.
//
// With --profile: a start without anything, one with the profile of an earlier run, and one with that profile and its code. The last has
// its optimized code before the first call, so what the first takes beyond it is warm-up: watching, deciding, compiling, trying. `gone` is
// the part of it that the profile saves, which cannot be the compiling itself. In the sum, workloads count by what they lose.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { readManifest, root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { geomean, median } from './statistics.mjs';

const { options, names } = readOptions({
  profile: { type: 'boolean', default: false },
  rounds: { type: 'string', default: '5' },
  hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
  json: { type: 'string' },
});
const rounds = Number(options.rounds);
if (!Number.isInteger(rounds) || rounds < 1) usage('--rounds wants a positive number');
const wanted = names.length > 0 ? names : ['compute', 'branch'];
const all = readManifest().workloads;
for (const name of wanted)
  if (!all.some((w) => w.suite === name || w.name === name)) usage(`no suite and no workload is called '${name}'`);
const workloads = all.filter((w) => wanted.includes(w.suite) || wanted.includes(w.name));

let wrong = 0;

// bash says what the process and its threads used.
function time(workload, kept) {
  const words = [options.hindsight, 'run', ...kept, join(samplesFolder, workload.wasm), '--', ...workload.quick_args];
  const result = spawnSync('bash', ['-c', 'TIMEFORMAT="%R %U %S"; time "$@"', 'bash', ...words], { encoding: 'utf8' });
  if (result.status !== 0 || result.stdout !== workload.quick_expected) {
    console.error(`${workload.name}: status ${result.status}, ${JSON.stringify(result.stdout)}\n${result.stderr}`);
    ++wrong;
  }
  const [wall, user, system] = result.stderr.trim().split('\n').at(-1).split(' ').map(Number);
  return { wall, cpu: user + system };
}

// One round of a workload: each kind of start once, in a fresh folder.
function startsWithCode(workload, folder) {
  const cache = ['--no-profile', '--code-cache', join(folder, 'code')];
  return { none: time(workload, ['--no-profile', '--no-code-cache']), first: time(workload, cache), second: time(workload, cache) };
}
function startsWithProfile(workload, folder) {
  const profile = ['--profile-dir', join(folder, 'profiles')];
  const code = ['--code-cache', join(folder, 'code')];
  time(workload, [...profile, ...code]);  // keeps both
  return {
    none: time(workload, ['--no-profile', '--no-code-cache']),
    second: time(workload, [...profile, '--no-code-cache']),
    ready: time(workload, [...profile, ...code]),
  };
}

const results = [];
const kinds = options.profile ? ['none', 'second', 'ready'] : ['none', 'first', 'second'];
console.log(options.profile
  ? 'workload        wall, ms: nothing profile   ready   profile/nothing   gone    cpu, ms: nothing profile   ready   profile/nothing   gone'
  : 'workload        wall, ms: no cache   first  second   second/none    cpu, ms: no cache   first  second   second/none');
for (const workload of workloads) {
  const runs = Object.fromEntries(kinds.map((kind) => [kind, []]));
  for (let round = 0; round < rounds; ++round) {
    const folder = mkdtempSync(join(tmpdir(), 'hindsight-second-start-'));
    const took = (options.profile ? startsWithProfile : startsWithCode)(workload, folder);
    for (const kind of kinds) runs[kind].push(took[kind]);
    rmSync(folder, { recursive: true });
  }
  const of = (kind, what) => median(runs[kind].map((run) => run[what]));
  const line = { name: workload.name };
  let text = workload.name.padEnd(16);
  for (const what of ['wall', 'cpu']) {
    const figures = Object.fromEntries(kinds.map((kind) => [kind, of(kind, what)]));
    line[what] = { ...figures, ratio: figures.second / figures.none };
    text += kinds.map((kind) => (1e3 * figures[kind]).toFixed(0).padStart(what === 'wall' ? 8 : 9)).join('') + line[what].ratio.toFixed(2).padStart(14);
    if (options.profile) {
      const lost = figures.none - figures.ready;
      // Nothing can be said of less than 20 ms.
      text += (lost < 0.02 ? '-' : `${(100 * (figures.none - figures.second) / lost).toFixed(0)} %`).padStart(11);
    }
    text += '      ';
  }
  console.log(text);
  results.push(line);
}
for (const what of ['wall', 'cpu'])
  console.log(`${what}: second start / nothing kept, geomean ${geomean(results.map((r) => r[what].ratio)).toFixed(2)} of ${results.length}`);
if (options.profile) {
  for (const what of ['wall', 'cpu']) {
    const sum = (of) => results.reduce((total, r) => total + of(r[what]), 0);
    const lost = sum((w) => w.none - w.ready);
    const saved = sum((w) => w.none - w.second);
    console.log(`${what}: warm-up of all ${(1e3 * lost).toFixed(0)} ms, of which the profile saves ${(1e3 * saved).toFixed(0)} ms (${(100 * saved / lost).toFixed(0)} %)`);
  }
}
if (options.json) writeFileSync(options.json, JSON.stringify({ rounds, results }, null, 1) + '\n');
process.exit(wrong > 0 ? 1 : 0);
