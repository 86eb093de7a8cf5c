/**
 * Code samples of an operation in curl, TypeScript and Python. They show the recorded example of
 * the operation; `tests/openapi/code_samples_test.ts` runs each of them.
 */

import { curlSample } from "./curl.ts";
import { pythonSample } from "./python.ts";
import type { SampleCall } from "./sample_call.ts";
import { typescriptSample } from "./typescript.ts";

/** An entry of `x-codeSamples`. */
export interface CodeSample {
  lang: string;
  label: string;
  source: string;
}

/** Returns the samples, in the order in which the page shows them. */
export function codeSamples(call: SampleCall): CodeSample[] {
  return [
    { lang: "shell", label: "curl", source: curlSample(call) },
    { lang: "typescript", label: "TypeScript", source: typescriptSample(call) },
    { lang: "python", label: "Python", source: pythonSample(call) },
  ];
}
