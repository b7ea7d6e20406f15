#!/usr/bin/env node
// Writes a page of results from files of `hindsight bench --json`: docs/results/MACHINE-BUILD.md, one page a machine and build. Pages are
// never edited by hand: what a page is to say that it does not say is measured again, or said by this script. Beside the
// page goes docs/results/MACHINE.json with the times of every round of it, in place of those of an earlier build.
//
// Usage: node results.mjs --machine NAME --date DATE [options] FILE.json [FILE.json ...]
//     --machine NAME   a short name of the machine, such as zen4-2vcpu: letters, digits and dashes
//     --date DATE      when it was measured: 2026-11-23
//     --build COMMIT   of which commit the command was built (default: that of this checkout; "-changed" if files of it are)
//     --load WORDS     what else ran meanwhile (default: the load averages of now, which are said to be that)
//     --rounds N       how many rounds each file has to have at least (default 15): fewer are no result
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
  rounds: { type: 'string', default: '15' },
  out: { type: 'string', default: join(root, 'docs/results') },
});
const leastRounds = Number(options.rounds);
if (!Number.isInteger(leastRounds) || leastRounds < 1) usage('--rounds wants a positive number');
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
  if (run.settings.rounds < leastRounds)
    usage(`${run.file}: ${run.settings.rounds} rounds, where ${leastRounds} make a result (--rounds N takes fewer)`);
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
const numbersFrom = (first, columns) => [...Array(first).fill('---'), ...Array(columns).fill('---:')];
const factor = (value) => (value === undefined ? '–' : value.toFixed(2));
const spread = ({ median: middle, min, max }) => `${factor(middle)} (${factor(min)} to ${factor(max)})`;
const counts = (list) => (list?.length ? String(median(list)) : '–');
const both = (mode) => (mode ? `${mode.median_s.toFixed(3)} / ${mode.process_cpu_s?.length ? median(mode.process_cpu_s).toFixed(3) : '–'}` : '–');

function summaryTable(run, name) {
  return table(['suite', 'workloads', 'geomean', 'lowest', 'highest', 'CPU'], numbersFrom(1, 5),
    Object.entries(run.summary[name]).map(([suite, s]) =>
      [suite, s.workloads, factor(s.geomean), factor(s.lowest), factor(s.highest), factor(s.process_cpu_geomean)]));
}

// What each family of decisions adds to those before it.
function splitTable(run, together) {
  const columns = [...run.split.map(({ speedup }) => speedup), together];
  const rows = run.workloads.filter((workload) => workload.answers_ok).map((workload) =>
    [workload.name, ...columns.map((column) => factor(workload.speedup[column]?.median))]);
  for (const suite of Object.keys(run.summary[together] ?? {}))
    rows.push([`geomean of ${suite}`, ...columns.map((column) => factor(run.summary[column]?.[suite]?.geomean))]);
  return table(['workload', ...run.split.map(({ adds }) => adds), 'together'], numbersFrom(1, columns.length), rows);
}

function section(run) {
  const { settings } = run;
  const words = [
    `${settings.rounds} round${settings.rounds === 1 ? '' : 's'}`,
    settings.quick ? 'short arguments (`--quick`)' : run.workloads.some(({ length_s }) => length_s) ? 'chosen lengths' : 'usual arguments',
    `${settings.time === 'cpu' ? "CPU time of the guest's thread" : 'wall time'}`,
    ...(settings.pinned ? ['pinned'] : []),
    ...(settings.instances > 1 ? [`${settings.instances} instances at once`] : []),
    ...(settings.without?.length ? [`without ${settings.without.join(', ')} in every mode`] : []),
    `LWP unit ${run.machine.unit || 'not recorded'}`,
    `${settings.total_seconds.toFixed(0)} s in all`,
  ];
  const compared = Object.keys(run.summary ?? {});
  const suites = [...new Set(run.workloads.map(({ suite }) => suite))];
  const lines = [`## ${suites.join(', ')}`, '', `${words.join('; ')}.`, ''];
  const wrong = run.workloads.filter((workload) => !workload.answers_ok);
  for (const { name, problems } of wrong) lines.push(`**Wrong answer: ${escaped(name)}**: ${escaped((problems ?? []).join('; '))}. In no figure.`, '');
  if (run.split?.length && compared.length > 0) {
    lines.push('What each family of decisions adds to those left of it: the time before over the time after, within each round; medians.',
      '`counting` is what everything costs that feedback has to know, before anything is made of it.', '', splitTable(run, compared[0]), '');
    return lines.join('\n');
  }
  for (const name of compared) {
    const [faster, slower] = name.split('_vs_');
    lines.push(`\`${name}\`: the time of ${slower} over the time of ${faster}, within each round.`, '', summaryTable(run, name), '');
  }
  const modes = settings.modes;
  lines.push('Medians in seconds: wall time (or what is named above) / CPU time of the whole process. Ratios: median (lowest to highest). ' +
    'Decisions: medians a run.', '');
  lines.push(table(
    ['workload', ...modes.map((mode) => `${mode} s`), ...compared, 'kept', 'rolled back'], numbersFrom(1, modes.length + compared.length + 2),
    run.workloads.map((workload) => [
      `${workload.name}${workload.length_s ? ` ${workload.length_s} s` : ''}${workload.answers_ok ? '' : ' (wrong)'}`,
      ...modes.map((mode) => both(workload.modes[mode])),
      ...compared.map((name) => (workload.answers_ok && workload.speedup[name] ? spread(workload.speedup[name]) : '–')),
      counts(workload.modes.feedback?.decisions_kept),
      counts(workload.modes.feedback?.decisions_rolled_back),
    ])), '');
  return lines.join('\n');
}

// What is committed beside the page: settings and the times of all rounds, from which everything else follows. A line a
// workload, times to a tenth of a millisecond.
function roundsJson(rows) {
  const short = (list) => list?.map((value) => Number(value.toFixed(4)));
  const modesOf = (modes) => Object.fromEntries(Object.entries(modes).map(([mode, m]) => [mode, {
    seconds: short(m.seconds), process_cpu_s: short(m.process_cpu_s),
    ...(m.decisions_kept ? { kept: m.decisions_kept, rolled_back: m.decisions_rolled_back } : {}),
  }]));
  const runLines = runs.map((run) => {
    const workloads = run.workloads.map(({ name, suite, answers_ok, length_s, args, modes }) =>
      `        ${JSON.stringify({ name, suite, answers_ok, length_s, args, modes: modesOf(modes) })}`);
    return `    {\n      "from": ${JSON.stringify(basename(run.file))},\n      "unit": ${JSON.stringify(run.machine.unit)},\n` +
      `      "settings": ${JSON.stringify(run.settings)},\n      "split": ${JSON.stringify(run.split ?? [])},\n      "workloads": [\n${workloads.join(',\n')}\n      ]\n    }`;
  });
  const facts = rows.map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  return `{\n  "format": 1,\n  "build": ${JSON.stringify(build)},\n  "measured": ${JSON.stringify(options.date)},\n` +
    `  "machine": {\n${facts.join(',\n')}\n  },\n  "runs": [\n${runLines.join(',\n')}\n  ]\n}\n`;
}

const rows = machineRows();
const name = `${options.machine}-${build}`;
const page = [
  `# ${options.machine}, commit ${build}`,
  '',
  `Generated by \`scripts/results.mjs\`; do not edit. [How numbers are taken](../MEASURING.md). The times of every round: [${options.machine}.json](${options.machine}.json).`,
  '',
  table(['', ''], ['---', '---'], rows),
  '',
  ...runs.map(section),
].join('\n');
mkdirSync(options.out, { recursive: true });
writeFileSync(join(options.out, `${name}.md`), `${page.trimEnd()}\n`);
writeFileSync(join(options.out, `${options.machine}.json`), roundsJson(rows));
console.log(`results.mjs: OK: ${join(options.out, `${name}.md`)}, ${runs.reduce((sum, run) => sum + run.workloads.length, 0)} workloads.`);
