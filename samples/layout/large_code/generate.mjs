// Writes large_code.c to its standard output: a server whose code is larger than any cache of instructions.
//
//   node samples/layout/large_code/generate.mjs > large_code.c
//
// What it is made after, as measured of warehouse-scale and desktop applications.
//   - The profile is flat: no loop to speak of, thousands of functions, hundreds of which share the time
//     (Kanev et al., "Profiling a warehouse-scale computer", ISCA 2015; Ayers et al., "AsmDB", ISCA 2019).
//   - Hot and cold are mixed at the finest grain: more than half of the code of a hot function is checks that fail
//     once in thousands of times and what is done then (AsmDB; Panchenko et al., "BOLT", CGO 2019).
//   - Callees lie where their source file happened to be, far from their callers (Lavaee et al.,
//     "Codestitcher", CC 2019; Ottoni and Maher, "Optimizing function placement for large-scale data-center
//     applications", CGO 2017).
//   - Most branches are biased; what is left mostly follows from the request at hand.
//
// The program serves requests of many kinds, some far more frequent than others. A request's handler calls a few
// services, these call components, and these call utilities: a few dozen calls of functions of a few hundred bytes.
// Functions of all layers, and those that deal with failures, stand in the source in random order.

const kHandlers = 96;
const kServices = 180;
const kComponents = 260;
const kUtilities = 220;
const kFailures = 300;

// A sequence of its own (splitmix32), so that the program is the same wherever it is generated.
let state = 20191;
function random(bound) {
  state = (state + 0x9e3779b9) | 0;
  let z = state ^ (state >>> 16);
  z = Math.imul(z, 0x21f0aaad);
  z ^= z >>> 15;
  z = Math.imul(z, 0x735a2d97);
  z ^= z >>> 15;
  return (z >>> 0) % bound;
}
const pick = (list) => list[random(list.length)];
const odd = () => `0x${(random(0x7fffffff) * 2 + 1).toString(16).padStart(8, '0')}u`;

const failures = Array.from({ length: kFailures }, (_, i) => `failure_${i}`);
const layers = [
  Array.from({ length: kUtilities }, (_, i) => `utility_${i}`),
  Array.from({ length: kComponents }, (_, i) => `component_${i}`),
  Array.from({ length: kServices }, (_, i) => `service_${i}`),
  Array.from({ length: kHandlers }, (_, i) => `handler_${i}`),
];

const locals = ['a', 'b', 'c', 'd'];
const fields = 8;

// Something to compute: mostly on one local by itself, so that a processor finds work to do at once.
function work() {
  const x = pick(locals);
  let y = pick(locals);
  if (y === x) y = locals[(locals.indexOf(x) + 1) % locals.length];
  switch (random(8)) {
    case 0: return `${x} = (${x} ^ ${x} >> ${1 + random(15)}) * ${odd()};`;
    case 1: return `${x} += request->field[${random(fields)}] ^ ${random(90000)};`;
    case 2: return `${x} ^= request->field[${random(fields)}] >> ${1 + random(15)};`;
    case 3: return `${x} ^= session->total[${y} % 64];`;
    case 4: return `session->total[${x} % 64] += ${y};`;
    case 5: return `${x} = ${x} * ${3 + 2 * random(9)} + ${random(5000)};`;
    case 6: return `${x} = (${x} << ${5 + random(9)} | ${x} >> ${18 + random(9)}) + ${odd()};`;
    default: return `${x} -= ${y} >> ${1 + random(15)};`;
  }
}

// A condition that holds once in 4,096 times or less.
function rare() {
  const x = pick(locals);
  const bits = 12 + random(4);
  switch (random(3)) {
    case 0: return `${x} % ${1 << bits} == ${random(1 << bits)}`;
    case 1: return `${x} >> ${32 - bits} == ${random(1 << bits)}`;
    default: return `(${x} ^ ${pick(locals)} >> 7) % ${1 << bits} == ${random(1 << bits)}`;
  }
}

// What is done when a check fails: the failure is described, reported, and gone on from.
function failing(indent) {
  const lines = [];
  const described = 2 + random(4);
  for (let i = 0; i < described; ++i)
    lines.push(`session->failed[${random(16)}] = ${pick(locals)} ^ ${pick(locals)} * ${odd()};`);
  lines.push(`${pick(locals)} ${pick(['^=', '+=', '='])} ${pick(failures)}(session, request, ` +
    `${pick(locals)} + ${random(900)}, ${pick(locals)});`);
  for (let i = 0; i < 1 + random(3); ++i) lines.push(work());
  if (random(3) === 0) lines.push(`return ${pick(locals)} ^ ${pick(locals)};`);
  return lines.map((line) => `${indent}  ${line}`).join('\n');
}

// A function of layer `level` that calls `callees` by steps of work, checks and choices.
function body(level, callees) {
  const lines = [];
  const steps = callees.map((callee) => ({ callee }));
  const others = level === 3 ? 4 : 5 + random(5);
  for (let i = 0; i < others; ++i) steps.splice(random(steps.length + 1), 0, {});
  for (const { callee } of steps) {
    for (let i = 0; i < 1 + random(3); ++i) lines.push(`  ${work()}`);
    lines.push(`  if (${rare()}) {\n${failing('  ')}\n  }`);
    if (callee) {
      const call = `${pick(locals)} += ${callee}(session, request, ${pick(locals)}, ${pick(locals)});`;
      // Some calls depend on what the request asks for.
      lines.push(random(3) === 0 ? `  if (request->flags & ${1 << random(12)}) ${call}` : `  ${call}`);
    } else if (random(5) === 0) {
      lines.push(`  if (request->flags & ${1 << random(12)}) {\n    ${work()}\n    ${work()}\n  } else {\n    ${work()}\n  }`);
    }
  }
  return lines.join('\n');
}

function definition(name, text) {
  return `KERNEL static uint32_t ${name}(Session* session, const Request* request, uint32_t a, uint32_t b) {
  uint32_t c = request->field[${random(fields)}], d = a ^ b >> ${1 + random(20)};
${text}
  return a ^ b ^ c ^ d;
}
`;
}

const definitions = [];
const called = layers.map(() => 0);
for (let level = 0; level < layers.length; ++level) {
  layers[level].forEach((name) => {
    const callees = [];
    const count = level === 0 ? 0 : level === 3 ? 4 + random(3) : 2 + random(2);
    for (let i = 0; i < count; ++i) {
      // Every third call goes to what many share.
      const below = layers[level - 1];
      callees.push(random(3) === 0 ? pick(below.slice(0, below.length >> 3)) : below[called[level - 1]++ % below.length]);
    }
    definitions.push(definition(name, body(level, callees)));
  });
}
for (const name of failures) {
  const lines = [];
  for (let i = 0; i < 10 + random(20); ++i) {
    lines.push(`  ${work()}`);
    if (random(3) === 0)
      lines.push(`  if (${pick(locals)} % 3 == ${random(3)}) {\n    session->failed[${random(16)}] += ${pick(locals)};\n    ${work()}\n  }`);
  }
  definitions.push(definition(name, lines.join('\n')));
}
for (let i = definitions.length - 1; i > 0; --i) {
  const other = random(i + 1);
  [definitions[i], definitions[other]] = [definitions[other], definitions[i]];
}

const names = [...failures, ...layers.flat()];
console.log(`// Written by generate.mjs, which says what this is.
//
// Arguments: thousands of requests to serve.
#include "sample.h"

typedef struct {
  uint32_t kind, flags;
  uint32_t field[${fields}];
} Request;

typedef struct {
  uint32_t total[64];
  uint32_t failed[16];
} Session;

typedef uint32_t Part(Session* session, const Request* request, uint32_t a, uint32_t b);
`);
for (const name of names) console.log(`KERNEL static Part ${name};`);
console.log('');
for (const text of definitions) console.log(text);
console.log(`enum { kHandlers = ${kHandlers}, kRequests = 2048 };

static Part* const handlers[kHandlers] = {${layers[3].join(', ')}};

int main(int argc, char** argv) {
  const uint32_t thousands = argument(argc, argv, 1, 4000);
  uint64_t seed = 77;
  static Request requests[kRequests];
  static Session session;
  // The first kinds are the most frequent: the k-th by 1 / (k + 6).
  double sum = 0;
  for (uint32_t k = 0; k < kHandlers; ++k) sum += 1.0 / (k + 6);
  for (uint32_t i = 0; i < kRequests; ++i) {
    double at = random_unit(&seed) * sum;
    uint32_t kind = 0;
    while (kind + 1 < kHandlers && (at -= 1.0 / (kind + 6)) > 0) ++kind;
    requests[i].kind = kind;
    // What a request asks for follows from its kind in most cases.
    requests[i].flags = kind * 0x9e3779b1u >> 20 ^ (random_below(&seed, 4) == 0 ? 1u << random_below(&seed, 12) : 0);
    for (uint32_t f = 0; f < ${fields}; ++f) requests[i].field[f] = (uint32_t)next_random(&seed);
  }
  uint64_t checksum = 0;
  for (uint32_t t = 0; t < thousands; ++t) {
    uint32_t answers = 0;
    for (uint32_t i = 0; i < 1000; ++i) {
      const Request* request = &requests[random_below(&seed, kRequests)];
      answers += handlers[request->kind](&session, request, request->field[0] + t, i);
    }
    checksum = mix(checksum, answers);
  }
  for (uint32_t i = 0; i < 16; ++i) checksum = mix(checksum, session.failed[i]);
  return report("large_code", checksum);
}`);
