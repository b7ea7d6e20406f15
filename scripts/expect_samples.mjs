// Runs workloads in node and as native programs, checks that both say the same, and records that in
// samples/manifest.json. With --check it compares with what is recorded instead and writes nothing.
//
// Usage: node expect_samples.mjs --native FOLDER [--check] [--quick-only] [NAME...]
// FOLDER holds one native program a workload, named like it (scripts/build_samples.sh makes them).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { chooseWorkloads, nodeFlags, readManifest, root, samplesFolder, writeManifest } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';

const { options, names } = readOptions({ native: { type: 'string' }, check: { type: 'boolean' }, 'quick-only': { type: 'boolean' } });
if (options.native === undefined) usage('--native FOLDER is needed');

// What a program printed and how long it took, or the reason why it has no answer.
function run(command, args) {
  const begin = process.hrtime.bigint();
  const result = spawnSync(command, args, { encoding: 'utf8' });
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  if (result.error) return { problem: String(result.error), seconds };
  if (result.status !== 0) {
    return { problem: `status ${result.status ?? result.signal}: ${result.stderr.trim()}`, seconds };
  }
  return { output: result.stdout, seconds };
}

// Read, changed and written at once: an interrupted run keeps what it found, and edits made meanwhile stay.
function record(workload, expectedKey, output) {
  const manifest = readManifest();
  const entry = manifest.workloads.find((w) => w.name === workload.name);
  entry[expectedKey] = output;
  writeManifest(manifest);
}

const workloads = chooseWorkloads(readManifest(), { names });
const kinds = [['quick_args', 'quick_expected']];
if (!options['quick-only']) kinds.push(['args', 'expected']);

let problems = 0;
let done = 0;
for (const workload of workloads) {
  ++done;
  for (const [argsKey, expectedKey] of kinds) {
    const args = workload[argsKey];
    const native = run(join(options.native, workload.name), args);
    const node = run(process.execPath,
      [...nodeFlags(process.version), join(root, 'scripts/node_wasi.mjs'), join(samplesFolder, workload.wasm), ...args]);
    let problem = native.problem ?? node.problem;
    if (problem === undefined && native.output !== node.output) {
      problem = `native says ${JSON.stringify(native.output)}, node ${JSON.stringify(node.output)}`;
    }
    if (problem === undefined && options.check && node.output !== workload[expectedKey]) {
      problem = `both say ${JSON.stringify(node.output)}, the manifest ${JSON.stringify(workload[expectedKey])}`;
    }
    if (problem === undefined) {
      if (!options.check) record(workload, expectedKey, node.output);
    } else {
      ++problems;
    }
    const times = `native ${native.seconds.toFixed(2)} s, node ${node.seconds.toFixed(2)} s`;
    console.log(`  [${done}/${workloads.length}] ${workload.name} ${args.join(' ')}: ${problem ?? 'agree'} (${times})`);
  }
}
if (problems !== 0) {
  console.error(`${problems} of ${workloads.length * kinds.length} runs have no trustworthy answer.`);
  process.exit(1);
}
