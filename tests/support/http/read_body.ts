/** A body as a route reads it. */

import type * as z from "zod";
import { parseBytes, type ReadBody } from "../../../shared/http/request_body.ts";

const JSON_HEADERS = new Headers({ "Content-Type": "application/json" });

/** Reads the text of a body, or a value that is sent as JSON. */
export function readBody(sent: string | object, schema: z.ZodType): ReadBody {
  const text = typeof sent === "string" ? sent : JSON.stringify(sent);
  return parseBytes(new TextEncoder().encode(text), JSON_HEADERS, schema);
}
