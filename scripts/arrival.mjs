#!/usr/bin/env node
// How long a program takes to arrive at its peak speed, in Hindsight and in node. Runs whole processes, start included,
// interleaved, with every answer of a size compared between the two.
//
// Usage: node arrival.mjs [options] [NAME...]
//     --suites A,B       only these suites
//     --rounds N         runs of each size (default 5); the fastest counts, since what else the machine does only adds time, and
//                        a longer run that was faster. Sizes that keep an earlier one from counting run again, up to N times
//     --seconds S        length of the longest run (default 1.2)
//     --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//     --node FILE        (default: $NODE, else the node that runs this)
//     --options "..."    more options of `hindsight run`, separated by spaces
//     --curve            also print every size's time
//     --json FILE
//
// A workload is run with a small unit of work and N repetitions of it. N goes from few to
// many. T(N) is the time of the whole process. The peak rate is the slope of work over time (least squares) in the second
// half of the longest run. The program has arrived at 95 % of its peak at the first T(N) from which it stays there. That
// is, the average rate up to every later size is at least 95 % of the peak, where 6 ms are left to noise. "Lost" is the
// longest run's time beyond its work at the peak rate. The last column is when Hindsight arrived at 95 % of the lower one
// of the two peaks, where its own is the higher one.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { chooseWorkloads, nodeFlags, readManifest, root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { geomean } from './statistics.mjs';

// Arguments with a unit of work of about a millisecond, as a function of how many.
const kUnits = {
  nbody: (n) => [n],
  matmul: (n) => [100, n],
  mandelbrot: (n) => [Math.round(Math.sqrt(n) * 40), 1000],
  sieve: (n) => [1, n],
  sha256: (n) => [64, n],
  fft: (n) => [11, n],
  blur: (n) => [256, n],
  spectral_norm: (n) => [200, n],
  bytecode_vm: (n) => [n],
  quicksort: (n) => [10, n],
  tokenizer: (n) => [64, n],
  queens: (n) => [10, n],
  binary_search: (n) => [100, 13, n],
  collatz: (n) => [4 * n],
  prime_buckets: (n) => [16381, 4000, 24 * n],
  pack_records: (n) => [40, 8, 30 * n],
  small_products: (n) => [4, 500, 20 * n],
  short_filter: (n) => [7, 8000, 20 * n],
  filter_rows: (n) => [50, 10 * n],
  quickselect: (n) => [100, n],
  token_bucket: (n) => [100, 10 * n],
  // Suite elsewhere, on data of some hundred kilobytes, which takes a few milliseconds to build. nas_is has no such unit: it does
  // at most 20 iterations.
  npo_join: (n) => [14, 16, n],
  radix_join: (n) => [14, 15, 6, n],
  nas_cg: (n) => [4, 4, n, 5],
  hpcc_gups: (n) => [16, n],
  graph500_bfs: (n) => [11, 16, n],
  gap_bfs: (n) => [11, 8, 1, n, 16],
  gap_pagerank: (n) => [12, 5, 4, n],
  gap_components: (n) => [12, 4, 0, n],
  gap_sssp: (n) => [10, 8, 32, 0, n],
  gap_betweenness: (n) => [10, 8, 1, n],
  gap_triangles: (n) => [9, 12, 1, n],
  camel: (n) => [16, 14, n],
  kangaroo: (n) => [13, 14, n],
  unordered_count: (n) => [10, 40, n],
  ordered_map: (n) => [20, 2 * n],
  btree_index: (n) => [40, 4 * n, 1],
  word_trie: (n) => [10, 1, n],
  skip_list: (n) => [20, 2 * n],
  kruskal: (n) => [4, 8, 4, n],
  lru_cache: (n) => [20, 80, 4 * n],
  string_intern: (n) => [4, 1, n],
  inverted_index: (n) => [2, 40, 20, n],
  kd_tree: (n) => [10, n, 1],
  barnes_hut: (n) => [1, n],
  bvh_rays: (n) => [20, 1, ...pictureOf(n)],
  event_queue: (n) => [10, 5, 2 * n],
  record_sort: (n) => [1, 2, 2, n],
};
// Sides of a picture whose work grows as n.
function pictureOf(n) {
  const side = Math.max(4, Math.round(Math.sqrt(n) * 20));
  return [side, side];
}
// What N stands for where the work is not N times the unit.
const kWork = {
  mandelbrot: (n) => Math.round(Math.sqrt(n) * 40) ** 2 / 1600,
  bvh_rays: (n) => pictureOf(n)[0] ** 2 / 400,
};

const { options, names } = readOptions({
  suites: { type: 'string', default: '' },
  rounds: { type: 'string', default: '5' },
  seconds: { type: 'string', default: '1.2' },
  hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
  node: { type: 'string', default: process.env.NODE ?? process.execPath },
  options: { type: 'string', default: '' },
  curve: { type: 'boolean', default: false },
  json: { type: 'string' },
});
const rounds = Number(options.rounds);
const longest = Number(options.seconds);
if (!Number.isInteger(rounds) || rounds < 1) usage('--rounds wants a positive number');
if (!(longest > 0.1)) usage('--seconds wants a number above 0.1');
for (const name of names) if (kUnits[name] === undefined) usage(`no workload here is called '${name}'`);

const version = spawnSync(options.node, ['--version'], { encoding: 'utf8' }).stdout?.trim();
if (!version) usage(`cannot run ${options.node}`);
const flags = nodeFlags(version);
// What is kept from one process to the next would be no start; who asks for it names the folder.
const more = options.options.split(' ').filter((o) => o !== '');
if (!more.includes('--code-cache')) more.push('--no-code-cache');
if (!more.includes('--profile-dir')) more.push('--no-profile');
let workloads;
try {
  const suites = options.suites.split(',').filter((s) => s !== '');
  workloads = chooseWorkloads(readManifest(), { suites, names }).filter((w) => kUnits[w.name] !== undefined);
} catch (error) {
  usage(error.message);
}
if (workloads.length === 0) usage('no workload of these suites has a unit of work here');

let wrong = 0;
const answers = new Map();
function time(workload, engine, n) {
  const wasm = join(samplesFolder, workload.wasm);
  const args = kUnits[workload.name](n).map(String);
  const [command, before] = engine === 'node'
    ? [options.node, [...flags, join(root, 'scripts/node_wasi.mjs'), wasm]]
    : [options.hindsight, ['run', ...more, wasm, '--']];
  const begin = process.hrtime.bigint();
  const result = spawnSync(command, [...before, ...args], { encoding: 'utf8' });
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  const key = `${workload.name} ${args.join(' ')}`;
  const known = answers.get(key);
  if (result.status !== 0 || (known !== undefined && known !== result.stdout)) {
    console.error(`${key} in ${engine}: status ${result.status ?? result.signal}, ${JSON.stringify(result.stdout)}, ` +
      `expected ${JSON.stringify(known)}\n${result.stderr ?? ''}`);
    ++wrong;
  }
  answers.set(key, known ?? result.stdout);
  return seconds;
}

// N of the runs: from 1/40 of the longest run's work to all of it, 20 % apart.
function sizes(workload, engine) {
  let n = 4;
  while (time(workload, engine, n) < longest / 2 && n < 2 ** 24) n *= 2;
  // The rate of the second half of such a run, without the start's losses.
  const rate = n / 2 / Math.max(1e-3, time(workload, engine, n) - time(workload, engine, n / 2));
  const top = Math.max(8, Math.round(rate * longest));
  const list = new Set();
  for (let s = top; s >= top / 40 && s >= 1; s /= 1.2) list.add(Math.round(s));
  return [...list].sort((a, b) => a - b);
}

const kNoiseSeconds = 0.006;

// The first size from which on the average rate up to every later one is 95 % of `rate`. Also what stands against the
// size before it.
function arrived(curve, rate) {
  const late = (p, i) => curve.slice(i + 1).filter((q) => q.work - p.work < 0.95 * rate * (q.seconds - p.seconds - kNoiseSeconds));
  const first = curve.findIndex((p, i) => late(p, i).length === 0);
  return { seconds: curve[first].seconds, against: first === 0 ? [] : late(curve[first - 1], first - 1) };
}

function arrival(workload, points) {
  const work = kWork[workload.name] ?? ((n) => n);
  let least = Infinity;
  const curve = points.toReversed().map((point) => {
    least = Math.min(least, ...point.times);
    return { n: point.n, work: work(point.n), seconds: least, times: point.times, point };
  }).reverse();
  const last = curve.at(-1);
  const half = curve.filter((p) => p.seconds >= last.seconds / 2);
  const mean = (value) => half.reduce((sum, p) => sum + value(p), 0) / half.length;
  const [seconds, done] = [mean((p) => p.seconds), mean((p) => p.work)];
  const rate = mean((p) => (p.seconds - seconds) * (p.work - done)) / mean((p) => (p.seconds - seconds) ** 2);
  return { rate, ...arrived(curve, rate), lost: seconds - done / rate, curve };
}

// Runs what stands against an earlier arrival again: noise only adds time.
function settle(workload, engine, points) {
  let result = arrival(workload, points);
  for (let again = 0; again < rounds && result.against.length > 0; ++again) {
    for (const { point } of result.against) point.times.push(time(workload, engine, point.n));
    result = arrival(workload, points);
  }
  return result;
}

const results = [];
console.log(`node ${version} against ${options.hindsight} run ${more.join(' ')}, ${rounds} rounds, up to ${longest} s`);
console.log('workload        95 % of its peak after, ms: node  hindsight  ratio    lost on the way, ms: node  hindsight    peak, hindsight/node    at the lower peak, ms');
for (const workload of workloads) {
  const engines = ['node', 'hindsight'];
  const points = Object.fromEntries(engines.map((e) => [e, sizes(workload, e).map((n) => ({ n, times: [] }))]));
  for (let round = 0; round < rounds; ++round) {
    for (let i = 0; i < Math.max(points.node.length, points.hindsight.length); ++i) {
      for (const engine of round % 2 === 0 ? engines : [...engines].reverse()) {
        const point = points[engine][i];
        if (point !== undefined) point.times.push(time(workload, engine, point.n));
      }
    }
  }
  const node = settle(workload, 'node', points.node);
  const hindsight = settle(workload, 'hindsight', points.hindsight);
  const ratio = hindsight.seconds / node.seconds;
  const common = arrived(hindsight.curve, Math.min(node.rate, hindsight.rate)).seconds;
  for (const { curve } of [node, hindsight]) for (const p of curve) delete p.point;
  for (const result of [node, hindsight]) delete result.against;
  results.push({ name: workload.name, suite: workload.suite, ratio, node, hindsight, common });
  const ms = (s) => (1e3 * s).toFixed(0);
  console.log(`${workload.name.padEnd(16)}${ms(node.seconds).padStart(32)}${ms(hindsight.seconds).padStart(11)}${ratio.toFixed(2).padStart(7)}` +
    `${ms(node.lost).padStart(30)}${ms(hindsight.lost).padStart(11)}${(hindsight.rate / node.rate).toFixed(2).padStart(24)}${ms(common).padStart(22)}`);
  if (options.curve) {
    for (const [engine, result] of [['node', node], ['hindsight', hindsight]]) {
      console.log(`  ${engine}: ${result.curve.map((p) => `${p.n}:${ms(p.seconds)}`).join(' ')}`);
    }
  }
}
console.log(`geomean of the ratios ${geomean(results.map((r) => r.ratio)).toFixed(2)} over ${results.length} workloads; ` +
  `at most 1.5 on ${results.filter((r) => r.ratio <= 1.5).length}`);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ node: version, rounds, longest, results }, null, 2)}\n`);
console.log(wrong === 0 ? 'OK: every answer was the same in both.' : `FAILED: ${wrong} runs gave a wrong answer.`);
process.exitCode = wrong === 0 ? 0 : 1;
