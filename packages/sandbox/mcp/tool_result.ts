/** The results of tools, which are bounded, because an agent pays for every character. */

import type { CallToolResult } from "@modelcontextprotocol/sdk/types";
import { ApiError } from "../../client/mod.ts";
import { errorBody } from "../command_errors.ts";

/** Characters of one result: about 10 000 tokens, from which common clients warn. */
export const MAX_RESULT_CHARACTERS = 40_000;

/** Runs a tool. An error becomes a result, so that the agent can correct its call. */
export async function resultOf(run: () => Promise<unknown>): Promise<CallToolResult> {
  try {
    return { content: [{ type: "text", text: textOf(await run()) }] };
  } catch (error) {
    const status = error instanceof ApiError ? { status: error.status } : {};
    const text = textOf({ ...status, error: errorBody(error) });
    return { content: [{ type: "text", text }], isError: true };
  }
}

/**
 * Reads a page with the most items that fit into a result: half as many at each attempt.
 * @param read reads a page with at most so many items
 */
export async function fittingPage<Page>(
  limit: number,
  read: (limit: number) => PromiseLike<Page>,
): Promise<Page> {
  for (let most = limit;; most = Math.ceil(most / 2)) {
    const page = await read(most);
    if (most === 1 || JSON.stringify(page).length <= MAX_RESULT_CHARACTERS) return page;
  }
}

function textOf(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= MAX_RESULT_CHARACTERS) return text;
  const note = `\n[Cut: ${text.length} characters, of which this is the beginning]`;
  return text.slice(0, MAX_RESULT_CHARACTERS - note.length) + note;
}
