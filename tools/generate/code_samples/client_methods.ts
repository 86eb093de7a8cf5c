/** The methods of the client by operation: each is called once; its request shows the operation. */

import { PaymentsClient } from "../../../packages/client/mod.ts";
import { ADDRESSES } from "../openapi/operations.ts";

type Method = (...args: unknown[]) => PromiseLike<unknown>;

/** Stands for an id in a path. */
const ID = "ID";
/** Its method takes the value of a member of the query, and samples have the query as an object. */
const LEFT_OUT = "eraseCustomerByEmail";

/** Such as `payments.create`. The arguments are the id and the body or the query. */
export const CLIENT_METHODS: Readonly<Record<string, string>> = await readMethods();

async function readMethods(): Promise<Record<string, string>> {
  let request = "";
  const client = new PaymentsClient({
    apiKey: "sk_test_0",
    baseUrl: "http://service.invalid",
    maxRetries: 0,
    fetch: (url, { method }) => {
      request = `${method} ${new URL(url).pathname}`;
      return Promise.reject(new Error("It is not sent"));
    },
  });
  const found: Record<string, string> = {};
  for (const [name, resource] of Object.entries(client)) {
    const methods = resource as Record<string, Method>;
    for (const method of methodsOf(resource)) {
      // Without an id it refuses one in place of the body or the query.
      for (const args of [[ID, {}], [{}]]) {
        await (async () => await methods[method]!(...args))().catch(() => {});
        if (request !== "") break;
      }
      const address = ADDRESSES.find(({ operation, path, alias_of }) =>
        alias_of === null && request === `${operation.method} ${path.replace(/\{\w+\}/, ID)}`
      );
      if (address && address.id !== LEFT_OUT) found[address.id] = `${name}.${method}`;
      request = "";
    }
  }
  return found;
}

/** The names of the methods of a resource of the client, also those of its base. */
export function methodsOf(resource: object): string[] {
  const names: string[] = [];
  for (
    let of = Object.getPrototypeOf(resource);
    of !== Object.prototype;
    of = Object.getPrototypeOf(of)
  ) names.push(...Object.getOwnPropertyNames(of));
  return [...new Set(names)].filter((name) => name !== "constructor");
}
