/**
 * Disposable sandboxes: a test key makes one with a single call, gets a key of it, and ends it
 * (ADR 0022). The key is derived as the keys of `api_keys.ts` are.
 */

import { seededPrefix } from "../core/api_key.ts";
import type { CreateSandboxBody } from "../schema/sandbox.ts";
import type { SandboxStore } from "./sandbox_store.ts";
import { deriveKey, revealKey } from "../domain/keys/derived_key.ts";
import type { Reply, ServiceRequest } from "../domain/changes/service_request.ts";

/** The changes of disposable sandboxes. Each throws `ApiError`. */
export interface Sandboxes {
  /** Makes a sandbox. `caller` is the text of the caller's key. */
  create(request: ServiceRequest, caller: string, body: CreateSandboxBody): Promise<Reply>;
  /** Ends a sandbox at once. Ending it again changes nothing. */
  end(request: ServiceRequest, id: string): Promise<Reply>;
}

/** Creates the operations over a store. */
export function createSandboxes(store: SandboxStore): Sandboxes {
  return {
    async create(request, caller, { name, expires_in, seed }) {
      const { newId } = request.context;
      const reply = await store.create(request.access, {
        id: newId("env_"),
        name,
        expires_in,
        seed: seed ?? undefined,
        key: {
          ...deriveKey(request, caller, seed == null ? undefined : seededPrefix(caller)),
          key_id: newId("key_"),
        },
      }, request.idempotency);
      return {
        ...reply,
        response: { ...reply.response, body: revealKey(reply.response.body, caller) },
      };
    },

    end: (request, id) => store.end(request.access, id, request.idempotency),
  };
}
