#!/usr/bin/env node
// What does it cost to be watched, and decided about, where nothing can be gained? Runs programs as `hindsight run` does, and the same
// way without feedback: the same two compilers, no unit, no counting (mode plain of `hindsight bench`). In pairs whose order alternates.
// Compares wall time and the CPU time of the processes. First with the machine's other cores idle, then with each of them busy.
//
// Usage: node profiling_cost.mjs [options] [NAME...]      (default: sha256, mandelbrot and queens)
//   --pairs N          (default 15)
//   --watching         every function compiled at its first call and no decisions, with the unit and without: what the unit alone costs
//   --without NAME     without this decision; repeatable
//   --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//
// The answers are checked against samples/manifest.json. Prints per workload the median ratio with/without, its quartiles and the number
// of pairs, and the median over all pairs. Status 1 if an answer was wrong, 3 if the median of wall time is above 0.5 % with idle
// cores, or above 1 % with busy ones.
import { spawn, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { chooseWorkloads, readManifest, root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { median, quantile } from './statistics.mjs';

const { options, names } = readOptions({
  pairs: { type: 'string', default: '15' },
  watching: { type: 'boolean' },
  without: { type: 'string', multiple: true, default: [] },
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

const modes = options.watching
  ? { with: ['--tier=optimized', '--unit=auto'], without: ['--tier=optimized', '--unit=none'] }
  : { with: options.without.map((name) => `--without=${name}`), without: ['--unit=time', '--feedback=off'] };
let wrong = 0;

// Wall time, and user plus system time of the whole process, from the shell's own accounting.
function time(workload, mode) {
  const words = [options.hindsight, 'run', '--no-code-cache', '--no-profile', ...modes[mode],
                 join(samplesFolder, workload.wasm), '--', ...workload.args];
  const result = spawnSync('bash', ['-c', 'TIMEFORMAT="%3R %3U %3S"; time "$@"', 'bash', ...words], { encoding: 'utf8' });
  if (result.status !== 0 || result.stdout !== workload.expected) {
    console.error(`${workload.name} ${mode} feedback: status ${result.status}, ${JSON.stringify(result.stdout)}\n${result.stderr}`);
    ++wrong;
  }
  const [wall, user, system] = result.stderr.trim().split('\n').at(-1).split(' ').map(Number);
  return { wall, cpu: user + system };
}

const percent = (ratio) => `${((ratio - 1) * 100).toFixed(2)} %`;

// The median over all pairs.
function compare(cores) {
  const all = { wall: [], cpu: [] };
  for (const workload of workloads) {
    const ratios = { wall: [], cpu: [] };
    for (let i = 0; i < pairs; ++i) {
      const times = {};
      for (const mode of i % 2 === 0 ? ['without', 'with'] : ['with', 'without']) times[mode] = time(workload, mode);
      for (const what of ['wall', 'cpu']) ratios[what].push(times.with[what] / times.without[what]);
    }
    for (const what of ['wall', 'cpu']) all[what].push(...ratios[what]);
    console.log(`${cores.padEnd(5)} ${workload.name.padEnd(16)} wall with/without ${median(ratios.wall).toFixed(4)}  quartiles ` +
                `${quantile(ratios.wall, 0.25).toFixed(4)}..${quantile(ratios.wall, 0.75).toFixed(4)}  CPU ` +
                `${median(ratios.cpu).toFixed(4)}  ${pairs} pairs`);
  }
  console.log(`${cores.padEnd(5)} median over ${all.wall.length} pairs: ${percent(median(all.wall))} more wall time, ` +
              `${percent(median(all.cpu))} more CPU time`);
  return median(all.wall);
}

time(workloads[0], 'with');  // calibrates a machine that is new
const idle = compare('idle');
// The guest's core is the one that they leave.
const busy = Array.from({ length: Math.max(1, availableParallelism() - 1) }, () => spawn('sh', ['-c', 'while :; do :; done']));
let beside;
try {
  beside = compare('busy');
} finally {
  for (const child of busy) child.kill('SIGKILL');
}
if (wrong > 0) process.exit(1);
process.exit(idle > 1.005 || beside > 1.01 ? 3 : 0);
