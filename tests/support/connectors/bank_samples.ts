/**
 * Bank files that nobody of this project wrote: some are examples of banks, some are wrong on
 * purpose. They stand beside the project, in `../shared/samples`, or in the folder that
 * BANK_SAMPLES names. Without them their tests are not run.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = Deno.env.get("BANK_SAMPLES") ??
  fileURLToPath(new URL("../../../../shared/samples", import.meta.url));

/** Whether the samples are there. */
export const has_samples = await Deno.stat(FOLDER).then(() => true, () => false);
if (!has_samples) {
  console.warn("The reader of bank files is not tested on samples: BANK_SAMPLES names no folder");
}

/** The path of a sample, or of a folder of them. */
export function samplePath(...names: string[]): string {
  return join(FOLDER, ...names);
}
