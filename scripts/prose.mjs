#!/usr/bin/env node
// Counts what the house does not write: sentences of more than 25 words, the word `behind`, and comments that begin with
// "Of". Prints a line for each file that has any, and the sums. It judges nothing: the exit status is 0 whatever it
// finds.
//
// Usage: node prose.mjs [--strings] [--list] [--words N] [--changed REVISION] [PATH...]
//   PATH                files and folders (default: every page and header that git knows; with --strings, every source)
//   --strings           reads what sources say to people: string literals of at least four words, instead of comments
//   --list              also prints each finding with its file and line
//   --words N           what a sentence may have (default 25)
//   --changed REVISION  only files that differ from that revision
//
// Read as prose: paragraphs, points of lists, headings and cells of tables of a page; comments of a source. Left out: code in fences,
// in backquotes (one word) or indented by four, and addresses of links. A sentence ends at a full stop, a question or an exclamation mark.
// Literals that stand side by side or are put together by + are one text, in which each value counts as one word.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

import { root } from './samples_manifest.mjs';
import { readOptions, usage } from './script_options.mjs';

const { options, names } = readOptions({
  list: { type: 'boolean', default: false },
  strings: { type: 'boolean', default: false },
  words: { type: 'string', default: '25' },
  changed: { type: 'string' },
});
const kMostWords = Number(options.words);
if (!(kMostWords > 0)) usage('--words takes a number above 0');

// A block is text that no sentence leaves: { line, text }.
class Blocks {
  list = [];
  #open = null;
  add(line, text) {
    this.#open ??= { line, text: '' };
    this.#open.text += ` ${text}`;
  }
  end() {
    if (this.#open) this.list.push(this.#open);
    this.#open = null;
  }
  alone(line, text) {
    this.end();
    this.add(line, text);
    this.end();
  }
}

function blocksOfPage(text) {
  const blocks = new Blocks();
  let fence = false;
  let remark = false;
  let points = false;  // within a list, where what is indented is its text
  text.split('\n').forEach((raw, i) => {
    const line = raw.trim();
    if (line.startsWith('```')) {
      fence = !fence;
      return blocks.end();
    }
    if (line.startsWith('<!--')) remark = true;
    if (fence || remark) {
      if (line.endsWith('-->')) remark = false;
      return blocks.end();
    }
    const point = /^([-*]|\d+\.) +/.exec(line);
    if (point) points = true;
    else if (/^\S/.test(raw)) points = false;
    if (line === '' || (!points && /^( {4}|\t)/.test(raw))) return blocks.end();
    if (line.startsWith('|')) {
      for (const cell of line.split('|')) blocks.alone(i + 1, cell);
      return undefined;
    }
    if (line.startsWith('#')) return blocks.alone(i + 1, line.replace(/^#+/, ''));
    if (point) blocks.end();
    return blocks.add(i + 1, line.slice(point ? point[0].length : 0));
  });
  blocks.end();
  return blocks.list;
}

function blocksOfSource(text) {
  const blocks = new Blocks();
  text.split('\n').forEach((raw, i) => {
    const comment = /^(.*?)(?:\/\/|^\s*\/?\*+(?!\/))(.*?)(?:\*\/)?$/.exec(raw);
    const code = comment ? comment[1].trim() : raw.trim();
    if (!comment || /["']$|https?:$/.test(code)) return blocks.end();
    if (code !== '') return blocks.alone(i + 1, comment[2]);
    if (/^\s*$/.test(comment[2]) || /^ {4,}/.test(comment[2])) return blocks.end();
    return blocks.add(i + 1, comment[2].trim());
  });
  blocks.end();
  return blocks.list;
}

// The string literals of a source in C++, without its comments: { start, end, text }.
function literals(text) {
  const token = /\/\/[^\n]*|\/\*[^]*?\*\/|R"([^(\s]*)\(([^]*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)+'/g;
  const found = [];
  for (const match of text.matchAll(token)) {
    const words = match[2] ?? match[3];
    if (words !== undefined) found.push({ start: match.index, end: match.index + match[0].length, text: words });
  }
  return found;
}

function blocksOfStrings(text) {
  const blocks = [];
  let last;
  for (const literal of literals(text)) {
    const between = last === undefined ? ';' : text.slice(last.end, literal.start);
    const beside = /^\s*$/.test(between);
    if (beside || /^\s*\+[^;{}]*\+\s*$/.test(between)) {
      blocks.at(-1).text += (beside ? '' : '{}') + literal.text;
    } else {
      blocks.push({ line: text.slice(0, literal.start).split('\n').length, text: literal.text });
    }
    last = literal;
  }
  for (const block of blocks) block.text = block.text.replace(/\\n/g, '. ').replace(/\{[^{}]*\}|%[-\d.]*[a-z]+/g, '0').replace(/\\(.)/g, '$1');
  return blocks.filter((block) => (block.text.match(/[\p{L}]{2,}/gu) ?? []).length >= 4);
}

function findings(file) {
  const text = readFileSync(join(root, file), 'utf8');
  const page = extname(file) === '.md';
  const found = [];
  const blocks = page ? blocksOfPage : options.strings ? blocksOfStrings : blocksOfSource;
  for (const { line, text: block } of blocks(text)) {
    const plain = block.replace(/`[^`]*`/g, 'code').replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[*_]{2}/g, '')
      .replace(/\b(e\.g|i\.e|et al|vs|cf|[A-Z])\./g, '$1').trim();
    if (/^Of\b/.test(plain)) found.push({ kind: 'of', line, words: plain.slice(0, 60) });
    for (const sentence of plain.split(/(?<=[.!?])["')]*\s+/)) {
      const count = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
      if (count > kMostWords) found.push({ kind: 'long', line, words: `${count} words: ${sentence.slice(0, 80)}` });
      for (const _ of sentence.matchAll(/\bbehind\b/gi)) found.push({ kind: 'behind', line, words: sentence.slice(0, 80) });
    }
  }
  return found;
}

const git = (...args) => execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' }).split('\n').filter(Boolean);
const wanted = names.length > 0 ? names : options.strings ? ['base', 'feedback', 'jit', 'runtime'] : ['*.md', '*.h'];
let files = git('ls-files', '--cached', '--others', '--exclude-standard', '--', ...wanted)
  .filter((file) => ['.md', '.h', '.cc', '.c', '.mjs'].includes(extname(file)) && existsSync(join(root, file)));
if (options.strings) files = files.filter((file) => ['.h', '.cc', '.c'].includes(extname(file)));
if (options.changed) {
  const changed = new Set(git('diff', '--name-only', options.changed));
  files = files.filter((file) => changed.has(file));
}
const kKinds = ['long', 'behind', 'of'];
const row = (counts, name) => `${kKinds.map((kind) => String(counts[kind]).padStart(7)).join('')}  ${name}`;
const sums = { long: 0, behind: 0, of: 0 };
console.log(`${kKinds.map((kind) => kind.padStart(7)).join('')}  file`);
for (const file of files) {
  const found = findings(file);
  if (found.length === 0) continue;
  const counts = { long: 0, behind: 0, of: 0 };
  for (const { kind } of found) counts[kind] += 1;
  for (const kind of kKinds) sums[kind] += counts[kind];
  console.log(row(counts, file));
  if (options.list) for (const { kind, line, words } of found) console.log(`         ${file}:${line}: ${kind}: ${words}`);
}
console.log(row(sums, `${files.length} files`));
