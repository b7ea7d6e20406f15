#!/usr/bin/env node
// Writes a page of results from files of `hindsight bench --json`: docs/results/MACHINE-BUILD.md, one page a machine and build. Pages are
// never edited by hand: what a page is to say that it does not say is measured again, or said by this script.
//
// Usage: node results.mjs --machine NAME --date DATE [options] FILE.json [FILE.json ...]
//     --machine NAME   a short name of the machine, such as zen4-2vcpu: letters, digits and dashes
//     --date DATE      when it was measured: 2026-11-23
//     --build COMMIT   of which commit the command was built (default: that of this checkout; "-changed" if files of it are)
//     --load WORDS     what else ran meanwhile (default: the load averages of now, which are said to be that)
//     --out FOLDER     default: docs/results
//
// All files are of one machine and one build: where they say otherwise nothing is written. What they do not say (caches,
// hypervisor, memory settings) comes from the machine that the script runs on. It is left out where that is another
// machine than the one the files name. A workload with a wrong answer is named and in no figure. Figures are those of the
// files; nothing is computed here but the median of counts.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { basename, join } from 'node:path';

import { root } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';
import { median } from './statistics.mjs';

const { options, names } = readOptions({
  machine: { type: 'string' },
  date: { type: 'string' },
  build: { type: 'string' },
  load: { type: 'string' },
  out: { type: 'string', default: join(root, 'docs/results') },
});
if (names.length === 0) usage('no file of `hindsight bench --json` is named');
if (!/^[A-Za-z0-9-]+$/.test(options.machine ?? '')) usage('--machine takes a short name of letters, digits and dashes');
if (!/^\d{4}-\d\d-\d\d$/.test(options.date ?? '')) usage('--date takes a date such as 2026-11-23');

function readRun(file) {
  let run;
  try {
    run = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    usage(`${file}: ${error.message}`);
  }
  if (!run?.machine?.cpu || !run.settings || !Array.isArray(run.workloads)) usage(`${file}: not a file of \`hindsight bench --json\``);
  return { file, ...run };
}
const runs = names.map(readRun);
const machine = runs[0].machine;
for (const run of runs) {
  for (const key of ['cpu', 'cores', 'memory_bytes', 'kernel', 'version']) {
    if (run.machine[key] !== machine[key])
      usage(`${run.file}: ${key} is '${run.machine[key]}', and '${machine[key]}' in ${runs[0].file}: a page is of one machine and build`);
  }
}

// What a command prints; empty where it cannot be run.
function said(command, ...args) {
  try {
    return execFileSync(command, args, { encoding: 'utf8', cwd: root, stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
}
const fileText = (path) => (existsSync(path) ? readFileSync(path, 'utf8').trim() : '');

function buildOfCheckout() {
  const commit = said('git', 'rev-parse', '--short=7', 'HEAD') || 'unknown';
  const changed = said('git', 'status', '--porcelain', '--untracked-files=no', '--', 'base', 'jit', 'feedback', 'runtime', 'samples');
  return changed === '' ? commit : `${commit}-changed`;
}
const build = options.build ?? buildOfCheckout();
if (!/^[A-Za-z0-9.-]+$/.test(build)) usage('--build takes a commit');

const gib = (bytes) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
const escaped = (text) => String(text).replace(/[|\n<]/g, (c) => ({ '|': '\\|', '\n': ' ', '<': '&lt;' })[c]);

function machineRows() {
  const rows = [
    ['processor', `${machine.cpu}, ${machine.cores} core${machine.cores === 1 ? '' : 's'}`],
    ['memory', `${gib(machine.memory_bytes)}, pages of ${machine.page_bytes} bytes`],
    ['kernel', machine.kernel],
    ['version', machine.version],
    ['build', `commit ${build}`],
    ['measured', options.date],
  ];
  const here = said('lscpu', '-J');
  const facts = here === '' ? [] : JSON.parse(here).lscpu.flatMap((fact) => [fact, ...(fact.children ?? []).flatMap((child) => [child, ...(child.children ?? [])])]);
  const fact = (name) => facts.find(({ field }) => field === `${name}:`)?.data;
  if (fact('Model name') !== machine.cpu) return [...rows, ['load', options.load ?? 'not recorded']];
  const add = (name, value) => value && rows.push([name, value]);
  add('hypervisor', fact('Hypervisor vendor'));
  add('caches', ['L1d', 'L1i', 'L2', 'L3'].filter((name) => fact(name) || fact(`${name} cache`))
    .map((name) => `${name} ${fact(name) ?? fact(`${name} cache`)}`).join(', '));
  add('transparent huge pages', /\[(\w+)\]/.exec(fileText('/sys/kernel/mm/transparent_hugepage/enabled'))?.[1]);
  add('perf_event_paranoid', fileText('/proc/sys/kernel/perf_event_paranoid'));
  rows.push(['load', options.load ??
    `load averages ${loadavg().map((value) => value.toFixed(2)).join(', ')} over 1, 5 and 15 minutes, when this page was made`]);
  return rows;
}

const table = (header, alignment, rows) =>
  [header, alignment, ...rows].map((row) => `| ${row.map(escaped).join(' | ')} |`).join('\n').replace(/\| (:?-+:?) (?=\|)/g, '|$1');
const spread = ({ median: middle, min, max }) => `${middle.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
const counts = (list) => (list?.length ? String(median(list)) : '–');

function section(run) {
  const { settings } = run;
  const words = [
    `${settings.rounds} round${settings.rounds === 1 ? '' : 's'}`,
    settings.quick ? 'short arguments (`--quick`)' : 'usual arguments',
    `${settings.time === 'cpu' ? "CPU time of the guest's thread" : 'wall time'}`,
    ...(settings.pinned ? ['pinned'] : []),
    ...(settings.instances > 1 ? [`${settings.instances} instances at once`] : []),
    `LWP unit ${run.machine.unit || 'not recorded'}`,
    `${settings.total_seconds.toFixed(0)} s in all`,
  ];
  const compared = Object.keys(run.summary ?? {});
  const suites = [...new Set(run.workloads.map(({ suite }) => suite))];
  const lines = [`## ${suites.join(', ')}`, '', `${words.join('; ')}. From \`${basename(run.file)}\`.`, ''];
  const wrong = run.workloads.filter((workload) => !workload.answers_ok);
  for (const { name, problems } of wrong) lines.push(`**Wrong answer: ${escaped(name)}**: ${escaped((problems ?? []).join('; '))}. In no figure.`, '');
  for (const name of compared) {
    const [faster, slower] = name.split('_vs_');
    lines.push(`\`${name}\`: the time of ${slower} over the time of ${faster}, within each round.`, '');
    lines.push(table(['suite', 'workloads', 'geomean', 'lowest', 'highest'], ['---', '---:', '---:', '---:', '---:'],
      Object.entries(run.summary[name]).map(([suite, s]) => [suite, s.workloads, s.geomean.toFixed(2), s.lowest.toFixed(2), s.highest.toFixed(2)])), '');
  }
  const modes = settings.modes;
  lines.push(`Medians in seconds, of as many runs as stand in brackets. Ratios: median (lowest to highest). Decisions: medians a run.`, '');
  lines.push(table(
    ['workload', ...modes.map((mode) => `${mode} s`), ...compared, 'kept', 'rolled back'],
    ['---', ...modes.map(() => '---:'), ...compared.map(() => '---:'), '---:', '---:'],
    run.workloads.map((workload) => [
      `${workload.name}${workload.answers_ok ? '' : ' (wrong)'}`,
      ...modes.map((mode) => (workload.modes[mode] ? `${workload.modes[mode].median_s.toFixed(3)} (${workload.modes[mode].runs})` : '–')),
      ...compared.map((name) => (workload.answers_ok && workload.speedup[name] ? spread(workload.speedup[name]) : '–')),
      counts(workload.modes.feedback?.decisions_kept),
      counts(workload.modes.feedback?.decisions_rolled_back),
    ])), '');
  return lines.join('\n');
}

const name = `${options.machine}-${build}`;
const page = [
  `# ${options.machine}, commit ${build}`,
  '',
  `Generated by \`scripts/results.mjs\`; do not edit. [How numbers are taken](../MEASURING.md).`,
  '',
  table(['', ''], ['---', '---'], machineRows()),
  '',
  ...runs.map(section),
].join('\n');
mkdirSync(options.out, { recursive: true });
writeFileSync(join(options.out, `${name}.md`), `${page.trimEnd()}\n`);
console.log(`results.mjs: OK: ${join(options.out, `${name}.md`)}, ${runs.reduce((sum, run) => sum + run.workloads.length, 0)} workloads.`);
