#!/usr/bin/env node
// Which decisions hang on which parameter of the policy. Replays saved profiles of the suites, and situations made by
// hand, with each parameter a quarter larger and a quarter smaller. Prints what flips
// (tests/feedback/policy/situations.h).
//
// Usage: node replay_parameters.mjs [options] [NAME=NUMBER...]    with numbers: what these flip, each by name
//     --flips            names each decision of the profiles that flips
//     --anew             first makes the profiles anew: every workload runs once with the manifest's short arguments
//     --build FOLDER     (default: build/release)
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { readManifest, root, samplesFolder } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';

const { options, names } = readOptions({
  flips: { type: 'boolean', default: false },
  anew: { type: 'boolean', default: false },
  build: { type: 'string', default: join(root, 'build/release') },
});
const numbers = names.filter((name) => name.includes('='));
if (numbers.length !== names.length) usage('NAME=NUMBER is wanted');
const replay = join(options.build, 'bin/replay_parameters');
if (!existsSync(replay)) usage(`${replay} is missing: cmake --build ${options.build} --target replay_parameters hindsight`);
const folder = join(root, 'tests/feedback/policy/profiles');

function gatherAnew() {
  const scratch = mkdtempSync(join(tmpdir(), 'replay-'));
  const suites = new Map();
  for (const workload of readManifest().workloads) {
    const profile = join(scratch, `${workload.name}.json`);
    const result = spawnSync(join(options.build, 'bin/hindsight'), ['run', '--no-code-cache', '--no-profile', '--profile-out', profile,
      '--timeout', '60s', join(samplesFolder, workload.wasm), '--', ...workload.quick_args], { encoding: 'utf8' });
    if (result.status !== 0 || result.stdout !== workload.quick_expected || !existsSync(profile)) {
      console.error(`${workload.name}: left out, status ${result.status}: ${result.stderr.trim()}`);
      continue;
    }
    suites.set(workload.suite, [...(suites.get(workload.suite) ?? []), profile]);
  }
  for (const [suite, profiles] of suites) execFileSync(replay, ['--gather', join(folder, `${suite}.json`), ...profiles]);
  rmSync(scratch, { recursive: true });
}

if (options.anew) gatherAnew();
const profiles = readdirSync(folder).filter((name) => name.endsWith('.json')).sort().map((name) => join(folder, name));
const { status } = spawnSync(replay, [...(options.flips ? ['--flips'] : []), ...numbers, ...profiles], { stdio: 'inherit' });
process.exit(status ?? 1);
