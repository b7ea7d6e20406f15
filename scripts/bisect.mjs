#!/usr/bin/env node
// Finds the function that the optimizing tier gets wrong. Runs a program with everything in baseline code, then with ever
// fewer of its functions optimized, as long as the two differ.
//
// Usage: node bisect.mjs [--hindsight FILE | --runner FILE] FILE [ARGUMENTS...]
//     --hindsight FILE  the command (default: $HINDSIGHT, else build/release/bin/hindsight); what the program prints and its
//                       exit status are compared
//     --runner FILE     tests/fuzz's run_exports instead, for modules that are no programs
//
// Exit status: 0 and the function's index where one was found; 1 where the tiers agree; 2 for usage.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { root } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';

const { options, names: program } = readOptions({
  hindsight: { type: 'string', default: process.env.HINDSIGHT ?? join(root, 'build/release/bin/hindsight') },
  runner: { type: 'string' },
});
if (program.length === 0) usage('which module?');

const kLast = 2 ** 20;
function run(first, last) {
  const [command, args] = options.runner !== undefined
    ? [options.runner, [first > last ? 'baseline' : `optimized@${first}-${last}`, ...program]]
    : [options.hindsight, ['run', '--no-code-cache', '--no-profile', '--unit', 'none',
      ...(first > last ? ['--tier', 'baseline'] : ['--tier', 'optimized', '--optimize-only', `${first}-${last}`]),
      program[0], '--', ...program.slice(1)]];
  const result = spawnSync(command, args, { encoding: 'buffer', maxBuffer: 1 << 30 });
  if (result.error) {
    console.error(`bisect.mjs: cannot run ${command}: ${result.error.message}`);
    process.exit(2);
  }
  return `${result.signal ?? result.status} ${result.stdout.toString('latin1')}`;
}

const expected = run(1, 0);
let [first, last] = [0, kLast];
if (run(first, last) === expected) {
  console.log('bisect: with all functions optimized the program does what it does in baseline code');
  process.exit(1);
}
let runs = 2;
while (first < last) {
  const middle = Math.floor((first + last) / 2);
  ++runs;
  if (run(first, middle) !== expected) {
    last = middle;
  } else if (++runs && run(middle + 1, last) !== expected) {
    first = middle + 1;
  } else {
    console.log(`bisect: only functions of both ${first}-${middle} and ${middle + 1}-${last} together make the difference (${runs} runs)`);
    process.exit(0);
  }
}
console.log(`bisect: function ${first} (${runs} runs)`);
