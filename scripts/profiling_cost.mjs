// What does it cost to be watched? Runs one program in optimized code only (every function compiled at its first call, no feedback
// decisions), with its LWP unit and without, in pairs whose order alternates, and compares the CPU time of the processes.
//
//   node scripts/profiling_cost.mjs [--pairs 15] [--hindsight build/release/bin/hindsight] [NAME...]
//
// The answers are checked against samples/manifest.json. Prints per workload the median ratio with/without, its quartiles and the number
// of pairs, and the median over all pairs.
import {spawnSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
let pairs = 15, hindsight = join(root, 'build/release/bin/hindsight');
const names = [];
const argv = process.argv.slice(2);
for (let i = 0; i < argv.length; ++i) {
  if (argv[i] === '--pairs') pairs = Number(argv[++i]);
  else if (argv[i] === '--hindsight') hindsight = argv[++i];
  else names.push(argv[i]);
}
if (!names.length) names.push('sha256', 'mandelbrot', 'queens');
const manifest = JSON.parse(readFileSync(join(root, 'samples/manifest.json'), 'utf8'));

// User plus system time of the whole process, from the shell's own accounting.
function run(workload, unit) {
  const wasm = join(root, 'samples', workload.wasm);
  const result = spawnSync('bash', ['-c', 'TIMEFORMAT="%U %S"; time "$@"', 'bash', hindsight, 'run', '--no-code-cache', '--no-profile', '--tier=optimized', `--unit=${unit}`,
                                    wasm, '--', ...workload.args], {encoding: 'utf8'});
  if (result.stdout !== workload.expected) throw new Error(`${workload.name} with unit ${unit}: wrong answer ${result.stdout}${result.stderr}`);
  const [user, system] = result.stderr.trim().split('\n').pop().split(' ').map(Number);
  return user + system;
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
const all = [];
for (const name of names) {
  const workload = manifest.workloads.find(w => w.name === name);
  if (!workload) throw new Error(`no workload '${name}'`);
  const ratios = [];
  for (let i = 0; i < pairs; ++i) {
    const first = i % 2 ? 'auto' : 'none', second = i % 2 ? 'none' : 'auto';
    const times = {[first]: run(workload, first)};
    times[second] = run(workload, second);
    ratios.push(times.auto / times.none);
    process.stderr.write('.');
  }
  process.stderr.write('\n');
  ratios.sort((a, b) => a - b);
  all.push(...ratios);
  console.log(`${name.padEnd(16)} with/without ${quantile(ratios, 0.5).toFixed(4)}  quartiles ${quantile(ratios, 0.25).toFixed(4)}..${
      quantile(ratios, 0.75).toFixed(4)}  ${pairs} pairs`);
}
all.sort((a, b) => a - b);
console.log(`median over ${all.length} pairs: ${((quantile(all, 0.5) - 1) * 100).toFixed(2)} % more CPU time with profiling`);
