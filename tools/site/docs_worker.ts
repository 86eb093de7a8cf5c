/**
 * Builds the documentation in a thread of its own: the build takes a second or two, in which the
 * service serves requests. It loads the renderers, so a start without a visit does not.
 */
/// <reference lib="deno.worker" />

import { buildDocsSite } from "./docs_site.ts";

self.addEventListener("message", async ({ data }: MessageEvent<{ console_url: string | null }>) => {
  try {
    self.postMessage({ site: await buildDocsSite(data.console_url) });
  } catch (error) {
    self.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
});
