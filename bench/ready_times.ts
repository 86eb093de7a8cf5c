/**
 * How long a start takes until health answers 200: the first one of a data folder, with programs and
 * packages in their caches, and the second one of the same folder. Without `npx`, which comes before.
 */

import type { Figure } from "./measurement.ts";
import { startProduct } from "./product.ts";

/** Starts twice on a folder of its own, each time that is asked for. */
export async function measureReadyTimes(
  times: number,
  atEnd: (step: () => Promise<void>) => void,
): Promise<Figure[]> {
  const first: Figure = { name: "ready: first start, warm cache", unit: "s", values: [] };
  const second: Figure = { name: "ready: second start", unit: "s", values: [] };
  for (let i = 0; i < times; i++) {
    let data_dir: string | undefined;
    for (const figure of [first, second]) {
      const product = await startProduct(atEnd, data_dir);
      data_dir = product.data_dir;
      figure.values.push(product.ready_ms / 1000);
      await product.stop();
    }
  }
  return [first, second];
}
