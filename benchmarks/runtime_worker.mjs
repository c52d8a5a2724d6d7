// Runs the files that benchmarks.other_runtimes or benchmarks.consumers has prepared, in Node:
//     node runtime_worker.mjs [--in DIRECTORY] (web|onnxruntime-web|onnxruntime-node) FOLDER
// The packages are found from DIRECTORY, else from the working directory. Results are written
// beside the inputs; a case that has begun has a file NAME.begun, and is not run again.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const given = process.argv.slice(2);
const packages = given[0] === "--in" ? given.splice(0, 2)[1] : process.cwd();
const [name, folder] = given;
const kind = name === "web" ? "onnxruntime-web" : name;
const require = createRequire(join(packages, "package.json"));
const ort = await import(pathToFileURL(require.resolve(kind)).href);
const { InferenceSession, Tensor, env } = ort.InferenceSession ? ort : ort.default;
env.logLevel = "error";
if (kind === "onnxruntime-web") env.wasm.numThreads = 1;

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array,
};
for (const each of JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"))) {
  const begun = join(folder, `${each.name}.begun`);
  if (existsSync(begun)) continue;
  writeFileSync(begun, "");
  try {
    const options = { executionProviders: [kind === "onnxruntime-web" ? "wasm" : "cpu"] };
    const session = await InferenceSession.create(
      kind === "onnxruntime-web" ? readFileSync(join(folder, each.model)) : join(folder, each.model),
      options);
    const feeds = {};
    for (const { name, type, shape, file } of each.inputs) {
      const bytes = readFileSync(join(folder, file));
      const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      feeds[name] = new Tensor(type, new ARRAYS[type](buffer), shape);
    }
    const made = await session.run(feeds, each.outputs.map(({ name }) => name));
    for (const { name, file } of each.outputs) {
      const data = await made[name].getData();
      writeFileSync(join(folder, file), Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    }
    await session.release();
    writeFileSync(join(folder, `${each.name}.done`), "");
  } catch (error) {
    writeFileSync(join(folder, `${each.name}.error`), String(error));
  }
}
