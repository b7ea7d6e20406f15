#!/usr/bin/env node
// What a program's second start gains from the code that its first start kept: whole processes with the manifest's short arguments, first and
// second start of a fresh code cache, and starts without one, in turn; every answer checked.
//
// Usage: node second_start.mjs [options] [SUITE|NAME...]      (default: suites compute and branch)
//   --rounds N         (default 5); medians count
//   --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//   --json FILE
//
// `cpu` is the processor time of the whole process, compiling in the background included; `wall` the time from its start to its end.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { readManifest, root, samplesFolder } from './samples_manifest.mjs';
import { geomean, median } from './statistics.mjs';

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
    json: { type: 'string' },
  },
});
const rounds = Number(options.rounds);
if (!Number.isInteger(rounds) || rounds < 1) {
  console.error('second_start.mjs: --rounds wants a positive number; the options are at the top of the script');
  process.exit(2);
}
const wanted = names.length > 0 ? names : ['compute', 'branch'];
const workloads = readManifest().workloads.filter((w) => wanted.includes(w.suite) || wanted.includes(w.name));

let wrong = 0;

// bash says what the process and its threads used.
function time(workload, cache) {
  const words = [options.hindsight, 'run', ...cache, join(samplesFolder, workload.wasm), '--', ...workload.quick_args];
  const result = spawnSync('bash', ['-c', 'TIMEFORMAT="%R %U %S"; time "$@"', 'bash', ...words], { encoding: 'utf8' });
  if (result.status !== 0 || result.stdout !== workload.quick_expected) {
    console.error(`${workload.name}: status ${result.status}, ${JSON.stringify(result.stdout)}\n${result.stderr}`);
    ++wrong;
  }
  const [wall, user, system] = result.stderr.trim().split('\n').at(-1).split(' ').map(Number);
  return { wall, cpu: user + system };
}

const results = [];
console.log('workload        wall, ms: no cache   first  second   second/none    cpu, ms: no cache   first  second   second/none');
for (const workload of workloads) {
  const runs = { none: [], first: [], second: [] };
  for (let round = 0; round < rounds; ++round) {
    const folder = mkdtempSync(join(tmpdir(), 'hindsight-second-start-'));
    const cache = ['--code-cache', join(folder, 'code')];
    runs.none.push(time(workload, ['--no-code-cache']));
    runs.first.push(time(workload, cache));
    runs.second.push(time(workload, cache));
    rmSync(folder, { recursive: true });
  }
  const of = (kind, what) => median(runs[kind].map((run) => run[what]));
  const line = { name: workload.name };
  let text = workload.name.padEnd(16);
  for (const what of ['wall', 'cpu']) {
    const [none, first, second] = ['none', 'first', 'second'].map((kind) => of(kind, what));
    line[what] = { none, first, second, ratio: second / none };
    text += [none, first, second].map((s) => (1e3 * s).toFixed(0).padStart(what === 'wall' ? 8 : 9)).join('') +
      (second / none).toFixed(2).padStart(14) + '      ';
  }
  console.log(text);
  results.push(line);
}
for (const what of ['wall', 'cpu'])
  console.log(`${what}: second start / no cache, geomean ${geomean(results.map((r) => r[what].ratio)).toFixed(2)} of ${results.length}`);
if (options.json) writeFileSync(options.json, JSON.stringify({ rounds, results }, null, 1) + '\n');
process.exit(wrong > 0 ? 1 : 0);
