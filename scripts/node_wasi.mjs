// Runs a WASI preview 1 command in node or bun: `node node_wasi.mjs app.wasm [args...]`.
// Exits with the guest's own status, or 134 with the error on stderr where the guest trapped.
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const [file, ...args] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node node_wasi.mjs app.wasm [args...]');
  process.exit(2);
}

const wasi = new WASI({ version: 'preview1', args: [file, ...args], env: {}, returnOnExit: true });
try {
  const module = await WebAssembly.compile(readFileSync(file));
  // bun has the older interface.
  const imports = wasi.getImportObject?.() ?? { wasi_snapshot_preview1: wasi.wasiImport };
  const instance = await WebAssembly.instantiate(module, imports);
  process.exitCode = wasi.start(instance);
} catch (error) {
  console.error(`${file}: ${error.stack ?? error}`);
  process.exitCode = 134;
}
