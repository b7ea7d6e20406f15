// scripts/expect_samples.mjs records no answer that is the same for different arguments. The native programs are scripts
// of the shell here, and no WebAssembly is reached.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { equalAnswers, someRepetitionsMore } from '../../scripts/answers.mjs';
import { chooseWorkloads, readManifest } from '../../scripts/samples_manifest.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

// Runs the script on one workload whose native program is `shell`; what it said and its manifest afterwards.
function recordedWith(shell, options = []) {
  const folder = mkdtempSync(join(tmpdir(), 'expect-'));
  try {
    writeFileSync(join(folder, 'sum'), `#!/bin/sh\n${shell}\n`);
    chmodSync(join(folder, 'sum'), 0o755);
    const manifest = join(folder, 'manifest.json');
    writeFileSync(manifest, JSON.stringify({ workloads: [{ name: 'sum', suite: 's', wasm: 'sum.wasm', length_argument: 1, args: ['8', '40'],
      expected: '', quick_args: ['4', '10'], quick_expected: '' }] }));
    const result = spawnSync(process.execPath,
      [join(root, 'scripts/expect_samples.mjs'), '--native', folder, '--manifest', manifest, ...options, 'sum'], { encoding: 'utf8' });
    return { ...result, workload: JSON.parse(readFileSync(manifest, 'utf8')).workloads[0] };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('an answer that is the same for the short and the usual arguments is refused', () => {
  const { status, stdout, workload } = recordedWith('echo sum 5');
  assert.equal(status, 1);
  assert.match(stdout, /sum: refused: it prints "sum 5\\n" for the arguments 4 10 and for 4 13: its answer does not show how much it did/);
  assert.equal(workload.expected, '');
});

test('an answer that differs by size but not by repetitions is refused', () => {
  const { status, stdout } = recordedWith('echo sum $1');
  assert.equal(status, 1);
  assert.match(stdout, /for the arguments 4 10 and for 4 13/);
});

test('answers that all differ are what the script goes on with', () => {
  const { status, stdout } = recordedWith('echo sum $1 $2', ['--lengths-only']);
  assert.equal(status, 0, stdout);
  assert.match(stdout, /sum: 3 answers, all different/);
});

test('a few repetitions more are of the short arguments', () => {
  assert.deepEqual(someRepetitionsMore({ quick_args: ['4', '10'], length_argument: 1 }), ['4', '13']);
  assert.equal(someRepetitionsMore({ quick_args: ['4', '10'] }), undefined);
  assert.equal(equalAnswers([{ args: ['1'], output: 'a' }, { args: ['1'], output: 'a' }, { args: ['2'], output: 'b' }]), undefined);
});

test('no workload has one answer for two lists of arguments in the manifest', () => {
  for (const { name, args, expected, quick_args, quick_expected } of chooseWorkloads(readManifest(), {}))
    assert.equal(equalAnswers([{ args, output: expected }, { args: quick_args, output: quick_expected }]), undefined, name);
});
