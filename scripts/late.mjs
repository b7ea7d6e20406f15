#!/usr/bin/env node
// How long the loops of programs stay in baseline code after they are hot. Every run is a first start: nothing is kept from
// one to the next. Each program runs on two cores, and again while another process keeps one of them busy.
//
// Usage: node late.mjs [options] [SUITE or NAME...]
//     names              of suites and workloads (default: all)
//     --rounds N         runs of each (default 3)
//     --quick            short inputs
//     --settings LIST    of alone, shared (default both): without and with the other process
//     --most S           seconds that no place may take alone (default 0.15)
//     --most-shared S    the same beside another process (default 0.4)
//     --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//     --json FILE
//
// A place is a loop with what is in it, or a function outside of its loops; docs/MEASURING.md says when it is hot. Its late time
// is that of its worst round. A run tells of its 16 worst places. Fails where a place takes longer than it may, and where an answer
// is wrong.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { quantile } from './statistics.mjs';

const kParts = ['waiting', 'queued', 'compiling', 'entering', 'refused', 'observed'];
const kToldPlaces = 20;

const { options, names } = readOptions({
  rounds: { type: 'string', default: '3' },
  quick: { type: 'boolean', default: false },
  settings: { type: 'string', default: 'alone,shared' },
  most: { type: 'string', default: '0.15' },
  'most-shared': { type: 'string', default: '0.4' },
  hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
  json: { type: 'string' },
});
const rounds = Number(options.rounds);
if (!Number.isInteger(rounds) || rounds < 1) usage('--rounds wants a positive number');
const limits = { alone: Number(options.most), shared: Number(options['most-shared']) };
for (const limit of Object.values(limits)) if (!(limit > 0)) usage('a limit is a positive number of seconds');
const settings = options.settings.split(',');
for (const setting of settings) if (limits[setting] === undefined) usage(`'${setting}' is neither alone nor shared`);

// "0-3,7": the cores that this process may use.
function allowedCores() {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];
  return list.split(',').flatMap((range) => {
    const [first, last] = range.split('-').map(Number);
    return Array.from({ length: (last ?? first) - first + 1 }, (_, i) => first + i);
  });
}
const cores = allowedCores().slice(0, 2);
if (cores.length < 2) usage('there is one core only; the limits are those of two');

const folder = mkdtempSync(join(tmpdir(), 'late-'));
let wrong = 0;

// All runs of one setting: an entry a place and round.
function measure(setting) {
  const busy = setting === 'shared'
    ? spawn('taskset', ['-c', String(cores[1]), process.execPath, '-e', 'for (;;);'], { stdio: 'ignore' }) : null;
  const file = join(folder, `${setting}.json`);
  const words = ['-c', cores.join(','), options.hindsight, 'bench', '--modes', 'feedback', '--runs', String(rounds),
    '--manifest', join(samplesFolder, 'manifest.json'), '--json', file, ...(options.quick ? ['--quick'] : []), ...names];
  const result = spawnSync('taskset', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  busy?.kill();
  if (result.error !== undefined) usage(`cannot run ${options.hindsight}: ${result.error.message}`);
  if (result.status !== 0) {
    console.error(result.stdout);
    ++wrong;
  }
  let json;
  try {
    json = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    usage('the benchmark wrote no results');
  }
  const places = [];
  for (const workload of json.workloads) {
    workload.modes.feedback.late.forEach((late, round) => {
      for (const place of late) places.push({ workload: `${workload.suite}/${workload.name}`, round, ...place });
    });
  }
  return { runs: json.workloads.reduce((sum, w) => sum + w.modes.feedback.late_seconds.length, 0),
    seconds: json.workloads.flatMap((w) => w.modes.feedback.late_seconds), places };
}

// Of each place its worst round, the longest first.
function worstRounds(places) {
  const worst = new Map();
  for (const place of places) {
    const key = `${place.workload} ${place.function} ${place.wasm_offset} ${place.in_loop}`;
    if (!(worst.get(key)?.seconds >= place.seconds)) worst.set(key, place);
  }
  return [...worst.values()].sort((a, b) => b.seconds - a.seconds);
}

function told(place) {
  const where = place.in_loop ? `at 0x${place.wasm_offset.toString(16)}` : 'outside of its loops';
  const parts = kParts.filter((part) => place[part] > 0).map((part) => `${part} ${place[part].toFixed(3)}`);
  return `${place.seconds.toFixed(3).padStart(8)} s  ${place.workload}: ${place.function} ${where} (${parts.join(', ')})` +
    (place.why === undefined ? '' : `: ${place.why}`);
}

const results = {};
let above = 0;
for (const setting of settings) {
  const { runs, seconds, places } = measure(setting);
  const worst = worstRounds(places);
  const times = worst.map((place) => place.seconds);
  const late = worst.filter((place) => place.seconds > limits[setting]);
  above += late.length;
  results[setting] = { runs, limit: limits[setting], run_seconds: seconds, places: worst };
  console.log(`${setting === 'alone' ? 'alone on two cores' : 'with a busy process on one of two cores'}: ` +
    `${worst.length} places were late in ${runs} runs`);
  if (worst.length === 0) continue;
  console.log(`  a place, s: ${[0.5, 0.9, 0.99].map((q) => `${100 * q} % within ${quantile(times, q).toFixed(3)}`).join(', ')}, ` +
    `longest ${times[0].toFixed(3)}`);
  console.log(`  a run, s: median ${quantile(seconds, 0.5).toFixed(3)}, longest ${Math.max(...seconds).toFixed(3)}`);
  console.log(`  above ${limits[setting]} s: ${late.length}${late.length > kToldPlaces ? `, of which the first ${kToldPlaces}` : ''}`);
  for (const place of (late.length === 0 ? worst.slice(0, 3) : late.slice(0, kToldPlaces))) console.log(`  ${told(place)}`);
}
rmSync(folder, { recursive: true });
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ rounds, quick: options.quick, cores, results }, null, 2)}\n`);
if (wrong !== 0) console.log('FAILED: a run gave a wrong answer, or none.');
else if (above !== 0) console.log(`FAILED: ${above} places were late for longer than they may be.`);
else console.log('OK: no place was late for longer than it may be.');
process.exitCode = wrong === 0 && above === 0 ? 0 : 1;
