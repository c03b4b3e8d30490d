import { globMatcher } from "./glob.ts";

/** A file of model weights above this many bytes is left out: it belongs on the cluster's storage. */
export const WEIGHT_BYTES = 32_000_000;

const WEIGHTS =
  /\.(safetensors|bin|pt|pth|ckpt|gguf|ggml|onnx|onnx_data|h5|msgpack|tflite|nemo|distcp|pdparams)$/i;

/** Why a file is left out as model weights, unless one of the globs `include` names it. */
export function weightsRule(
  include: readonly string[],
): (path: string, name: string, bytes: number) => string | null {
  const included = include.map(globMatcher);
  return (path, name, bytes) => {
    if (bytes <= WEIGHT_BYTES || !WEIGHTS.test(name)) return null;
    if (included.some((matches) => matches(path))) return null;
    return `model weights of ${(bytes / 1e6).toFixed(1)} MB (name them with --include to stage them)`;
  };
}
