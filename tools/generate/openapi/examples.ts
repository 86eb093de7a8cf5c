/**
 * The examples of the document: requests that tests/openapi/examples_test.ts sent to the product,
 * and the responses of the product. They stand only in docs/openapi.json. The generator keeps the
 * examples of the present file, and the test writes them anew.
 */

import { EVENT_TYPES } from "../../../shared/core/vocabulary.ts";
import { ERROR_CODES } from "../../../shared/schema/error.ts";
import type { Json } from "./schemas.ts";

const FILE = new URL("../../../docs/openapi.json", import.meta.url);

interface Example {
  summary: string;
  value: Json;
}

export interface OperationExamples {
  /** Bodies of requests; undefined if no example has one. */
  requests: Record<string, Example> | undefined;
  /** Bodies of successful responses; undefined if they are not JSON. */
  responses: Record<string, Example> | undefined;
}

export interface Examples {
  /** By the id of the operation. */
  operations: Record<string, OperationExamples>;
  /** `components.examples`: errors and events, by `errorExampleName` and `eventExampleName`. */
  components: Record<string, { value: Json }>;
}

export async function readExamples(): Promise<Examples> {
  return examplesIn(JSON.parse(await Deno.readTextFile(FILE)));
}

// deno-lint-ignore no-explicit-any
export function examplesIn({ paths, components }: any): Examples {
  const operations: Examples["operations"] = {};
  for (const item of Object.values<object>(paths)) {
    for (const { operationId, requestBody, responses } of Object.values(item)) {
      const success = Object.keys(responses).find((status) => status.startsWith("2"))!;
      operations[operationId] = {
        requests: requestBody?.content["application/json"].examples,
        responses: responses[success].content["application/json"]?.examples,
      };
    }
  }
  // The example of a removed code or event goes.
  const names = [...ERROR_CODES.map(errorExampleName), ...EVENT_TYPES.map(eventExampleName)]
    .filter((name) => name in components.examples);
  return {
    operations,
    components: Object.fromEntries(names.map((name) => [name, components.examples[name]])),
  };
}

export function errorExampleName(code: string): string {
  return `error_${code}`;
}

export function eventExampleName(type: string): string {
  return `event_${type.replace(".", "_")}`;
}
