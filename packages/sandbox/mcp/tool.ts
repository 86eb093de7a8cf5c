/** A tool that an agent can call: its description, its input and its effect. */

import type { ToolAnnotations } from "@modelcontextprotocol/sdk/types";
import * as z from "zod";
import type { PaymentsClient } from "../../client/mod.ts";
import { ApiError } from "../../../shared/core/errors.ts";
import { checkValue } from "../../../shared/http/check_value.ts";
import { UsageError } from "../command.ts";

/** The sandbox of an agent. */
export interface AgentSandbox {
  client: PaymentsClient;
  base_url: string;
  /** The key of a sandbox that belongs to the agent alone. */
  test_key?: string;
}

/** The sandbox in a call, and the signal that cancels the call. */
export interface ToolCall extends AgentSandbox {
  signal: AbortSignal;
}

/** A tool. */
export interface Tool {
  name: string;
  title: string;
  description: string;
  input: z.ZodType;
  annotations: ToolAnnotations;
  /**
   * Returns what the agent reads: a text, or a value that is shown as JSON.
   * @throws {UsageError} for an argument that the tool refuses or does not know
   */
  run(given: Record<string, unknown>, call: ToolCall): Promise<unknown>;
}

/** Hints for a client that asks its user before a call. No tool reaches beyond the sandbox. */
const ANNOTATIONS = {
  /** Changes nothing. */
  read: { readOnlyHint: true },
  /** Adds or moves something. */
  change: { readOnlyHint: false, destructiveHint: false },
  /** Deletes data, or lets it end. */
  destroy: { readOnlyHint: false, destructiveHint: true },
} as const satisfies Record<string, ToolAnnotations>;

/** The parts of a tool. */
interface Definition<Shape extends z.core.$ZodShape> {
  name: string;
  title: string;
  description: string;
  effect: keyof typeof ANNOTATIONS;
  input: Shape;
  run(input: z.output<z.ZodObject<Shape>>, call: ToolCall): PromiseLike<unknown>;
}

/** Makes a tool. It refuses fields that it does not know. */
export function tool<Shape extends z.core.$ZodShape>(definition: Definition<Shape>): Tool {
  const { name, title, description, effect, run } = definition;
  const input = z.object(definition.input);
  return {
    name,
    title,
    description,
    input,
    annotations: { ...ANNOTATIONS[effect], openWorldHint: false },
    run: async (given, call) => await run(parseArguments(input, given), call),
  };
}

/** Applies the schema of a tool as the API applies that of a body, with its messages. */
function parseArguments<T>(schema: z.ZodType<T>, given: Record<string, unknown>): T {
  try {
    return checkValue(schema, given);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new UsageError(error.message, error.details.param);
  }
}
