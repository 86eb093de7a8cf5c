/**
 * The main module of a function's process, in place of the edge runtime. It runs on Deno 2.1.4, and
 * its argument is the URL of an `index.ts`. It makes `Deno.serve` listen on a free loopback port,
 * and prints the port as its first line. `EdgeRuntime.waitUntil` prints a line for each promise.
 */

const serve = Deno.serve as (options: Deno.ServeTcpOptions, handler: Deno.ServeHandler) => unknown;
Object.assign(Deno, {
  serve: (handler: Deno.ServeHandler) =>
    serve({
      hostname: "127.0.0.1",
      port: 0,
      onListen: ({ port }) => console.log(`listening on ${port}`),
    }, handler),
});
const waitUntil = (work: unknown) => {
  if (!(work instanceof Promise)) throw new TypeError("waitUntil takes a promise");
  console.log("handed over");
};
Object.assign(globalThis, { EdgeRuntime: { waitUntil } });
await import(Deno.args[0]!);
