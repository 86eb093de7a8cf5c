/**
 * API keys over HTTP: test keys for the caller's own sandbox. Only the operator's command makes
 * live keys. New secrets are derived from the text of the caller's key (`derived_key.ts`).
 */

import { ApiError, invalidParameter } from "../../core/errors.ts";
import { idGenerator, systemRandom } from "../../core/ids.ts";
import type { CreateApiKeyBody } from "../../schema/api_key.ts";
import type { ApiKeyStore } from "../../store/api_key_store.ts";
import { deriveKey, withKey } from "./derived_key.ts";
import { renderError } from "../changes/error_body.ts";
import type { Reply, ServiceRequest } from "../changes/service_request.ts";

export type ApiKeys = ReturnType<typeof createApiKeys>;

/** Creates the operations. Each throws `ApiError`. `caller` is the text of the caller's key. */
export function createApiKeys(store: ApiKeyStore) {
  async function withSecret(
    request: ServiceRequest,
    caller: string,
    change: Parameters<ApiKeyStore["change"]>[1],
  ): Promise<Reply> {
    refuseLive(request);
    const secret = deriveKey(request, caller);
    const reply = await store.change(request.access, { ...change, secret }, request.idempotency);
    return withKey(reply, caller);
  }

  return {
    create(request: ServiceRequest, caller: string, body: CreateApiKeyBody) {
      const expires_at_ms = body.expires_at;
      if (expires_at_ms !== undefined && expires_at_ms <= request.context.at_ms) {
        throw invalidParameter(
          "expires_at",
          '"expires_at" must be a time in the future',
        );
      }
      return withSecret(request, caller, {
        action: "create",
        id: keyId(request),
        status: 201,
        name: body.name,
        scopes: body.scopes,
        expires_at_ms,
      });
    },

    rotate(request: ServiceRequest, caller: string, id: string, expires_in_s: number) {
      const { at_ms } = request.context;
      const ended = new ApiError(
        "invalid_state",
        "Cannot rotate: the key has ended. Make a new key",
        { current_status: "ended", allowed: [] },
      );
      return withSecret(request, caller, {
        action: "rotate",
        id,
        status: 200,
        older_expire_at_ms: at_ms + expires_in_s * 1000,
        refusal: { status: ended.status, body: renderError(ended, request.context) },
      });
    },

    async revoke(request: ServiceRequest, id: string): Promise<Reply> {
      refuseLive(request);
      const change = { action: "revoke", id, status: 200 } as const;
      return await store.change(request.access, change, request.idempotency);
    },
  };
}

function refuseLive({ context }: ServiceRequest): void {
  if (!context.livemode) return;
  throw new ApiError(
    "test_key_required",
    "Only the operator's command (deno task keys) manages live keys: use a test key here",
  );
}

/**
 * Makes the id of a key. Its random characters never follow from a seed, because the id is unique
 * in the whole database.
 */
export function keyId({ context }: ServiceRequest): string {
  const { at_ms, run_number, newId } = context;
  return (run_number === null ? newId : idGenerator(at_ms, systemRandom, run_number))("key_");
}
