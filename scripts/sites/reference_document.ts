/**
 * The OpenAPI document of the reference page: the served document with code samples for every
 * operation. The served document leaves them out, because generators of clients do not need them.
 */

import { OPENAPI_GZIP } from "../../shared/http/openapi_document.ts";
import { unpackDocument } from "../../shared/http/openapi_route.ts";
import { codeSamples } from "../documents/code_samples/code_samples.ts";
import {
  KEY_VARIABLE,
  type SampleCall,
  TOKEN_VARIABLE,
} from "../documents/code_samples/sample_call.ts";
import { firstExample } from "../documents/openapi/examples.ts";
import { ADDRESSES } from "../documents/openapi/operations.ts";
import type { Json } from "../documents/openapi/schemas.ts";

/** The parts of the document that this module reads and changes. */
interface Document extends Json {
  servers: Json[];
  paths: Record<string, Record<string, DocumentedOperation>>;
}

interface DocumentedOperation extends Json {
  operationId: string;
  /** Without it the operation takes an API key. */
  security?: Json[];
}

/**
 * Builds the document.
 * @param base_url base URL of the service, for the samples. Requests of the page go to its path on
 * the origin of the page.
 */
export async function buildReferenceDocument(base_url: string): Promise<Json> {
  const document = JSON.parse(await unpackDocument(OPENAPI_GZIP)) as Document;
  document.servers = [{ url: new URL(base_url).pathname, description: "This service" }];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      operation["x-codeSamples"] = codeSamples(
        sampleCall(operation, method.toUpperCase(), path, base_url),
      );
    }
  }
  return document;
}

/** The request that the samples of an operation show: its first example, at its own address. */
export function sampleCall(
  { operationId: operation_id, security }: Pick<DocumentedOperation, "operationId" | "security">,
  method: string,
  path: string,
  base_url: string,
): SampleCall {
  const example = firstExample(mainOperation(operation_id));
  const id = example?.id ?? null;
  const query = example?.path.split("?")[1];
  const own_path = path.replace(/\{(id|key)\}/, id ?? "");
  const secret = security === undefined
    ? KEY_VARIABLE
    : security.length === 0
    ? null
    : TOKEN_VARIABLE;
  return {
    operation_id,
    method,
    path: query ? `${own_path}?${query}` : own_path,
    base_url,
    body: example?.request ?? null,
    id,
    secret,
  };
}

/** The operation whose examples an alias shares. */
function mainOperation(operation_id: string): string {
  return ADDRESSES.find(({ id }) => id === operation_id)?.operation.id ?? operation_id;
}
