#!/usr/bin/env node
// Hindsight against V8: runs each workload's same .wasm in `hindsight run` and in node, interleaved, whole processes,
// start-up included; checks every answer while timing.
//
// Usage: node compare_node.mjs [options] [NAME...]
//     --suites A,B       only these suites (samples/README.md lists them; elsewhere is one of them)
//     --runs N           rounds (default 5); the order within a round alternates
//     --quick            the workloads' quick arguments
//     --mode on|off      hindsight's --feedback (default off)
//     --tier T           hindsight's --tier (default auto)
//     --hindsight FILE   the command (default: $HINDSIGHT, else build/release/bin/hindsight)
//     --node FILE        the node to compare with (default: $NODE, else the node that runs this)
//     --json FILE        also write every time measured
//
//     --liftoff          first tiers alone: node with --liftoff-only, hindsight with --tier=baseline --feedback=on, whose
//                        code counts events and is sampled; suites compute, branch, call and memory unless others are named
//     --native           also native programs, which clang-19 -O3 makes of the same sources first
//     --bun FILE         also this bun (JavaScriptCore)
//     --wasmtime FOLDER  also wasmtime, as the npm package in this folder has it. That takes modules without imports only: the
//                        same module, its WASI calls replaced (self_contained.mjs), run inside node
//
// A ratio is the other side's time over hindsight's: above 1 hindsight is faster. Each workload's ratio is the median over the
// rounds of that round's ratio, with the smallest and the largest beside it.
// Exit status: 0; 1 where an answer was wrong or a run failed; 2 for usage.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';

import { fnv1a, selfContained } from './self_contained.mjs';
import { chooseWorkloads, nodeFlags, readManifest, root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { geomean, median } from './statistics.mjs';

const { options, names } = readOptions({
  suites: { type: 'string', default: '' },
  runs: { type: 'string', default: '5' },
  quick: { type: 'boolean', default: false },
  mode: { type: 'string', default: 'off' },
  tier: { type: 'string', default: 'auto' },
  hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
  node: { type: 'string', default: process.env.NODE ?? process.execPath },
  json: { type: 'string' },
  native: { type: 'boolean', default: false },
  bun: { type: 'string' },
  wasmtime: { type: 'string' },
  liftoff: { type: 'boolean', default: false },
});
if (options.liftoff) {
  options.tier = 'baseline';
  options.mode = 'on';
  if (options.suites === '' && names.length === 0) options.suites = 'compute,branch,call,memory';
}
const rounds = Number(options.runs);
if (!Number.isInteger(rounds) || rounds < 1) usage('--runs wants a positive number');
if (options.mode !== 'on' && options.mode !== 'off') usage('--mode is on or off');

let workloads;
try {
  workloads = chooseWorkloads(readManifest(), { suites: options.suites.split(',').filter((s) => s !== ''), names });
} catch (error) {
  usage(error.message);
}

function versionOf(command, args) {
  const result = spawnSync(command, args, { encoding: 'utf8' });
  if (result.error) usage(`cannot run ${command}: ${result.error.message}`);
  return result.stdout.trim().split('\n')[0];
}
const nodeVersion = versionOf(options.node, ['--version']);
const v8 = `node ${nodeVersion} (V8 ${versionOf(options.node, ['-p', 'process.versions.v8'])})`;
const flags = [...nodeFlags(nodeVersion), ...(options.liftoff ? ['--liftoff-only'] : [])];
versionOf(options.hindsight, ['--help']);
const others = ['native', 'bun', 'wasmtime'].filter((side) => options[side]);
const otherVersions = {};
if (options.native) otherVersions.native = versionOf('clang-19', ['--version']);
if (options.bun) otherVersions.bun = versionOf(options.bun, ['--version']);
if (options.wasmtime) {
  try {
    otherVersions.wasmtime = `npm ${JSON.parse(readFileSync(join(options.wasmtime, 'package.json'), 'utf8')).version}`;
  } catch (error) {
    usage(`no wasmtime package: ${error.message}`);
  }
}

const summary = (values) => ({ median: median(values), min: Math.min(...values), max: Math.max(...values) });

// The native program of a workload: x86-64's baseline, no contraction, as expected answers are made.
const scratch = mkdtempSync(join(tmpdir(), 'hindsight-compare-'));
function nativeProgram(workload) {
  let source = join(samplesFolder, workload.source);
  const program = join(scratch, workload.name);
  if (source.endsWith('.mjs')) {  // which writes the source
    const written = spawnSync(process.execPath, [source], { encoding: 'utf8', maxBuffer: 1 << 28 });
    if (written.error || written.status !== 0) usage(`${source} writes no source: ${written.error?.message ?? written.stderr}`);
    source = `${program}.c`;
    writeFileSync(source, written.stdout);
  }
  const [compiler, standard] = source.endsWith('.cc') ? ['clang++-19', '-std=c++20'] : ['clang-19', '-std=c23'];
  const made = spawnSync(compiler, [standard, '-ffp-contract=off', `-I${join(samplesFolder, 'common')}`, '-O3', source, '-o', program, '-lm'], { encoding: 'utf8' });
  if (made.error || made.status !== 0) usage(`cannot build ${source}: ${made.error?.message ?? made.stderr}`);
  return program;
}

// Seconds for one run, or undefined (and a line on stderr) where the answer is wrong.
function time(label, command, args, expected) {
  const begin = process.hrtime.bigint();
  const result = spawnSync(command, args, { encoding: 'utf8' });
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  if (result.status === 0 && result.stdout === expected) return seconds;
  const got = `status ${result.status ?? result.signal}, stdout ${JSON.stringify(result.stdout)}`;
  console.error(`${label}: wrong: ${got}, expected ${JSON.stringify(expected)}\n${(result.stderr ?? '').trim()}`);
  return undefined;
}

function otherColumns(result) {
  return others.map((side) => {
    const seconds = result[`${side}_s`];
    const ratio = result[`${side}_ratio`];
    return `   ${side} ${seconds.median.toFixed(3)} s, ratio ${ratio.median.toFixed(2)}  ${ratio.min.toFixed(2)}..${ratio.max.toFixed(2)}`;
  }).join('');
}

const results = [];
console.log(`${v8}${options.liftoff ? ' --liftoff-only' : ''} against ${options.hindsight} run --tier=${options.tier} --feedback=${options.mode}, ` +
  `${rounds} rounds, ${options.quick ? 'quick' : 'full'} sizes`);
for (const [side, version] of Object.entries(otherVersions)) console.log(`also ${side}: ${version}`);
console.log(`${'workload'.padEnd(20)} ${'suite'.padEnd(8)} ${'node s'.padStart(8)} ${'hindsight s'.padStart(12)} ` +
  `${'ratio'.padStart(6)}  min..max`);
for (const workload of workloads) {
  const args = options.quick ? workload.quick_args : workload.args;
  const expected = options.quick ? workload.quick_expected : workload.expected;
  const wasm = join(samplesFolder, workload.wasm);
  const sides = {
    node: () => time(`${workload.name} in node`, options.node,
      [...flags, join(root, 'scripts/node_wasi.mjs'), wasm, ...args], expected),
    hindsight: () => time(`${workload.name} in hindsight`, options.hindsight,
      ['run', '--no-code-cache', '--no-profile', `--tier=${options.tier}`, `--feedback=${options.mode}`, wasm, '--', ...args], expected),
  };
  if (options.native) {
    const program = nativeProgram(workload);
    sides.native = () => time(`${workload.name}, native`, program, args, expected);
  }
  if (options.bun) {
    sides.bun = () => time(`${workload.name} in bun`, options.bun, [join(root, 'scripts/node_wasi.mjs'), wasm, ...args], expected);
  }
  if (options.wasmtime) {
    const alone = join(scratch, `${workload.name}.wasm`);
    writeFileSync(alone, selfContained(readFileSync(wasm), [wasm, ...args]));
    sides.wasmtime = () => time(`${workload.name} in wasmtime`, options.node,
      [join(root, 'scripts/wasmtime_run.cjs'), options.wasmtime, alone], `${fnv1a(Buffer.from(expected))}\n`);
  }
  const sideNames = Object.keys(sides);
  const times = Object.fromEntries(sideNames.map((name) => [name, []]));
  let answersOk = true;
  for (let round = 0; round < rounds && answersOk; ++round) {
    const order = round % 2 === 0 ? sideNames : [...sideNames].reverse();
    for (const side of order) {
      const seconds = sides[side]();
      if (seconds === undefined) answersOk = false;
      else times[side].push(seconds);
    }
  }
  const result = { name: workload.name, suite: workload.suite, answers_ok: answersOk, times };
  if (answersOk) {
    result.node_s = summary(times.node);
    result.hindsight_s = summary(times.hindsight);
    result.ratio = summary(times.node.map((seconds, round) => seconds / times.hindsight[round]));
    for (const side of others) {
      result[`${side}_s`] = summary(times[side]);
      result[`${side}_ratio`] = summary(times[side].map((seconds, round) => seconds / times.hindsight[round]));
    }
    const { node_s: node, hindsight_s: hindsight, ratio } = result;
    console.log(`${workload.name.padEnd(20)} ${workload.suite.padEnd(8)} ${node.median.toFixed(3).padStart(8)} ` +
      `${hindsight.median.toFixed(3).padStart(12)} ${ratio.median.toFixed(2).padStart(6)}  ` +
      `${ratio.min.toFixed(2)}..${ratio.max.toFixed(2)}` + otherColumns(result));
  } else {
    console.log(`${workload.name.padEnd(20)} ${workload.suite.padEnd(8)} FAILED`);
  }
  results.push(result);
}

const good = results.filter((r) => r.answers_ok);
const geomeans = {};
for (const suite of new Set(good.map((r) => r.suite))) {
  geomeans[suite] = geomean(good.filter((r) => r.suite === suite).map((r) => r.ratio.median));
}
if (good.length !== 0) geomeans.all = geomean(good.map((r) => r.ratio.median));
for (const [suite, value] of Object.entries(geomeans)) {
  const members = suite === 'all' ? good.length : good.filter((r) => r.suite === suite).length;
  console.log(`geomean ${suite.padEnd(8)} ${value.toFixed(3)} over ${members} workloads`);
}
for (const side of good.length === 0 ? [] : others) {
  const ratios = good.map((r) => r[`${side}_ratio`].median);
  geomeans[side] = geomean(ratios);
  console.log(`geomean ${side.padEnd(8)} ${geomeans[side].toFixed(3)} over ${good.length} workloads; ahead of ${side} on ` +
    `${ratios.filter((r) => r > 1).length} of them`);
}
rmSync(scratch, { recursive: true, force: true });
if (options.json !== undefined) {
  const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length };
  const setting = { liftoff: options.liftoff, tier: options.tier, feedback: options.mode, quick: options.quick, rounds };
  writeFileSync(options.json, `${JSON.stringify({ machine, v8, others: otherVersions, setting, geomeans, workloads: results }, null, 2)}\n`);
}
const failed = results.length - good.length;
console.log(failed === 0
  ? `OK: ${results.length} workloads, every answer right.`
  : `FAILED: ${failed} of ${results.length} workloads gave a wrong answer.`);
process.exitCode = failed === 0 ? 0 : 1;
