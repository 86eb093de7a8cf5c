/**
 * Builds the OpenAPI 3.1 document from the zod objects of `shared/schema`, the tables of
 * operations, the error catalogue, and recorded examples. It repeats nothing of these sources.
 */

import { DOCUMENTED_SERVER } from "../../../shared/http/openapi_route.ts";
import type { RouteGroup } from "../../../shared/http/route.ts";
import { ACCOUNT_TABLE, CARD_TABLE } from "../test_value_tables.ts";
import { componentResponses } from "./errors.ts";
import { type Examples, readExamples } from "./examples.ts";
import { componentHeaders } from "./headers.ts";
import { ALIASES_TAG, COMPONENT_PARAMETERS, paths, SERVICE_TAG } from "./paths.ts";
import { componentSchemas, type Json } from "./schemas.ts";
import { webhooks, WEBHOOKS_TAG } from "./webhooks.ts";

const INTRODUCTION = new URL("introduction.md", import.meta.url);
/** The place of the tables of test values in the introduction. */
const TEST_VALUES = "{test_values}";

const GROUPS: Record<RouteGroup, string> = {
  "Payments": "Money in: from the create of a payment to its capture or its end.",
  "Refunds": "Money back to the payer: all of a payment or a part of it.",
  "Disputes": "Payments that the payer has charged back. Evidence can bring the money back to you.",
  "Instruments":
    "Cards and SEPA mandates that a payment has saved, and that later payments can use.",
  "Checkouts": "Prices that a payer can pay by several methods, in one attempt or more.",
  "Customers": "The erasure of personal data.",
  "Transfers": "Money out of the available balance, to a bank account or a wallet.",
  "Ledger":
    "Double entry: each change of money is a transaction whose debits and credits are equal.",
  "Webhook endpoints": "URLs that receive events. Each has its own secret.",
  "Webhook deliveries": "The delivery of an event to an endpoint, with every attempt.",
  "Events": "Changes of resources. The service keeps events for 30 days.",
  "API keys": "Test keys of your own sandbox.",
  "Requests":
    "The first request of an idempotency key, and the log of the requests of your sandbox.",
  "Sandbox":
    "The function `api-v1-sandbox`. It brings payments into any status, for test keys only.",
};

/** Builds the document. It keeps the examples of docs/openapi.json if no others are given. */
export async function buildDocument(examples?: Examples): Promise<Json> {
  const { operations, components } = examples ?? await readExamples();
  const built_paths = paths(operations);
  return {
    openapi: "3.1.0",
    info: {
      title: "Payments API",
      version: "v1",
      summary: "Payments with a deterministic sandbox",
      description: await readIntroduction(),
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
      {
        name: WEBHOOKS_TAG,
        description:
          "The requests that your endpoints receive. Verify `Payment-Signature` before you use one: " +
          "compare in constant time, and refuse a `t` that is 300 s or more from your clock. " +
          "During a rotation of the secret there is one more `v1` for each older secret.",
      },
      { name: ALIASES_TAG, description: "The same operations at other addresses." },
      {
        name: SERVICE_TAG,
        description: "Health, this document, and the scheduled calls of the operator.",
      },
    ],
    paths: built_paths,
    webhooks: webhooks(components),
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
          description: "The operator's `RELAY_TOKEN`, which authenticates the scheduled calls.",
        },
      },
      parameters: COMPONENT_PARAMETERS,
      headers: componentHeaders(),
      responses: componentResponses(),
      examples: components,
      schemas: componentSchemas(),
    },
  };
}

/** Reads the text above the operations, with the tables of test values, without their padding. */
async function readIntroduction(): Promise<string> {
  const text = await Deno.readTextFile(INTRODUCTION);
  if (!text.includes(TEST_VALUES)) throw new Error(`introduction.md has no ${TEST_VALUES}`);
  const tables = [...CARD_TABLE, "", ...ACCOUNT_TABLE].map(withoutPadding).join("\n");
  return text.replace(TEST_VALUES, tables).trim();
}

/** A line of a table without the spaces and dashes that align its columns. */
function withoutPadding(line: string): string {
  const cells = line.split("|").map((cell) => cell.trim().replace(/^-+$/, "---"));
  return cells.join(" | ").trim();
}
