// What the scripts beside this one share: reading and writing samples/manifest.json, and choosing workloads.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const samplesFolder = join(root, 'samples');
export const manifestFile = join(samplesFolder, 'manifest.json');

export function readManifest(file = manifestFile) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

// Written beside the old one and moved over it, so that an interrupted run leaves a whole file.
export function writeManifest(manifest, file = manifestFile) {
  writeFileSync(`${file}.new`, `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}

// The workloads whose suite and name are asked for; an empty list asks for all. A name nobody has is an error.
export function chooseWorkloads(manifest, { suites = [], names = [] }) {
  for (const suite of suites) {
    if (!manifest.workloads.some((w) => w.suite === suite)) throw new Error(`no suite is called '${suite}'`);
  }
  for (const name of names) {
    if (!manifest.workloads.some((w) => w.name === name)) throw new Error(`no workload is called '${name}'`);
  }
  return manifest.workloads.filter(
    (w) => (suites.length === 0 || suites.includes(w.suite)) && (names.length === 0 || names.includes(w.name)));
}

// What to pass to a node of this version ('v20.20.2') before scripts/node_wasi.mjs. The guest's calls through V8's
// fast API crash in node 20 once the guest's memory has grown a good deal. Newer ones are left as they are.
export function nodeFlags(version) {
  const major = Number(/^v(\d+)/.exec(version)?.[1]);
  return major < 22 ? ['--no-warnings', '--no-turbo-fast-api-calls'] : ['--no-warnings'];
}
