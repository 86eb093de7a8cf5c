/**
 * Disposable sandboxes: a test key makes one with a single call, gets a key of it, makes further
 * ones, and ends it (ADR 0022). The keys are derived as those of `api_keys.ts` are.
 */

import { seededPrefix } from "../core/api_key.ts";
import { ApiError } from "../core/errors.ts";
import type { CreateSandboxBody, CreateSandboxKeyBody } from "../schema/sandbox.ts";
import type { SandboxStore } from "./sandbox_store.ts";
import { renderError } from "../domain/changes/error_body.ts";
import { keyId } from "../domain/keys/api_keys.ts";
import { deriveKey, withKey } from "../domain/keys/derived_key.ts";
import type { Reply, ServiceRequest } from "../domain/changes/service_request.ts";

export type Sandboxes = ReturnType<typeof createSandboxes>;

/** Creates the changes. Each throws `ApiError`. `caller` is the text of the caller's key. */
export function createSandboxes(store: SandboxStore) {
  return {
    async create(
      request: ServiceRequest,
      caller: string,
      { name, expires_in, seed }: CreateSandboxBody,
    ): Promise<Reply> {
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
      return withKey(reply, caller);
    },

    async createKey(
      request: ServiceRequest,
      caller: string,
      id: string,
      { name, scopes, expires_in }: CreateSandboxKeyBody,
    ): Promise<Reply> {
      const ended = new ApiError("invalid_state", "Cannot make a key: the sandbox has ended", {
        current_status: "ended",
        allowed: [],
      });
      const reply = await store.makeKey(
        request.access,
        id,
        { id: keyId(request), name, scopes, expires_in },
        {
          plain: deriveKey(request, caller),
          seeded: deriveKey(request, caller, seededPrefix(caller)),
        },
        { status: ended.status, body: renderError(ended, request.context) },
        request.idempotency,
      );
      return withKey(reply, caller);
    },

    /** Ends a sandbox at once. Ending it again changes nothing. */
    end: (request: ServiceRequest, id: string) =>
      store.end(request.access, id, request.idempotency),
  };
}
