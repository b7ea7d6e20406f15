// scripts/results.mjs makes a page and the times of all rounds of files of `hindsight bench --json`, and refuses what is no result.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const spread = (value) => ({ median: value, min: value, max: value, rounds: [value], process_cpu_median: value });
const mode = (seconds) => ({ median_s: seconds, runs: 15, seconds: Array(15).fill(seconds), process_cpu_s: Array(15).fill(2 * seconds) });

function bench(more) {
  return {
    machine: { cpu: 'Test CPU', cores: 2, memory_bytes: 2 ** 30, kernel: 'Linux 6', page_bytes: 4096, unit: 'clock', version: '0.1.0' },
    settings: { modes: ['plain', 'feedback'], without: [], rounds: 15, quick: false, time: 'wall', pinned: false, instances: 1, total_seconds: 1 },
    split: [],
    workloads: [{ name: 'gather', suite: 'memory', answers_ok: true, modes: { plain: mode(2.00004), feedback: mode(1) },
      speedup: { feedback_vs_plain: spread(2) } }],
    summary: { feedback_vs_plain: { memory: { workloads: 1, geomean: 2, lowest: 2, highest: 2, process_cpu_geomean: 1.9 } } },
    ...more,
  };
}

function pageOf(json, words = []) {
  const folder = mkdtempSync(join(tmpdir(), 'results-'));
  try {
    writeFileSync(join(folder, 'b.json'), JSON.stringify(json));
    const result = spawnSync(process.execPath, [join(root, 'scripts/results.mjs'), '--machine', 'test', '--date', '2026-11-24', '--build', 'abc1234',
      '--out', folder, ...words, join(folder, 'b.json')], { encoding: 'utf8' });
    if (result.status !== 0) return result;
    return { ...result, page: readFileSync(join(folder, 'test-abc1234.md'), 'utf8'), rounds: JSON.parse(readFileSync(join(folder, 'test.json'), 'utf8')) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('the times of every round stand beside the page', () => {
  const { status, stderr, page, rounds } = pageOf(bench());
  assert.equal(status, 0, stderr);
  assert.match(page, /\| gather \| 2\.000 \/ 4\.000 \| 1\.000 \/ 2\.000 \| 2\.00 \(2\.00 to 2\.00\)/);
  assert.match(page, /\| memory \| 1 \| 2\.00 \| 2\.00 \| 2\.00 \| 1\.90 \|/);
  assert.equal(rounds.build, 'abc1234');
  assert.equal(rounds.machine.processor, 'Test CPU, 2 cores');
  const [gather] = rounds.runs[0].workloads;
  assert.deepEqual(gather.modes.plain.seconds, Array(15).fill(2));
  assert.deepEqual(gather.modes.feedback.process_cpu_s, Array(15).fill(2));
});

test('a gain that was split has a column a step', () => {
  const { page } = pageOf(bench({ split: [{ adds: 'pages', speedup: 'feedback_vs_plain' }] }));
  assert.match(page, /\| workload \| pages \| together \|/);
  assert.match(page, /\| geomean of memory \| 2\.00 \| 2\.00 \|/);
});

test('fewer than fifteen rounds are no result', () => {
  const few = bench({});
  few.settings.rounds = 3;
  const refused = pageOf(few);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /3 rounds, where 15 make a result/);
  assert.equal(pageOf(few, ['--rounds', '3']).status, 0);
});
