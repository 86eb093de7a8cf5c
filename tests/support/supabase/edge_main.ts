/**
 * The main module of a process of functions, in place of the edge runtime. It runs on Deno 2.1.4,
 * and its arguments are the URLs of their `index.ts`. It listens on a free loopback port and prints
 * the port as its first line. A request reaches the function whose name is in its path, with or
 * without `/functions/v1`. `EdgeRuntime.waitUntil` prints a line for each promise.
 */

const FUNCTION_OF_URL = /^\w+:\/\/[^/]*(?:\/functions\/v1)?\/([^/?]+)/;

const serve = Deno.serve as (options: Deno.ServeTcpOptions, handler: Deno.ServeHandler) => unknown;
const waitUntil = (work: unknown) => {
  if (!(work instanceof Promise)) throw new TypeError("waitUntil takes a promise");
  console.log("handed over");
};
Object.assign(globalThis, { EdgeRuntime: { waitUntil } });
const handlers = new Map<string, Deno.ServeHandler>();
for (const url of Deno.args) {
  const name = url.split("/").at(-2)!;
  Object.assign(Deno, { serve: (handler: Deno.ServeHandler) => handlers.set(name, handler) });
  await import(url);
}
serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => console.log(`listening on ${port}`),
}, (request, info) => {
  const handler = handlers.get(FUNCTION_OF_URL.exec(request.url)?.[1] ?? "");
  return handler ? handler(request, info) : new Response(null, { status: 404 });
});
