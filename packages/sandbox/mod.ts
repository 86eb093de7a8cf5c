/**
 * The sandbox of the payments API for tests, on Node 20+, Deno and Bun, and the client of the API.
 *
 * @module
 */

export * from "../client/mod.ts";
export {
  type LocalSandbox,
  type NewSandbox,
  startSandbox,
  type StartSandboxOptions,
  type TestSandbox,
} from "./start_sandbox.ts";
