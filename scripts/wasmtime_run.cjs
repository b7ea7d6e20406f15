// Runs the export `run` of a module without imports in wasmtime's npm package and prints the number it returns:
// `node wasmtime_run.cjs PACKAGE_FOLDER module.wasm`. Made for the modules of self_contained.mjs.
const [folder, file] = process.argv.slice(2);
const { Config, Engine, Instance, Module, Store } = require(folder);
const engine = new Engine(new Config());
const module_ = Module.fromFile(engine, file);
const store = new Store(engine);
const run = new Instance(store, module_).getFunc(store, 'run');
console.log(String(run.call(store, [])));
