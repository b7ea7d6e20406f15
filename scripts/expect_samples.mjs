// Runs workloads in node and as native programs, checks that both say the same, and records that in
// samples/manifest.json. With --check it compares with what is recorded instead and writes nothing.
//
// An answer that is the same for different arguments is refused, because it does not show that the work was done. Looked
// at are the short and the usual arguments, and the short ones with a few repetitions more (scripts/answers.mjs).
//
// Usage: node expect_samples.mjs --native FOLDER [--check] [--quick-only] [--lengths-only] [--manifest FILE] [NAME...]
// FOLDER holds one native program a workload, named like it (scripts/build_samples.sh makes them). --lengths-only looks
// for equal answers of the native programs and does nothing else.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';

import { equalAnswers, someRepetitionsMore } from './answers.mjs';
import { chooseWorkloads, manifestFile, nodeFlags, readManifest, root, writeManifest } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';

const { options, names } = readOptions({
  native: { type: 'string' },
  check: { type: 'boolean' },
  'quick-only': { type: 'boolean' },
  'lengths-only': { type: 'boolean' },
  manifest: { type: 'string', default: manifestFile },
});
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
  const manifest = readManifest(options.manifest);
  const entry = manifest.workloads.find((w) => w.name === workload.name);
  entry[expectedKey] = output;
  writeManifest(manifest, options.manifest);
}

// What the native program prints for each of the arguments in question, by these; and what is wrong with that.
function runLengths(workload) {
  const lists = [workload.quick_args, someRepetitionsMore(workload), ...(options['quick-only'] ? [] : [workload.args])];
  const runs = lists.filter((args) => args !== undefined)
    .map((args) => ({ args, ...run(join(options.native, workload.name), args) }));
  return { runs, problem: equalAnswers(runs.filter(({ problem }) => problem === undefined)) };
}

const workloads = chooseWorkloads(readManifest(options.manifest), { names });
const kinds = [['quick_args', 'quick_expected']];
if (!options['quick-only']) kinds.push(['args', 'expected']);

let problems = 0;
let done = 0;
for (const workload of workloads) {
  const place = `  [${++done}/${workloads.length}] ${workload.name}`;
  const lengths = runLengths(workload);
  if (lengths.problem !== undefined) {
    console.log(`${place}: refused: it ${lengths.problem}`);
    ++problems;
    continue;
  }
  if (options['lengths-only']) {
    const failed = lengths.runs.find(({ problem }) => problem !== undefined);
    if (failed !== undefined) ++problems;
    console.log(`${place}: ${failed?.problem ?? `${lengths.runs.length} answers, all different`}`);
    continue;
  }
  for (const [argsKey, expectedKey] of kinds) {
    const args = workload[argsKey];
    const native = lengths.runs.find((known) => known.args === args);
    const node = run(process.execPath,
      [...nodeFlags(process.version), join(root, 'scripts/node_wasi.mjs'), join(dirname(options.manifest), workload.wasm), ...args]);
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
    console.log(`${place} ${args.join(' ')}: ${problem ?? 'agree'} (${times})`);
  }
}
if (problems !== 0) {
  console.error(`${problems} of ${workloads.length * kinds.length} runs have no trustworthy answer.`);
  process.exit(1);
}
