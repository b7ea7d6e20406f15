// Which stalls nothing is done about, and why: runs workloads in tier auto, and shares the samples that stand after loads out by
// what became of the changes asked for there. Prints a table, reasons by falling share.
//
// Usage: node refusals.mjs --command HINDSIGHT [--suite SUITE] [--quick] [--places] [NAME...]
// --places also lists the loads. Answers are checked: a wrong one ends it with status 1.
//
// A program counts by the share of its samples that stand after loads, however long it runs.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chooseWorkloads, readManifest, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';

const { options, names } = readOptions({
  command: { type: 'string' }, suite: { type: 'string' }, quick: { type: 'boolean' }, places: { type: 'boolean' },
});
if (options.command === undefined) usage('--command HINDSIGHT is needed');

const aboutLoads = ['prefetch', 'interleave', 'jump-pointers', 'speculate'];
// Whichever change came furthest speaks for the load. What was not possible speaks by the reason that prefetch has.
const furthest = ['kept', 'in trial', 'rolled back', 'not possible'];

const folder = mkdtempSync(join(tmpdir(), 'refusals-'));
const shares = new Map();
const places = [];
let wrong = 0;
let all = 0;
let programs = 0;

function add(program, place, reason, share) {
  shares.set(reason, (shares.get(reason) ?? 0) + share);
  all += share;
  places.push({ program, place, reason, share });
}

// A load that was inlined is asked for in its callers.
function outcomes(module) {
  const evidence = module.functions.flatMap((f) => f.changes);
  return [...evidence, ...module.episodes.flatMap((e) => e.outcomes ?? [])];
}

const suites = options.suite === undefined ? [] : [options.suite];
for (const workload of chooseWorkloads(readManifest(), { suites, names })) {
  const profile = join(folder, `${workload.name}.json`);
  const args = options.quick ? workload.quick_args : workload.args;
  const run = spawnSync(options.command,
    ['run', '--no-code-cache', '--no-profile', '--profile-out', profile, join(samplesFolder, workload.wasm), ...args],
    { encoding: 'utf8' });
  if (run.stdout !== (options.quick ? workload.quick_expected : workload.expected)) {
    console.error(`${workload.name}: wrong answer, status ${run.status ?? run.signal}: ${run.stderr}`);
    wrong += 1;
    continue;
  }
  programs += 1;
  const module = JSON.parse(readFileSync(profile, 'utf8')).modules[0];
  const samples = module.samples.reduce((sum, f) => sum + f.samples, 0);
  const entries = outcomes(module);
  for (const f of module.samples) {
    const optimized = f.seconds_optimized > 0;
    for (const [offset, , stalls] of f.places) {
      if (!(stalls > 0)) continue;
      const here = entries.filter((e) => e.at === offset && aboutLoads.includes(e.change));
      here.sort((a, b) => furthest.indexOf(a.state) - furthest.indexOf(b.state)
        || aboutLoads.indexOf(a.change) - aboutLoads.indexOf(b.change));
      const why = here.find((e) => e.state === 'not possible' && e.change === 'prefetch' && e.why)?.why;
      const reason = here.length === 0 ? (optimized ? 'not asked for' : 'not optimized')
        : here[0].state === 'not possible' ? `refused: ${why ?? 'not for prefetch'}` : `${here[0].change}: ${here[0].state}`;
      add(workload.name, `${f.name.slice(0, 60)} 0x${offset.toString(16)}`, reason, stalls / samples);
    }
  }
}
rmSync(folder, { recursive: true });

const percent = (share) => `${(100 * share).toFixed(1)} %`;
console.log('| share of stalls | what became of it |\n|---|---|');
for (const [reason, share] of [...shares].sort((a, b) => b[1] - a[1]))
  console.log(`| ${percent(share / all)} | ${reason} |`);
const sharesOf = (is) => [...shares].reduce((sum, [reason, share]) => sum + (is(reason) ? share : 0), 0) / all;
console.log(`\n${percent(sharesOf((r) => r.startsWith('refused: ')))} refused, ` +
  `${percent(sharesOf((r) => r.endsWith(': rolled back')))} tried and taken back, ${percent(sharesOf((r) => r.startsWith('not ')))} not asked for, ` +
  `of ${programs} programs`);
if (options.places) {
  console.log();
  for (const p of places.sort((a, b) => b.share - a.share))
    if (p.share >= 0.01) console.log(`${percent(p.share)} of ${p.program}: ${p.place}: ${p.reason}`);
}
process.exit(wrong === 0 ? 0 : 1);
