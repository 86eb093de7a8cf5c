/**
 * The time from a start until the health check returns 200: of the first start of a data folder,
 * with programs and packages in their caches, and of the second start. The time of `npx` is not
 * included.
 */

import type { AtEnd } from "./measure.ts";
import type { Figure } from "./measurement.ts";
import { startProduct } from "./product.ts";

/** Starts twice on a new data folder, `times` times. */
export async function measureReadyTimes(
  times: number,
  atEnd: AtEnd,
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
