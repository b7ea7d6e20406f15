#!/usr/bin/env node
// Rewrites the tables of samples/README.md from samples/manifest.json; with --check only says whether they are current.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { readManifest, samplesFolder } from './samples_manifest.mjs';

const file = join(samplesFolder, 'README.md');
const before = readFileSync(file, 'utf8');
let after = before;
const { workloads } = readManifest();
for (const suite of new Set(workloads.map((w) => w.suite))) {
  const rows = workloads.filter((w) => w.suite === suite)
    .map((w) => `| [${w.name}](${w.source}) | ${w.description} | ${w.stands_for} |\n`).join('');
  // From the suite's heading: everything up to the table's ruler stays, the rows after it are replaced.
  const table = new RegExp(`(\\n## ${suite}\\n(?:(?!\\n## )[^])*?\\n\\|---\\|---\\|---\\|\\n)(?:\\|.*\\n)*`);
  if (!table.test(after)) {
    console.error(`samples_readme.mjs: README.md has no table under '## ${suite}'`);
    process.exit(1);
  }
  after = after.replace(table, (_, head) => head + rows);
}
if (process.argv.includes('--check')) {
  if (after !== before) {
    console.error('samples_readme.mjs: the tables in samples/README.md are not those of the manifest');
    process.exit(1);
  }
} else {
  writeFileSync(file, after);
}
console.log(`samples_readme.mjs: OK: ${workloads.length} workloads in the tables.`);
