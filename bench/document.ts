import type { KeptResults } from "./results.ts";
/** Stub */
export function writeDocument(_: KeptResults): Promise<void> {
  return Promise.resolve();
}
