// When an answer says that a program did its work: not where it prints the same for other arguments. A checksum that
// forgets what came before prints the same however often the work was done, and a runtime could skip it unseen.

// The arguments of a third run: the short ones, with three repetitions more where the manifest says which argument counts
// them. Undefined where it does not. Three, as some programs do their work in pairs, and others might come to the same
// every second time.
export function someRepetitionsMore({ quick_args, length_argument }) {
  if (length_argument === undefined) return undefined;
  const number = Number(quick_args[length_argument]);
  if (!Number.isSafeInteger(number)) return undefined;
  return quick_args.with(length_argument, String(number + 3));
}

// Names two runs of one workload that print the same for different arguments; undefined if there are none. A run is
// `{args, output}`.
export function equalAnswers(runs) {
  for (const [index, run] of runs.entries()) {
    const same = runs.slice(0, index).find(({ args, output }) => output === run.output && args.join(' ') !== run.args.join(' '));
    if (same !== undefined)
      return `prints ${JSON.stringify(run.output)} for the arguments ${same.args.join(' ')} and for ${run.args.join(' ')}: its answer does not show how much it did`;
  }
  return undefined;
}
