/** A tool that an agent can call: its description, its input and its effect. */

import type { ToolAnnotations } from "@modelcontextprotocol/sdk/types";
import * as z from "zod";
import type { PaymentsClient } from "../../client/mod.ts";

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
export interface Tool<Input = unknown> {
  name: string;
  title: string;
  description: string;
  input: z.ZodType<Input>;
  annotations: ToolAnnotations;
  /** Returns what the agent reads: a text, or a value that is shown as JSON. */
  run(input: Input, call: ToolCall): Promise<unknown>;
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
  const { name, title, description, effect, input, run } = definition;
  return {
    name,
    title,
    description,
    input: z.strictObject(input),
    annotations: { ...ANNOTATIONS[effect], openWorldHint: false },
    run: async (given, call) => await run(given as z.output<z.ZodObject<Shape>>, call),
  };
}
