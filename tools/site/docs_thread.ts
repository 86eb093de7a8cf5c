/** Runs the build of the documentation in a thread of its own (`docs_worker.ts`). */

import type { StaticSite } from "./static_site.ts";

/**
 * Builds the documentation. The first build fetches the renderers, like the first bundle of the
 * console its library.
 * @param console_url URL of the console, relative to the folder of the site; null without one
 * @throws {Error} that says what is missing
 */
export async function buildDocsInThread(console_url: string | null): Promise<StaticSite> {
  const worker = new Worker(new URL("docs_worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }) => {
        if ("site" in data) resolve(data.site);
        else reject(new Error(data.error));
      });
      worker.addEventListener("error", (event) => {
        // The event would end the process otherwise.
        event.preventDefault();
        reject(new Error(`The documentation cannot be built: ${event.message}`));
      });
      worker.postMessage({ console_url });
    });
  } finally {
    worker.terminate();
  }
}
