// What the scripts share that have options: reading them, and saying what is wrong with them.
import { basename } from 'node:path';
import { parseArgs } from 'node:util';

// Names the script and the problem, and ends it with status 2, as all wrong usage does.
export function usage(problem) {
  console.error(`${basename(process.argv[1])}: ${problem}; the options are at the top of the script`);
  process.exit(2);
}

// `options` as node:util's parseArgs takes them. Without `positionals` words that are no options are wrong usage.
export function readOptions(options, { positionals = true } = {}) {
  try {
    const read = parseArgs({ options, allowPositionals: positionals });
    return { options: read.values, names: read.positionals };
  } catch (error) {
    return usage(error.message);
  }
}
