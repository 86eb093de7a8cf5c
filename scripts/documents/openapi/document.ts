/**
 * The OpenAPI 3.1 document: put together from the zod objects of `shared/schema`, the tables of
 * operations, the error catalogue, and recorded examples. Nothing of it is written a second time.
 */

import { DOCUMENTED_SERVER } from "../../../shared/http/openapi_route.ts";
import type { OperationGroup } from "../../../shared/http/operation.ts";
import { componentResponses } from "./errors.ts";
import { componentExamples } from "./examples.ts";
import { componentHeaders } from "./headers.ts";
import { ALIASES_TAG, COMPONENT_PARAMETERS, paths, SERVICE_TAG } from "./paths.ts";
import { componentSchemas, type Json } from "./schemas.ts";
import { WEBHOOK_PARAMETERS, webhooks, WEBHOOKS_TAG } from "./webhooks.ts";

const INTRODUCTION = new URL("introduction.md", import.meta.url);

const GROUPS: Record<OperationGroup, string> = {
  "Payments": "Money in: by card, SEPA, SWIFT or stablecoin.",
  "Refunds": "Money given back, of a part of a payment or all of it.",
  "Transfers": "Money out of the available balance, to a bank account or a wallet.",
  "Ledger":
    "Double entry: each change of money is a transaction whose debits and credits are equal.",
  "Webhook endpoints": "Addresses that get events, each with a secret of its own.",
  "Webhook deliveries": "Events on their way to endpoints, with every attempt.",
  "Events": "What happened. They are kept for 30 days.",
  "API keys": "Test keys of the caller's own sandbox.",
  "Sandbox": "Served by the function `api-v1-sandbox`, for test keys only: any state on demand.",
};

/** Builds the document. */
export async function buildDocument(): Promise<Json> {
  const built_paths = paths();
  return {
    openapi: "3.1.0",
    info: {
      title: "Payments API",
      version: "v1",
      summary: "Payments with a deterministic sandbox",
      description: (await Deno.readTextFile(INTRODUCTION)).trim(),
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [
      { url: DOCUMENTED_SERVER, description: "This service" },
      {
        url: "https://{project_ref}.supabase.co/functions/v1",
        description: "A deployment to Supabase",
        variables: {
          project_ref: { default: "your-project-ref", description: "Reference of the project" },
        },
      },
    ],
    security: [{ api_key: [] }],
    tags: [
      ...Object.entries(GROUPS).map(([name, description]) => ({ name, description })),
      { name: WEBHOOKS_TAG, description: "What your endpoints get. Verify before you believe." },
      { name: ALIASES_TAG, description: "The same operations at other addresses." },
      {
        name: SERVICE_TAG,
        description: "Health, this document, and what the operator's clock calls.",
      },
    ],
    paths: built_paths,
    webhooks: webhooks(),
    components: {
      securitySchemes: {
        api_key: {
          type: "http",
          scheme: "bearer",
          description:
            "A test key, `sk_test_…`, opens a sandbox; a live key, `sk_live_…`, a live " +
            "environment.",
        },
        relay_token: {
          type: "http",
          scheme: "bearer",
          description: "The operator's `RELAY_TOKEN`: for the clock that wakes the service.",
        },
      },
      parameters: { ...COMPONENT_PARAMETERS, ...WEBHOOK_PARAMETERS },
      headers: componentHeaders(),
      responses: componentResponses(),
      examples: componentExamples(),
      schemas: componentSchemas(),
    },
  };
}
