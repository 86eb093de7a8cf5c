/** The log of requests and the look at an idempotency key (contract §5). */

import * as z from "zod";
import { RequestSource } from "./request_query.ts";
import { id, Instant } from "./values.ts";

const PATH_WORDS = "Path from the name of the function on: `/api-v1-payments/v1/payments`";

export const IdempotencyKey = z.object({
  key: z.string().describe("The key, as the header `Idempotency-Key` sent it"),
  object: z.literal("idempotency_key"),
  first_request_id: id("req_").describe("Id of the first request with this key"),
  method: z.string().describe("HTTP method of the first request"),
  path: z.string().describe(PATH_WORDS),
  status: z.number().int().nullable().describe(
    "HTTP status of the stored response. Null while the first request is under way",
  ),
  created_at: Instant.describe("Time of the first request"),
  expires_at: Instant.describe("Time from which a request with this key is a new one"),
  replays: z.number().int().min(0).describe(
    "How often the stored response was replayed. Replays are counted behind their responses",
  ),
  body: z.record(z.string(), z.unknown()).nullable().describe(
    "Body of the stored response, with `***` in place of secrets. Null while the first request " +
      "is under way",
  ),
}).describe("An idempotency key that an API key has used within the last 24 hours");

const LoggedBody = z.record(z.string(), z.unknown()).nullable().optional();

export const LoggedRequest = z.object({
  id: id("req_").describe("Id of the request, as in the header `Request-Id` of its response"),
  object: z.literal("request"),
  method: z.string().describe("HTTP method"),
  path: z.string().describe(`${PATH_WORDS}. \`***\` stands for text that the log does not show`),
  query: z.string().nullable().describe(
    "Known parameters of the query. `***` stands for free text. Null: none",
  ),
  status: z.number().int().describe("HTTP status of the response"),
  error_code: z.string().nullable().describe("Code of the error. Null: the response is no error"),
  idempotency_key: z.string().nullable().describe("Its idempotency key. Null: none"),
  idempotent_replay: z.boolean().describe("True: the response is that of an earlier request"),
  duration_ms: z.number().min(0).describe("Time from the arrival of the request to its response"),
  api_key_id: id("key_").describe("Id of the API key that sent the request"),
  source: RequestSource,
  resource_id: z.string().nullable().describe(
    "Id of the resource that the request has made, or else of the one that it names. A request " +
      "has made it also if its response is a decline, or an error of a declared fault. Null: none",
  ),
  fault: z.string().nullable().describe(
    "The declared fault that decided the response, as in its header `Sandbox-Fault`. Null: none",
  ),
  fault_id: id("flt_").nullable().describe(
    "Id of the fault. Null: none, or the request asked for it with the header `Sandbox-Fault`",
  ),
  created_at: Instant.describe("Time at which the request arrived"),
  request_body: LoggedBody.describe(
    "Body with `…` in place of secrets and of unknown members. Null: not stored. Only the read " +
      "of one request has it",
  ),
  response_body: LoggedBody.describe("Body of the response, as `request_body`"),
}).describe("A request that a sandbox has received");
