// Runs the files that benchmarks.other_runtimes has prepared, in Node:
//     node runtime_worker.mjs (onnxruntime-web|onnxruntime-node) FOLDER
// The packages are found from the working directory. Results are written beside the inputs.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [kind, folder] = process.argv.slice(2);
const require = createRequire(join(process.cwd(), "package.json"));
const ort = await import(pathToFileURL(require.resolve(kind)).href);
const { InferenceSession, Tensor, env } = ort.InferenceSession ? ort : ort.default;
env.logLevel = "error";
if (kind === "onnxruntime-web") env.wasm.numThreads = 1;

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array,
};
for (const each of JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"))) {
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
  } catch (error) {
    writeFileSync(join(folder, `${each.name}.error`), String(error));
  }
}
