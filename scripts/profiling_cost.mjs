#!/usr/bin/env node
// What does it cost to be watched? Runs one program in optimized code only (every function compiled at its first call, no
// feedback decisions). Runs it with its LWP unit and without, in pairs whose order alternates, and compares the CPU time
// of the processes.
//
// Usage: node profiling_cost.mjs [options] [NAME...]      (default: sha256, mandelbrot and queens)
//   --pairs N          (default 15)
//   --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//
// The answers are checked against samples/manifest.json. Prints per workload the median ratio with/without, its quartiles and the number
// of pairs, and the median over all pairs.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { chooseWorkloads, readManifest, root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { median, quantile } from './statistics.mjs';

const { options, names } = readOptions({
  pairs: { type: 'string', default: '15' },
  hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
});
const pairs = Number(options.pairs);
if (!Number.isInteger(pairs) || pairs < 1) usage('--pairs wants a positive number');
let workloads;
try {
  workloads = chooseWorkloads(readManifest(), { names: names.length > 0 ? names : ['sha256', 'mandelbrot', 'queens'] });
} catch (error) {
  usage(error.message);
}

let wrong = 0;

// User plus system time of the whole process, from the shell's own accounting.
function time(workload, unit) {
  const words = [options.hindsight, 'run', '--no-code-cache', '--no-profile', '--tier=optimized', `--unit=${unit}`,
                 join(samplesFolder, workload.wasm), '--', ...workload.args];
  const result = spawnSync('bash', ['-c', 'TIMEFORMAT="%U %S"; time "$@"', 'bash', ...words], { encoding: 'utf8' });
  if (result.status !== 0 || result.stdout !== workload.expected) {
    console.error(`${workload.name} with unit ${unit}: status ${result.status}, ${JSON.stringify(result.stdout)}\n${result.stderr}`);
    ++wrong;
  }
  const [user, system] = result.stderr.trim().split('\n').at(-1).split(' ').map(Number);
  return user + system;
}

const all = [];
for (const workload of workloads) {
  const ratios = [];
  for (let i = 0; i < pairs; ++i) {
    const times = {};
    for (const unit of i % 2 === 0 ? ['none', 'auto'] : ['auto', 'none']) times[unit] = time(workload, unit);
    ratios.push(times.auto / times.none);
  }
  all.push(...ratios);
  console.log(`${workload.name.padEnd(16)} with/without ${median(ratios).toFixed(4)}  quartiles ${quantile(ratios, 0.25).toFixed(4)}..` +
              `${quantile(ratios, 0.75).toFixed(4)}  ${pairs} pairs`);
}
console.log(`median over ${all.length} pairs: ${((median(all) - 1) * 100).toFixed(2)} % more CPU time with profiling`);
process.exit(wrong > 0 ? 1 : 0);
