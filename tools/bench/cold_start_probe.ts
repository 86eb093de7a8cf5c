/**
 * Imports the bundle of a function and sends it one request without a key, which needs no network and
 * no database. Prints the CPU milliseconds of both over all threads. Runs on Deno 2.1.4.
 */

import { Buffer } from "node:buffer";
import process from "node:process";

/** CPU time of this process. */
function cpuMs(): number {
  let ns = 0;
  for (const { name } of Deno.readDirSync("/proc/self/task")) {
    try {
      ns += Number(Deno.readTextFileSync(`/proc/self/task/${name}/schedstat`).split(" ")[0]);
    } catch {
      // The thread has ended.
    }
  }
  return ns / 1e6;
}

if (import.meta.main) {
  const [bundle, name] = Deno.args;
  // Deno gives npm packages these globals, but not the code of a bundle.
  Object.assign(globalThis, { Buffer, process });
  Deno.env.set("PAYMENTS_DB_URL", "postgres://nobody@127.0.0.1:1/none");
  Deno.env.set("PUBLIC_BASE_URL", "http://127.0.0.1/functions/v1");
  console.log = () => {};
  let handler: ((request: Request) => Response | Promise<Response>) | undefined;
  Object.assign(Deno, { serve: (given: typeof handler) => handler = given });
  const before_ms = cpuMs();
  await import(bundle!);
  const response = await handler!(
    new Request(`http://127.0.0.1/${name}/v1/payments`, { method: "POST", body: "{}" }),
  );
  await response.text();
  if (response.status !== 401) throw new Error(`got ${response.status}, not 401`);
  const used = cpuMs() - before_ms;
  Deno.stdout.writeSync(new TextEncoder().encode(`${used.toFixed(1)}\n`));
  Deno.exit(0);
}
